//! Which combinations belong into one picture: those that differ only in their target.

use crate::analysis::{Combination, CombinedFigures};

/// Is a group of combinations that differ only in their target, so that they can be compared.
#[derive(Clone, Debug)]
pub(crate) struct Panel<'a> {
    /// The combinations with their places in the summary, `process` first.
    pub members: Vec<(usize, &'a Combination)>,
}

/// Groups combinations, `gap` first, then by workload and size.
pub(crate) fn panels(combinations: &[Combination]) -> Vec<Panel<'_>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for (place, combination) in combinations.iter().enumerate() {
        match panels.iter_mut().find(|panel| panel.takes(combination)) {
            Some(panel) => panel.members.push((place, combination)),
            None => panels.push(Panel {
                members: vec![(place, combination)],
            }),
        }
    }
    // The order of the plan is drawn at random, and a target should have the same colour in every
    // report.
    for panel in &mut panels {
        panel
            .members
            .sort_by_key(|(_, member)| (member.target != "process", member.target.clone()));
    }
    panels.sort_by_key(|panel| {
        let first = panel.first();
        (
            rank(first),
            first.workload.clone(),
            first.load != "idle",
            first.size,
        )
    });
    panels
}

/// Groups panels that differ only in their size, in the order in which they come.
pub(crate) fn series<'p, 'a>(panels: &'p [Panel<'a>]) -> Vec<&'p [Panel<'a>]> {
    panels
        .chunk_by(|a, b| {
            let (a, b) = (a.first(), b.first());
            a.workload == b.workload && a.load == b.load && a.timing == b.timing
        })
        .collect()
}

impl<'a> Panel<'a> {
    /// Returns the combination that stands for what all have in common.
    pub fn first(&self) -> &'a Combination {
        // A panel is made with its first member.
        self.members[0].1
    }

    /// Says whether it is about `gap`.
    pub fn is_gap(&self) -> bool {
        matches!(self.first().figures, CombinedFigures::Gap(_))
    }

    /// Names what the combinations have in common: `prime 22 under dd`.
    pub fn title(&self) -> String {
        let first = self.first();
        let mut title = first.workload.clone();
        if let Some(size) = first.size {
            title.push_str(&format!(" {size}"));
        }
        if first.load != "idle" {
            title.push_str(&format!(" under {}", first.load));
        }
        if first.timing == "published" && !self.is_gap() {
            title.push_str(", published timing");
        }
        title
    }

    fn takes(&self, other: &Combination) -> bool {
        let first = self.first();
        first.workload == other.workload
            && first.size == other.size
            && first.load == other.load
            && first.timing == other.timing
            // Combinations that differ in something else (threshold, repetitions) stay apart.
            && self.members.iter().all(|(_, member)| member.target != other.target)
    }
}

/// Returns a target's name, marked if an emulator executed the measured code.
pub(crate) fn target_name(combination: &Combination) -> String {
    if combination.emulated {
        format!("{} (emulated)", combination.target)
    } else {
        combination.target.clone()
    }
}

fn rank(combination: &Combination) -> u8 {
    match (&combination.figures, combination.workload.as_str()) {
        (CombinedFigures::Gap(_), _) => 0,
        (CombinedFigures::Timed(_), "prime") => 1,
        (CombinedFigures::Timed(_), "copy") => 2,
        (CombinedFigures::Timed(_), _) => 3,
    }
}
