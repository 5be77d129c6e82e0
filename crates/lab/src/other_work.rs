//! What else runs on the measured CPUs of this machine while a cell is measured.
//!
//! From the start of the measurement to its end, all tasks are looked at once a second, from
//! another CPU than those: work that begins in the middle of a cell is named as well. The loop that
//! waits for the instance does this; there is no thread for it. If tare has no other CPU, it looks
//! at both ends only.
//!
//! A cell that never begins to measure is watched from its first second on: the work that took its
//! CPU is reported with the reason of its failure.

use std::collections::BTreeSet;
use std::mem;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tare_guard::Guard;
use tare_host::Source;
use tare_host::sample::{Own, TaskWatch};
use tare_loads::cpus::current;
use tare_results::model::{Fact, OtherTask, OtherWork, Program};
use tare_wire::cpus::Cpus;
use tare_wire::guest::{OTHER_TASK, WATCHED};
use tare_wire::record::{CPU_TIME, TIME};

/// How often is looked in between.
const EVERY: Duration = Duration::from_secs(1);
/// How many times the CPU time of a look is waited at least: with thousands of tasks it is work by
/// itself.
const REST: u32 = 50;
/// How many processes are kept, and how many other runs.
const MOST: usize = 20;
/// The share of the time from which on a process may be the reason of a failure.
const BLAMED: f64 = 0.1;

/// Watches the other work on an instance's CPUs.
#[derive(Debug)]
pub struct OtherWorkWatch<'a> {
    guard: &'a Guard,
    cpus: Cpus,
    /// The CPUs on which no other run should measure: those, and others that it uses.
    claimed: Cpus,
    /// Whether this thread may look without running on a measured CPU.
    is_aside: bool,
    own: Own,
    stage: Stage,
    watch: Option<TaskWatch>,
    /// When it is to look.
    next: Option<Instant>,
    /// The work seen until the end of the measurement.
    seen: Option<OtherWork>,
    /// Other runs that measured there.
    runs: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Preparing,
    /// The measurement has begun; the first look is not made yet.
    Begun,
    Measuring,
    /// The measurement is over; the last look is not made yet.
    Over,
}

impl<'a> OtherWorkWatch<'a> {
    /// Prepares to look at measured CPUs. The instance's process, if it is known, and its
    /// descendants are none of the others, nor is what carries the guard's mark. `None` if there
    /// are no such CPUs on this machine.
    pub fn of(
        measured: Cpus,
        claimed: Cpus,
        process: Option<u32>,
        guard: &'a Guard,
    ) -> Option<Self> {
        if measured.count() == 0 {
            return None;
        }
        let processes: BTreeSet<u32> = process.into_iter().chain([std::process::id()]).collect();
        Some(Self {
            guard,
            cpus: measured,
            claimed,
            is_aside: current().is_ok_and(|cpus| cpus.iter().all(|cpu| !measured.contains(cpu))),
            own: Own {
                processes,
                mark: guard.owner().to_string(),
            },
            stage: Stage::Preparing,
            watch: None,
            next: Some(Instant::now() + EVERY),
            seen: None,
            runs: Vec::new(),
        })
    }

    /// Records that the measurement begins, and forgets all that was seen before.
    pub fn begins(&mut self) {
        (self.stage, self.next) = (Stage::Begun, Some(Instant::now()));
        self.watch = None;
    }

    /// Records that the measurement is over, if it had begun.
    pub fn is_over(&mut self) {
        if matches!(self.stage, Stage::Begun | Stage::Measuring) {
            (self.stage, self.next) = (Stage::Over, Some(Instant::now()));
        }
    }

    /// Looks, if it is time to. Returns after how long again; `None` if that is not needed.
    pub fn tick(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self.next? <= now {
            let ((), took) = timed(|| self.look());
            let may_look = self.is_aside && self.seen.is_none();
            self.next = may_look.then(|| Instant::now() + EVERY.max(took * REST));
        }
        self.next.map(|next| next.saturating_duration_since(now))
    }

    fn look(&mut self) {
        self.look_for_runs();
        match (self.stage, &mut self.watch) {
            (Stage::Over, _) => self.seen = self.watched(),
            (Stage::Preparing | Stage::Measuring, Some(watch)) => watch.read(),
            (stage, watch) => {
                let (cpus, own) = (self.cpus, self.own.clone());
                *watch = Some(TaskWatch::begin(Source::system(), cpus, own));
                if stage == Stage::Begun {
                    self.stage = Stage::Measuring;
                }
            }
        }
    }

    /// Ends: the instance has ended. Returns what ran.
    pub fn finish(mut self) -> OtherWork {
        self.look_for_runs();
        let seen = self.seen.take().or_else(|| self.watched());
        OtherWork {
            runs: self.runs,
            ..seen.unwrap_or_default()
        }
    }

    fn watched(&mut self) -> Option<OtherWork> {
        let (watched, tasks) = self.watch.take()?.finish();
        let tasks = tasks.into_iter().take(MOST).map(|task| OtherTask {
            cpu: task.cpu,
            pid: task.pid,
            name: task.name,
            kernel: task.is_kernel,
            ns: nanos(task.time),
        });
        Some(OtherWork {
            watched_ns: nanos(watched),
            tasks: tasks.collect(),
            runs: Vec::new(),
        })
    }

    fn look_for_runs(&mut self) {
        for claim in self.guard.claims() {
            let name = claim.name();
            let is_here = claim.cpus.iter().any(|cpu| self.claimed.contains(*cpu));
            if is_here && self.runs.len() < MOST && !self.runs.contains(&name) {
                self.runs.push(name);
            }
        }
    }
}

/// Takes what else ran on the measured CPUs of a guest from what its agent reported. Of a guest
/// with a load only threads of the kernel are known not to belong to it.
pub fn of_guest(program: &mut Program, has_load: bool) -> Option<OtherWork> {
    let (own, facts): (Vec<Fact>, Vec<Fact>) = mem::take(&mut program.facts)
        .into_iter()
        .partition(|fact| fact.name == WATCHED || fact.name == OTHER_TASK);
    program.facts = facts;
    let on = program.facts.iter().filter(|fact| fact.name == "CPU");
    let on = on.filter_map(|fact| fact.value.parse().ok());
    let cpus: Vec<u32> = program.preparation.cpu.into_iter().chain(on).collect();
    let watched = own.iter().find(|fact| fact.name == WATCHED)?;
    let tasks = own.iter().filter(|fact| fact.name == OTHER_TASK);
    let tasks = tasks.filter_map(|fact| {
        let mut words = fact.value.splitn(5, ' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let (cpu, pid, kernel, ns) = (number()?, number()?, number()?, number()?);
        Some(OtherTask {
            cpu: u32::try_from(cpu).ok()?,
            pid: u32::try_from(pid).ok()?,
            kernel: kernel == 1,
            ns,
            name: words.next()?.to_owned(),
        })
    });
    let is_other = |task: &OtherTask| cpus.contains(&task.cpu) && (task.kernel || !has_load);
    Some(OtherWork {
        watched_ns: watched.value.parse().ok()?,
        tasks: tasks.filter(is_other).take(MOST).collect(),
        runs: Vec::new(),
    })
}

/// Takes the share of its time in which the measured thread did not have its CPU from what its
/// program counted; `None` if it did not count that.
pub fn left(program: &mut Program) -> Option<f64> {
    let mut take = |name: &str| {
        let at = program.counters.iter().position(|own| own.name == name)?;
        Some(program.counters.remove(at).count as f64)
    };
    let (had, of) = (take(CPU_TIME), take(TIME));
    let left = 1.0 - had? / of.filter(|ns| *ns > 0.0)?;
    Some(left.clamp(0.0, 1.0))
}

/// Counts others for no more than the measured thread left of its CPU: a task that wanders may have
/// had its time elsewhere.
pub fn limit(other: &mut OtherWork, left: f64) {
    let all: u64 = other.tasks.iter().map(|task| task.ns).sum();
    let had = left * other.watched_ns as f64 / all.max(1) as f64;
    for task in other.tasks.iter_mut().filter(|_| had < 1.0) {
        task.ns = (task.ns as f64 * had) as u64;
    }
    other.tasks.retain(|task| task.ns > 0);
}

/// Says what may have kept the measured code from its CPU:
/// `sh (process 4711) used CPU 1 for 9.5 s of 9.6 s`.
pub fn blamed(other: &OtherWork) -> Option<String> {
    let watched = other.watched_ns as f64;
    let much = other.tasks.iter();
    let much = much.filter(|task| task.ns as f64 >= watched * BLAMED && task.ns > 0);
    let mut each: Vec<String> = much
        .map(|task| {
            let OtherTask { name, pid, cpu, .. } = task;
            let [used, of] = match watched < 1e9 {
                true => [task.ns as f64, watched].map(|ns| format!("{:.0} ms", ns / 1e6)),
                false => [task.ns as f64, watched].map(|ns| format!("{:.1} s", ns / 1e9)),
            };
            format!("{name} (process {pid}) used CPU {cpu} for about {used} of {of}")
        })
        .collect();
    let runs = other.runs.iter();
    each.extend(runs.map(|run| format!("another run of tare measured on the same CPU: {run}")));
    (!each.is_empty()).then(|| each.join("; "))
}

/// Does something, and returns how much CPU time that took.
fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(
            time.tv_sec.unsigned_abs(),
            time.tv_nsec.unsigned_abs() as u32,
        )
    };
    let begun = now();
    let done = act();
    (done, now().saturating_sub(begun))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_be_to_blame_has_a_time_that_can_be_read() {
        let of = |watched_ns, ns| {
            let task = OtherTask {
                cpu: 1,
                pid: 7,
                name: "sh".to_owned(),
                kernel: false,
                ns,
            };
            let other = OtherWork {
                watched_ns,
                tasks: vec![task],
                ..OtherWork::default()
            };
            blamed(&other).unwrap()
        };
        let begin = "sh (process 7) used CPU 1 for about";
        assert_eq!(
            of(95_000_000, 42_000_000),
            format!("{begin} 42 ms of 95 ms")
        );
        assert_eq!(
            of(9_600_000_000, 9_500_000_000),
            format!("{begin} 9.5 s of 9.6 s")
        );
    }

    #[test]
    fn others_had_no_more_than_the_measured_thread_left() {
        const MS: u64 = 1_000_000;
        let task = |name: &str, ms: u64| OtherTask {
            cpu: 1,
            pid: 4_711,
            name: name.to_owned(),
            kernel: false,
            ns: ms * MS,
        };
        let seen = OtherWork {
            watched_ns: 800 * MS,
            tasks: vec![task("cargo", 240), task("rustc", 80)],
            runs: Vec::new(),
        };
        let limited = |left| {
            let mut other = seen.clone();
            limit(&mut other, left);
            Vec::from_iter(other.tasks.iter().map(|task| task.ns / MS))
        };
        // The processes wandered: they were met there twice, and had most of their time elsewhere.
        assert_eq!(limited(0.05), [30, 10]);
        assert_eq!(limited(0.5), [240, 80]);
        assert!(limited(0.0).is_empty());
    }
}
