//! Waiting until a guest's kernel has booted.
//!
//! A kernel starts init before it is done: it still tests its ciphers, frees memory and probes
//! devices in kernel threads, for seconds where code is emulated. A measurement in that time would
//! show its boot, not the system.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::error::InitError;
use crate::tasks::Tasks;

/// The time over which the CPU time of the guest is looked at. It is counted in ticks of 10 ms.
const WINDOW: Duration = Duration::from_millis(250);

/// How many windows in a row must be idle: a test may wait for the next one in between.
const WINDOWS: u32 = 2;

/// The share of a window, as its divisor, that a CPU may be busy: what the tick and this program
/// take, also where the host runs the guest's CPU only now and then.
const BUSY: u64 = 20;

/// The time limit by default.
const LIMIT: Duration = Duration::from_secs(60);

/// How many tasks an error names.
const NAMED: usize = 5;

/// Waits until all CPUs of the guest are idle, and returns how long that took.
///
/// # Errors
///
/// [`InitError::Busy`] with the names of the tasks that use the CPUs, if that takes too long.
pub fn wait(limit: Option<Duration>) -> Result<Duration, InitError> {
    until_idle(limit.unwrap_or(LIMIT), WINDOW, cpu_times, Tasks::read)
}

fn until_idle(
    limit: Duration,
    window: Duration,
    mut cpu_times: impl FnMut() -> Vec<(u64, u64)>,
    mut tasks: impl FnMut() -> Tasks,
) -> Result<Duration, InitError> {
    let begun = Instant::now();
    let mut quiet = 0;
    let mut before = cpu_times();
    while quiet < WINDOWS {
        // Only at the end: where the host has little time for the guest, reading them takes much of a
        // window.
        let before_window = (begun.elapsed() >= limit).then(&mut tasks);
        thread::sleep(window);
        let now = cpu_times();
        quiet = if are_idle(&before, &now) {
            quiet + 1
        } else {
            0
        };
        before = now;
        if quiet == 0
            && let Some(before) = before_window
        {
            let mut names: Vec<String> = Vec::new();
            for task in tasks().since(&before) {
                if !names.contains(&task.name) {
                    names.push(task.name);
                }
            }
            names.truncate(NAMED);
            return Err(InitError::Busy {
                seconds: limit.as_secs(),
                tasks: names.join(", "),
            });
        }
    }
    Ok(begun.elapsed())
}

/// Reads the busy and the whole time of each CPU, in ticks.
fn cpu_times() -> Vec<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    text.lines().filter_map(times).collect()
}

/// Reads a line of `/proc/stat` (proc(5)) that is of a single CPU. Stolen time is neither.
fn times(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split_whitespace();
    words.next()?.strip_prefix("cpu")?.parse::<u32>().ok()?;
    let ticks: Vec<u64> = words.take(7).map_while(|word| word.parse().ok()).collect();
    let &[user, nice, system, idle, waiting, interrupts, soft] = &ticks[..] else {
        return None;
    };
    let busy = user + nice + system + interrupts + soft;
    Some((busy, busy + idle + waiting))
}

fn are_idle(before: &[(u64, u64)], now: &[(u64, u64)]) -> bool {
    let mut cpus = before.iter().zip(now);
    cpus.all(|(before, now)| {
        let busy = now.0.saturating_sub(before.0);
        busy * BUSY <= now.1.saturating_sub(before.1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::Task;

    #[test]
    fn each_cpu_must_be_idle() {
        assert_eq!(times("cpu1 1 2 3 100 10 4 5 6 0 0"), Some((15, 125)));
        assert_eq!(times("cpu  1 2 3 100 10 4 5 6 0 0"), None);
        assert_eq!(times("intr 1 2 3"), None);
        let quiet = [(10, 100), (20, 100)];
        assert!(are_idle(&quiet, &[(11, 125), (21, 125)]));
        assert!(!are_idle(&quiet, &[(11, 125), (22, 125)]));
    }

    #[test]
    fn nothing_begins_before_two_windows_were_idle() {
        let [limit, window] = [200, 2].map(Duration::from_millis);
        // Busy, idle for one window, busy, and idle from then on.
        let busy = [25, 0, 25, 0, 0, 25];
        let (mut at, mut now) = (0, (0, 0));
        let cpu_times = || {
            now = (now.0 + busy[at % busy.len()], now.1 + 25);
            at += 1;
            vec![(0, now.1), now]
        };
        let waited = until_idle(limit, window, cpu_times, Tasks::default);
        assert!(waited.is_ok_and(|waited| waited >= 4 * window));
        assert_eq!(at, 5);
    }

    #[test]
    fn a_guest_that_is_never_idle_is_an_error_that_names_its_busiest_tasks() {
        // Of eight, each uses more CPU time than the one before; the first uses none, and the last
        // two have the same name.
        let (mut ticks, mut readings) = (0, 0);
        let tasks = || {
            readings += 1;
            let task = |number| Task {
                pid: number,
                name: format!("kworker/{}", number.min(6)),
                is_kernel: true,
                cpu: 0,
                ns: readings * u64::from(number),
            };
            (0..8).map(|number| (number, task(number))).collect()
        };
        let cpu_times = || {
            ticks += 25;
            vec![(ticks, ticks)]
        };
        let never = until_idle(Duration::ZERO, Duration::ZERO, cpu_times, tasks);
        let Err(InitError::Busy { tasks, .. }) = never else {
            panic!("{never:?}");
        };
        let named = "kworker/6, kworker/5, kworker/4, kworker/3, kworker/2";
        assert_eq!(tasks, named);
    }
}
