//! What the threads of a cell share.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, epoll, eventfd};
use tare_guard::{OwnedChildren, Started, raise_priority};
use tare_results::model::{Arrivals, Arrived, Failure, Instance, InstanceOutcome};
use tare_targets::Launch;
use tare_targets::instance::now_ns;
use tare_targets::launch::Channels;

use super::records::InstanceRecords;
use super::watch::Watched;
use super::{Ran, verdict};

/// The most different reasons that are kept. Failures for other reasons share one line.
const MOST_REASONS: usize = 20;

/// Maximum number of notices. Each is compared with the others.
const MOST_NOTICES: usize = 1_000;

/// The line of those failures.
const OTHER_REASONS: &str = "other reasons";

/// The state that the threads of a cell share.
pub(super) struct Shared<'a> {
    pub(super) arrivals: &'a Arrivals,
    pub(super) launch: &'a Launch,
    pub(super) children: &'a OwnedChildren,
    pub(super) hz: Option<f64>,
    /// By which the listener learns of news.
    pub(super) epoll: OwnedFd,
    /// The programs that are alive, each in its slot.
    pub(super) slots: Vec<Mutex<Option<Alive>>>,
    free: Mutex<Vec<u32>>,
    live: AtomicU32,
    most_live: AtomicU32,
    /// Whether an arrival was rejected.
    pub(super) has_rejected: AtomicBool,
    queue: Mutex<VecDeque<Arrival>>,
    /// Signalled when something comes into the queue, and at the end.
    news: Condvar,
    /// Signalled when none is alive any more.
    quiet: Condvar,
    rows: Mutex<Rows>,
    /// How long the first instance that did its work took until its end, in ns; 0 until then.
    pub(super) first_ns: AtomicU64,
    /// How many have failed.
    pub(super) failed: AtomicU32,
    /// The most memory that one has taken, in bytes; 0 as long as none was seen.
    peak_bytes: AtomicU64,
    /// How much memory all may take.
    pub(super) most_bytes: AtomicU64,
    /// Whether they take more.
    pub(super) is_full: AtomicBool,
    /// When the measured window begins and ends; 0 as long as that is not known.
    pub(super) from_ns: AtomicU64,
    pub(super) until_ns: AtomicU64,
    /// Live instances at these times.
    pub(super) live_at: [AtomicU32; 2],
    /// Set when no more are to be started.
    pub(super) stops: AtomicBool,
    /// Set when no more will be.
    pub(super) is_paced: AtomicBool,
    /// Set when those that are alive are to be ended.
    pub(super) is_over: AtomicBool,
    /// Readable from then on.
    pub(super) alarm: OwnedFd,
    /// Set when the threads are to end.
    is_ended: AtomicBool,
    notices: Mutex<Vec<String>>,
}

/// An instance that is to be started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) slot: u32,
    pub(super) planned_ns: u64,
    pub(super) counts: bool,
}

/// A program that is alive.
pub(super) struct Alive {
    pub(super) instance: Instance,
    pub(super) started: Started,
    pub(super) channels: Channels,
    pub(super) records: InstanceRecords,
    /// The most memory that it had taken when it got ready, in bytes; 0 if it reports that itself.
    pub(super) peak_bytes: u64,
}

#[derive(Default)]
struct Rows {
    instances: Vec<Instance>,
    failures: Vec<Failure>,
}

impl<'a> Shared<'a> {
    pub(super) fn new(
        arrivals: &'a Arrivals,
        most_live: u32,
        launch: &'a Launch,
        children: &'a OwnedChildren,
        hz: Option<f64>,
    ) -> Result<Self, String> {
        let waiting = |error| format!("instances can't be waited for: {error}");
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(waiting)?;
        let alarm = eventfd(0, EventfdFlags::CLOEXEC).map_err(waiting)?;
        let slots = 0..most_live;
        Ok(Self {
            arrivals,
            launch,
            children,
            hz,
            epoll,
            slots: slots.clone().map(|_| Mutex::default()).collect(),
            free: Mutex::new(slots.rev().collect()),
            live: AtomicU32::new(0),
            most_live: AtomicU32::new(0),
            has_rejected: AtomicBool::new(false),
            queue: Mutex::default(),
            news: Condvar::new(),
            quiet: Condvar::new(),
            rows: Mutex::default(),
            first_ns: AtomicU64::new(0),
            failed: AtomicU32::new(0),
            peak_bytes: AtomicU64::new(0),
            most_bytes: AtomicU64::new(arrivals.most_bytes.unwrap_or(u64::MAX)),
            is_full: AtomicBool::new(false),
            from_ns: AtomicU64::new(0),
            until_ns: AtomicU64::new(0),
            live_at: [AtomicU32::new(0), AtomicU32::new(0)],
            stops: AtomicBool::new(false),
            is_paced: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            alarm,
            is_ended: AtomicBool::new(false),
            notices: Mutex::default(),
        })
    }

    pub(super) fn live(&self) -> u32 {
        self.live.load(Ordering::Relaxed)
    }

    /// Takes an arrival, at its time: it is handed to a launcher, or rejected.
    pub(super) fn arrive(&self, planned_ns: u64, counts: bool) {
        let expected = match self.peak_bytes.load(Ordering::Relaxed) {
            0 => self.launch.memory_bytes,
            seen => seen,
        };
        let expected = expected.saturating_add(self.launch.engine_bytes);
        let together = expected.saturating_mul(u64::from(self.live()) + 1);
        let is_too_much = self.is_full.load(Ordering::Relaxed)
            || together > self.most_bytes.load(Ordering::Relaxed);
        // One alone may always try.
        let is_too_much = is_too_much && self.live() > 0;
        let slot = match is_too_much {
            true => None,
            false => lock(&self.free).pop(),
        };
        let Some(slot) = slot else {
            let rejected = Instance {
                planned_ns,
                counts: counts.into(),
                exited_ns: now_ns(),
                fate: InstanceOutcome::Rejected.number(),
                failure: is_too_much.into(),
                ..Instance::default()
            };
            lock(&self.rows).instances.push(rejected);
            self.has_rejected.store(true, Ordering::Relaxed);
            return;
        };
        let live = self.live.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_live.fetch_max(live, Ordering::Relaxed);
        lock(&self.queue).push_back(Arrival {
            slot,
            planned_ns,
            counts,
        });
        self.news.notify_one();
    }

    /// Waits for the next arrival. Returns None when there will be no more.
    pub(super) fn next(&self) -> Option<Arrival> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(arrival) = queue.pop_front() {
                return Some(arrival);
            }
            // The last arrival must find a launcher.
            if self.is_ended() && self.is_paced.load(Ordering::Acquire) {
                return None;
            }
            let waited = self.news.wait(queue);
            queue = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until no instance is alive, or no more are to be started.
    pub(super) fn wait_for_none(&self) {
        let mut queue = lock(&self.queue);
        while self.live() > 0 && !self.stops.load(Ordering::Relaxed) {
            let waited = self.quiet.wait(queue);
            queue = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until a moment, unless no more instances are to be started before.
    pub(super) fn wait_long(&self, time: Duration) {
        let queue = lock(&self.queue);
        if !self.stops.load(Ordering::Relaxed) {
            drop(self.quiet.wait_timeout(queue, time));
        }
    }

    /// Sets a flag and wakes those who wait for it. They look at it under the same lock, so that
    /// none can miss it, and nobody has to wake up now and then to look.
    fn raise(&self, flag: &AtomicBool) {
        let queue = lock(&self.queue);
        flag.store(true, Ordering::Release);
        drop(queue);
        self.news.notify_all();
        self.quiet.notify_all();
    }

    /// Lets no more instances start.
    pub(super) fn start_no_more(&self) {
        self.raise(&self.stops);
    }

    /// Ends those that are alive, and lets no more start.
    pub(super) fn end_instances(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.start_no_more();
        // It can't overflow, nor fail otherwise.
        let _ = rustix::io::write(&self.alarm, &1_u64.to_ne_bytes());
    }

    /// Records that all have arrived.
    pub(super) fn all_have_arrived(&self) {
        self.raise(&self.is_paced);
    }

    /// Records the end of an instance.
    pub(super) fn ended(&self, slot: u32, mut instance: Instance, how: Result<(), String>) {
        let is_over = self.is_over.load(Ordering::Relaxed);
        {
            let mut rows = lock(&self.rows);
            match how {
                Ok(()) => {
                    instance.fate = InstanceOutcome::Done.number();
                    if self.first_ns.load(Ordering::Relaxed) == 0 {
                        let took = instance.exited_ns.saturating_sub(instance.planned_ns);
                        self.first_ns.store(took.max(1), Ordering::Relaxed);
                    }
                }
                Err(_) if is_over => instance.fate = InstanceOutcome::Unfinished.number(),
                Err(reason) => {
                    instance.fate = InstanceOutcome::Failed.number();
                    instance.failure = rows.failed(reason);
                    self.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
            rows.instances.push(instance);
        }
        self.peak_bytes
            .fetch_max(instance.peak_bytes, Ordering::Relaxed);
        lock(&self.free).push(slot);
        let queue = lock(&self.queue);
        let was_last = self.live.fetch_sub(1, Ordering::Relaxed) == 1;
        drop(queue);
        if was_last {
            self.quiet.notify_one();
        }
    }

    /// Raises the calling thread to SCHED_FIFO, if permitted.
    pub(super) fn raise_priority(&self, priority: i32) {
        if let Err(error) = raise_priority(priority) {
            self.notice(format!(
                "the threads that start instances are ordinary ones ({error}): arrivals may be late. SCHED_FIFO takes \
                 CAP_SYS_NICE, and real-time time in the control group (cpu.rt_runtime_us)"
            ));
        }
    }

    /// Takes a remark, once.
    pub(super) fn notice(&self, text: String) {
        let mut notices = lock(&self.notices);
        if notices.len() < MOST_NOTICES && !notices.contains(&text) {
            notices.push(text);
        }
    }

    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// Lets all threads end.
    pub(super) fn end(&self) {
        self.end_instances();
        self.raise(&self.is_ended);
    }

    /// Puts together what came of all.
    pub(super) fn ran(self, watched: Watched) -> Ran {
        let Rows {
            mut instances,
            failures,
        } = into_inner(self.rows);
        instances.sort_by_key(|instance| instance.planned_ns);
        let (from_ns, until_ns) = (self.from_ns.into_inner(), self.until_ns.into_inner());
        let live_at = self.live_at.map(AtomicU32::into_inner);
        let loads = verdict::Loads {
            arrivals: self.arrivals,
            live_at,
            first_ns: self.first_ns.into_inner(),
        };
        let (saturated, not_open_loop) = verdict::judge(&loads, &instances);
        let why_none = verdict::why_none(&instances, &failures);
        let arrived = Arrived {
            from_ns,
            until_ns,
            failures,
            saturated,
            not_open_loop,
        };
        Ran {
            values: watched.values(self.most_live.into_inner(), from_ns, until_ns),
            instances,
            arrived,
            notices: into_inner(self.notices),
            why_none,
            cut_short: watched.cut_short,
        }
    }
}

impl Rows {
    /// Counts a failure, and returns the place of its reason.
    fn failed(&mut self, mut reason: String) -> u32 {
        let place_of = |reason: &str| self.failures.iter().position(|one| one.reason == reason);
        let mut known = place_of(&reason);
        if known.is_none() && self.failures.len() >= MOST_REASONS {
            reason = OTHER_REASONS.to_owned();
            known = place_of(&reason);
        }
        let place = known.unwrap_or_else(|| {
            self.failures.push(Failure { reason, count: 0 });
            self.failures.len() - 1
        });
        self.failures[place].count += 1;
        place as u32
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
