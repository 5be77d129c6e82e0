//! What a study can say of `wakeup`.

use tare_services::wakeup::{MAX_THREADS, MAX_TRACE};
use tare_wire::scheduling::Policy;

use super::{DEFAULT_INTERVAL_NS, Options, Trace};
use tare_lab::experiment::{Parameter, Takes, Values};
use tare_lab::units::nanoseconds;

/// Is the parameter that makes the loads phases of one measurement, each so long.
pub const PHASE: &str = "phase";

/// Lists the parameters.
pub(super) const ALL: &[Parameter] = &[
    time(
        "interval",
        "100us",
        "time between two activations of the first thread",
    ),
    Parameter {
        applies: |values| values.number("threads").is_some_and(|threads| threads > 1),
        ..time(
            "distance",
            "500us",
            "how much longer the interval of each further thread is",
        )
    },
    number(
        "threads",
        1,
        MAX_THREADS as u64,
        "1",
        "how many threads measure, all on the measured CPU",
    ),
    Parameter {
        name: "policy",
        takes: Takes::Word(&["fifo", "rr", "deadline", "other"]),
        many: false,
        default: "fifo",
        meaning: "under which policy they are scheduled",
        applies: |_| true,
    },
    Parameter {
        applies: |values| policy(values).has_priority(),
        ..number("priority", 1, 99, "95", "their real-time priority")
    },
    Parameter {
        applies: |values| !values.has(PHASE),
        ..time("duration", "4s", "how long each run measures")
    },
    Parameter {
        applies: |values| !values.has(PHASE),
        ..number(
            "loops",
            1,
            u64::MAX,
            "not limited",
            "after how many wake-ups each thread ends",
        )
    },
    time(
        PHASE,
        "none: each load has cells of its own",
        "how long each load runs; all run one after the other in one measurement",
    ),
    time(
        "threshold",
        "the interval",
        "every longer latency is listed with its time",
    ),
    number(
        "trace",
        0,
        MAX_TRACE as u64,
        "0",
        "how many of the worst wake-ups are traced, in one more run of each combination",
    ),
];

impl Options {
    /// Takes what a study says, and the defaults for the rest. Words and forms were checked by what
    /// [`ALL`] says.
    pub(super) fn of(values: &Values) -> Self {
        let time = |name| {
            values
                .text(name)
                .and_then(|text| nanoseconds(text, None).ok())
        };
        let small = |name| {
            let number = values.number(name)?;
            Some(u32::try_from(number).unwrap_or(u32::MAX))
        };
        Self {
            interval_ns: time("interval").unwrap_or(DEFAULT_INTERVAL_NS),
            distance_ns: time("distance"),
            threads: small("threads"),
            policy: policy(values),
            priority: small("priority"),
            duration_ns: time("duration"),
            loops: values.number("loops"),
            phase_ns: time(PHASE),
            threshold_ns: time("threshold"),
            trace: small("trace").map_or(Trace::Off, Trace::Extra),
            ..Self::default()
        }
    }
}

fn policy(values: &Values) -> Policy {
    values
        .text("policy")
        .and_then(Policy::parse)
        .unwrap_or_default()
}

const fn time(name: &'static str, default: &'static str, meaning: &'static str) -> Parameter {
    Parameter {
        name,
        takes: Takes::Text {
            wanted: "a number with the unit ns, us, ms, s, m, h or d: \"100us\"",
            fits: |text| nanoseconds(text, None).is_ok(),
        },
        many: false,
        default,
        meaning,
        applies: |_| true,
    }
}

const fn number(
    name: &'static str,
    least: u64,
    most: u64,
    default: &'static str,
    meaning: &'static str,
) -> Parameter {
    Parameter {
        name,
        takes: Takes::Number { least, most },
        many: false,
        default,
        meaning,
        applies: |_| true,
    }
}
