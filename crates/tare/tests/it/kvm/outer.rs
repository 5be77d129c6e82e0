//! The outer guest: a machine with KVM that QEMU emulates.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tare_kernels::{Initramfs, Store, default_store_dir, file_sha256};
use tare_targets::measured::MeasuredFile;
use tempfile::TempDir;

use crate::common::skip;

/// Seconds that a check may take, by the outer guest's clock, and that all may take, by ours.
const LIMITS: [&str; 2] = ["100", "400"];

/// It sleeps while it starts the second CPU. QEMU 7.2, where it counts instructions, executes that
/// only if the first CPU pauses or halts; Linux 6.1 does neither there and hangs.
const KERNEL: &str = "debian-cloud-6.12";
const QEMU: &str = "/usr/bin/qemu-system-x86_64";
const IP: &str = "/bin/ip";
/// The folders of what QEMU loads into its guests, and the files that ours need.
const FIRMWARE: [(&str, &[&str]); 2] = [
    (
        "/usr/share/qemu",
        &["qboot.rom", "kvmvapic.bin", "linuxboot_dma.bin", "pvh.bin"],
    ),
    ("/usr/share/seabios", &["bios-256k.bin", "bios-microvm.bin"]),
];
/// The modules of the outer guest, and those of a Linux guest in it.
const MODULES: [&[&str]; 2] = [
    &["kvm_amd", "tun", "bridge", "veth"],
    &["virtio_pci", "virtio_console", "virtio_net"],
];

/// The output of a check.
#[derive(Debug, PartialEq)]
pub struct Said {
    /// Its exit status.
    pub status: i32,
    /// The output.
    pub text: String,
    /// When it ended, in seconds since the outer guest's boot.
    pub end_seconds: f64,
}

/// A machine with KVM, ready to be started.
pub struct Outer {
    folder: TempDir,
    vmlinuz: PathBuf,
    initramfs: Initramfs,
}

impl Outer {
    /// Prepares it; `None`, with a message, if something is missing.
    pub fn new() -> Option<Self> {
        let missing = |what: &str| skip("KVM in a guest", what);
        let store = Store::open(&default_store_dir().ok()?).ok()?;
        let Ok(kernel) = store.find(KERNEL) else {
            missing(KERNEL);
            return None;
        };
        let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(Path::new);
        let Some(busybox) = busybox.into_iter().find(|path| path.exists()) else {
            missing("busybox");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let mut files = Initramfs::new();
        for folder in ["dev", "proc", "sys", "tmp", "run", "root"] {
            files.dir(folder, 0o755).unwrap();
        }
        files.node("/dev/console", 0o600, 5, 1).unwrap();
        files
            .file("/init", 0o755, include_bytes!("init.sh"))
            .unwrap();
        files
            .file("/study.toml", 0o644, include_bytes!("study.toml"))
            .unwrap();
        files
            .file(
                "/etc/passwd",
                0o644,
                "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
            )
            .unwrap();
        files
            .file("/bin/busybox", 0o755, fs::read(busybox).unwrap())
            .unwrap();
        let applets = Command::new(busybox).arg("--list").output().unwrap();
        for name in String::from_utf8(applets.stdout)
            .unwrap()
            .lines()
            .filter(|name| !["busybox", "ip"].contains(name))
        {
            files.symlink(format!("/bin/{name}"), "busybox").unwrap();
        }
        files.program(QEMU).unwrap();
        // The one of busybox can't set up a bridge.
        files.program(IP).unwrap();
        for (folder, names) in FIRMWARE {
            for name in names {
                let path = Path::new(folder).join(name);
                files.file(&path, 0o644, fs::read(&path).unwrap()).unwrap();
            }
        }
        let release = &kernel.release;
        files
            .file("/boot/vmlinuz", 0o644, fs::read(&kernel.vmlinuz).unwrap())
            .unwrap();
        let [own, inner] = MODULES.map(|names| kernel.modules_for(names).unwrap());
        let path = |name: &str| format!("{release}/kernel/{name}.ko");
        let order: String = own.iter().map(|module| path(&module.name) + "\n").collect();
        files.file("/lib/modules/order", 0o644, order).unwrap();
        for module in own.into_iter().chain(inner) {
            let path = format!("/lib/modules/{}", path(&module.name));
            files.file(path, 0o644, module.bytes).unwrap();
        }
        let builtin = kernel.modules.as_ref().unwrap().join("modules.builtin");
        let path = format!("/lib/modules/{release}/modules.builtin");
        files.file(path, 0o644, fs::read(builtin).unwrap()).unwrap();
        let tare = Path::new(env!("CARGO_BIN_EXE_tare"));
        let stripped = folder.path().join("stripped");
        let mut strip = |from: &Path, to: &str| {
            let done = Command::new("strip")
                .arg("-o")
                .arg(&stripped)
                .arg(from)
                .status();
            assert!(done.unwrap().success());
            files.file(to, 0o755, fs::read(&stripped).unwrap()).unwrap();
        };
        strip(tare, "/usr/bin/tare");
        for (from, to) in [
            (MeasuredFile::agent(), "tare-agent"),
            (MeasuredFile::services(), "tare-service"),
        ] {
            strip(from.path().unwrap(), &format!("/usr/lib/tare/{to}"));
        }
        for image in [
            MeasuredFile::image("hello"),
            MeasuredFile::image("bench"),
            MeasuredFile::service("dns"),
        ] {
            let path = image.path().unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            let to = format!("/usr/lib/tare/images/{name}");
            files.file(to, 0o644, image.read().unwrap()).unwrap();
        }
        // The libraries of tare itself, without the file at its path of this machine.
        let libraries = Command::new("ldd").arg(tare).output().unwrap().stdout;
        for word in String::from_utf8(libraries)
            .unwrap()
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
        {
            files.file(word, 0o755, fs::read(word).unwrap()).unwrap();
        }
        Some(Self {
            folder,
            vmlinuz: kernel.vmlinuz,
            initramfs: files,
        })
    }

    /// Runs checks, scripts with a name, one after the other, on a number of CPUs.
    pub fn run(&self, cpus: u32, checks: &[(&str, &str)]) -> Vec<Said> {
        let mut initramfs = self.initramfs.clone();
        for (number, (name, script)) in checks.iter().enumerate() {
            let path = format!("/checks/{number:02}-{name}");
            initramfs.file(path, 0o644, *script).unwrap();
        }
        let mut qemu = self
            .command(initramfs, cpus, "off")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(qemu.stdout.take().unwrap());
        let (mut all, mut text) = (Vec::new(), String::new());
        for line in output.split(b'\n').map(Result::unwrap) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            eprintln!("{line}");
            match line.strip_prefix("@@ ") {
                Some("begin") => text.clear(),
                Some(end) => {
                    let (status, seconds) = end.split_once(' ').unwrap();
                    all.push(Said {
                        status: status.parse().unwrap(),
                        text: std::mem::take(&mut text),
                        end_seconds: seconds.parse().unwrap(),
                    });
                }
                None => text += &format!("{line}\n"),
            }
        }
        assert!(qemu.wait().unwrap().success());
        assert_eq!(all.len(), checks.len());
        all
    }

    /// Returns the SHA-256 of what decides how often a boot of `hello` leaves its guest: QEMU, its
    /// firmware, the kernel and the image.
    pub fn files_of_a_boot(&self) -> [String; 4] {
        let hello = MeasuredFile::image("hello");
        let hello = hello.path().unwrap();
        let firmware = Path::new(FIRMWARE[0].0).join(FIRMWARE[0].1[0]);
        [Path::new(QEMU), &firmware, &self.vmlinuz, hello].map(|path| file_sha256(path).unwrap())
    }

    /// Opens a shell in it, on the terminal of this process.
    pub fn shell(&self) {
        let status = self.command(self.initramfs.clone(), 2, "on").status();
        assert!(status.unwrap().success());
    }

    /// `sleep` is QEMU's: whether the time in which the outer guest is idle passes here, too. What
    /// its processor lacks is slow under emulation.
    fn command(&self, initramfs: Initramfs, cpus: u32, sleep: &str) -> Command {
        let file = self.folder.path().join("initramfs");
        fs::write(&file, initramfs.finish()).unwrap();
        let mut command = Command::new("timeout");
        match sleep {
            "off" => command.args([
                LIMITS[1],
                QEMU,
                "-chardev",
                "file,id=console,path=/proc/self/fd/1",
            ]),
            _ => command.args([
                "--foreground",
                "0",
                QEMU,
                "-chardev",
                "stdio,id=console,signal=off",
            ]),
        };
        command
            .args(["-icount", &format!("shift=1,sleep={sleep}")])
            .args(["-smp", &cpus.to_string()])
            .args("-cpu max,-la57,-smap,-erms,-fsrm -m 3G -rtc base=2020-01-01,clock=vm".split(' '))
            .args("-seed 1 -nodefaults -no-user-config -display none -no-reboot".split(' '))
            .args(["-serial", "chardev:console"])
            .args([OsStr::new("-kernel"), self.vmlinuz.as_os_str()])
            .args([OsStr::new("-initrd"), file.as_os_str()])
            .arg("-append")
            .arg(format!(
                "console=ttyS0 quiet no_timer_check tsc=reliable nokaslr norandmaps panic=-1 \
                 mitigations=off init_on_alloc=0 cryptomgr.notests LIMIT={}",
                LIMITS[0]
            ));
        command
    }
}
