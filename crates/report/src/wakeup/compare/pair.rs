//! Which combinations of two runs are compared.

use super::Unmatched;
use crate::wakeup::WakeupCombination;

/// Is a combination of one run with the same of the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'a> {
    pub first: &'a WakeupCombination,
    pub second: &'a WakeupCombination,
}

/// Finds what both runs have; and what only one has.
///
/// The same is what has the same target, loads, policy, intervals and clock. If each run has only one target, they
/// are compared even if their names differ: that is what a change of the kernel looks like.
pub(super) fn pairs<'a>(
    first: &'a [WakeupCombination],
    second: &'a [WakeupCombination],
) -> (Vec<Pair<'a>>, Vec<Unmatched>) {
    let plain = |of: &'a [WakeupCombination]| of.iter().filter(|c| !c.traced).collect::<Vec<_>>();
    let (first, second) = (plain(first), plain(second));
    let only_place = has_one_target(&first) && has_one_target(&second);
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    let mut unmatched = Vec::new();
    for a in &first {
        let same = second
            .iter()
            .find(|b| is_same_plan(a, b) && (a.target == b.target || only_place));
        match same {
            Some(b) => pairs.push(Pair {
                first: a,
                second: b,
            }),
            None => unmatched.push(Unmatched {
                run: 1,
                label: a.label.clone(),
            }),
        }
    }
    for b in &second {
        if !pairs.iter().any(|pair| std::ptr::eq(pair.second, *b)) {
            unmatched.push(Unmatched {
                run: 2,
                label: b.label.clone(),
            });
        }
    }
    (pairs, unmatched)
}

fn has_one_target(combinations: &[&WakeupCombination]) -> bool {
    combinations
        .windows(2)
        .all(|two| two[0].target == two[1].target)
}

fn is_same_plan(a: &WakeupCombination, b: &WakeupCombination) -> bool {
    a.load == b.load
        && a.policy == b.policy
        && a.intervals_ns == b.intervals_ns
        && a.clock == b.clock
        && a.phases.len() == b.phases.len()
}
