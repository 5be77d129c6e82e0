//! Boots images of others in the real QEMU: our own hello image stands for one, and boot sectors
//! that are written here.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tare_guard::Interrupt;
use tare_testkit::skip;

use super::*;
use crate::instance::{Ended, Ending, OutputEvent};
use crate::measured::MeasuredFile;
use crate::spec;
use crate::tests::work;

const LIMIT: Duration = Duration::from_secs(30);

/// A place to boot guests in.
struct Bench {
    guard: Guard,
    // Behind the guard, whose journal is in it.
    folder: tempfile::TempDir,
}

/// The observations of a guest.
#[derive(Debug)]
struct Seen {
    started_ns: u64,
    ended: Ended,
    lines: Vec<String>,
}

impl Seen {
    fn why(&self) -> &str {
        match &self.ended.how {
            Ending::Failed { why } => why,
            other => panic!("{other:?}"),
        }
    }
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            guard: Guard::open(&folder.path().join("state")).unwrap(),
            folder,
        }
    }

    /// Makes a target that can be used; None if that is not possible here.
    fn target(&self, image: &Path, options: &str) -> Option<Foreign> {
        let text = format!("image={},accel=tcg,{options}", image.display());
        let settings = Settings::read(&spec::options("guest", &text)).unwrap();
        let mut target = Foreign::new(settings);
        target.host.state_dir = Some(self.folder.path().join("state"));
        if let Err(error) = target.host.get() {
            skip("guest", &error.to_string());
            return None;
        }
        Some(target)
    }

    fn boot(&self, target: &Foreign, limit: Duration) -> Seen {
        let instance = target
            .start(&Job::idle(&Work::default()), &self.guard)
            .unwrap();
        let pid = instance.pid().unwrap();
        let started_ns = instance.started_ns;
        let mut lines = Vec::new();
        let mut take = |event: OutputEvent<'_>| {
            if let OutputEvent::Line(line, _) = event {
                lines.push(String::from_utf8_lossy(line).into_owned());
            }
        };
        let interrupt = Interrupt::detached().unwrap();
        let ended = instance.watch(limit, &interrupt, &mut take).unwrap();
        assert!(
            !Path::new(&format!("/proc/{pid}/exe")).exists(),
            "QEMU {pid} is left"
        );
        Seen {
            started_ns,
            ended,
            lines,
        }
    }

    /// Writes a disk whose boot sector says hello and then does `last`.
    fn disk(&self, last: &[u8]) -> PathBuf {
        const TEXT: usize = 0x60;
        // Firmware finds no cylinder on a disk of one sector.
        let mut disk = vec![0; 1 << 20];
        let sector = &mut disk[..512];
        let text = (0x7c00 + TEXT as u16).to_le_bytes();
        let code = [
            &[0xfa][..],                     // cli
            &[0x31, 0xc0, 0x8e, 0xd8],       // xor ax, ax; mov ds, ax
            &[0xfc, 0xbe, text[0], text[1]], // cld; mov si, text
            &[0xac, 0x84, 0xc0, 0x74, 0x06], // next: lodsb; test al, al; jz last
            &[0xba, 0xf8, 0x03, 0xee],       // mov dx, 0x3f8; out dx, al
            &[0xeb, 0xf5],                   // jmp next
            last,                            // last:
            &[0xf4, 0xeb, 0xfd],             // hlt; jmp to it
        ]
        .concat();
        assert!(code.len() < TEXT);
        sector[..code.len()].copy_from_slice(&code);
        let words = b"hello, disk\r\nlogin: \0";
        sector[TEXT..TEXT + words.len()].copy_from_slice(words);
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        let path = self.folder.path().join("a disk, raw");
        fs::write(&path, disk).unwrap();
        path
    }
}

/// mov al, 0x10; out 0xf4, al: ends QEMU with status 33.
const EXIT: &[u8] = &[0xb0, 0x10, 0xe6, 0xf4];
/// mov dx, 0x604; mov ax, 0x2000; out dx, ax: ACPI's way to power off.
const POWER_OFF: &[u8] = &[0xba, 0x04, 0x06, 0xb8, 0x00, 0x20, 0xef];
/// mov al, 0xfe; out 0x64, al: the keyboard controller's reset.
const RESET: &[u8] = &[0xb0, 0xfe, 0xe6, 0x64];

fn hello() -> Option<PathBuf> {
    match MeasuredFile::image("hello").path() {
        Ok(path) => Some(path.to_owned()),
        Err(error) => {
            skip("the image 'hello'", &error.to_string());
            None
        }
    }
}

#[test]
fn an_elf_kernel_is_ready_by_its_line_and_done_by_its_status() {
    let bench = Bench::new();
    let Some(hello) = hello() else { return };
    for machine in ["q35", "pc", "microvm"] {
        let options = format!(r"machine={machine},ready=^hello \w+ tare: \d$,success=33,cmdline=7");
        let Some(target) = bench.target(&hello, &options) else {
            return;
        };
        assert_eq!(target.availability(), Availability::Usable);
        let seen = bench.boot(&target, LIMIT);
        assert_eq!(seen.ended.how, Ending::Done, "{seen:?}");
        let ready_ns @ 1.. = seen.ended.ready_ns else {
            panic!("{seen:?}");
        };
        assert!(
            seen.started_ns < ready_ns && ready_ns <= seen.ended.exited_ns,
            "{seen:?}"
        );
    }
}

#[test]
fn a_line_that_never_comes_and_another_status_are_told() {
    let bench = Bench::new();
    let Some(hello) = hello() else { return };
    let target = |options| bench.target(&hello, options);
    let Some(never) = target("ready=goodbye,success=33") else {
        return;
    };
    let seen = bench.boot(&never, LIMIT);
    assert_eq!(seen.ended.ready_ns, 0);
    let why = seen.why();
    assert!(
        why.starts_with(
            "it ended with status 33, but no line of its console matched ready=goodbye; \
             the last on its console: "
        ),
        "{why}"
    );
    let seen = bench.boot(&target("ready=hello,success=35").unwrap(), LIMIT);
    assert!(seen.ended.ready_ns > 0);
    assert!(
        seen.why()
            .starts_with("the guest ended QEMU with status 33, and success=35 is wanted"),
        "{}",
        seen.why()
    );
    let idle = target("ready=goodbye,success=33,cmdline=then=idle").unwrap();
    let seen = bench.boot(&idle, Duration::from_secs(5));
    let Ending::TimedOut { doing: Some(doing) } = &seen.ended.how else {
        panic!("{seen:?}");
    };
    assert!(
        doing.starts_with("the guest was still running, and no line of its console matched"),
        "{doing}"
    );
}

#[test]
fn a_raw_disk_boots_and_is_not_changed() {
    let bench = Bench::new();
    for (last, success, drive) in [
        (EXIT, "33", "virtio"),
        (EXIT, "33", "ide"),
        (POWER_OFF, "shutdown", "virtio"),
        (RESET, "reset", "virtio"),
    ] {
        let disk = bench.disk(last);
        let before = (
            fs::read(&disk).unwrap(),
            fs::metadata(&disk).unwrap().mtime_nsec(),
        );
        // An unfinished line, as a prompt is.
        let options = format!("ready=^login: $,success={success},drive={drive}");
        let text = disk.display().to_string().replace(',', ",,");
        let Some(target) = bench.target(Path::new(&text), &options) else {
            return;
        };
        let seen = bench.boot(&target, LIMIT);
        assert_eq!(seen.ended.how, Ending::Done, "{seen:?}");
        assert!(seen.ended.ready_ns > 0, "{seen:?}");
        assert!(seen.lines.contains(&"hello, disk\r".to_owned()), "{seen:?}");
        let after = (
            fs::read(&disk).unwrap(),
            fs::metadata(&disk).unwrap().mtime_nsec(),
        );
        assert_eq!(before, after);
    }
    // A reset is no power-off.
    let text = bench.disk(RESET).display().to_string().replace(',', ",,");
    let target = bench.target(Path::new(&text), "ready=hello,success=shutdown");
    let seen = bench.boot(&target.unwrap(), LIMIT);
    assert!(
        seen.why()
            .starts_with("the guest reset itself, or faulted for the third time, and success="),
        "{}",
        seen.why()
    );
}

#[test]
fn images_that_can_not_be_booted_are_told() {
    let bench = Bench::new();
    let garbage = bench.folder.path().join("garbage");
    fs::write(&garbage, vec![7; 100_000]).unwrap();
    let disk = bench.disk(EXIT);
    let disk = PathBuf::from(disk.display().to_string().replace(',', ",,"));
    for (image, options, said) in [
        (
            Path::new("/nowhere/image"),
            "",
            "can't be read: No such file",
        ),
        (&garbage, "", "is nothing that QEMU boots"),
        (&disk, ",machine=microvm", "its firmware boots kernels only"),
        (&disk, ",cmdline=x", "leave cmdline= out"),
    ] {
        let options = format!("ready=x,success=33{options}");
        let Some(target) = bench.target(image, &options) else {
            return;
        };
        let Availability::Unusable { why, .. } = target.availability() else {
            panic!("{said}");
        };
        assert!(why.contains(said), "{why}");
    }
    // It has the mark of an ELF file and nothing else.
    fs::write(&garbage, b"\x7fELF and no more").unwrap();
    let target = bench.target(&garbage, "ready=x,success=33").unwrap();
    let error = target
        .start(&Job::idle(&Work::default()), &bench.guard)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("QEMU did not start a guest ("), "{error}");
}

#[test]
fn a_plan_is_refused() {
    let bench = Bench::new();
    let disk = PathBuf::from(bench.disk(EXIT).display().to_string().replace(',', ",,"));
    let Some(target) = bench.target(&disk, "ready=x,success=33") else {
        return;
    };
    assert!(!target.spec().capabilities().runs_plans);
    let error = target.start(&Job::idle(&work("workload=nap")), &bench.guard);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("runs no plans"), "{error}");
    let sha256 = target.program().unwrap().sha256;
    assert_eq!(sha256.len(), 64);
}
