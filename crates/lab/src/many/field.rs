//! What the threads of a cell share.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::epoll;
use tare_guard::{OwnedChildren, Started, come_first};
use tare_results::model::{Arrivals, Arrived, Failure, Fate, Instance};
use tare_targets::Starter;
use tare_targets::instance::now_ns;

use super::ears::Ears;
use super::watch::Watched;
use super::{Ran, verdict};

/// The most different reasons that are kept; what fails for others is counted with the last.
const MOST_REASONS: usize = 20;

/// What the threads of a cell share.
pub(super) struct Field<'a> {
    pub(super) arrivals: &'a Arrivals,
    pub(super) starter: &'a Starter,
    pub(super) children: &'a OwnedChildren,
    pub(super) hz: Option<f64>,
    /// By which the listener learns of news.
    pub(super) epoll: OwnedFd,
    /// The programs that are alive, each in its slot.
    pub(super) slots: Vec<Mutex<Option<Alive>>>,
    free: Mutex<Vec<u32>>,
    live: AtomicU32,
    most_live: AtomicU32,
    /// Whether an arrival was refused.
    pub(super) has_refused: AtomicBool,
    queue: Mutex<VecDeque<Arrival>>,
    /// Signalled when something comes into the queue, and at the end.
    news: Condvar,
    /// Signalled when none is alive any more.
    quiet: Condvar,
    rows: Mutex<Rows>,
    /// How long the first instance took until its end, in ns; 0 as long as none has ended.
    pub(super) first_ns: AtomicU64,
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
    pub(super) is_enough: AtomicBool,
    /// Set when no more will be.
    pub(super) is_paced: AtomicBool,
    /// Set when those that are alive are to be ended.
    pub(super) is_over: AtomicBool,
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
    pub(super) aside: Option<std::os::unix::net::UnixStream>,
    pub(super) ears: Ears,
    /// The most memory that it had taken when it got ready, in bytes; 0 if it tells that itself.
    pub(super) peak_bytes: u64,
}

#[derive(Default)]
struct Rows {
    instances: Vec<Instance>,
    failures: Vec<Failure>,
}

impl<'a> Field<'a> {
    pub(super) fn new(
        arrivals: &'a Arrivals,
        most_live: u32,
        starter: &'a Starter,
        children: &'a OwnedChildren,
        hz: Option<f64>,
    ) -> Result<Self, String> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC);
        let slots = 0..most_live;
        Ok(Self {
            arrivals,
            starter,
            children,
            hz,
            epoll: epoll.map_err(|error| format!("instances can't be waited for: {error}"))?,
            slots: slots.clone().map(|_| Mutex::default()).collect(),
            free: Mutex::new(slots.rev().collect()),
            live: AtomicU32::new(0),
            most_live: AtomicU32::new(0),
            has_refused: AtomicBool::new(false),
            queue: Mutex::default(),
            news: Condvar::new(),
            quiet: Condvar::new(),
            rows: Mutex::default(),
            first_ns: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
            most_bytes: AtomicU64::new(arrivals.most_bytes.unwrap_or(u64::MAX)),
            is_full: AtomicBool::new(false),
            from_ns: AtomicU64::new(0),
            until_ns: AtomicU64::new(0),
            live_at: [AtomicU32::new(0), AtomicU32::new(0)],
            is_enough: AtomicBool::new(false),
            is_paced: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            notices: Mutex::default(),
        })
    }

    pub(super) fn live(&self) -> u32 {
        self.live.load(Ordering::Relaxed)
    }

    /// Takes an arrival, at its time: it is handed to a launcher, or refused.
    pub(super) fn arrive(&self, planned_ns: u64, counts: bool) {
        let expected = match self.peak_bytes.load(Ordering::Relaxed) {
            0 => self.starter.memory_bytes,
            seen => seen,
        };
        let expected = expected.saturating_add(self.starter.beside_bytes);
        let together = expected.saturating_mul(u64::from(self.live()) + 1);
        let is_too_much = self.is_full.load(Ordering::Relaxed)
            || together > self.most_bytes.load(Ordering::Relaxed);
        let slot = match is_too_much {
            // One alone may always try.
            true if self.live() > 0 => None,
            _ => lock(&self.free).pop(),
        };
        let Some(slot) = slot else {
            let refused = Instance {
                planned_ns,
                counts: counts.into(),
                exited_ns: now_ns(),
                fate: Fate::Refused.number(),
                ..Instance::default()
            };
            lock(&self.rows).instances.push(refused);
            self.has_refused.store(true, Ordering::Relaxed);
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

    /// Waits for the next arrival; None when there will be no more.
    pub(super) fn next(&self) -> Option<Arrival> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(arrival) = queue.pop_front() {
                return Some(arrival);
            }
            // What arrives last must find somebody.
            if self.is_ended() && self.is_paced.load(Ordering::Acquire) {
                return None;
            }
            let waited = self.news.wait_timeout(queue, LOOK);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until none is alive any more, or no more are to be started.
    pub(super) fn wait_for_none(&self) {
        let mut queue = lock(&self.queue);
        while self.live() > 0 && !self.is_enough.load(Ordering::Relaxed) {
            let waited = self.quiet.wait_timeout(queue, LOOK);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes note of the end of an instance.
    pub(super) fn ended(&self, slot: u32, mut instance: Instance, how: Result<(), String>) {
        let is_over = self.is_over.load(Ordering::Relaxed);
        {
            let mut rows = lock(&self.rows);
            match how {
                Ok(()) => instance.fate = Fate::Done.number(),
                Err(_) if is_over => instance.fate = Fate::Unfinished.number(),
                Err(reason) => {
                    instance.fate = Fate::Failed.number();
                    instance.failure = rows.failed(reason);
                }
            }
            rows.instances.push(instance);
        }
        let took = instance.exited_ns.saturating_sub(instance.planned_ns);
        let first = self.first_ns.load(Ordering::Relaxed);
        if first == 0 && !is_over {
            self.first_ns.store(took.max(1), Ordering::Relaxed);
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

    /// Lets the calling thread come before others, as far as the kernel allows it.
    pub(super) fn hurry(&self, priority: i32) {
        if let Err(error) = come_first(priority) {
            self.remark(format!(
                "the threads that start instances are ordinary ones ({error}): arrivals may be late. SCHED_FIFO takes \
                 CAP_SYS_NICE, and real-time time in the control group (cpu.rt_runtime_us)"
            ));
        }
    }

    /// Takes a remark, once.
    pub(super) fn remark(&self, text: String) {
        let mut notices = lock(&self.notices);
        if !notices.contains(&text) {
            notices.push(text);
        }
    }

    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// Lets all threads end.
    pub(super) fn end(&self) {
        self.is_enough.store(true, Ordering::Relaxed);
        self.is_over.store(true, Ordering::Relaxed);
        self.is_ended.store(true, Ordering::Relaxed);
        self.news.notify_all();
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
            cut_short: watched.cut_short,
        }
    }
}

/// How often those who wait look whether all is to end.
const LOOK: Duration = Duration::from_millis(100);

impl Rows {
    /// Counts a failure, and returns the place of its reason.
    fn failed(&mut self, reason: String) -> u32 {
        let known = self.failures.iter().position(|one| one.reason == reason);
        let place = match known {
            Some(place) => place,
            None if self.failures.len() == MOST_REASONS => MOST_REASONS - 1,
            None => {
                self.failures.push(Failure { reason, count: 0 });
                self.failures.len() - 1
            }
        };
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
