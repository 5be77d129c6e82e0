//! One measuring thread.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::moved::Moved;
use crate::wakeup::{Pace, Plan, Progress, Recorder};
use rustix::thread::gettid;
use tare_wire::cpus::Cpus;
use tare_wire::record::Exceeded;
use tare_wire::scheduling::Policy;

use super::error::ThreadsError;
use super::placing;
use super::refusal::Refusal;
use super::scheduling::Scheduling;
use super::shared::{Channel, Shared};
use crate::linux::clock::{SleepCost, now_ns, sleep_until};
use crate::linux::flight::Snapshots;
use crate::linux::pinned::Pinned;

/// The size of a thread's stack. All of it is locked, where permitted.
const STACK_BYTES: usize = 128 << 10;
/// The part of it that is touched before the measurement: many times the loop's need.
const TOUCHED_BYTES: usize = 32 << 10;

/// The greatest number of unread values above the limit per thread.
const MOST_EXCEEDED: usize = 256;

/// The time limit for preparing a thread. Under an emulator some hundred ms are usual.
const START_LIMIT: Duration = Duration::from_secs(20);

/// A thread that is ready to measure, or measures, or has measured.
#[derive(Debug)]
pub struct Thread {
    /// Its number.
    pub number: u32,
    /// Its id in the kernel.
    pub tid: u32,
    /// The CPU that it is pinned to.
    pub cpu: Option<u32>,
    /// Its scheduling, as read back from the kernel.
    pub scheduling: Scheduling,
    /// The cost of a sleep on its CPU, under its policy.
    pub sleep: SleepCost,
    /// The cost of recording one sample.
    pub recording_ns: u64,
    /// Its progress.
    pub progress: &'static Progress,
    /// Its reports.
    pub channel: Arc<Channel>,
    /// The values above the limit, as they occur.
    pub exceeded: Receiver<Exceeded>,
    handle: JoinHandle<Result<Recorded, Moved>>,
}

/// The results of a thread: its samples, and the kernel's events around the worst if requested.
pub type Recorded = (Recorder, Option<Snapshots>);

/// The results of a thread's preparation.
struct Started {
    tid: u32,
    scheduling: Scheduling,
    sleep: SleepCost,
    recording_ns: u64,
}

impl Thread {
    /// Starts a thread, and waits until it is ready: pinned, scheduled, its memory touched.
    ///
    /// # Errors
    ///
    /// Returns why it can't be prepared.
    pub fn start(
        plan: &Plan,
        number: u32,
        (recorder, snapshots): Recorded,
        shared: &Arc<Shared>,
    ) -> Result<Self, ThreadsError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let (plan, cpu) = (*plan, plan.cpu_of(number));
        let progress = recorder.progress();
        let channel = Arc::new(Channel::default());
        let (exceeding, exceeded) = mpsc::sync_channel(MOST_EXCEEDED);
        let measuring = Measuring {
            number,
            plan,
            recorder,
            snapshots,
            shared: Arc::clone(shared),
            channel: Arc::clone(&channel),
            exceeding,
            pinned: None,
        };
        let handle = Builder::new()
            .name(format!("tare-measure/{number}"))
            .stack_size(STACK_BYTES)
            .spawn(move || measuring.run(&sender))
            .map_err(|source| ThreadsError::System {
                what: "thread (its stack is locked in memory: see `ulimit -l` and `ulimit -u`)",
                source,
            })?;
        let seconds = START_LIMIT.as_secs();
        let started = receiver
            .recv_timeout(START_LIMIT)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => ThreadsError::NotStarted {
                    thread: number,
                    cpu,
                    seconds,
                },
                RecvTimeoutError::Disconnected => ThreadsError::System {
                    what: "word of a thread",
                    source: io::ErrorKind::BrokenPipe.into(),
                },
            })??;
        Ok(Self {
            number,
            tid: started.tid,
            cpu,
            scheduling: started.scheduling,
            sleep: started.sleep,
            recording_ns: started.recording_ns,
            progress,
            channel,
            exceeded,
            handle,
        })
    }

    /// Waits for the thread's end and returns its results.
    ///
    /// # Errors
    ///
    /// Returns [`Moved`] if it did not stay on its CPU.
    pub fn join(self) -> Result<Recorded, Moved> {
        // With `panic = "abort"` a panic in a thread ends the process.
        self.handle.join().expect("the thread can't have panicked")
    }
}

/// The state of a thread.
struct Measuring {
    number: u32,
    plan: Plan,
    recorder: Recorder,
    snapshots: Option<Snapshots>,
    shared: Arc<Shared>,
    channel: Arc<Channel>,
    exceeding: SyncSender<Exceeded>,
    /// Its CPU, if it is pinned.
    pinned: Option<Pinned>,
}

impl Measuring {
    fn run(
        mut self,
        starter: &SyncSender<Result<Started, ThreadsError>>,
    ) -> Result<Recorded, Moved> {
        let started = self.prepare();
        let is_ready = started.is_ok();
        // Nobody receives it if it took too long.
        let is_heard = starter.send(started).is_ok();
        let mut is_done = false;
        if is_ready
            && is_heard
            && let Some(origin_ns) = self.shared.wait_for_origin()
        {
            is_done = self.measure(origin_ns);
        }
        let stayed = self.pinned.as_ref().map_or(Ok(()), Pinned::stayed);
        self.channel.end(is_done);
        self.shared.tell();
        stayed.map(|()| (self.recorder, self.snapshots))
    }

    /// Prepares everything that could otherwise disturb the first samples.
    fn prepare(&mut self) -> Result<Started, ThreadsError> {
        let cpu = self.plan.cpu_of(self.number);
        if let Some(cpu) = cpu {
            placing::pin(Cpus::one(cpu))?;
            self.pinned = Some(Pinned::to(cpu));
        } else if self.plan.policy == Policy::Deadline {
            // The kernel requires a thread that may use its whole domain of CPUs, and the affinity
            // is inherited.
            placing::unpin()?;
        }
        touch_stack();
        // Timer slack delays the wake-up of an ordinary thread, and is no part of its cost.
        set_timer_slack(Some(NonZeroU64::MIN));
        // Under SCHED_DEADLINE it would be throttled during that many sleeps.
        let before = (self.plan.policy == Policy::Deadline).then(SleepCost::measure);
        let costs = before.map_or(0, |cost| cost.median_ns);
        let asked = Scheduling::of(&self.plan, self.number, costs);
        let refused =
            |errno| ThreadsError::Scheduling(Box::new(Refusal::explain(errno, asked, cpu)));
        asked.apply().map_err(refused)?;
        let scheduling = Scheduling::read().map_err(refused)?;
        let sleep = before.unwrap_or_else(SleepCost::measure);
        set_timer_slack(None);
        self.recorder.calibrate(now_ns);
        Ok(Started {
            tid: gettid().as_raw_nonzero().get().unsigned_abs(),
            scheduling,
            sleep,
            recording_ns: self.recorder.recording_ns(),
        })
    }

    /// Measures, and returns whether the plan is done. In a period the sleep is the only system
    /// call: the clock is read by the vDSO.
    fn measure(&mut self, origin_ns: u64) -> bool {
        let limit_ns = self.plan.above_ns.unwrap_or(u64::MAX);
        let mut pace = Pace::new(&self.plan, self.number);
        while let Some(due) = pace.due()
            && !self.shared.is_stopped()
        {
            let due_ns = origin_ns + due.at_ns;
            if !sleep_until(due_ns) {
                // A signal ended the sleep: either all must end, or the sample is still due.
                continue;
            }
            let now_ns = now_ns();
            // Neither timers nor the clock go back, but a value below 0 would wrap around.
            let value_ns = now_ns.saturating_sub(due_ns);
            self.recorder.record(due.index, value_ns);
            self.recorder
                .missed(pace.woke(now_ns.saturating_sub(origin_ns)));
            if self.pinned.is_some_and(|pinned| !pinned.is_there()) {
                // Later samples would be from another CPU.
                self.shared.stop();
                break;
            }
            if let Some(snapshots) = &mut self.snapshots
                && snapshots.is_candidate(value_ns)
            {
                snapshots.keep(due.index, due_ns, value_ns);
            }
            if value_ns > limit_ns {
                self.exceeded(due.index, value_ns);
            }
        }
        pace.due().is_none()
    }

    #[cold]
    fn exceeded(&self, index: u64, value: u64) {
        if !self.plan.go_on {
            self.shared.stop();
        }
        let set = self.number;
        // Neither waits nor allocates.
        let told = self.exceeding.try_send(Exceeded { set, index, value });
        if told.is_err() {
            self.channel.lost.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.tell();
    }
}

/// Sets this thread's timer slack; None restores the initial one. Real-time threads have no slack.
fn set_timer_slack(ns: Option<NonZeroU64>) {
    let ns: u64 = ns.map_or(0, NonZeroU64::get);
    // SAFETY: no pointers are passed.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns) };
}

/// Writes to the pages of the stack that the measurement may use.
#[inline(never)]
fn touch_stack() {
    let mut pages = [0_u8; TOUCHED_BYTES];
    // Keeps the compiler from removing the writes.
    core::hint::black_box(&mut pages);
}
