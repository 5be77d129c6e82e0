//! The caller's part: it looks after memory, CPU time, limits, the user's wishes and the progress
//! display.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tare_guard::Interrupt;
use tare_results::model::{Labels, Value};
use tare_targets::engine;
use tare_targets::instance::{Finish, now_ns};

use super::Notify;
use super::shared::Shared;
use crate::units;

/// How often it looks: rarely enough that a cell with few instances is left in peace.
const LOOK: Duration = Duration::from_millis(40);

/// The least and the longest time that live instances are given to end, after the last has arrived.
const DRAIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(120));

/// How many times as long as the first one took they are given.
const DRAIN_FACTOR: u32 = 5;

/// The observations made while instances ran.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) cut_short: Option<Duration>,
    /// CPU time of the machine and of its daemons when the window began and when it had ended, with
    /// the times.
    cpu: [Option<Cpu>; 2],
    /// The most memory in use beyond what was in use before.
    memory_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    at_ns: u64,
    /// Of the machine from an unknown origin.
    machine_ns: i64,
    daemons_ns: i64,
}

impl Cpu {
    fn read() -> Self {
        let at_ns = now_ns();
        Self {
            at_ns,
            machine_ns: machine_cpu_ns(at_ns),
            daemons_ns: engine::daemons_cpu_ns().cast_signed(),
        }
    }
}

/// Watches until all have ended, or the user or a limit ends it; None if the user wants nothing of
/// it.
pub(super) fn watch(
    shared: &Shared<'_>,
    limit: Duration,
    interrupt: &Interrupt,
    notify: Notify<'_>,
) -> Option<Watched> {
    let before = available_bytes();
    if shared.arrivals.most_bytes.is_none() {
        let half = before.map_or(u64::MAX, |bytes| bytes / 2);
        shared.most_bytes.store(half, Ordering::Relaxed);
    }
    let mut watched = Watched::default();
    interrupt.bound(Some(limit));
    let mut paced: Option<Instant> = None;
    loop {
        // A request is seen at once, news of instances are the listener's.
        let _ = interrupt.wait(&[], LOOK);
        notify(None);
        watched.look(shared, before);
        if interrupt.kill_requested() {
            return None;
        }
        let from_ns = shared.from_ns.load(Ordering::Acquire);
        if interrupt.finish_requested() && watched.cut_short.is_none() {
            shared.start_no_more();
            if from_ns == 0 {
                return None;
            }
            let measured = now_ns().saturating_sub(from_ns);
            watched.cut_short = Some(Duration::from_nanos(measured));
            notify(Some(Finish::Early));
        }
        if interrupt.left().is_some_and(|left| left.is_zero()) {
            shared.notice(format!(
                "timed out after {}: the instances still running were ended. `--cell-limit` changes the limit",
                units::limit(limit.as_secs_f64())
            ));
            break;
        }
        if !shared.is_paced.load(Ordering::Acquire) {
            continue;
        }
        let paced = *paced.get_or_insert_with(Instant::now);
        if shared.live() == 0 || paced.elapsed() >= drain(shared) {
            break;
        }
    }
    interrupt.bound(None);
    watched.look(shared, before);
    shared.end_instances();
    Some(watched)
}

/// Returns how long live instances are given to end.
fn drain(shared: &Shared<'_>) -> Duration {
    let first = Duration::from_nanos(shared.first_ns.load(Ordering::Relaxed));
    (first * DRAIN_FACTOR).clamp(DRAIN.0, DRAIN.1)
}

impl Watched {
    fn look(&mut self, shared: &Shared<'_>, before: Option<u64>) {
        if let (Some(before), Some(now)) = (before, available_bytes()) {
            let used = before.saturating_sub(now);
            self.memory_bytes = self.memory_bytes.max(used);
            let is_full = used > shared.most_bytes.load(Ordering::Relaxed);
            shared.is_full.store(is_full, Ordering::Relaxed);
        }
        let window = [&shared.from_ns, &shared.until_ns].map(|time| time.load(Ordering::Acquire));
        let now = now_ns();
        for (cpu, at) in self.cpu.iter_mut().zip(window) {
            if cpu.is_none() && (1..=now).contains(&at) {
                *cpu = Some(Cpu::read());
            }
        }
    }

    /// Returns what was seen as values of the cell.
    pub(super) fn values(&self, most_live: u32, from_ns: u64, until_ns: u64) -> Vec<Value> {
        let value = |measure: &str, unit: &str, value: f64| Value {
            measure: measure.to_owned(),
            labels: Labels::default(),
            unit: unit.to_owned(),
            value,
        };
        let mut values = vec![
            value("live", "", most_live.into()),
            value("memory in use", "bytes", self.memory_bytes as f64),
        ];
        if let [Some(before), Some(after)] = self.cpu {
            // It was not read at the very ends of the window.
            let read_ns = after.at_ns.saturating_sub(before.at_ns).max(1);
            let part = until_ns.saturating_sub(from_ns) as f64 / read_ns as f64;
            let of = |cpu: fn(&Cpu) -> i64| (cpu(&after) - cpu(&before)).max(0) as f64 * part;
            values.push(value("machine cpu", "ns", of(|cpu| cpu.machine_ns)));
            values.push(value("engine cpu", "ns", of(|cpu| cpu.daemons_ns)));
        }
        values
    }
}

/// Returns how much memory can be had without swapping; None if the kernel does not tell.
fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

/// Returns the CPU time that all of the machine had by this time of the clock, without idling, plus
/// a constant, in ns.
fn machine_cpu_ns(at_ns: u64) -> i64 {
    busy_ns(&fs::read_to_string("/proc/stat").unwrap_or_default(), at_ns)
}

/// Takes from the time of all CPUs their idle time, which the kernel counts exactly where it stops
/// the tick: work that is over before the next tick is missing in the times of work.
fn busy_ns(stat: &str, at_ns: u64) -> i64 {
    let mut lines = stat.lines().take_while(|line| line.starts_with("cpu"));
    let fields = lines.next().unwrap_or_default().split_whitespace();
    let ticks: Vec<u64> = fields
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    // proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
    let idle = [3, 4, 7].iter().filter_map(|place| ticks.get(*place));
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let all_ns = lines.count() as u64 * at_ns;
    all_ns.cast_signed() - (idle.sum::<u64>() * tick_ns).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::busy_ns;

    #[test]
    fn the_machine_is_busy_while_no_cpu_idles() {
        let stat = |idle: u64| format!("cpu  1 2 3 {idle} 20 6 7 30 0 0\ncpu0 1\ncpu1 1\nintr 5\n");
        let second = busy_ns(&stat(350), 3_000_000_000) - busy_ns(&stat(200), 2_000_000_000);
        // Two CPUs idled for a second and a half of two.
        assert_eq!(second, 500_000_000);
        assert_eq!(busy_ns("", 3_000_000_000), 0);
    }
}
