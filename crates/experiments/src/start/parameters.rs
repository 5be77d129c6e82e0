//! The parameters of `start`.

use tare_lab::ExperimentError;
use tare_lab::parameter::{Parameter, Takes, Values};
use tare_lab::units::bytes;

use super::contradiction;
use super::job::Job;
use super::pace::{self, Pace};

const HEADING: &str = "Instances";

const BASE: Parameter = Parameter {
    heading: HEADING,
    ..Parameter::NEW
};

const TIMES: &str = "a time such as 4s, 250ms or 1/64s, a ladder such as 4s..1/1024s, or alone";

/// How often instances are started.
const INTERVAL: Parameter = Parameter {
    name: "interval",
    value: "TIME",
    takes: Takes::Text {
        wanted: TIMES,
        fits: pace::is_list,
    },
    many: true,
    default: "alone,1s..1/1024s",
    meaning: "Interval between starts (open loop): a time, or a ladder FIRST..LAST that halves each step and stops at \
              saturation; alone starts each instance when the one before has ended",
    ..BASE
};

/// The interval as starts per second.
const RATE: Parameter = Parameter {
    name: "rate",
    value: "RATE",
    takes: Takes::text(
        "starts per second such as 16, or a ladder such as 1..1024",
        pace::is_rates,
    ),
    many: true,
    default: "none",
    meaning: "Starts per second, instead of --interval or besides: a whole number, or a ladder FIRST..LAST that doubles each step and \
              stops at saturation",
    ..BASE
};

pub(super) const WARMUP: Parameter = Parameter {
    name: "warmup",
    default: "1s",
    meaning: "Warm-up before the measurement: seconds, or with a unit",
    ..time(0)
};

pub(super) const MEASURE: Parameter = Parameter {
    name: "measure",
    default: "5s",
    meaning: "Measurement time, after the warm-up: seconds, or with a unit",
    ..time(1_000_000)
};

const WORK: Parameter = Parameter {
    name: "work",
    value: "WORK",
    takes: Takes::text(
        "hello, prime:N (N from 3 to 65536), thumbnail or command:WORDS",
        |text| Job::parse(text).is_some(),
    ),
    many: true,
    default: "hello",
    meaning: "Work of each instance once it is ready: hello ends at once, prime:N counts the primes below N, thumbnail scales a \
              picture down, command:WORDS starts your own command instead, which is ready with its first line (on process, \
              and in containers with image=)",
    ..BASE
};

pub(super) const CONCURRENCY: Parameter = Parameter {
    name: "concurrency-limit",
    takes: Takes::number([1, 100_000]),
    default: "256",
    meaning: "Maximum number of live instances; further arrivals are rejected and counted",
    ..BASE
};

const MEMORY: Parameter = Parameter {
    name: "memory-limit",
    value: "SIZE",
    takes: Takes::text("a size such as 512M or 8G", |text| bytes(text).is_some()),
    default: "half of the memory available when a cell begins",
    meaning: "Maximum memory of all live instances, such as 8G; further arrivals are rejected and counted",
    ..BASE
};

const BESIDE: Parameter = Parameter {
    name: "beside-engine",
    takes: Takes::Flag,
    meaning: "Measure every target except docker a second time while Docker's engine runs, to see what its presence costs",
    ..BASE
};

/// Lists the parameters.
pub(super) const ALL: &[Parameter] = &[
    INTERVAL,
    RATE,
    WARMUP,
    MEASURE,
    WORK,
    CONCURRENCY,
    MEMORY,
    BESIDE,
];

const fn time(least_ns: u64) -> Parameter {
    Parameter {
        value: "TIME",
        takes: Takes::time("s", [least_ns, 86_400_000_000_000]),
        ..BASE
    }
}

/// Returns the intervals between starts, the longest first.
///
/// # Errors
///
/// Returns [`ExperimentError`] for a ladder that can't be halved, and for an interval that is given
/// twice.
pub(super) fn paces(values: &Values) -> Result<Vec<Pace>, ExperimentError> {
    let (intervals, rates) = (values.texts(INTERVAL.name), values.texts(RATE.name));
    let default = (intervals.is_empty() && rates.is_empty()).then_some(INTERVAL.default);
    let intervals = intervals.into_iter().chain(default);
    let mut paces: Vec<Pace> = Vec::new();
    let intervals = intervals.flat_map(|text| text.split(',')).map(pace::read);
    let rates = rates.into_iter().flat_map(|text| text.split(','));
    for read in intervals.chain(rates.map(pace::read_rate)) {
        for pace in read.map_err(contradiction)? {
            let mut known = paces.iter().map(|known| known.interval_ns());
            if known.any(|known| known == pace.interval_ns()) {
                let text = pace.text();
                return Err(contradiction(format!(
                    "the interval {text} is given twice: leave one out, and use runs for repetitions"
                )));
            }
            paces.push(pace);
        }
    }
    paces.sort_by_key(|pace| std::cmp::Reverse(pace.interval_ns().unwrap_or(u64::MAX)));
    Ok(paces)
}

/// Returns what instances do, in the order in which it was given, each once.
pub(super) fn jobs(values: &Values) -> Vec<Job> {
    let given = values.texts(WORK.name);
    let mut jobs: Vec<Job> = Vec::new();
    for job in given.into_iter().filter_map(Job::parse) {
        if !jobs.contains(&job) {
            jobs.push(job);
        }
    }
    match jobs.is_empty() {
        true => vec![Job::hello()],
        false => jobs,
    }
}

/// Returns the maximum memory of all live instances; `None` for half of the available memory.
pub(super) fn most_bytes(values: &Values) -> Option<u64> {
    values.text(MEMORY.name).and_then(bytes)
}

/// Returns whether every target is measured a second time while Docker's engine runs.
pub(super) fn is_beside_engine(values: &Values) -> bool {
    values.has(BESIDE.name)
}
