//! The listener: it reads what programs write, and reaps them.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use tare_docker::Stream;
use tare_guard::{ResourceUsage, Started};
use tare_targets::instance::now_ns;

use super::shared::{Alive, Shared, lock};

/// How long it waits for news before it looks again, once all is to end.
const LOOK: Duration = Duration::from_millis(50);

/// The key by which epoll reports that all is to end: that of no instance.
const ALARM: u64 = u64::MAX;

/// How long those that were killed may take to end.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// How much is read at a time.
const PIECE: usize = 16 * 1024;

/// How many pieces are read before others have their turn: twice what a pipe holds. The rest is
/// news again.
const MOST_READS: usize = 8;

/// Where news of an instance come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Output,
    Error,
    End,
}

impl Source {
    pub(super) const ALL: [Self; 3] = [Self::Output, Self::Error, Self::End];

    /// Returns what is listened to.
    pub(super) fn of(self, started: &Started) -> BorrowedFd<'_> {
        match self {
            Self::Output => started.stdout.as_fd(),
            Self::Error => started.stderr.as_fd(),
            Self::End => started.pidfd().as_fd(),
        }
    }

    /// Returns the key with which epoll reports its events.
    pub(super) fn key(self, slot: u32) -> u64 {
        u64::from(slot) << 2 | self as u64
    }

    fn of_key(key: u64) -> (u32, Self) {
        let source = match key & 3 {
            0 => Self::Output,
            1 => Self::Error,
            _ => Self::End,
        };
        ((key >> 2) as u32, source)
    }
}

/// Listens until all threads are to end and none is alive.
pub(super) fn listen(shared: &Shared<'_>) {
    shared.raise_priority(1);
    let look = Timespec::try_from(LOOK).ok();
    let none = Event {
        flags: EventFlags::empty(),
        data: EventData::new_u64(0),
    };
    let mut events = [none; 64];
    let mut patience = None;
    let alarm = EventData::new_u64(ALARM);
    if let Err(error) = epoll::add(&shared.epoll, &shared.alarm, alarm, EventFlags::IN) {
        return shared.notice(format!("instances can't be waited for: {error}"));
    }
    while !shared.is_ended() || shared.live() > 0 {
        let given_up = |since: &mut Instant| since.elapsed() > KILL_LIMIT;
        if patience.as_mut().is_some_and(given_up) {
            return leave_all(shared);
        }
        // Before that nothing but an event is waited for: a listener that looks now and then would
        // disturb what is measured.
        let is_over = shared.is_over.load(Ordering::Relaxed);
        let most = look.as_ref().filter(|_| is_over);
        let came = match epoll::wait(&shared.epoll, &mut events, most) {
            Ok(came) => came,
            Err(Errno::INTR) => 0,
            Err(error) => return shared.notice(format!("instances can't be waited for: {error}")),
        };
        for event in &events[..came] {
            match event.data.u64() {
                // It would be readable forever.
                ALARM => drop(epoll::delete(&shared.epoll, &shared.alarm)),
                key => {
                    let (slot, source) = Source::of_key(key);
                    on_event(shared, slot, source);
                }
            }
        }
        if shared.is_over.load(Ordering::Relaxed) {
            for slot in &shared.slots {
                if let Some(alive) = &*lock(slot) {
                    alive.started.kill_group();
                    patience.get_or_insert_with(Instant::now);
                }
            }
        }
    }
}

/// Leaves those that can't be killed to the kernel.
fn leave_all(shared: &Shared<'_>) {
    shared.notice("instances can't be killed, and were left to the kernel".to_owned());
    for (number, place) in (0..).zip(&shared.slots) {
        let alive = lock(place).take();
        if let Some(alive) = alive {
            alive.leave(shared);
            alive.started.leave();
            shared.ended(number, alive.instance, Err("it can't be killed".to_owned()));
        }
    }
}

/// Takes news of one instance. Those of one that has just ended find nothing, or a later one that
/// says so itself.
fn on_event(shared: &Shared<'_>, slot: u32, source: Source) {
    let mut place = lock(&shared.slots[slot as usize]);
    let Some(alive) = &mut *place else {
        return;
    };
    if source != Source::End {
        alive.read(shared, source);
        return;
    }
    let spent = match alive.started.try_reap() {
        Ok(Some(spent)) => Ok(spent),
        Ok(None) => return,
        Err(error) => Err(format!("its end can't be waited for: {error}")),
    };
    let at_ns = now_ns();
    // All that it wrote before its end has arrived by now.
    alive.read(shared, Source::Output);
    alive.read(shared, Source::Error);
    alive.leave(shared);
    let alive = place.take();
    drop(place);
    if let Some(alive) = alive {
        let (instance, how) = alive.ended(shared, spent, at_ns);
        shared.ended(slot, instance, how);
    }
}

impl Alive {
    /// Reads what there is. Who writes without pause can't keep others waiting.
    fn read(&mut self, shared: &Shared<'_>, source: Source) {
        let mut bytes = [0; PIECE];
        for _ in 0..MOST_READS {
            let read = match source {
                Source::Output => self.started.stdout.read(&mut bytes),
                _ => self.started.stderr.read(&mut bytes),
            };
            match read {
                Ok(0) => {
                    if source == Source::Output {
                        self.records.close(now_ns());
                    }
                    return self.unregister(shared, source.of(&self.started));
                }
                Ok(n) => {
                    let stream = match source {
                        Source::Output => Stream::Output,
                        _ => Stream::Error,
                    };
                    let was_ready = self.records.is_ready();
                    let ready = &shared.launch.ready;
                    self.records.take(stream, &bytes[..n], now_ns(), ready);
                    let is_new = self.records.is_ready() && !was_ready;
                    if is_new && !shared.launch.tells_memory() {
                        self.peak_bytes = peak_bytes(self.started.pid());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    }

    /// Removes a descriptor at end of file from epoll.
    fn unregister(&self, shared: &Shared<'_>, source: BorrowedFd<'_>) {
        // It may have been done before.
        let _ = epoll::delete(&shared.epoll, source);
    }

    /// Stops listening to it altogether. To close the pipes does not suffice: an instance that is
    /// started at the same time has its own copies until it is executed, and waits for the CPU on
    /// which their events would be reported forever.
    pub(super) fn leave(&self, shared: &Shared<'_>) {
        for source in Source::ALL {
            self.unregister(shared, source.of(&self.started));
        }
    }

    fn ended(
        self,
        shared: &Shared<'_>,
        spent: Result<ResourceUsage, String>,
        at_ns: u64,
    ) -> (tare_results::model::Instance, Result<(), String>) {
        let mut instance = self.instance;
        instance.exited_ns = at_ns;
        let spent = match spent {
            Ok(spent) => spent,
            Err(why) => return (instance, Err(why)),
        };
        instance.user_ns = spent.user_ns;
        instance.system_ns = spent.system_ns;
        instance.status = spent.status.into_raw().unsigned_abs();
        if spent.left_others && !shared.is_over.load(Ordering::Relaxed) {
            shared.notice(
                "instances ended while child processes of theirs still ran, which were killed: an instance ends with \
                 its first process, and what children do that nobody waits for is in no figure"
                    .to_owned(),
            );
        }
        if !shared.launch.tells_memory() {
            instance.peak_bytes = self.peak_bytes.max(spent.peak_bytes.unwrap_or(0));
        }
        let reason = self.channels.reason();
        let judged = self
            .records
            .judge(&mut instance, spent.status, reason.as_deref(), shared);
        (instance, judged)
    }
}

/// Returns the greatest resident memory of a process so far, in bytes; 0 if the kernel does not
/// tell.
fn peak_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}
