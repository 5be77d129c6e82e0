//! The thread that started the others: it sleeps until they have something to report.

use std::sync::Arc;

use crate::output::Output;
use crate::platform::Platform;
use crate::wakeup::Plan;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tare_wire::record::{Live, Record};

use super::error::ThreadsError;
use super::shared::Shared;
use super::signals::{Signals, nudge};
use super::thread::Thread;
use crate::linux::clock::now_ns;

/// The time without progress after a thread's end was due until it counts as stuck; twice in a row,
/// since this process itself may have been stopped.
const PATIENCE_NS: u64 = 5_000_000_000;
/// The interval at which sleeping threads that must end are interrupted: a thread may be on its way
/// to its next sleep when the signal comes.
const NUDGE_NS: u64 = 10_000_000;

/// The watcher of a measurement's threads.
pub struct Watch<'a> {
    plan: &'a Plan,
    threads: &'a [Thread],
    shared: &'a Arc<Shared>,
    signals: &'a Signals,
    /// The time of the next live report.
    live_ns: Option<u64>,
    /// Whether a signal ended the measurement.
    was_asked: bool,
    /// Whether the threads must end early.
    is_stopping: bool,
    patience: Patience,
}

impl<'a> Watch<'a> {
    /// Prepares to watch a measurement that begins at `origin_ns`.
    pub fn new(
        plan: &'a Plan,
        threads: &'a [Thread],
        shared: &'a Arc<Shared>,
        signals: &'a Signals,
        origin_ns: u64,
    ) -> Self {
        let last = plan.threads.saturating_sub(1);
        Self {
            plan,
            threads,
            shared,
            signals,
            live_ns: plan
                .live_ns
                .map(|live| origin_ns.saturating_add(live.max(1))),
            was_asked: false,
            is_stopping: false,
            patience: Patience {
                ends_ns: origin_ns.saturating_add(plan.expected_ns()),
                length_ns: PATIENCE_NS + 2 * plan.interval_of(last),
                taken: None,
                idle: 0,
            },
        }
    }

    /// Watches until all threads have ended, and returns whether they were ended before their plan
    /// was done.
    ///
    /// # Errors
    ///
    /// Returns [`ThreadsError::Stuck`] if a thread no longer runs, [`ThreadsError::Stop`] if the
    /// records can't be written.
    pub fn until_all_end(
        mut self,
        output: &mut Output<'_, impl Platform>,
    ) -> Result<bool, ThreadsError> {
        loop {
            self.wait();
            self.shared.clear_news();
            if self.signals.came() {
                self.was_asked |= !self.shared.is_stopped();
                self.shared.stop();
            }
            // Checked first, so that their last reports are written.
            let have_ended = self.threads.iter().all(|thread| thread.channel.has_ended());
            let told = self.tell(output);
            if told.is_err() {
                self.shared.stop();
            }
            if have_ended {
                let mut threads = self.threads.iter();
                let is_early = threads.any(|thread| thread.channel.has_ended_early());
                return told.map(|()| self.was_asked && is_early);
            }
            if self.shared.is_stopped() {
                if !self.is_stopping {
                    self.is_stopping = true;
                    self.patience.ends_ns = now_ns();
                }
                self.nudge();
            }
            if let Some(thread) = self.patience.ends_with(self.threads) {
                return Err(ThreadsError::Stuck {
                    thread: thread.number,
                    cpu: thread.cpu,
                    seconds: 2 * self.patience.length_ns / 1_000_000_000,
                });
            }
        }
    }

    /// Sleeps until there is a report, or a time has come.
    fn wait(&self) {
        let mut until_ns = self.patience.ends_ns;
        if self.is_stopping {
            until_ns = now_ns() + NUDGE_NS;
        }
        if let Some(live_ns) = self.live_ns {
            until_ns = until_ns.min(live_ns);
        }
        let left_ns = until_ns.saturating_sub(now_ns());
        let left = Timespec {
            tv_sec: (left_ns / 1_000_000_000).cast_signed(),
            tv_nsec: (left_ns % 1_000_000_000).cast_signed(),
        };
        let mut fds = [
            PollFd::new(self.shared, PollFlags::IN),
            PollFd::new(self.signals, PollFlags::IN),
        ];
        // An interrupting signal counts as a report.
        let _ = poll(&mut fds, Some(&left));
    }

    /// Writes pending reports.
    fn tell(&mut self, output: &mut Output<'_, impl Platform>) -> Result<(), ThreadsError> {
        let mut has_told = false;
        for thread in self.threads {
            while let Ok(exceeded) = thread.exceeded.try_recv() {
                output.put(&Record::Exceeded(exceeded))?;
                has_told = true;
            }
        }
        let now = now_ns();
        if let Some((live_ns, period_ns)) = self.live_ns.zip(self.plan.live_ns)
            && now >= live_ns
        {
            for thread in self.threads {
                let (set, tid) = (thread.number, thread.tid);
                let live = thread.progress.snapshot();
                if live.n > 0 {
                    output.put(&Record::Live(Live { set, tid, ..live }))?;
                }
            }
            let periods = (now - live_ns) / period_ns.max(1) + 1;
            self.live_ns = Some(live_ns.saturating_add(periods.saturating_mul(period_ns.max(1))));
            has_told = true;
        }
        if has_told {
            output.flush()?;
        }
        Ok(())
    }

    /// Ends the sleeps of threads that must end.
    fn nudge(&self) {
        for thread in self
            .threads
            .iter()
            .filter(|thread| !thread.channel.has_ended())
        {
            nudge(thread.tid);
        }
    }
}

/// The detector of threads that no longer run.
struct Patience {
    /// Time of the next check; first when the measurement is due to end.
    ends_ns: u64,
    length_ns: u64,
    /// Samples of each thread at the last check.
    taken: Option<Vec<u64>>,
    /// Number of consecutive checks at which one had made no progress.
    idle: u32,
}

impl Patience {
    /// Returns a thread without progress for twice the patience after the measurement was due to
    /// end.
    fn ends_with<'a>(&mut self, threads: &'a [Thread]) -> Option<&'a Thread> {
        let now = now_ns();
        if now < self.ends_ns {
            return None;
        }
        let taken: Vec<u64> = threads.iter().map(|t| t.progress.snapshot().n).collect();
        let stands_still = self.taken.as_ref().and_then(|before| {
            let mut still = threads.iter().zip(before.iter().zip(&taken));
            let (thread, _) =
                still.find(|(t, (then, now))| then == now && !t.channel.has_ended())?;
            Some(thread)
        });
        self.idle = stands_still.map_or(0, |_| self.idle + 1);
        self.taken = Some(taken);
        self.ends_ns = now.saturating_add(self.length_ns);
        stands_still.filter(|_| self.idle >= 2)
    }
}
