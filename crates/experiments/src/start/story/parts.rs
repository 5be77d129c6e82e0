//! The parts of a start: from the start call over reset, kernel and `main` to ready and the end.

use tare_figures::group::grouped;
use tare_figures::rows::{CellData, Samples};
use tare_figures::words::list;
use tare_results::model::{Instance, Labels};

use super::measures::{counts, done, span};

/// The parts before an instance is ready, each with its head in tables: what ends at reset, at the
/// kernel, at `main`, and when the instance is ready. Where the moments between are not known,
/// parts are one, and have the names of all.
pub(super) const BEFORE_READY: [(&str, &str); 12] = [
    ("launch", "launch"),
    ("launch+main", "launch\n+main"),
    ("vmm", "vmm"),
    ("vmm+firmware", "vmm+\nfirmware"),
    ("vmm+firmware+kernel", "vmm+firmware\n+kernel"),
    ("vmm+firmware+kernel+main", "vmm+firmware\n+kernel+main"),
    ("firmware", "firmware"),
    ("firmware+kernel", "firmware\n+kernel"),
    ("firmware+kernel+main", "firmware\n+kernel+main"),
    ("kernel", "kernel"),
    ("kernel+main", "kernel\n+main"),
    ("main", "main"),
];

/// The part after those: the instance's work and its exit, between which nothing is seen.
pub(super) const AFTER_READY: (&str, &str) = ("work+exit", "work\n+exit");

/// The ends of the parts that others are made of.
const ENDS: [(&str, &str); 6] = [
    ("launch", "launch until main"),
    ("vmm", "vmm until the machine is reset"),
    ("firmware", "firmware until the kernel begins"),
    ("kernel", "kernel until main"),
    ("main", "main until ready"),
    ("work", "work+exit until the end was seen"),
];

/// Says how to read parts of these names.
pub(super) fn read<'n>(names: impl Iterator<Item = &'n str> + Clone) -> String {
    let is_there = |end: &str| {
        names
            .clone()
            .any(|name| name.split('+').any(|one| one == end))
    };
    let ends = ENDS.iter().filter(|(end, _)| is_there(end));
    let ends = list(&Vec::from_iter(ends.map(|(_, words)| (*words).to_owned())));
    format!("From the start call: {ends}. Parts with an unknown border are shown as one, with a +.")
}

/// Returns the parts of the instances of a cell, each with its name. A border that one of them lacks
/// is dropped for all, so that means of parts add up to that of the whole.
pub(super) fn of_cell(data: &CellData<'_>) -> Samples {
    let has_machine = data.plan().target.kernel().is_guest();
    let mut all: Vec<Instance> = done(data).copied().collect();
    drop_unknown(&mut all);
    let all = all.iter().flat_map(|one| of_instance(one, has_machine));
    let times = all.filter_map(|(name, [from_ns, to_ns])| Some((name, span(from_ns, to_ns)?)));
    let parts = grouped(times).into_iter().filter_map(|(name, all)| {
        let sample = counts(all.into_iter())?;
        Some((Labels::of([("part", name)]), sample))
    });
    Ok(parts.collect())
}

/// Drops the borders that one of some instances lacks.
pub(in crate::start) fn drop_unknown(all: &mut [Instance]) {
    let borders: [fn(&mut Instance) -> &mut u64; 3] = [
        |one| &mut one.reset_ns,
        |one| &mut one.kernel_ns,
        |one| &mut one.main_ns,
    ];
    for border in borders {
        if all.iter_mut().any(|one| *border(one) == 0) {
            all.iter_mut().for_each(|one| *border(one) = 0);
        }
    }
}

/// Returns the parts of one instance, from when to when each lasted.
pub(in crate::start) fn of_instance(
    one: &Instance,
    has_machine: bool,
) -> Vec<(&'static str, [u64; 2])> {
    let moments: &[(&str, u64)] = match has_machine {
        true => &[
            ("vmm", one.reset_ns),
            ("firmware", one.kernel_ns),
            ("kernel", one.main_ns),
            ("main", one.ready_ns),
        ],
        false => &[("launch", one.main_ns), ("main", one.ready_ns)],
    };
    let mut parts = Vec::new();
    let (mut from_ns, mut name) = (one.started_ns, String::new());
    for (part, at_ns) in moments {
        let between = if name.is_empty() { "" } else { "+" };
        name.push_str(&format!("{between}{part}"));
        if *at_ns == 0 {
            continue;
        }
        let known = BEFORE_READY.iter().find(|(known, _)| *known == name);
        parts.extend(known.map(|(known, _)| (*known, [from_ns, *at_ns])));
        (from_ns, name) = (*at_ns, String::new());
    }
    parts.push((AFTER_READY.0, [one.ready_ns, one.exited_ns]));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(one: &Instance, has_machine: bool) -> Vec<(&'static str, u64)> {
        let parts = of_instance(one, has_machine).into_iter();
        let known =
            parts.filter_map(|(name, [from_ns, to_ns])| Some((name, span(from_ns, to_ns)?)));
        known.collect()
    }

    #[test]
    fn what_is_not_known_joins_two_parts() {
        let guest = Instance {
            started_ns: 10,
            reset_ns: 30,
            kernel_ns: 70,
            main_ns: 100,
            ready_ns: 150,
            exited_ns: 160,
            ..Instance::default()
        };
        let all = [
            ("vmm", 20),
            ("firmware", 40),
            ("kernel", 30),
            ("main", 50),
            ("work+exit", 10),
        ];
        assert_eq!(times(&guest, true), all);
        let silent = Instance {
            reset_ns: 0,
            main_ns: 0,
            ..guest
        };
        let some = [("vmm+firmware", 60), ("kernel+main", 80), ("work+exit", 10)];
        assert_eq!(times(&silent, true), some);
        assert_eq!(
            times(&guest, false),
            [("launch", 90), ("main", 50), ("work+exit", 10)]
        );
        // Moments of a damaged folder, which are in no order.
        let damaged = Instance {
            kernel_ns: 5,
            exited_ns: u64::MAX,
            ..guest
        };
        assert!(
            times(&damaged, true)
                .iter()
                .all(|(name, _)| *name != "firmware")
        );
        assert!(times(&Instance::default(), true).is_empty());
    }
}
