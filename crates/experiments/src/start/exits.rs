//! How often a guest under KVM leaves its virtual CPU in each part of a start, and why.
//!
//! Recording takes time at each exit, so none of the measured instances is recorded: two others are,
//! before them. Where an exit belongs is decided by the guest's own time stamps. By its own clock it
//! is ready before it writes the line that says so, whose exits therefore are of its work.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tare_lab::{Stage, Unfinished};
use tare_measured::linux::flight::exits::{Exits, Recorded};
use tare_results::model::{Instance, InstanceOutcome, Labels, Value};

use super::story::parts::{drop_unknown, of_instance};

/// The measure.
pub(super) const EXITS: &str = "exits";
/// The labels of a value, and those of all parts and reasons.
pub(super) const PART: &str = "part";
pub(super) const REASON: &str = "reason";
pub(super) const ALL: &str = "all";

/// Records the exits of two instances of a cell; none where instances are not started alone, or the
/// kernel does not show them.
pub(super) fn of(stage: &mut Stage<'_>) -> Result<Vec<Value>, Unfinished> {
    let arrivals = stage.plan().arrivals.as_ref();
    let is_alone = arrivals.is_some_and(|arrivals| arrivals.interval_ns.is_none());
    if !is_alone || !stage.is_under_kvm() {
        return Ok(Vec::new());
    }
    let Ok(recorder) = Exits::open() else {
        return Ok(Vec::new());
    };
    let instances = stage.rehearse()?;
    let recorded = recorder.finish();
    let values = recorded.map(|recorded| values(instances, &recorded));
    Ok(values.unwrap_or_default())
}

/// Returns the mean number of exits of an instance by part and reason, the most frequent first.
fn values(mut instances: Vec<Instance>, recorded: &Recorded) -> Vec<Value> {
    instances.retain(|one| one.outcome() == InstanceOutcome::Done);
    let has_parts = instances.iter_mut().all(|one| by_own_clock(one, recorded));
    drop_unknown(&mut instances);
    let mut counts: BTreeMap<[&str; 2], u64> = BTreeMap::new();
    for one in &instances {
        let whole = (ALL, [one.started_ns, one.exited_ns]);
        let parts = of_instance(one, true).into_iter().filter(|_| has_parts);
        for (part, [from_ns, to_ns]) in parts.chain([whole]) {
            let is_inside = |(at_ns, _): &&(u64, String)| (from_ns..to_ns).contains(at_ns);
            for (_, reason) in recorded.exits.iter().filter(is_inside) {
                *counts.entry([part, reason]).or_default() += 1;
                *counts.entry([part, ALL]).or_default() += 1;
            }
        }
    }
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|([_, reason], _)| Reverse(counts.get(&[ALL, reason])));
    let value = |([part, reason], number): (&[&str; 2], &u64)| Value {
        measure: EXITS.to_owned(),
        labels: Labels::of([(PART, *part), (REASON, *reason)]),
        unit: String::new(),
        value: *number as f64 / instances.len() as f64,
    };
    sorted.into_iter().map(value).collect()
}

/// Moves the borders between parts to when they were by the guest's own clock: they are counted back
/// from when its line was read here, which is later than the guest wrote it. Returns whether that is
/// known.
fn by_own_clock(one: &mut Instance, recorded: &Recorded) -> bool {
    let own = one.started_ns..one.ready_ns;
    let set = recorded
        .zeros
        .iter()
        .rfind(|(at_ns, _)| own.contains(at_ns));
    let late = set.and_then(|(_, zero_ns)| one.reset_ns.checked_sub(*zero_ns));
    let Some(late_ns) = late.filter(|late_ns| one.started_ns + late_ns <= one.ready_ns) else {
        return false;
    };
    one.ready_ns -= late_ns;
    for border in [&mut one.reset_ns, &mut one.kernel_ns, &mut one.main_ns] {
        *border = border.saturating_sub(late_ns);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_where_the_guest_s_clock_has_it() {
        let one = Instance {
            started_ns: 1_000,
            reset_ns: 1_150,
            kernel_ns: 1_350,
            main_ns: 1_450,
            ready_ns: 1_550,
            exited_ns: 1_700,
            ..Instance::default()
        };
        let exit = |at_ns, reason: &str| (at_ns, reason.to_owned());
        // The line was read 50 ns after the guest took its time.
        let recorded = Recorded {
            exits: vec![
                exit(900, "hlt"),
                exit(1_299, "io"),
                exit(1_300, "npf"),
                exit(1_499, "io"),
                exit(1_500, "io"),
                exit(1_699, "io"),
            ],
            zeros: vec![(500, 400), (1_090, 1_100), (2_000, 2_000)],
        };
        let told = |instance: Instance, recorded: &Recorded| -> Vec<String> {
            let told = |value: &Value| {
                let label = |key| value.labels.get(key).unwrap();
                format!("{} {} {}", label(PART), label(REASON), value.value)
            };
            values(vec![instance], recorded).iter().map(told).collect()
        };
        let whole = ["all all 5", "all io 4", "all npf 1"];
        let parts = told(one, &recorded);
        for line in whole.into_iter().chain([
            "firmware all 1",
            "firmware io 1",
            "kernel npf 1",
            "main io 1",
            "work+exit io 2",
        ]) {
            assert!(parts.iter().any(|told| told == line), "{line}: {parts:?}");
        }
        assert_eq!(parts[0].split(' ').nth(1), Some(ALL));
        let without_clock = Recorded {
            zeros: Vec::new(),
            ..recorded
        };
        assert_eq!(told(one, &without_clock), whole);
        assert!(values(Vec::new(), &Recorded::default()).is_empty());
    }
}
