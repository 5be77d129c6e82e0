//! What `start` can be told.

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
    meaning: "Time between two starts, whatever became of the instances before: a time, or a ladder that is halved from its \
              first time to its last and ends where the target no longer keeps up; alone starts each instance when the one \
              before has ended",
    ..BASE
};

/// The same in starts per second.
const RATE: Parameter = Parameter {
    name: "rate",
    value: "RATE",
    takes: Takes::Text {
        wanted: "starts per second such as 16, or a ladder such as 1..1024",
        fits: pace::is_rates,
    },
    many: true,
    default: "none",
    meaning: "The same in starts per second: a whole number, or a ladder that is doubled from its first rate to its last; in \
              place of interval",
    ..BASE
};

pub(super) const WARMUP: Parameter = Parameter {
    name: "warmup",
    default: "1s",
    meaning: "How long instances are started before any counts: seconds, or with a unit",
    ..time(0)
};

pub(super) const MEASURE: Parameter = Parameter {
    name: "measure",
    default: "5s",
    meaning: "How long instances are started that count: seconds, or with a unit",
    ..time(1_000_000)
};

const WORK: Parameter = Parameter {
    name: "work",
    value: "WORK",
    takes: Takes::Text {
        wanted: "hello, prime:N (N from 3 to 65536), thumbnail or command:WORDS",
        fits: |text| Job::parse(text).is_some(),
    },
    default: "hello",
    meaning: "What each instance does once it is ready: hello ends at once, prime:N counts the primes below N, thumbnail scales a \
              picture down, command:WORDS starts a command of your own instead, whose first line means that it is ready (on \
              process, and in containers with image=)",
    ..BASE
};

pub(super) const CONCURRENCY: Parameter = Parameter {
    name: "concurrency-limit",
    takes: Takes::Number {
        least: 1,
        most: 100_000,
    },
    default: "256",
    meaning: "How many instances may be alive at once; an arrival beyond is refused at its time, and counted",
    ..BASE
};

const MEMORY: Parameter = Parameter {
    name: "memory-limit",
    value: "SIZE",
    takes: Takes::Text {
        wanted: "a size such as 512M or 8G",
        fits: |text| bytes(text).is_some(),
    },
    default: "half of what is available when a cell begins",
    meaning: "How much memory the instances may take together, such as 8G; an arrival beyond is refused at its time, and counted",
    ..BASE
};

const BESIDE: Parameter = Parameter {
    name: "beside-engine",
    takes: Takes::Flag,
    meaning: "Measure every target but docker once more while Docker's engine runs beside it, to see what its mere presence costs",
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
        takes: Takes::Time {
            bare: "s",
            least_ns,
            most_ns: 86_400_000_000_000,
        },
        ..BASE
    }
}

/// Returns how often instances are started, the longest interval first.
///
/// # Errors
///
/// Returns [`ExperimentError`] for a ladder that can't be halved, for an interval that is given twice, and if both intervals
/// and rates are given.
pub(super) fn paces(values: &Values) -> Result<Vec<Pace>, ExperimentError> {
    if values.has(INTERVAL.name) && values.has(RATE.name) {
        return Err(contradiction(
            "interval and rate say the same in two ways: leave one out".to_owned(),
        ));
    }
    let default = || values.has(RATE.name) || values.has(INTERVAL.name);
    let mut paces: Vec<Pace> = Vec::new();
    type Read = fn(&str) -> Result<Vec<Pace>, String>;
    let given: [(&Parameter, Read); 2] = [(&INTERVAL, pace::read), (&RATE, pace::read_rate)];
    for (parameter, read) in given {
        let mut texts = values.texts(parameter.name);
        if parameter.name == INTERVAL.name && !default() {
            texts.push(INTERVAL.default);
        }
        for text in texts.iter().flat_map(|text| text.split(',')) {
            for pace in read(text).map_err(contradiction)? {
                if paces
                    .iter()
                    .any(|known| known.interval_ns() == pace.interval_ns())
                {
                    let text = pace.text();
                    return Err(contradiction(format!(
                        "the interval {text} is given twice: leave one out, and use runs for repetitions"
                    )));
                }
                paces.push(pace);
            }
        }
    }
    paces.sort_by_key(|pace| std::cmp::Reverse(pace.interval_ns().unwrap_or(u64::MAX)));
    Ok(paces)
}

/// Returns what each instance does.
pub(super) fn job(values: &Values) -> Job {
    let given = values.text(WORK.name).and_then(Job::parse);
    given.unwrap_or(Job::Hello)
}

/// Returns how much memory the instances may take together; None for half of what is available.
pub(super) fn most_bytes(values: &Values) -> Option<u64> {
    values.text(MEMORY.name).and_then(bytes)
}

/// Says whether every target is measured once more beside Docker's engine.
pub(super) fn is_beside_engine(values: &Values) -> bool {
    values.has(BESIDE.name)
}
