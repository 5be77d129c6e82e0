//! The parameters of `wakeup`. Options that cyclictest has keep their names.

use tare_measured::wakeup::{MAX_INTERVAL_NS, MAX_THREADS, MAX_TRACE, MIN_INTERVAL_NS};
use tare_wire::cpus::Cpus;
use tare_wire::phases::MAX_DURATION_NS;
use tare_wire::scheduling::Policy;

use super::contradiction;
use tare_lab::ExperimentError;
use tare_lab::parameter::{Parameter, Takes, Values};

/// The parameter that makes the loads phases of one measurement: the length of each.
pub(super) const PHASE: &str = "phase";

/// The reason why a study does not name the measured CPUs.
const OF_THE_MACHINE: &str = "it names CPUs of this machine; a study says \"cpu\"";

/// Lists the parameters.
pub(super) const ALL: &[Parameter] = &[
    Parameter {
        short: Some('t'),
        bare: Some("0"),
        default: "one for each measured CPU",
        meaning: "Measuring threads; 0, or the option alone, means one for each CPU. They are pinned in turn to the CPUs \
                  of -a; without -a, to as many CPUs as threads, from the highest number down; in a study all share the measured CPU",
        ..number("threads", 0, MAX_THREADS as u64)
    },
    Parameter {
        name: "affinity",
        short: Some('a'),
        aliases: &["cpu"],
        value: "CPUS",
        takes: Takes::text("CPUs such as 1 or 0,2-3, or all", |text| {
            text == "all" || Cpus::parse(text).is_some()
        }),
        bare: Some("all"),
        default: "an isolated one, else the quietest other than CPU 0",
        meaning: "CPUs to measure on, such as 1 or 0,2-3; the option alone means all",
        command_only: Some(OF_THE_MACHINE),
        ..THREADS
    },
    Parameter {
        name: "smp",
        short: Some('S'),
        meaning: "One thread on each CPU, all with the same interval: -a without CPUs",
        command_only: Some(OF_THE_MACHINE),
        ..THREADS
    },
    Parameter {
        short: Some('i'),
        default: "100 µs",
        meaning: "Interval between activations of the first thread: µs, or with a unit ns, us, ms, s",
        ..time("interval", "us", MIN_INTERVAL_NS, MAX_INTERVAL_NS)
    },
    Parameter {
        short: Some('d'),
        default: "500 µs where threads share a CPU, else 0",
        meaning: "Difference between the intervals of one thread and the next: µs, or with a unit",
        applies: |_, values| {
            let mut several = ["threads", "affinity", "smp"].iter();
            let is_several =
                several.any(|name| values.has(name)) && values.number("threads") != Some(1);
            // Whoever knows cyclictest types -d0 also for one thread.
            is_several || values.number("distance") == Some(0)
        },
        ..any_time("distance", "us")
    },
    Parameter {
        short: Some('p'),
        value: "PRIO",
        default: "95",
        meaning: "Real-time priority, 1 to 99",
        applies: |_, values| policy(values).has_priority(),
        ..number("priority", 1, 99)
    },
    Parameter {
        name: "policy",
        value: "NAME",
        takes: Takes::Word(&["fifo", "rr", "deadline", "other"]),
        default: "fifo",
        meaning: "Scheduling policy: fifo, rr, deadline, other (an ordinary thread, which needs no privilege)",
        ..THREADS
    },
    Parameter {
        short: Some('D'),
        default: "2 s; with trace-above 60 s",
        meaning: "Measurement time of each run: seconds, or with a unit ms, s, m, h, d",
        applies: |_, values| !values.has(PHASE),
        ..time("duration", "s", MIN_INTERVAL_NS, MAX_DURATION_NS)
    },
    Parameter {
        short: Some('l'),
        default: "unlimited",
        meaning: "Number of wake-ups after which each thread ends",
        applies: |_, values| !values.has(PHASE),
        ..number("loops", 1, u64::MAX)
    },
    Parameter {
        name: "mainaffinity",
        value: "CPUS",
        takes: Takes::text("CPUs such as 1 or 0,2-3", |text| {
            Cpus::parse(text).is_some()
        }),
        default: "those that are not measured",
        meaning: "CPUs of the thread that starts and watches the measuring ones",
        command_only: Some("it names CPUs of this machine"),
        ..THREADS
    },
    Parameter {
        heading: "Target and load",
        default: "none: each load has its own cells",
        meaning: "Run the loads one after the other in one measurement, each for this time: seconds, or with a unit",
        ..any_time(PHASE, "s")
    },
    Parameter {
        heading: LATE,
        default: "the interval",
        meaning: "List every wake-up that is at least this late, with its time: µs, or with a unit",
        ..any_time("threshold", "us")
    },
    Parameter {
        heading: LATE,
        bare: Some("10"),
        default: "0; the option alone, or with trace-above, 10",
        meaning: "Record what the kernel did around the N worst wake-ups, in one more measurement of each combination \
                  whose kernel reports events: tracing costs time",
        ..number("trace", 0, MAX_TRACE as u64)
    },
    Parameter {
        heading: LATE,
        meaning: "Wait for a wake-up that is later than this, µs or with a unit: stop, show what the kernel did around \
                  it, and exit with code 3. Enables tracing; by default measures once, for 60 s",
        default: "none",
        ..any_time("trace-above", "us")
    },
    Parameter {
        name: "on-threshold",
        value: "ACTION",
        heading: LATE,
        takes: Takes::Action,
        many: true,
        default: "report",
        meaning: "Action when the limit of trace-above is exceeded: report, signal:NAME[,pid=PID] (to tare's parent by \
                  default), command:CMD (run by sh, for 30 s at most), continue (don't stop)",
        command_only: Some("it acts for the user at the command line"),
        applies: |_, values| values.has("trace-above"),
        ..THREADS
    },
];

const LATE: &str = "Late wake-ups";

const THREADS: Parameter = Parameter {
    heading: "Threads",
    ..Parameter::NEW
};

const fn time(name: &'static str, bare: &'static str, least_ns: u64, most_ns: u64) -> Parameter {
    Parameter {
        heading: THREADS.heading,
        ..Parameter::time(name, bare, least_ns, most_ns)
    }
}

const fn any_time(name: &'static str, bare: &'static str) -> Parameter {
    time(name, bare, 0, u64::MAX)
}

const fn number(name: &'static str, least: u64, most: u64) -> Parameter {
    Parameter {
        name,
        takes: Takes::number([least, most]),
        ..THREADS
    }
}

/// Returns the CPUs that the threads are pinned to; `None` for the CPU that tare chooses.
pub(super) fn cpus(values: &Values, allowed: &Cpus) -> Option<Cpus> {
    let given = match values.text("affinity") {
        Some("all") => Some(*allowed),
        Some(list) => Cpus::parse(list),
        None => values.has("smp").then_some(*allowed),
    };
    match (values.number("threads"), given) {
        (None, cpus) => cpus,
        (Some(0), cpus) => Some(cpus.unwrap_or(*allowed)),
        // One thread takes the chosen CPU, or the first that is named.
        (Some(1), None) => None,
        (Some(number), Some(cpus)) => Some(cpus.iter().take(number as usize).collect()),
        (Some(number), None) => {
            let all: Vec<u32> = allowed.iter().collect();
            Some(all.iter().rev().take(number as usize).copied().collect())
        }
    }
}

/// Rejects values that contradict each other.
pub(super) fn check(values: &Values) -> Result<(), ExperimentError> {
    if values.has("smp") && (values.has("threads") || values.has("affinity")) {
        let why = "smp puts a thread on each CPU: omit threads and affinity";
        return Err(contradiction(why.to_owned()));
    }
    Ok(())
}

/// Returns the given policy, or the default.
pub(super) fn policy(values: &Values) -> Policy {
    let given = values.text("policy").and_then(Policy::parse);
    given.unwrap_or_default()
}
