//! cyclictest's JSON, with the figures that it leaves out as further keys.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use tare_host::Fact;
use tare_host::machine::{Kernel, PreemptionModel};
use tare_results::MachineRecord;
use tare_results::model::{Cell, Plan, Record, Samples};
use tare_stats::{Quantile, QuantileEstimate, Response, StatsError};

use super::lines::least;
use super::{Unit, rows_below, sum};
use crate::latencies::Latencies;

/// The part above the threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The command line.
    pub command: String,
    /// The program that measured.
    pub version: String,
    /// When it began.
    pub start: Timestamp,
    /// When it ended.
    pub end: Timestamp,
    /// Its exit code.
    pub return_code: u8,
    /// Where it ran.
    pub system: System,
}

/// Describes the system as `uname(2)` does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// Name of the kernel.
    pub sysname: String,
    /// Name of the machine.
    pub nodename: String,
    /// Release of the kernel.
    pub release: String,
    /// How the kernel was built.
    pub version: String,
    /// Architecture.
    pub machine: String,
    /// Whether it is a PREEMPT_RT kernel.
    pub realtime: bool,
}

impl Head {
    /// Describes a cell of a run that has ended.
    pub fn of_cell(
        run: &Plan,
        machine: &MachineRecord,
        cell: &Cell,
        samples: &Samples,
        return_code: u8,
    ) -> Self {
        let program = cell.outcome.record().and_then(Record::program);
        let fact = |name: &str| Some(program?.fact(name)?.to_owned());
        let (version, environment) = program.map_or(("", ""), |program| {
            (&program.agent.version, &program.agent.environment)
        });
        // The agent only reports the kernel of a guest or of another machine.
        let here = cell.plan.target.kernel().is_host();
        let kernel = here.then_some(&machine.machine.kernel);
        let known = |of: fn(&Kernel) -> &Fact<String>| kernel.and_then(|k| of(k).known().cloned());
        let is_realtime = kernel.is_some_and(|k| k.preemption.model.is(&PreemptionModel::Rt));
        let instance = samples.instances.first();
        let lasted = instance.map_or(0, |times| times.exited_ns.saturating_sub(times.started_ns));
        let lasted = SignedDuration::from_nanos(i64::try_from(lasted).unwrap_or(i64::MAX));
        let end = cell.started_at.checked_add(lasted);
        Self {
            command: run.command.join(" "),
            version: format!("tare {version}"),
            start: cell.started_at,
            end: end.unwrap_or(Timestamp::MAX),
            return_code,
            system: System {
                sysname: match environment {
                    "linux" => "Linux".to_owned(),
                    other => other.to_owned(),
                },
                // It may be private.
                nodename: String::new(),
                release: fact("kernel release")
                    .or_else(|| fact("release"))
                    .or_else(|| known(|kernel| &kernel.release))
                    .unwrap_or_default(),
                version: fact("version")
                    .or_else(|| known(|kernel| &kernel.version))
                    .unwrap_or_default(),
                machine: "x86_64".to_owned(),
                realtime: is_realtime
                    || fact("preemption model").as_deref() == Some("rt")
                    || fact("realtime").as_deref() == Some("1"),
            },
        }
    }
}

/// Writes the JSON; histograms hold the values below `size`, 0 for none.
///
/// The keys that cyclictest writes come first in every object, `cmdline:` and `rt_test_version:`
/// with their colon as there. `service_ns`, `response_ns` and `missed` of each thread are ours:
/// exact, and in ns; null where latencies are known by their sum only.
///
/// # Errors
///
/// As [`Response::new`].
pub fn json(
    head: &Head,
    threads: &[Latencies],
    size: u64,
    unit: Unit,
) -> Result<String, StatsError> {
    let mut text = "{\n  \"file_version\": 1,\n".to_owned();
    let system = &head.system;
    let strings = [
        ("cmdline:", head.command.as_str()),
        ("rt_test_version:", &head.version),
        ("start_time", &time(head.start)),
        ("end_time", &time(head.end)),
    ];
    for (key, value) in strings {
        let _ = writeln!(text, "  \"{key}\": {},", quoted(value));
    }
    let _ = write!(
        text,
        "  \"return_code\": {},\n  \"sysinfo\": {{\n",
        head.return_code
    );
    let strings = [
        ("sysname", &system.sysname),
        ("nodename", &system.nodename),
        ("release", &system.release),
        ("version", &system.version),
        ("machine", &system.machine),
    ];
    for (key, value) in strings {
        let _ = writeln!(text, "    \"{key}\": {},", quoted(value));
    }
    let _ = write!(
        text,
        "    \"realtime\": {}\n  }},\n  \"num_threads\": {},\n  \"resolution_in_ns\": {},\n  \"thread\": {{\n",
        u8::from(system.realtime),
        threads.len(),
        u8::from(unit == Unit::Nanos)
    );
    for (place, latencies) in threads.iter().enumerate() {
        thread(&mut text, latencies, size, unit)?;
        let comma = if place + 1 < threads.len() { "," } else { "" };
        let _ = writeln!(text, "    }}{comma}");
    }
    text.push_str("  }\n}\n");
    Ok(text)
}

fn thread(
    text: &mut String,
    latencies: &Latencies,
    size: u64,
    unit: Unit,
) -> Result<(), StatsError> {
    let thread = &latencies.thread;
    let _ = write!(
        text,
        "    \"{}\": {{\n      \"histogram\": {{",
        thread.number
    );
    let mut values = rows_below(&latencies.counts, size, unit)
        .into_iter()
        .peekable();
    let is_empty = values.peek().is_none();
    while let Some((value, count)) = values.next() {
        let comma = if values.peek().is_some() { "," } else { "" };
        let _ = write!(text, "\n        \"{value}\": {count}{comma}");
    }
    if !is_empty {
        text.push('\n');
    }
    let mean = sum(latencies, unit) as f64 / thread.woken.max(1) as f64;
    let mean = match thread.sum_at_least {
        true => String::new(),
        false => format!("      \"avg\": {mean:.2},\n"),
    };
    let id = |number: Option<u32>| number.map_or(-1, i64::from);
    let _ = write!(
        text,
        "      }},\n      \"cycles\": {},\n      \"min\": {},\n      \"max\": {},\n{mean}      \
         \"cpu\": {},\n      \"node\": {},\n      \"missed\": {},\n",
        thread.woken,
        least(thread.woken, thread.min_ns, unit),
        unit.of(thread.max_ns),
        id(thread.cpu),
        id(latencies.node),
        thread.missed,
    );
    let counts = &latencies.counts;
    let response = Response::new(counts, thread.interval_ns)?;
    let (mut service_ns, mut response_ns) = ("null".to_owned(), "null".to_owned());
    // Latencies that are not among the counts are the longest ones.
    if thread.uncounted == 0 {
        service_ns = figures(
            counts.total(),
            [counts.min(), counts.max()],
            counts.mean(),
            |quantile| counts.supported_quantile(quantile),
        );
        response_ns = figures(
            response.total(),
            [response.min(), response.max()],
            response.mean(),
            |quantile| response.supported_quantile(quantile),
        );
    }
    let _ = write!(
        text,
        "      \"service_ns\": {service_ns},\n      \"response_ns\": {response_ns}\n"
    );
    Ok(())
}

/// Writes figures as an object on one line; what the sample cannot carry is null.
fn figures(
    count: u64,
    [min, max]: [Option<u64>; 2],
    mean: Option<f64>,
    quantile: impl Fn(Quantile) -> QuantileEstimate,
) -> String {
    let whole = |value: Option<u64>| value.map_or("null".to_owned(), |value| value.to_string());
    let mean = mean.map_or("null".to_owned(), |mean| format!("{mean:.1}"));
    let mut text = format!(
        "{{ \"count\": {count}, \"min\": {}, \"max\": {}, \"mean\": {mean}",
        whole(min),
        whole(max)
    );
    for at in [
        Quantile::MEDIAN,
        Quantile::P99,
        Quantile::P99_9,
        Quantile::P99_99,
    ] {
        let _ = write!(text, ", \"{at}\": {}", whole(quantile(at).value()));
    }
    text + " }"
}

fn time(at: Timestamp) -> String {
    let at = at.to_zoned(TimeZone::UTC);
    at.strftime("%a, %d %b %Y %H:%M:%S %z").to_string()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
