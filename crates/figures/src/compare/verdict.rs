//! What a comparison says, in words.

use super::{CompareUnit, ComparedRow, Comparison, told};
use crate::group::{distinct, grouped};
use crate::notices::name_cells;
use crate::rows::{Figure, behind};

/// Says what a comparison says, the conclusion first, and what bears on all of it.
pub(super) fn of(comparison: &Comparison) -> Vec<String> {
    let mut said = Vec::from_iter(emulated(comparison));
    said.extend(conclusion(comparison));
    said.extend((!comparison.more_work.is_empty()).then(|| comparison.more_work.join(" ")));
    said.extend(modes(comparison));
    said.extend(not_alternated(comparison));
    let runs = comparison.runs.iter().flatten();
    let cut = runs.filter(|run| !run.cut_short.is_empty()).map(|run| {
        format!(
            "Cut short: {} of {}. The figures cover the samples until then, and the longest of less time is shorter; `--resume` \
             repeats the whole cell.",
            name_cells(&run.cut_short),
            run.run
        )
    });
    said.extend(distinct(cut));
    said
}

/// Says of sides of which an emulator executed one that their times have nothing in common.
fn emulated(comparison: &Comparison) -> Option<String> {
    let mixed = comparison.listed().find(|row| row.is_of_emulator_alone())?;
    let of = [&mixed.base_row, &mixed.of]
        .into_iter()
        .find(|row| row.emulated)?;
    Some(format!(
        "An emulator (QEMU's TCG) executed the measured code of {}, and the other side's ran on the processor: their times \
         say nothing of one another, so which side is better is not judged, however many runs there are. Measure both where \
         KVM works, or both with clock=instructions.",
        of.target
    ))
}

/// Says of sides that followed each other, and not in turn, that time may be what differs.
fn not_alternated(comparison: &Comparison) -> Option<String> {
    let mut runs = comparison.runs.iter().flatten();
    let is_time_known = runs.all(|run| run.is_time_known);
    let is_of_invocations = comparison.unit == CompareUnit::Invocations && !comparison.is_exact();
    let is_of_invocations = is_of_invocations && is_time_known;
    let [base, new] = comparison.runs.each_ref().map(|runs| {
        let mut times = Vec::from_iter(runs.iter().map(|run| run.created.as_str()));
        times.sort_unstable();
        times
    });
    let (first, last) = match (base.first()? > new.last()?, new.first()? > base.last()?) {
        (true, _) => (1, 0),
        (_, true) => (0, 1),
        (false, false) => return None,
    };
    is_of_invocations.then(|| {
        format!(
            "All of {} was measured before all of {}: whatever else changed in between is in the differences, too. Measure \
             both in turn.",
            comparison.names[first], comparison.names[last]
        )
    })
}

/// Describes the modes of samples whose median is refused because it lies between two, with their
/// shares: in each place those of its first such measure.
fn modes(comparison: &Comparison) -> Vec<String> {
    let slow = comparison
        .rows
        .iter()
        .filter(|row| row.of.figure == Figure::Slow);
    let each = slow.filter_map(|row| {
        let (base, new) = (row.base_row.modes?, row.of.modes?);
        row.base.and(row.new)?;
        let has = |other: &&ComparedRow| other.of.is_sibling(&row.of);
        // One that is there on both sides, and yet has no shift.
        let mut own = comparison.listed().filter(has);
        own.find(|own| own.shift.is_none() && own.of.figure == Figure::MEDIAN)?;
        let [of_base, of_new] = comparison.repetitions;
        let sides = [(base, row.base, of_base), (new, row.new, of_new)];
        let those = [base, new].map(|modes| crate::modes::both(&row.of, modes));
        let [base, new] = sides.map(|(modes, share, repetitions)| {
            let share = told(share, &row.unit);
            let median = if repetitions > 1 { " (median)" } else { "" };
            let modes = match those[0] == those[1] {
                true => String::new(),
                false => format!("{} with ", crate::modes::both(&row.of, modes)),
            };
            format!("{modes}{share}{median} in the slow one")
        });
        let those = match those[0] == those[1] {
            true => format!("{}; ", those[0]),
            false => String::new(),
        };
        let said = format!(
            "{} on {}{}: {those}of {} {base}, of {} {new}. A median between them says nothing of a shift.",
            crate::modes::has_two(&row.of),
            row.places(),
            behind(&row.labels, &[]),
            comparison.names[0],
            comparison.names[1],
        );
        Some((row.places(), said))
    });
    let each = grouped(each).into_iter();
    each.filter_map(|(_, said)| said.into_iter().next())
        .collect()
}

fn conclusion(comparison: &Comparison) -> Vec<String> {
    let differ = Vec::from_iter(comparison.judged().filter(|row| row.differs));
    let all = comparison.judged().count();
    if all == 0 && emulated(comparison).is_some() {
        return Vec::new();
    }
    if differ.is_empty() {
        return vec![nothing(comparison, all)];
    }
    let (worse, others): (Vec<&ComparedRow>, Vec<&ComparedRow>) =
        differ.into_iter().partition(|row| row.is_worse);
    let of_two_runs = comparison.unit == CompareUnit::TwoRuns && !comparison.is_exact();
    let [base, new] = &comparison.names;
    let mut said = Vec::new();
    for (rows, what) in [(&worse, "worse"), (&others, "better")] {
        // The longest of a run grows with its length, so it is named only if nothing else differs.
        let is_max = |row: &ComparedRow| row.figure == "max";
        let place = |row: &&&ComparedRow| (!is_max(row), ratio(row));
        let largest = rows.iter().max_by(|a, b| {
            let (a, b) = (place(a), place(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let Some(largest) = largest else { continue };
        let number = rows.len();
        let is_above = |row: &&ComparedRow| is_max(row) && ratio(row) > ratio(largest);
        let besides = if rows.iter().any(is_above) {
            " (maxima aside)"
        } else {
            ""
        };
        let most = format!(
            "most{besides} in {} of {}: {} instead of {}",
            largest.name(),
            largest.of.place(),
            told(largest.new, &largest.unit),
            told(largest.base, &largest.unit)
        );
        said.push(match of_two_runs {
            true => format!(
                "These two runs differ: {number} of {all} figures are {what} in the second, {most}."
            ),
            false => format!("{new} is {what} than {base} in {number} of {all} figures, {most}."),
        });
    }
    if of_two_runs {
        said.push(format!(
            "That two runs differ doesn't say that what they ran on does: runs of one invocation share their minute. For that, \
             give {} invocations of each, taken in alternation.",
            comparison.needed
        ));
    }
    said
}

/// Says how many repetitions a comparison needs, and how many there are.
pub(super) fn inconclusive(comparison: &Comparison) -> String {
    let (needed, of) = (comparison.needed, comparison.unit.plural());
    let counted = comparison.counted("and");
    format!("inconclusive: it needs {needed} {of} of each, not {counted}.")
}

fn nothing(comparison: &Comparison, all: usize) -> String {
    if comparison.is_exact() {
        return format!("Each of {all} figures is the same.");
    }
    if !comparison.can_tell {
        return format!("The comparison is {}", inconclusive(comparison));
    }
    let what = match comparison.unit {
        CompareUnit::TwoRuns => "these two runs",
        CompareUnit::Invocations | CompareUnit::Conditions => "the two",
    };
    format!(
        "None of {all} figures differs between {what}: the differences are within what chance does. That doesn't prove that \
         there are none; the intervals say how large they may be."
    )
}

/// Returns by which factor a figure grew or shrank by its shift, which the table shows, whichever
/// is more than 1.
fn ratio(row: &ComparedRow) -> f64 {
    let (Some(a), Some(shift)) = (row.base, row.shift) else {
        return 1.0;
    };
    let b = a + shift;
    // One in a million, or a ns, stands for nothing.
    let least = if row.unit == "1" { 1e-6 } else { 1.0 };
    let (a, b) = (a.max(least), b.max(least));
    (b / a).max(a / b)
}
