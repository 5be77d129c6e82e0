//! The outer guest: a machine with KVM that QEMU emulates.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tare_kernels::{Initramfs, Store, default_store_dir};
use tare_targets::measured::MeasuredFile;
use tempfile::TempDir;

use crate::common::skip;

/// Seconds that a check may take, and all of them.
const LIMIT: &str = "100";
const LIMIT_OF_ALL: Duration = Duration::from_secs(400);
/// The guest prints a line every 5 s. One that is silent for longer than this has frozen.
const SILENCE: Duration = Duration::from_secs(60);

const KERNEL: &str = "debian-cloud-6.1";
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
#[derive(Debug)]
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

    /// Runs checks, scripts with a name, one after the other.
    pub fn run<'a>(mut self, checks: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Said> {
        let mut number = 0;
        for (name, script) in checks {
            let path = format!("/checks/{number:02}-{name}");
            self.initramfs.file(path, 0o644, script).unwrap();
            number += 1;
        }
        let file = self.written();
        // Only a frozen outer guest is started once more.
        let said = self
            .attempt(&file, number)
            .or_else(|| self.attempt(&file, number));
        said.expect("the outer guest froze twice")
    }

    /// Runs the checks; `None` if the guest froze.
    fn attempt(&self, initramfs: &Path, number: usize) -> Option<Vec<Said>> {
        let mut qemu = self.command(initramfs, "file,id=console,path=/proc/self/fd/1");
        let mut qemu = qemu
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(qemu.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let (mut all, mut text) = (Vec::new(), String::new());
        let begun = Instant::now();
        let has_frozen = loop {
            let line = match lines.recv_timeout(SILENCE) {
                Ok(_) if begun.elapsed() > LIMIT_OF_ALL => break false,
                Ok(line) => line,
                Err(why) => break why == RecvTimeoutError::Timeout,
            };
            eprintln!("{line}");
            match line.strip_prefix("@@ ") {
                Some("alive") => {}
                Some(mark) if mark.starts_with("begin") => text.clear(),
                Some(mark) => {
                    let mut words = mark.split(' ').skip(1);
                    all.push(Said {
                        status: words.next().unwrap().parse().unwrap(),
                        text: std::mem::take(&mut text),
                        end_seconds: words.next().unwrap().parse().unwrap(),
                    });
                }
                None => text += &format!("{line}\n"),
            }
        };
        let _ = qemu.kill();
        qemu.wait().unwrap();
        assert!(has_frozen || all.len() == number, "{}", all.len());
        (!has_frozen).then_some(all)
    }

    /// Opens a shell in it, on the terminal of this process.
    pub fn shell(self) {
        let console = "stdio,id=console,signal=off";
        let status = self.command(&self.written(), console).status();
        assert!(status.unwrap().success());
    }

    /// Writes the initramfs to a file.
    fn written(&self) -> PathBuf {
        let file = self.folder.path().join("initramfs");
        fs::write(&file, self.initramfs.clone().finish()).unwrap();
        file
    }

    fn command(&self, initramfs: &Path, console: &str) -> Command {
        let mut command = Command::new(QEMU);
        command
            .args("-accel tcg,thread=multi -smp 2 -cpu max -m 3G".split(' '))
            .args("-nodefaults -no-user-config -display none -no-reboot".split(' '))
            .args(["-chardev", console, "-serial", "chardev:console"])
            .args([OsStr::new("-kernel"), self.vmlinuz.as_os_str()])
            .args([OsStr::new("-initrd"), initramfs.as_os_str()])
            .arg("-append")
            .arg(format!(
                "console=ttyS0 quiet no_timer_check nohz=off highres=off panic=-1 cryptomgr.notests \
                 LIMIT={LIMIT}"
            ));
        command
    }
}
