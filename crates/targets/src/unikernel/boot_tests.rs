//! Boots real images in the real QEMU.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tare_guard::Guard;
use tare_results::work::Work;
use tare_testkit::skip;

use super::*;
use crate::Instance;
use crate::instance::Ending;
use crate::qemu::accelerator::{Accelerator, try_kvm};
use crate::spec;
use crate::tests::{
    BATCH, SHORT, Seen, TIMERS, cut_short, cut_short_of, record, result, timers, watch, work,
};

const LIMIT: Duration = Duration::from_secs(60);

/// A place to boot guests in.
struct Bench {
    target: Unikernel,
    guard: Guard,
    _state: tempfile::TempDir,
}

impl Bench {
    /// Prepares to boot an image; None if something is missing here.
    fn new(image: &str, options: &str) -> Option<Self> {
        let settings = Settings::read(&spec::options("unikernel", options)).unwrap();
        let state = tempfile::tempdir().unwrap();
        let mut target = Unikernel::of(settings, MeasuredFile::image(image));
        target.host.state_dir = Some(state.path().to_owned());
        if let Availability::Unusable { why, .. } = target.availability() {
            skip("unikernel", &why);
            return None;
        }
        Some(Self {
            target,
            guard: Guard::open(state.path()).unwrap(),
            _state: state,
        })
    }

    fn launch(&self, words: &str) -> Seen {
        watch(
            self.target
                .start(&Job::idle(&work(words)), &self.guard)
                .unwrap(),
            LIMIT,
        )
    }

    /// Boots with a command line that is no plan.
    fn boot(&self, line: &str, limit: Duration) -> Seen {
        watch(self.try_boot(line).unwrap(), limit)
    }

    fn try_boot(&self, line: &str) -> Result<Instance, TargetError> {
        let memory = Size::mib(64);
        let launch = self.target.prepare(line, memory, &[], Reached::default())?;
        Instance::start(launch, &self.guard)
    }

    /// Boots an image that is no one of ours; with a port for gdb it never runs.
    fn boot_file(&self, path: &Path, gdb_port: Option<u16>) -> Result<Instance, TargetError> {
        let guest = Guest {
            gdb_port,
            ..guest(self, path)
        };
        let image = self.target.image.clone();
        let host = self.target.host.get().unwrap();
        let launch = Launch {
            judge: Box::new(move |ended| monitor::judge(&image, ended)),
            ..host.qemu.launch("guest", &guest, &[]).unwrap()
        };
        Instance::start(launch, &self.guard)
    }
}

#[test]
fn records_arrive_from_every_machine() {
    for machine in ["microvm", "q35", "pc"] {
        for irq in ["irq=on,timer-hz=1000", "irq=off"] {
            let options = format!("machine={machine},accel=tcg,{irq}");
            let Some(bench) = Bench::new("bench", &options) else {
                return;
            };
            let seen = bench.launch(SHORT);
            assert_eq!(seen.ended.how, Ending::Done, "{machine}: {}", seen.text);
            let received = seen.received.unwrap();
            assert_eq!(received.program.agent.environment, "unikernel");
            let record = record(received);
            assert_eq!(result(&record), (Some(8.0), Some(84.0)));
        }
    }
}

#[test]
fn buffers_are_mapped_in_pages_of_the_size_that_is_asked_for() {
    for (option, pages) in [
        ("", "2M"),
        (",pages=4K", "4K"),
        (",pages=2M", "2M"),
        (",pages=1G", "1G"),
    ] {
        let Some(bench) = Bench::new("bench", &format!("accel=tcg{option}")) else {
            return;
        };
        let job = work("workload=stream kib=2048 passes=4 attempts=1");
        let seen = watch(
            bench
                .target
                .start(
                    &Job::idle(&Work {
                        buffer_bytes: 7 << 20,
                        ..job
                    }),
                    &bench.guard,
                )
                .unwrap(),
            LIMIT,
        );
        assert_eq!(seen.ended.how, Ending::Done, "{pages}: {}", seen.text);
        let received = seen.received.unwrap();
        let facts = &received.program.facts;
        let fact = facts
            .iter()
            .find(|fact| fact.name == "pages of the buffers");
        assert_eq!(fact.unwrap().value, pages);
        let kernels = record(received)
            .sets
            .into_iter()
            .map(|head| (head.labels.to_string(), head.n));
        let all = ["copy", "scale", "add", "triad"].map(|kernel| (format!("kernel={kernel}"), 4));
        assert_eq!(kernels.collect::<Vec<_>>(), all);
    }
}

/// The sum was computed by another program.
#[test]
fn a_thumbnail_is_the_same_as_anywhere() {
    let Some(bench) = Bench::new("bench", "accel=tcg") else {
        return;
    };
    let seen = bench.launch("workload=start work=thumbnail report=yes");
    let (sum, _) = result(&seen.record());
    assert_eq!(sum, Some(f64::from(0x75e0_cf66_u32)));
}

#[test]
fn the_guest_is_emulated_and_says_by_what() {
    let Some(bench) = Bench::new("bench", "accel=tcg") else {
        return;
    };
    let program = bench.target.program().unwrap();
    assert!(program.emulated);
    let accelerator = program.accelerator.unwrap();
    assert!(accelerator.starts_with("TCG of QEMU "), "{accelerator}");
    assert_eq!(program.notice, None);
}

#[test]
fn counted_instructions_give_the_same_records_twice() {
    let Some(bench) = Bench::new("bench", "clock=instructions,irq=off") else {
        return;
    };
    let first = bench.launch(SHORT);
    assert_eq!(first.ended.how, Ending::Done, "{}", first.text);
    // Every repetition took as many.
    let record = record(first.received.unwrap());
    assert_eq!(record.sets[0].min, record.sets[0].max);
    assert_eq!(bench.launch(SHORT).text, first.text);
}

#[test]
fn the_measured_cpu_is_the_last_one_and_its_thread_is_pinned() {
    let Some(bench) = Bench::new("bench", "accel=tcg,cpus=2") else {
        return;
    };
    let host_cpu = rustix::thread::sched_getcpu() as u32;
    let words = format!("{SHORT} cpu={host_cpu}");
    let instance = bench
        .target
        .start(&Job::idle(&work(&words)), &bench.guard)
        .unwrap();
    let alone = format!("{host_cpu}");
    let pinned = cpus_of_threads(instance.pid().unwrap())
        .iter()
        .filter(|cpus| **cpus == alone)
        .count();
    let seen = watch(instance, LIMIT);
    assert_eq!(seen.ended.how, Ending::Done, "{}", seen.text);
    assert_eq!(seen.received.unwrap().program.preparation.cpu, Some(1));
    // On a machine with a single CPU, all threads are there.
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus > 2 {
        assert_eq!(pinned, 1);
    } else {
        assert!(pinned >= 1);
    }
}

#[test]
fn a_guest_whose_thread_was_moved_on_the_host_fails_with_the_reason() {
    let Some(bench) = Bench::new("bench", "accel=tcg") else {
        return;
    };
    let allowed = sched_getaffinity(None).unwrap();
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let (Some(here), Some(there)) = (cpus.next(), cpus.next()) else {
        return skip("moving a thread", "there is but one CPU");
    };
    let words = format!("{TIMERS} interval=2ms duration=600s policy=other cpu={here}");
    let job = work(&words);
    let instance = bench.target.start(&Job::idle(&job), &bench.guard).unwrap();
    let pid = instance.pid().unwrap();
    let seen = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(1_500));
            let mut only = CpuSet::new();
            only.set(there);
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
            for task in tasks.filter_map(|task| task.unwrap().file_name().to_str()?.parse().ok()) {
                let task = Pid::from_raw(task);
                let is_pinned = |set: &CpuSet| set.count() == 1 && set.is_set(here);
                if sched_getaffinity(task).as_ref().is_ok_and(is_pinned) {
                    sched_setaffinity(task, &only).unwrap();
                }
            }
        });
        watch(instance, LIMIT)
    });
    let why = seen.why();
    assert!(why.contains(&format!("moved from CPU {here} ")), "{why}");
    assert!(why.contains("taskset"), "{why}");
}

fn cpus_of_threads(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok())
        .filter_map(|status| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            Some(line?.trim().to_owned())
        })
        .collect()
}

#[test]
fn a_cpu_that_is_not_there_is_told() {
    let Some(bench) = Bench::new("bench", "accel=tcg") else {
        return;
    };
    let words = format!("{SHORT} cpu=1000");
    let error = bench
        .target
        .start(&Job::idle(&work(&words)), &bench.guard)
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("can't be pinned to CPU 1000"), "{text}");
}

#[test]
fn a_command_line_of_another_version_is_told() {
    let Some(bench) = Bench::new("bench", "accel=tcg") else {
        return;
    };
    let seen = bench.boot(&format!("{BATCH} repetitions=1 colour=red"), LIMIT);
    let why = seen.why();
    assert!(why.contains("no such key 'colour'"), "{why}");
    assert!(why.contains("make build"), "{why}");
}

#[test]
fn a_crash_is_told_with_the_functions_under_way() {
    for (fault, expected) in [
        ("divide", ["fault: #DE divide error", "faults::divide, "]),
        ("overflow", ["a stack overflow", "faults::deeper ("]),
        (
            "panic",
            ["index out of bounds", "faults::index_out_of_bounds, "],
        ),
    ] {
        let Some(bench) = Bench::new("faults", "accel=tcg") else {
            return;
        };
        let seen = bench.boot(&format!("fault={fault}"), LIMIT);
        let why = seen.why();
        assert!(why.starts_with("the image crashed: "), "{why}");
        for text in expected {
            assert!(why.contains(text), "{why}");
        }
        assert!(!why.contains(", 0x"), "an address without a name: {why}");
    }
}

#[test]
fn a_guest_that_hangs_ends_with_its_limit() {
    let Some(bench) = Bench::new("hello", "accel=tcg") else {
        return;
    };
    let begin = Instant::now();
    let seen = bench.boot("then=idle", Duration::from_secs(5));
    assert!(begin.elapsed() < Duration::from_secs(120));
    let doing = "the guest was still running; the last on its console: hello from tare: then=idle";
    let doing = Some(doing.to_owned());
    assert_eq!(seen.ended.how, Ending::TimedOut { doing });
    assert_eq!(seen.text, "hello from tare: then=idle\n");
}

#[test]
fn a_guest_that_never_runs_ends_with_its_limit() {
    let Some(bench) = Bench::new("hello", "accel=tcg") else {
        return;
    };
    // Port 0 is any that is free.
    let instance = bench.boot_file(bench.target.image.path().unwrap(), Some(0));
    let seen = watch(instance.unwrap(), Duration::from_millis(500));
    let doing = Some("the guest stood still (prelaunch)".to_owned());
    assert_eq!(seen.ended.how, Ending::TimedOut { doing });
    assert_eq!(seen.text, "");
}

#[test]
fn a_guest_that_resets_is_told_with_what_it_printed() {
    let Some(bench) = Bench::new("hello", "accel=tcg,machine=pc") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, code, why) in [
        // Prints a letter and a newline, then loads an empty interrupt table and calls it.
        (
            "reset",
            &b"\xba\xf8\x03\x00\x00\xb0\x3f\xee\xee\xb0\x0a\xee\x0f\x01\x1d\x00\x00\x00\x00\xcd\x03"
                [..],
            "the guest reset itself instead of ending, usually after a fault that it could not \
             report; the last on its console: ??",
        ),
        // Prints letters, then says that it is done: a receiver of records gets none.
        (
            "garbage",
            &b"\xba\xf8\x03\x00\x00\xb0\x3f\xee\xee\xee\xb0\x0a\xee\xba\xf4\x00\x00\x00\xb8\x10\x00\x00\
              \x00\xef\xf4"[..],
            "",
        ),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, pvh(code)).unwrap();
        let seen = watch(bench.boot_file(&path, None).unwrap(), LIMIT);
        if why.is_empty() {
            assert_eq!(seen.ended.how, Ending::Done);
            assert_eq!(
                seen.received.unwrap_err().to_string(),
                "received no record; last output: ???"
            );
        } else {
            assert_eq!(seen.why(), why);
        }
    }
}

fn guest<'a>(bench: &Bench, kernel: &'a Path) -> Guest<'a> {
    let boot = Boot::Kernel {
        path: kernel,
        command_line: "",
    };
    let machine = bench.target.settings.machine;
    Guest::new(machine, Accelerator::Tcg, Size::mib(16), boot)
}

/// Makes the smallest file that boots by PVH: 32-bit code, loaded and entered at 1 MiB.
fn pvh(code: &[u8]) -> Vec<u8> {
    const HEADERS: u64 = 64 + 2 * 56;
    const BASE: u64 = 1 << 20;
    let mut note = Vec::new();
    for word in [4_u32, 8, 18] {
        note.extend(word.to_le_bytes());
    }
    note.extend(b"Xen\0");
    note.extend(BASE.to_le_bytes());
    let code_at = HEADERS + note.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    for half in [2_u16, 62] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1_u32.to_le_bytes());
    for word in [BASE, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 2, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let mut segment =
        |kind: u32, flags: u32, offset: u64, address: u64, length: u64, align: u64| {
            file.extend(kind.to_le_bytes());
            file.extend(flags.to_le_bytes());
            for word in [offset, address, address, length, length, align] {
                file.extend(word.to_le_bytes());
            }
        };
    segment(1, 5, code_at, BASE, code.len() as u64, 1);
    segment(4, 4, HEADERS, 0, note.len() as u64, 4);
    file.extend(note);
    file.extend(code);
    file
}

#[test]
fn a_qemu_that_does_not_start_is_told() {
    let Some(bench) = Bench::new("hello", "accel=tcg,mem=1024G") else {
        return;
    };
    if let Err(error) = bench.try_boot("") {
        let text = error.to_string();
        assert!(text.starts_with("QEMU did not start a guest ("), "{text}");
        assert!(text.contains("it ended with status 1; it said: "), "{text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nothing");
    fs::write(&path, "this is no image").unwrap();
    let error = bench.boot_file(&path, None);
    let text = error.unwrap_err().to_string();
    assert!(text.starts_with("QEMU did not start a guest ("), "{text}");
    assert!(text.contains("it ended with status 1; it said: "), "{text}");
}

#[test]
fn whether_kvm_works_is_found_out_and_remembered() {
    let Some(bench) = Bench::new("hello", "accel=tcg") else {
        return;
    };
    let host = bench.target.host.get().unwrap();
    let state = tempfile::tempdir().unwrap();
    let ask = || {
        let hello = MeasuredFile::image("hello");
        try_kvm(&host.qemu, &hello, &bench.guard, state.path(), false).unwrap()
    };
    let begin = Instant::now();
    let first = ask();
    assert!(begin.elapsed() < Duration::from_secs(120));
    assert_eq!(ask(), first);
    let settings = Settings::read(&spec::options("unikernel", "accel=kvm")).unwrap();
    let mut target = Unikernel::new(settings);
    target.host.state_dir = Some(state.path().to_owned());
    match (first, target.availability()) {
        (None, Availability::Usable) => assert!(!target.program().unwrap().emulated),
        (Some(why), Availability::Unusable { why: told, .. }) => {
            assert_eq!(told, format!("KVM does not work here: {why}"));
        }
        (tried, told) => panic!("{tried:?}, {told:?}"),
    }
    let is_remembered = state.path().join("accel.json").is_file();
    // Without access to the device there is nothing to remember.
    let device = fs::File::options().read(true).write(true).open("/dev/kvm");
    assert_eq!(is_remembered, device.is_ok());
}

#[test]
fn timers_arrive_from_every_cpu_and_fit_together() {
    for (options, threads, on) in [
        ("machine=pc,irq=off", 1, &["0"][..]),
        ("cpus=3", 2, &["1", "2"][..]),
    ] {
        let Some(bench) = Bench::new("bench", &format!("accel=tcg,{options}")) else {
            return;
        };
        let seen = bench.launch(&format!(
            "{TIMERS} interval=1ms duration=300ms phases=3 threads={threads}"
        ));
        assert_eq!(seen.ended.how, Ending::Done, "{}", seen.text);
        let record = record(seen.received.unwrap());
        let on: Vec<_> = on.iter().map(|cpu| (300, Some(*cpu))).collect();
        assert_eq!(timers(&record, "CPU"), on);
        for head in &record.sets {
            assert!(head.first >= 100_000_000);
            assert_eq!(head.raw, head.n);
        }
    }
}

#[test]
fn a_guest_reports_what_it_has_when_it_is_asked_to_end() {
    for options in [
        "accel=tcg,irq=off",
        "accel=tcg,machine=q35",
        "accel=tcg,cpus=2",
    ] {
        let Some(bench) = Bench::new("bench", options) else {
            return;
        };
        cut_short(&bench.target, "", &bench.guard);
    }
}

#[test]
fn a_guest_that_sleeps_for_long_ends_at_once_when_it_is_asked_to() {
    let Some(bench) = Bench::new("bench", "accel=tcg,irq=off") else {
        return;
    };
    // Woken at its beginning, after a minute, and after two.
    cut_short_of(
        &bench.target,
        "interval=60s duration=120s",
        1..2,
        &bench.guard,
    );
}
