//! The listener: it reads what programs write, and reaps them.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use tare_guard::Spent;
use tare_targets::instance::now_ns;

use super::field::{Alive, Field, lock};

/// How long it waits for news before it looks whether all is to end.
const LOOK: Duration = Duration::from_millis(50);

/// How long those that were killed may take to end.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// How much is read at a time.
const PIECE: usize = 16 * 1024;

/// Where news of an instance come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Output,
    Error,
    End,
}

impl Source {
    /// Returns the key by which epoll tells of it.
    pub(super) fn key(self, slot: u32) -> u64 {
        u64::from(slot) << 2 | self as u64
    }

    fn of(key: u64) -> (u32, Self) {
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
            return field
                .remark("instances can't be killed, and were left to the kernel".to_owned());
        }
        let came = match epoll::wait(&field.epoll, &mut events, look.as_ref()) {
            Ok(came) => came,
            Err(Errno::INTR) => 0,
            Err(error) => return field.remark(format!("instances can't be waited for: {error}")),
        };
        for event in &events[..came] {
            let (slot, source) = Source::of(event.data.u64());
            hear(field, slot, source);
        }
        if field.is_over.load(Ordering::Relaxed) {
            patience.get_or_insert_with(Instant::now);
            for slot in &field.slots {
                if let Some(alive) = &*lock(slot) {
                    alive.started.kill_group();
                }
            }
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
    let Ok(Some(spent)) = alive.started.try_reap() else {
        return;
    };
    let at_ns = now_ns();
    // What it wrote before is there by now.
    alive.read(field, Source::Output);
    alive.read(field, Source::Error);
    let alive = place.take();
    drop(place);
    if let Some(alive) = alive {
        let (instance, how) = alive.ended(field, spent, at_ns);
        field.ended(slot, instance, how);
    }
}

impl Alive {
    /// Reads what there is.
    fn read(&mut self, field: &Field<'_>, source: Source) {
        let mut bytes = [0; PIECE];
        loop {
            let read = match source {
                Source::Output => self.started.stdout.read(&mut bytes),
                _ => self.started.stderr.read(&mut bytes),
            };
            match read {
                Ok(0) => break self.deaf(field, source),
                Ok(n) if source == Source::Output => {
                    self.ears
                        .output(&bytes[..n], now_ns(), &field.starter.ready);
                }
                Ok(n) => self.ears.error(&bytes[..n]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    }

    /// Stops listening to what is closed: it would be news for ever.
    fn deaf(&self, field: &Field<'_>, source: Source) {
        let fd = match source {
            Source::Output => self.started.stdout.as_fd(),
            _ => self.started.stderr.as_fd(),
        };
        // It may have been done before.
        let _ = epoll::delete(&field.epoll, fd);
    }

    fn ended(
        self,
        field: &Field<'_>,
        spent: Spent,
        at_ns: u64,
    ) -> (tare_results::model::Instance, Result<(), String>) {
        let mut instance = self.instance;
        instance.exited_ns = at_ns;
        instance.user_ns = spent.user_ns;
        instance.system_ns = spent.system_ns;
        instance.status = spent.status.into_raw().unsigned_abs();
        // Of a small one the kernel tells what tare itself had when it started it.
        if spent.peak_bytes > own_peak_bytes() {
            instance.peak_bytes = spent.peak_bytes;
        }
        let mut aside = String::new();
        if let Some(mut stream) = self.aside {
            // What came before the end is there; nothing more is waited for.
            let _ = stream
                .set_nonblocking(true)
                .and_then(|()| read_all(&mut stream, &mut aside));
        }
        let starter = field.starter;
        let how = self
            .ears
            .judge(&mut instance, spent.status, &aside, starter, field.hz);
        (instance, how)
    }
}

/// The most that is read of what a hypervisor said.
const MOST_ASIDE: u64 = 64 * 1024;

fn read_all(stream: &mut impl Read, text: &mut String) -> io::Result<()> {
    let mut bytes = Vec::new();
    let read = stream.take(MOST_ASIDE).read_to_end(&mut bytes);
    *text = String::from_utf8_lossy(&bytes).into_owned();
    read.map(drop)
}

/// Returns the greatest resident memory that this process has had, in bytes.
fn own_peak_bytes() -> u64 {
    static PEAK: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *PEAK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        // It may still grow a little.
        kib.unwrap_or(0).saturating_mul(1024 + 256)
    })
}
