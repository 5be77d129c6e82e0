//! Long runs: gaps over hours, in cells of minutes, with actions on long gaps.
//!
//! Each cell is one spin of a given time, whose gaps are counted by length. So a cell takes some
//! kilobytes, and cells run, are reported and compared as in any other run.

use tare_figures::gates::Gate;
use tare_lab::ExperimentError;
use tare_lab::parameter::{Parameter, Takes, Value, Values};
use tare_lab::units::exact;
use tare_measured::noise::Plan;
use tare_measured::noise::bounds::MAX_SPIN_NS;

use super::{NAME, names, of_kind, only_reads_clock};

/// The names of the parameters.
pub(super) const DURATION: &str = "duration";
const EVERY: &str = "every";
const LIST: &str = "list";
const ON: &str = "on";
const ON_END: &str = "on-end";

/// The default time of a cell.
const EVERY_NS: u64 = 300_000_000_000;

/// The longest run: a year.
const MOST_NS: u64 = 366 * 24 * 3_600_000_000_000;

/// Timer reads in a piece: 5 ms, or what a slower timer makes of it.
const PIECE: u64 = 1 << 19;
/// Bins over the time of a cell, and gaps that it lists or explains at most.
const BINS: u32 = 20;
const CAPACITY: u64 = 1 << 18;

/// The action after which the run goes on.
const CONTINUE: &str = "continue";

const ACTS: &str = "it acts for the user at the command line";

/// The parameters.
pub(super) const PARAMETERS: [Parameter; 5] = [
    Parameter {
        fixes_runs: true,
        default: "none: runs of --repetitions",
        meaning: "Watch gaps for this long, in cells of --every: seconds, or with a unit m, h, d. Gaps are counted by length; \
                  --fail-if is applied after each cell, and the first that fails ends the run",
        ..time(DURATION, "s", 1_000_000_000, MOST_NS)
    },
    Parameter {
        default: "5 min",
        meaning: "Longest time of a cell of --duration",
        ..time(EVERY, "s", 100_000_000, MAX_SPIN_NS)
    },
    Parameter {
        default: "none",
        meaning: "List every gap from this length on with its time, with --duration",
        ..time(LIST, "us", 1, MOST_NS)
    },
    Parameter {
        name: ON,
        value: "EVENT ACTION",
        heading: "Long gaps",
        takes: Takes::Action,
        many: true,
        meaning: "With --duration, act some milliseconds after an event such as 'gap > 100us': trace (the cell's line names \
                  who took the longest gap), signal:NAME[,pid=PID] (to tare's parent by default), shell:CMD (run by sh, for 30 s at most), \
                  continue (don't end the run, which exits with code 3)",
        command_only: Some(ACTS),
        applies: is_long,
        ..Parameter::NEW
    },
    Parameter {
        name: ON_END,
        value: "ACTION",
        heading: "Long gaps",
        takes: Takes::Action,
        many: true,
        meaning: "Action at the end of a run of --duration: signal:NAME[,pid=PID], shell:CMD",
        command_only: Some(ACTS),
        applies: is_long,
        ..Parameter::NEW
    },
];

const fn time(name: &'static str, bare: &'static str, least_ns: u64, most_ns: u64) -> Parameter {
    Parameter {
        applies: is_long,
        ..Parameter::time(name, bare, least_ns, most_ns)
    }
}

fn is_long(own: &Parameter, values: &Values) -> bool {
    let may_be = || of_kind(true).any(|workload| names(values, workload.code.id));
    values.has(DURATION) || own.name == DURATION && may_be()
}

/// The times and limits of the cells of a long run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Long {
    /// Time of a cell, in ns.
    cell_ns: u64,
    list_ns: Option<u64>,
    /// The least limit of an event, and that of one that ends the run, in ns.
    above_ns: Option<u64>,
    until_ns: Option<u64>,
}

/// Returns the number of cells of each combination; None if the run is not long.
pub(super) fn runs(values: &Values) -> Option<u32> {
    let duration = values.number(DURATION)?;
    let every = values.number(EVERY).unwrap_or(EVERY_NS);
    u32::try_from(duration.div_ceil(every)).ok()
}

/// Returns the limit in ns of an event, such as `gap > 100us`.
///
/// # Errors
///
/// Returns what would be right.
pub fn event(text: &str) -> Result<u64, String> {
    let is_gap = text
        .split_once('>')
        .is_some_and(|(of, _)| of.trim() == "gap");
    let gate = text.parse::<Gate>().ok().filter(|_| is_gap);
    let limit = gate.and_then(|gate| gate.time_limit());
    let limit = limit.map(|limit| limit.ns as u64);
    limit.ok_or_else(|| format!("'{text}' is not an event: want one such as 'gap > 100us'"))
}

impl Long {
    /// Takes what is given; None if the run is not long.
    ///
    /// # Errors
    ///
    /// Returns [`ExperimentError::Contradiction`].
    pub fn of(values: &Values) -> Result<Option<Self>, ExperimentError> {
        let contradiction = |why: &str| ExperimentError::Contradiction {
            experiment: NAME,
            why: why.to_owned(),
        };
        let Some((duration_ns, runs)) = values.number(DURATION).zip(runs(values)) else {
            return Ok(None);
        };
        if values.has("repetitions") {
            return Err(contradiction(
                "duration takes the place of repetitions: give one",
            ));
        }
        let named = values.texts("workload");
        if !named.iter().all(|id| only_reads_clock(id)) {
            return Err(contradiction("a duration is only for the workload gap"));
        }
        let pairs = values.of(ON).chunks(2).map(|pair| match pair {
            [Value::Text(on), Value::Text(action)] => Ok((event(on)?, action.as_str())),
            _ => Err("each event has one action".to_owned()),
        });
        let pairs: Vec<(u64, &str)> = pairs
            .collect::<Result<_, _>>()
            .map_err(|why| contradiction(&why))?;
        let goes_on = |ns: u64| pairs.contains(&(ns, CONTINUE));
        let limits = || pairs.iter().map(|(ns, _)| *ns);
        Ok(Some(Self {
            cell_ns: duration_ns / u64::from(runs.max(1)),
            list_ns: values.number(LIST),
            above_ns: limits().min(),
            until_ns: limits().filter(|ns| !goes_on(*ns)).min(),
        }))
    }

    /// Makes a plan one of a cell of the run.
    pub fn plan(&self, plan: Plan) -> Plan {
        Plan {
            repetitions: PIECE,
            bins: BINS,
            capacity: CAPACITY,
            duration_ns: Some(self.cell_ns),
            list_ns: self.list_ns,
            above_ns: self.above_ns,
            until_ns: self.until_ns,
            ..plan
        }
    }
}

/// Says which gaps of a cell are listed one by one.
pub(super) fn listed(plan: &Plan) -> Option<String> {
    let time = exact(plan.duration_ns?);
    let listed = match plan.list_ns {
        Some(ns) => format!("those of at least {} are listed", exact(ns)),
        None => "none are listed one by one (--list)".to_owned(),
    };
    Some(format!(
        "each cell takes {time} and counts gaps by length; {listed}"
    ))
}
