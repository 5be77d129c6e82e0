//! Several CPUs at once: `gap` in a thread on each of them at the same time.

use tare_lab::ExperimentError;
use tare_lab::experiment::Conditions;
use tare_lab::parameter::{Parameter, Takes, Values};
use tare_measured::noise::Plan;
use tare_wire::cpus::Cpus;

use super::{NAME, long, only_reads_clock, switched};

/// The name of the parameter.
const CPU: &str = "cpu";
/// The value for all CPUs that may be used.
const ALL: &str = "all";

pub(super) const PARAMETER: Parameter = Parameter {
    name: CPU,
    value: "CPUS",
    takes: Takes::text("CPUs such as 1 or 0,2-3, or all", |text| {
        text == ALL || Cpus::parse(text).is_some()
    }),
    default: "an isolated one, else the quietest other than CPU 0",
    meaning: "CPU to measure on; several, such as 0,2-3, or all: gap on each of them at the same time, as a process or in \
              containers",
    command_only: Some("it names CPUs of this machine; a study says \"cpu\""),
    ..Parameter::NEW
};

/// The most CPUs of which delays are explained by default: each takes memory for its events, and
/// descriptors for those that other CPUs send to it.
pub(super) const MOST_EXPLAINED: u32 = 8;

/// The most gaps that are listed in a run, of all CPUs together.
const MOST_LISTED: u64 = 8 * Plan::DEFAULT_CAPACITY;

/// Returns the CPUs that values name, of those that may be used.
pub(super) fn of(values: &Values, allowed: &Cpus) -> Option<Cpus> {
    match values.text(CPU)? {
        ALL => Some(*allowed),
        list => Cpus::parse(list),
    }
}

/// Returns whether values may name several CPUs.
pub(super) fn are_several(values: &Values) -> bool {
    let several = |text| text == ALL || Cpus::parse(text).is_some_and(|cpus| cpus.count() > 1);
    values.text(CPU).is_some_and(several)
}

/// Returns the CPUs to measure on.
pub(super) fn of_conditions(conditions: &Conditions) -> Cpus {
    conditions.cpus.unwrap_or_else(|| Cpus::one(conditions.cpu))
}

/// Returns how many gaps are listed for each of the CPUs at most.
pub(super) fn capacity(cpus: &Cpus) -> u64 {
    Plan::DEFAULT_CAPACITY.min(MOST_LISTED / u64::from(cpus.count().max(1)))
}

/// Rejects guests, other workloads and switches, which are for one CPU at a time.
pub(super) fn check(conditions: &Conditions, values: &Values) -> Result<(), ExperimentError> {
    let cpus = of_conditions(conditions);
    let mut targets = conditions.targets.iter();
    let guest = targets.find(|target| !target.kernel().is_host());
    let mut workloads = values.texts("workload").into_iter();
    let other = workloads.find(|workload| !only_reads_clock(workload));
    let why = match (guest, other) {
        _ if cpus.count() <= 1 => return Ok(()),
        (Some(target), _) => format!("on '{target}', which is neither process nor container"),
        (_, Some(workload)) => format!("with {workload}"),
        _ if values.has(switched::ISOLATE) => format!("with {}", switched::ISOLATE),
        _ if values.has(switched::SCREEN) => format!("with {}", switched::SCREEN),
        _ if values.has(long::DURATION) => format!("with {}", long::DURATION),
        _ => return Ok(()),
    };
    Err(ExperimentError::Contradiction {
        experiment: NAME,
        why: format!("only one CPU can be measured at a time {why}: name one of CPUs {cpus}"),
    })
}

#[cfg(test)]
mod tests {
    use tare_lab::experiment::Experiment;
    use tare_lab::parameter::Value;
    use tare_results::model::Schedule;

    use super::super::Noise;
    use super::*;

    fn planned(target: &str, given: &[(&'static str, &str)]) -> Result<Vec<String>, String> {
        let mut values = Values::default();
        for (name, value) in given {
            let value = match *name {
                "duration" => Value::Number(60_000_000_000),
                _ => Value::Text((*value).to_owned()),
            };
            values.give(name, vec![value]);
        }
        let target = tare_targets::spec::parse(target).unwrap().spec();
        let conditions = Conditions {
            targets: vec![target],
            loads: vec![Schedule::idle()],
            cpu: 0,
            cpus: Noise.cpus(&values, &Cpus::parse("0-15").unwrap()),
            cell_limit: None,
            is_watched: false,
        };
        let cells = Noise.combinations(&conditions, &values);
        let words = cells.map_err(|error| error.to_string())?.into_iter();
        Ok(words.map(|cell| cell.work.to_string()).collect())
    }

    #[test]
    fn gap_alone_is_measured_on_several_cpus_at_once() {
        let words = planned("process", &[("cpu", "1-2")]).unwrap();
        assert_eq!(words.len(), 1);
        assert!(
            words[0].starts_with("workload=gap ") && words[0].ends_with(" explain=5000ns cpu=1-2")
        );
        // Of many CPUs, the list of each is shorter, and no delay is explained by default.
        let words = planned("process", &[("cpu", "all")]).unwrap();
        assert!(words[0].contains(" capacity=524288 ") && !words[0].contains("explain"));
        assert_eq!(planned("process", &[("cpu", "1")]).unwrap().len(), 3);
        for (target, given, why) in [
            (
                "linux,cpus=2",
                ("workload", "gap"),
                "at a time on 'linux,cpus=2'",
            ),
            (
                "process",
                ("workload", "prime"),
                "with prime: name one of CPUs 0-1",
            ),
            (
                "process",
                ("isolate", "all"),
                "with isolate: name one of CPUs 0-1",
            ),
            (
                "process",
                ("duration", "60s"),
                "with duration: name one of CPUs 0-1",
            ),
        ] {
            let refused = planned(target, &[("cpu", "0-1"), given]).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
