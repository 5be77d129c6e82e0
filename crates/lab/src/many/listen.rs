//! The listener: it reads what programs write, and reaps them.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use tare_guard::{ResourceUsage, Started};
use tare_targets::instance::now_ns;

use super::field::{Alive, Field, lock};

/// How long it waits for news before it looks whether all is to end.
const LOOK: Duration = Duration::from_millis(50);

/// How long those that were killed may take to end.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// How much is read at a time.
const PIECE: usize = 16 * 1024;

/// How many pieces are read before others have their turn: twice what a pipe holds. The rest is news again.
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

    /// Returns the key by which epoll tells of it.
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
pub(super) fn listen(field: &Field<'_>) {
    field.hurry(1);
    let look = Timespec::try_from(LOOK).ok();
    let none = Event {
        flags: EventFlags::empty(),
        data: EventData::new_u64(0),
    };
    let mut events = [none; 64];
    let mut patience = None;
    while !field.is_ended() || field.live() > 0 {
        let given_up = |since: &mut Instant| since.elapsed() > KILL_LIMIT;
        if patience.as_mut().is_some_and(given_up) {
            return leave_all(field);
        }
        let came = match epoll::wait(&field.epoll, &mut events, look.as_ref()) {
            Ok(came) => came,
            Err(Errno::INTR) => 0,
            Err(error) => return field.remark(format!("instances can't be waited for: {error}")),
        };
        for event in &events[..came] {
            let (slot, source) = Source::of_key(event.data.u64());
            hear(field, slot, source);
        }
        if field.is_over.load(Ordering::Relaxed) {
            for slot in &field.slots {
                if let Some(alive) = &*lock(slot) {
                    alive.started.kill_group();
                    patience.get_or_insert_with(Instant::now);
                }
            }
        }
    }
}

/// Leaves those that can't be killed to the kernel.
fn leave_all(field: &Field<'_>) {
    field.remark("instances can't be killed, and were left to the kernel".to_owned());
    for (number, place) in (0..).zip(&field.slots) {
        let alive = lock(place).take();
        if let Some(alive) = alive {
            alive.leave(field);
            alive.started.leave();
            field.ended(number, alive.instance, Err("it can't be killed".to_owned()));
        }
    }
}

/// Takes news of one instance. Those of one that has just ended find nothing, or a later one that says so itself.
fn hear(field: &Field<'_>, slot: u32, source: Source) {
    let mut place = lock(&field.slots[slot as usize]);
    let Some(alive) = &mut *place else {
        return;
    };
    if source != Source::End {
        alive.read(field, source);
        return;
    }
    let spent = match alive.started.try_reap() {
        Ok(Some(spent)) => Ok(spent),
        Ok(None) => return,
        Err(error) => Err(format!("its end can't be waited for: {error}")),
    };
    let at_ns = now_ns();
    // What it wrote before is there by now.
    alive.read(field, Source::Output);
    alive.read(field, Source::Error);
    alive.leave(field);
    let alive = place.take();
    drop(place);
    if let Some(alive) = alive {
        let (instance, how) = alive.ended(field, spent, at_ns);
        field.ended(slot, instance, how);
    }
}

impl Alive {
    /// Reads what there is. Who writes without pause can't keep others waiting.
    fn read(&mut self, field: &Field<'_>, source: Source) {
        let mut bytes = [0; PIECE];
        for _ in 0..MOST_READS {
            let read = match source {
                Source::Output => self.started.stdout.read(&mut bytes),
                _ => self.started.stderr.read(&mut bytes),
            };
            match read {
                Ok(0) => return self.deaf(field, source.of(&self.started)),
                Ok(n) if source == Source::Output => {
                    let was_ready = self.ears.has_got_ready();
                    self.ears
                        .output(&bytes[..n], now_ns(), &field.starter.ready);
                    let is_new = self.ears.has_got_ready() && !was_ready;
                    if is_new && !field.starter.tells_memory() {
                        self.peak_bytes = peak_bytes(self.started.pid());
                    }
                }
                Ok(n) => self.ears.error(&bytes[..n]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    }

    /// Stops listening to what is closed: it would be news for ever.
    fn deaf(&self, field: &Field<'_>, source: BorrowedFd<'_>) {
        // It may have been done before.
        let _ = epoll::delete(&field.epoll, source);
    }

    /// Stops listening to it altogether. To close what is listened to does not suffice: what is started at the same time has
    /// its own copy until it is executed, and waits for the CPU on which its news would be heard for ever.
    pub(super) fn leave(&self, field: &Field<'_>) {
        for source in Source::ALL {
            self.deaf(field, source.of(&self.started));
        }
    }

    fn ended(
        self,
        field: &Field<'_>,
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
        if !field.starter.tells_memory() {
            instance.peak_bytes = self.peak_bytes.max(spent.peak_bytes.unwrap_or(0));
        }
        let mut aside = String::new();
        if let Some(mut stream) = self.aside {
            // What came before the end is there; nothing more is waited for.
            let _ = stream
                .set_nonblocking(true)
                .and_then(|()| read_all(&mut stream, &mut aside));
        }
        let how = self.ears.judge(&mut instance, spent.status, &aside, field);
        (instance, how)
    }
}

/// Returns the greatest resident memory of a process so far, in bytes; 0 if the kernel does not tell.
fn peak_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

/// The most that is read of what a hypervisor said.
const MOST_ASIDE: u64 = 64 * 1024;

fn read_all(stream: &mut impl Read, text: &mut String) -> io::Result<()> {
    let mut bytes = Vec::new();
    let read = stream.take(MOST_ASIDE).read_to_end(&mut bytes);
    *text = String::from_utf8_lossy(&bytes).into_owned();
    read.map(drop)
}
