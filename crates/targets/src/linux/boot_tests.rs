//! Boots real kernels of the distribution in the real QEMU.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tare_guard::{Guard, Interrupt};
use tare_kernels::name::Wanted;
use tare_kernels::{Fetcher, KernelError, Module};
use tare_results::model::Schedule;
use tare_testkit::skip;
use tare_wire::guest::WATCHED;
use tare_wire::line::{Line, MAX_PAYLOAD, Stream, decode_of};
use tare_wire::record::Record;

use super::*;
use crate::instance::Ending;
use crate::spec;
use crate::tests::{
    BATCH, LONG, SHORT, Seen, TIMERS, cut_short, record, result, timers, watch, work,
};

/// Long enough for a busy machine: a guest that is emulated takes some seconds, next to others
/// many times that.
const LIMIT: Duration = Duration::from_secs(300);

/// A place to boot guests in.
struct Bench {
    target: Linux,
    guard: Guard,
    _state: tempfile::TempDir,
}

impl Bench {
    /// Prepares to boot a guest under TCG; None if something is missing here.
    fn new(options: &str) -> Option<Self> {
        let mut target = target(format!("accel=tcg,{options}").trim_end_matches(','));
        if let Err(why) = fetched(&target.settings.kernel) {
            skip(&target.settings.kernel, &why);
            return None;
        }
        let state = tempfile::tempdir().unwrap();
        target.host.state_dir = Some(state.path().to_owned());
        if let Availability::Unusable { why, .. } = target.availability() {
            skip("linux", &why);
            return None;
        }
        Some(Self {
            target,
            guard: Guard::open(state.path()).unwrap(),
            _state: state,
        })
    }

    fn launch(&self, words: &str) -> Seen {
        self.launch_with_limit(words, LIMIT)
    }

    fn launch_with_limit(&self, words: &str, limit: Duration) -> Seen {
        let instance = self
            .target
            .start(&Job::idle(&work(words)), &self.guard)
            .unwrap();
        watch(instance, limit)
    }
}

/// Returns the facts of a guest that did what it was to do.
#[track_caller]
fn facts(seen: Seen) -> BTreeMap<String, String> {
    facts_in("initramfs", seen)
}

#[track_caller]
fn facts_in(environment: &str, seen: Seen) -> BTreeMap<String, String> {
    let told = seen
        .received
        .as_ref()
        .ok()
        .map(|it| it.program.agent.environment.clone());
    let mut record = seen.record();
    assert_eq!(told.as_deref(), Some(environment));
    assert_eq!(result(&record), (Some(8.0), Some(84.0)));
    let facts = record.programs.remove(0).facts.into_iter();
    facts.map(|fact| (fact.name, fact.value)).collect()
}

fn target(options: &str) -> Linux {
    Linux::new(Settings::read(&spec::options("linux", options)).unwrap())
}

/// Makes sure that one of the distribution's kernels is in the user's store, as `make setup` does.
fn fetched(name: &str) -> Result<(), String> {
    let Some(wanted) = Wanted::parse(name) else {
        return Ok(());
    };
    let fetch = || -> Result<(), KernelError> {
        let store = Store::open(&default_store_dir()?)?;
        match store.find(name) {
            Err(KernelError::Missing { .. }) => {}
            found => return found.map(|_| ()),
        }
        let state = tare_guard::default_state_dir()?;
        let guard = Guard::open_with(&state, store.guard_options()?)?;
        let interrupt = Interrupt::detached()?;
        let mut fetcher = Fetcher::new(&store, &guard, &interrupt)?;
        let plan = fetcher.plan(wanted, &mut |_| {})?;
        fetcher.fetch(&plan, &mut |_| {}).map(|_| ())
    };
    fetch().map_err(|error| error.to_string())
}

fn verified(target: &Linux, facts: &BTreeMap<String, String>) -> Result<(), String> {
    target.verify(&|name| facts.get(name).map(String::as_str))
}

#[test]
fn each_preemption_model_is_in_force_inside() {
    for preempt in ["none", "voluntary", "full"] {
        let Some(bench) = Bench::new(&format!("preempt={preempt}")) else {
            return;
        };
        let facts = facts(bench.launch(SHORT));
        assert_eq!(facts["preemption model"], preempt);
        assert_eq!(facts["isolated CPUs"], "none");
        assert_eq!(verified(&bench.target, &facts), Ok(()));
        let other = target("preempt=lazy");
        other
            .kernel
            .set(bench.target.kernel().unwrap().clone())
            .unwrap();
        let why = verified(&other, &facts).unwrap_err();
        assert!(why.contains("not lazy"), "{why}");
    }
}

#[test]
fn a_real_time_kernel_has_no_choice_and_is_told_apart() {
    let Some(bench) = Bench::new("kernel=debian-rt") else {
        return;
    };
    let facts = facts(bench.launch(SHORT));
    assert_eq!(facts["preemption model"], "rt");
    assert_eq!(verified(&bench.target, &facts), Ok(()));
    for (options, part) in [
        (
            "kernel=debian-rt,preempt=full",
            "which preempts itself everywhere",
        ),
        ("preempt=lazy", "came with Linux 6.13"),
    ] {
        let error = target(options).kernel().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_kernel_for_any_pc_and_the_newer_series_boot_as_well() {
    for kernel in ["debian", "debian-cloud-6.12"] {
        // Here most drivers are modules, and a disk takes more of them.
        let Some(bench) = Bench::new(&format!("kernel={kernel},disk=scratch:128M")) else {
            return;
        };
        let facts = facts(bench.launch(SHORT));
        assert_eq!(verified(&bench.target, &facts), Ok(()));
        let words = facts["kernel command line"].split(' ');
        assert_eq!(words.filter(|word| *word == "cryptomgr.notests").count(), 1);
        let label = bench.target.program().unwrap().kernel.unwrap();
        assert!(label.starts_with(&facts["kernel release"]), "{label}");
        assert!(label.contains("linux-image-"), "{label}");
    }
}

#[test]
fn a_cpu_is_isolated_and_tickless_and_its_thread_is_pinned() {
    let Some(bench) = Bench::new("cpus=2,isolate=1,nohz_full=1") else {
        return;
    };
    let host_cpu = rustix::thread::sched_getcpu();
    let instance = bench
        .target
        .start(
            &Job::idle(&work(&format!("{SHORT} cpu={host_cpu}"))),
            &bench.guard,
        )
        .unwrap();
    let alone = host_cpu.to_string();
    let tasks = fs::read_dir(format!("/proc/{}/task", instance.pid().unwrap())).unwrap();
    let pinned = tasks
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok())
        .filter(|status| {
            let list = |line: &str| Some(line.strip_prefix("Cpus_allowed_list:")?.trim() == alone);
            status.lines().find_map(list) == Some(true)
        });
    assert!(pinned.count() >= 1);
    let seen = watch(instance, LIMIT);
    assert_eq!(
        seen.received.as_ref().unwrap().program.preparation.cpu,
        Some(1)
    );
    let facts = facts(seen);
    assert_eq!(facts["CPUs online"], "0-1");
    assert_eq!(facts["isolated CPUs"], "1");
    assert_eq!(facts["nohz_full CPUs"], "1");
    assert_eq!(verified(&bench.target, &facts), Ok(()));
}

#[test]
fn counted_instructions_give_the_same_timers_twice_under_loads_in_phases() {
    let load = Schedule::parse("400ms:idle;dd+nc;idle").unwrap();
    const WORDS: &str = "interval=1ms duration=1200ms phases=3 cpu=0 raw=0";
    let Some(bench) = Bench::new("clock=instructions") else {
        return;
    };
    if let Err(error @ TargetError::Unusable { .. }) = tools::programs(&load) {
        return skip(load.as_str(), &error.to_string());
    }
    let plan = work(&format!("{TIMERS} {WORDS}"));
    let job = Job {
        load: Some(&load),
        ..Job::idle(&plan)
    };
    // The limit is this machine's time, of which the guest's phases take none.
    let run = || {
        let instance = bench.target.start(&job, &bench.guard).unwrap();
        watch(instance, 2 * LIMIT)
    };
    let first = run();
    assert_eq!(first.ended.how, Ending::Done, "{}", first.text);
    assert_eq!(run().text, first.text);
    let (mut begins, mut phases, mut notices) = (None, Vec::new(), String::new());
    for line in first.text.lines() {
        let mut room = [0; MAX_PAYLOAD];
        for stream in [Stream::Measured, Stream::Load] {
            if let Line::Record { record, .. } = decode_of(stream, line.as_bytes(), &mut room) {
                match record {
                    Record::Begins(it) => begins = Some(it.origin_ns),
                    Record::Phase(it) => {
                        phases.push((it.load.to_owned(), it.started_ns, it.stopping_ns));
                    }
                    Record::Notice(it) => notices.push_str(it.text),
                    _ => {}
                }
            }
        }
    }
    let origin_ns = begins.expect("the measured process says when it begins");
    let loads: Vec<&str> = phases.iter().map(|(load, ..)| load.as_str()).collect();
    assert_eq!(loads, ["idle", "dd+nc", "idle"], "{notices}");
    for (number, (_, started_ns, stopping_ns)) in (0..).zip(&phases) {
        let due_ns = |number: u64| origin_ns + number * 400_000_000;
        assert!((due_ns(number)..due_ns(number + 1)).contains(started_ns));
        assert!(*stopping_ns >= due_ns(number + 1));
    }
    assert!(notices.contains("a RAM disk is another load"), "{notices}");
}

#[test]
fn a_load_runs_inside_and_reports_beside_the_plan() {
    for load in ["dd+tar", "hackbench"] {
        let Some(bench) = Bench::new("cpus=2") else {
            return;
        };
        let load = Schedule::parse(load).unwrap();
        let missing = tools::programs(&load).err();
        if let Some(error @ TargetError::Unusable { .. }) = missing {
            skip(load.as_str(), &error.to_string());
            continue;
        }
        let plan = work(SHORT);
        let job = Job {
            load: Some(&load),
            ..Job::idle(&plan)
        };
        let instance = bench.target.start(&job, &bench.guard).unwrap();
        let seen = watch(instance, LIMIT);
        assert_eq!(seen.ended.how, Ending::Done, "{load}: {}", seen.text);
        let mut kinds = Vec::new();
        let mut amount = 0;
        for line in seen.text.lines() {
            let mut room = [0; MAX_PAYLOAD];
            let line = decode_of(Stream::Load, line.as_bytes(), &mut room);
            if let Line::Record { record, .. } = line {
                kinds.push(record.kind());
                if let Record::Achieved(achieved) = record {
                    amount += achieved.amount;
                }
            }
        }
        assert_eq!(kinds.first(), Some(&"hello"), "{load}: {}", seen.text);
        assert!(kinds.contains(&"going"), "{load}: {kinds:?}");
        assert_eq!(kinds.last(), Some(&"end"), "{load}: {kinds:?}");
        assert!(amount > 0, "{load}: {kinds:?}");
        facts(seen);
    }
}

#[test]
fn a_whole_debian_boots_and_then_starts_the_agent() {
    let store = Store::open(&default_store_dir().unwrap()).unwrap();
    if let Err(error) = debian_root::find(&store) {
        return skip("debian-root", &error.to_string());
    }
    let Some(bench) = Bench::new("root=debian,preempt=full") else {
        return;
    };
    let seen = bench.launch(SHORT);
    let facts = facts_in("debian", seen);
    assert_eq!(facts["preemption model"], "full");
    assert_eq!(verified(&bench.target, &facts), Ok(()));
    let label = bench.target.program().unwrap().kernel.unwrap();
    assert!(label.contains("; Debian "), "{label}");
}

#[test]
fn a_guest_that_has_no_port_reports_on_its_console() {
    let Some(bench) = Bench::new("") else {
        return;
    };
    let agent = bench.target.agent.read().unwrap();
    let archive = initramfs::compose(&agent, &[], &Needs::default()).unwrap();
    bench.target.plain_initramfs.set(archive).unwrap();
    let facts = facts(bench.launch(SHORT));
    assert_eq!(verified(&bench.target, &facts), Ok(()));
}

#[test]
fn a_module_that_the_kernel_does_not_take_is_told() {
    let Some(bench) = Bench::new("") else {
        return;
    };
    let agent = bench.target.agent.read().unwrap();
    let module = Module {
        name: "virtio".to_owned(),
        bytes: b"this is no module".to_vec(),
    };
    let archive = initramfs::compose(&agent, &[module], &Needs::default()).unwrap();
    bench.target.plain_initramfs.set(archive).unwrap();
    let seen = bench.launch(SHORT);
    assert!(
        seen.why().contains("does not take the module virtio.ko"),
        "{}",
        seen.why()
    );
}

#[test]
fn a_kernel_that_panics_is_told_with_its_words() {
    let Some(mut bench) = Bench::new("") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent");
    fs::write(&path, "this is no program").unwrap();
    bench.target.agent = MeasuredFile::agent_at(&path);
    for is_alone in [true, false] {
        let work = work(SHORT);
        let job = Job {
            is_alone,
            ..Job::idle(&work)
        };
        let instance = bench.target.start(&job, &bench.guard).unwrap();
        let seen = watch(instance, LIMIT);
        let why = seen.why();
        assert!(why.starts_with("the guest's kernel panicked ("), "{why}");
    }
}

#[test]
fn a_guest_with_too_little_memory_is_told() {
    for memory in ["24M", "64M"] {
        let Some(bench) = Bench::new(&format!("mem={memory}")) else {
            return;
        };
        let seen = bench.launch_with_limit(SHORT, Duration::from_secs(15));
        let told = match &seen.ended.how {
            Ending::TimedOut { doing } => doing.clone().unwrap(),
            _ => seen.why().to_owned(),
        };
        assert!(told.contains("mem"), "{memory}: {told}");
    }
}

#[test]
fn a_guest_that_does_not_become_idle_is_told_with_its_busy_tasks() {
    // Tests of ciphers take seconds where the clock counts instructions.
    let busy = "clock=instructions,cmdline=cryptomgr.notests=0 tare.idle=0";
    let Some(bench) = Bench::new(&format!("kernel=debian-cloud-6.12,{busy}")) else {
        return;
    };
    let seen = bench.launch(SHORT);
    let why = seen.why();
    let (_, tasks) = why.split_once("was not idle within 0 s: ").expect(why);
    assert!(tasks.starts_with("cryptomgr_test"), "{why}");
    assert!(seen.received.is_err(), "{}", seen.text);
}

#[test]
fn a_guest_that_hangs_ends_with_its_limit() {
    let Some(bench) = Bench::new("") else {
        return;
    };
    let begin = Instant::now();
    let words = &format!("{LONG} threshold=1000000");
    let seen = bench.launch_with_limit(words, Duration::from_secs(15));
    assert!(begin.elapsed() < Duration::from_secs(120));
    let Ending::TimedOut { doing: Some(doing) } = &seen.ended.how else {
        panic!("{:?}", seen.ended);
    };
    assert!(doing.starts_with("the guest was still running"), "{doing}");
}

#[test]
fn a_file_that_is_no_kernel_is_told_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vmlinuz");
    fs::write(&path, "this is no kernel").unwrap();
    let target = target(&format!("accel=tcg,kernel={}", path.display()));
    let Availability::Unusable { why, .. } = target.availability() else {
        panic!("usable");
    };
    assert!(
        why.contains("is not a Linux kernel") || why.contains("QEMU"),
        "{why}"
    );
}

#[test]
fn what_a_guest_tells_waits_for_who_reads_late() {
    // Sleep takes no time there, so that a guest that did not wait would be gone long before.
    let Some(bench) = Bench::new("kernel=debian-cloud,clock=instructions") else {
        return;
    };
    // More than a pipe holds.
    let words = &format!("{BATCH} repetitions=100000 bins=1000 window=20000");
    let instance = bench
        .target
        .start(&Job::idle(&work(words)), &bench.guard)
        .unwrap();
    std::thread::sleep(Duration::from_secs(15));
    let seen = watch(instance, LIMIT);
    assert_eq!(
        seen.ended.how,
        Ending::Done,
        "{}",
        &seen.text[..1000.min(seen.text.len())]
    );
    assert!(seen.text.len() > 1 << 17, "{} bytes", seen.text.len());
    assert!(seen.received.is_ok());
}

#[test]
fn timers_are_measured_under_fifo_in_a_guest() {
    for (options, preemption) in [
        ("kernel=debian-cloud", None),
        ("kernel=debian-rt,cpus=2", Some("rt")),
    ] {
        let Some(bench) = Bench::new(options) else {
            return;
        };
        // An emulated CPU is slow to react to a timer, and slower when it shares the host's.
        let words = &format!("{TIMERS} interval=20ms duration=1s threads=1 cpu=0");
        let seen = bench.launch(words);
        assert_eq!(seen.ended.how, Ending::Done, "{}", seen.text);
        let record = record(seen.received.unwrap());
        let work = work(words);
        let guest = threads::measured(&work, &bench.target.settings).work(&work);
        let cpu = guest.cpus.unwrap().first().unwrap().to_string();
        for (fact, expected) in [
            ("scheduling policy", "fifo"),
            ("priority", "95"),
            ("CPU", cpu.as_str()),
        ] {
            let threads = timers(&record, fact);
            assert_eq!(threads, [(50, Some(expected))]);
        }
        let program = &record.programs[0];
        assert!(program.preparation.locked && program.preparation.latency_held);
        let fact = |name: &str| program.fact(name);
        assert_eq!(fact("scheduling"), Some("SCHED_FIFO, priority 95"));
        assert!(fact("timer step").is_some_and(|step| step.contains("high-resolution")));
        // It was idle for two windows of 250 ms before it was measured.
        let waited_ms = |text: &str| text.split(' ').nth(1)?.parse::<u64>().ok();
        let idle = fact("idle after boot").and_then(waited_ms);
        assert!(idle >= Some(500), "{:?}", fact("idle after boot"));
        // What else ran is listed, for a second at least.
        let watched_ns: u64 = fact(WATCHED).unwrap().parse().unwrap();
        assert!(watched_ns >= 1_000_000_000, "{watched_ns}");
        if preemption.is_some() {
            assert_eq!(fact("preemption model"), preemption);
        }
    }
}

#[test]
fn a_guest_reports_what_it_has_when_it_is_asked_to_end() {
    let Some(bench) = Bench::new("cpus=1") else {
        return;
    };
    cut_short(&bench.target, "", &bench.guard);
}
