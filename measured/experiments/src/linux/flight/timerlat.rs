//! The kernel's own measurement of wake-ups, as a second opinion: the tracer timerlat, if the
//! kernel has it.
//!
//! timerlat wakes a kernel thread of SCHED_FIFO 95 each period, and reports how late the timer's
//! interrupt was (our late interrupt) and how late the thread ran (all parts together, without the
//! return to user space). With osnoise's events it also reports how long interrupts, softirqs and
//! other threads delayed that thread (Documentation/trace/timerlat-tracer.rst and
//! osnoise-tracer.rst). It runs briefly after our own measurement, on the same CPU and under the
//! same load: the two must not disturb each other, so they see different wake-ups.
//!
//! A tracer is a global setting of the kernel, which would outlive a killed process. So it is only
//! used in guests, where the kernel is ours alone; even there every setting is restored.

use std::io;
use std::thread;
use std::time::Duration;

use super::tracefs::Tracefs;

/// The duration. 10,000 wake-ups at 100 µs fill some MB of the kernel's buffer.
const DURATION: Duration = Duration::from_secs(1);

/// The size of the kernel's buffer for each CPU while it runs.
const BUFFER_KIB: &str = "8192";

/// The shortest and the longest period that timerlat supports, in µs.
const PERIODS_US: (u64, u64) = (100, 1_000_000);

/// osnoise's events that are recorded with it; the facts have the same names.
const NOISES: [&str; 4] = ["nmi_noise", "irq_noise", "softirq_noise", "thread_noise"];

/// The results: names and values.
pub type Facts = Vec<(&'static str, String)>;

/// Runs timerlat on a CPU, if this kernel has it and no other tracer is active.
///
/// # Errors
///
/// Returns the kernel's error. The settings are restored.
pub fn run(cpu: u32, interval_ns: u64) -> io::Result<Option<Facts>> {
    let tracefs = Tracefs::open()?;
    let tracers = tracefs.read("available_tracers")?;
    let is_there = tracers.split_whitespace().any(|name| name == "timerlat");
    if !is_there || tracefs.read("current_tracer")?.trim() != "nop" {
        return Ok(None);
    }
    let period_us = (interval_ns / 1_000).clamp(PERIODS_US.0, PERIODS_US.1);
    let mut settings = Settings::new(&tracefs);
    settings.set("buffer_size_kb", BUFFER_KIB)?;
    settings.set("osnoise/cpus", &cpu.to_string())?;
    settings.set("osnoise/timerlat_period_us", &period_us.to_string())?;
    settings.set("osnoise/stop_tracing_us", "0")?;
    settings.set("osnoise/stop_tracing_total_us", "0")?;
    for event in NOISES {
        settings.set(&format!("events/osnoise/{event}/enable"), "1")?;
    }
    settings.set("tracing_on", "1")?;
    settings.set("current_tracer", "timerlat")?;
    thread::sleep(DURATION);
    settings.set("tracing_on", "0")?;
    // Changing the tracer empties the buffer.
    let text = tracefs.read(&format!("per_cpu/cpu{cpu}/trace"))?;
    drop(settings);
    Ok(Some(Seen::new(&text).facts()))
}

/// A guard that changes settings of the tracing system, and restores them in reverse order when
/// dropped.
struct Settings<'a> {
    tracefs: &'a Tracefs,
    before: Vec<(String, String)>,
}

impl<'a> Settings<'a> {
    fn new(tracefs: &'a Tracefs) -> Self {
        Self {
            tracefs,
            before: Vec::new(),
        }
    }

    fn set(&mut self, path: &str, value: &str) -> io::Result<()> {
        let explain = |error: io::Error| io::Error::new(error.kind(), format!("{path}: {error}"));
        let before = self.tracefs.read(path).map_err(explain)?;
        // For an unused buffer, the size is followed by its size when expanded.
        let before = before.split_whitespace().next().unwrap_or_default();
        self.before.push((path.to_owned(), before.to_owned()));
        self.tracefs.write(path, value).map_err(explain)
    }
}

impl Drop for Settings<'_> {
    fn drop(&mut self) {
        for (path, value) in self.before.iter().rev() {
            // A setting that can't be restored ends with the guest.
            let _ = self.tracefs.write(path, value);
        }
    }
}

/// The content of the kernel's trace.
#[derive(Debug, Default)]
struct Seen {
    /// Latencies of the timer's interrupt.
    interrupt_ns: Vec<u64>,
    /// Latencies of the thread.
    thread_ns: Vec<u64>,
    /// Lengths of the noises, by kind.
    noises_ns: [Vec<u64>; NOISES.len()],
}

impl Seen {
    /// Reads lines such as
    ///
    /// ```text
    ///   <idle>-0   [001] d.h1.  54.029346: #1     context    irq timer_latency      2833 ns
    ///   cc1-87882  [005] d...3  548.77110: thread_noise:      cc1:87882 start 548.771078243 duration 9909 ns
    /// ```
    fn new(text: &str) -> Self {
        let mut seen = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace().rev();
            let (Some("ns"), Some(value)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(value) = value.parse() else {
                continue;
            };
            match (words.next(), words.next()) {
                (Some("timer_latency"), Some("irq")) => seen.interrupt_ns.push(value),
                (Some("timer_latency"), Some("thread")) => seen.thread_ns.push(value),
                (Some("duration"), _) => {
                    let is_of = |name: &&str| line.contains(&format!(" {name}: "));
                    if let Some(kind) = NOISES.iter().position(is_of) {
                        seen.noises_ns[kind].push(value);
                    }
                }
                _ => {}
            }
        }
        seen
    }

    fn facts(mut self) -> Facts {
        let mut facts = vec![
            ("timerlat IRQ latency", quantiles(&mut self.interrupt_ns)),
            ("timerlat thread latency", quantiles(&mut self.thread_ns)),
        ];
        let names = [
            "osnoise NMI noise",
            "osnoise IRQ noise",
            "osnoise softirq noise",
            "osnoise thread noise",
        ];
        facts.extend(
            names
                .into_iter()
                .zip(self.noises_ns.iter().map(|n| sums(n))),
        );
        facts
    }
}

/// Formats a summary of latencies: `count=10000 min_ns=900 p50_ns=1200 p99_ns=5000 max_ns=9000`.
fn quantiles(latencies_ns: &mut [u64]) -> String {
    latencies_ns.sort_unstable();
    let Some(last) = latencies_ns.len().checked_sub(1) else {
        return "count=0".to_owned();
    };
    let at = |percent: usize| latencies_ns[last * percent / 100];
    format!(
        "count={} min_ns={} p50_ns={} p99_ns={} max_ns={}",
        latencies_ns.len(),
        at(0),
        at(50),
        at(99),
        at(100)
    )
}

/// Formats a summary of noises: `count=12 sum_ns=90000 max_ns=9000`.
fn sums(noises_ns: &[u64]) -> String {
    let sum: u64 = noises_ns.iter().sum();
    let max = noises_ns.iter().max().copied().unwrap_or_default();
    format!("count={} sum_ns={sum} max_ns={max}", noises_ns.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_tracers_are_summed_up() {
        let text = "# tracer: timerlat\n#\n\
            <idle>-0   [001] d.h1..  54.029346: #1     context    irq timer_latency      2833 ns\n\
            <...>-868  [001] .....   54.029353: #1     context thread timer_latency      9820 ns\n\
            <idle>-0   [001] d.h1..  54.030344: #2     context    irq timer_latency       935 ns\n\
            cc1-87882  [001] dNLh1.. 54.030348: irq_noise: local_timer:236 start 54.030344442 duration 7597 ns\n\
            cc1-87882  [001] d...3.. 54.030360: thread_noise:      cc1:87882 start 54.030350243 duration 9909 ns\n\
            cc1-87882  [001] d...3.. 54.030361: irq_noise: qxl:21 start 54.030350243 duration 3 ns\n";
        let facts = Seen::new(text).facts();
        let value = |name| facts.iter().find(|fact| fact.0 == name).unwrap().1.as_str();
        assert_eq!(
            value("timerlat IRQ latency"),
            "count=2 min_ns=935 p50_ns=935 p99_ns=935 max_ns=2833"
        );
        assert!(value("timerlat thread latency").starts_with("count=1 min_ns=9820"));
        assert_eq!(
            value("osnoise IRQ noise"),
            "count=2 sum_ns=7600 max_ns=7597"
        );
        assert_eq!(
            value("osnoise thread noise"),
            "count=1 sum_ns=9909 max_ns=9909"
        );
        assert_eq!(value("osnoise NMI noise"), "count=0 sum_ns=0 max_ns=0");
        assert_eq!(Seen::default().facts()[0].1, "count=0");
    }
}
