//! What else runs on the measured CPUs of this machine while a cell is measured.
//!
//! From the moment at which the measured code is ready to its end, all tasks are looked at once a second, from another
//! CPU than those: work that begins in the middle of a cell is named as well. It is the loop that waits for the instance
//! that looks; no thread of its own runs. If tare has no other CPU, it looks at both ends only.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tare_guard::Guard;
use tare_host::sample::TaskWatch;
use tare_host::{CpuList, Source};
use tare_loads::cpus::current;
use tare_results::model::{CellPlan, OtherTask, OtherWork};
use tare_results::target::Group;

/// How often is looked in between.
const EVERY: Duration = Duration::from_secs(1);
/// How many times the CPU time of a look is waited at least: with thousands of tasks it is work by itself.
const REST: u32 = 50;
/// How many processes are kept.
const MOST: usize = 20;

/// What runs beside a cell.
#[derive(Debug)]
pub(crate) struct Neighbours<'a> {
    guard: &'a Guard,
    cpus: CpuList,
    /// Whether this thread may look without running on a measured CPU.
    is_aside: bool,
    /// The processes of the cell.
    own: [u32; 2],
    watch: Option<TaskWatch>,
    next: Option<Instant>,
    /// Other runs that measured there.
    runs: Vec<String>,
}

impl<'a> Neighbours<'a> {
    /// Prepares to look at the CPUs of a cell, whose process and its descendants are none of the others; `None` if it is
    /// not measured on known CPUs of this machine.
    pub fn of(plan: &CellPlan, process: u32, guard: &'a Guard) -> Option<Self> {
        let measured = plan.work.measured_cpus();
        if plan.target.group == Group::Remote || measured.count() == 0 {
            return None;
        }
        Some(Self {
            guard,
            cpus: measured.iter().collect(),
            is_aside: current().is_ok_and(|cpus| cpus.iter().all(|cpu| !measured.contains(cpu))),
            own: [std::process::id(), process],
            watch: None,
            next: None,
            runs: Vec::new(),
        })
    }

    /// Begins: the measured code is ready.
    pub fn begin(&mut self) {
        let look = || TaskWatch::begin(Source::system(), self.cpus.clone(), self.own);
        let (watch, took) = timed(look);
        self.watch = Some(watch);
        self.look_for_runs();
        self.put_off(took);
    }

    /// Looks, if it is time to. Returns after how long again; `None` if that is not needed.
    pub fn tick(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self.next? <= now {
            let (_, took) = timed(|| self.watch.as_mut().map(TaskWatch::read));
            self.look_for_runs();
            self.put_off(took);
        }
        self.next.map(|next| next.saturating_duration_since(now))
    }

    /// Ends: the instance has ended. Returns what ran; `None` if the measured code never became ready.
    pub fn finish(mut self) -> Option<OtherWork> {
        let (watched, tasks) = self.watch.take()?.finish();
        self.look_for_runs();
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
            runs: self.runs,
        })
    }

    fn put_off(&mut self, took: Duration) {
        let pause = EVERY.max(took * REST);
        self.next = self.is_aside.then(|| Instant::now() + pause);
    }

    fn look_for_runs(&mut self) {
        for claim in self.guard.claims() {
            let text = format!("{} (process {})", claim.run, claim.pid);
            let is_here = claim.cpus.iter().any(|cpu| self.cpus.contains(*cpu));
            if is_here && !self.runs.contains(&text) {
                self.runs.push(text);
            }
        }
    }
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
