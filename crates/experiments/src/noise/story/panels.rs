//! Which combinations belong into one picture: those that differ only in their target.
//!
//! Targets stand in the order of their groups. A picture overlays at most [`OVERLAID`] of them; with
//! more, it is drawn several times with the same axes, a few groups in each.

use tare_results::target::Group;

use crate::analysis::{Combination, CombinedFigures};

/// Is the number of targets up to which each is named in sentences and headings.
pub(crate) const MANY: usize = 4;

/// Is how many targets are overlaid in one picture: as many as there are colours which everybody can
/// tell apart.
pub(crate) const OVERLAID: usize = 6;

/// Holds combinations that differ only in their target, so that they can be compared.
#[derive(Clone, Debug)]
pub(crate) struct Panel<'a> {
    /// The combinations with their places in the summary, in the order of their groups.
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
            .sort_by_key(|(_, member)| (member.group, member.target.clone()));
    }
    panels.sort_by_key(|panel| {
        let first = panel.first();
        (
            rank(first),
            first.workload.clone(),
            first.load != "idle",
            first.load.clone(),
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
        title(self.first())
    }

    /// Returns the groups of its targets, each once.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = self.members.iter().map(|(_, c)| c.group).collect();
        groups.dedup();
        groups
    }

    /// Divides it into parts that can be overlaid in one picture: whole groups as far as they fit, and of
    /// a group that does not fit, pieces of about equal size. A part is never empty.
    pub fn parts(&self) -> Vec<Self> {
        let mut parts: Vec<Self> = Vec::new();
        for group in self.members.chunk_by(|a, b| a.1.group == b.1.group) {
            let pieces = group.len().div_ceil(OVERLAID).max(1);
            for piece in group.chunks(group.len().div_ceil(pieces).max(1)) {
                match parts.last_mut() {
                    Some(part) if part.members.len() + piece.len() <= OVERLAID => {
                        part.members.extend_from_slice(piece);
                    }
                    _ => parts.push(Self {
                        members: piece.to_vec(),
                    }),
                }
            }
        }
        parts
    }

    /// Returns each target of several panels once, by the first combination that it has.
    pub fn of_targets(panels: &[Self]) -> Self {
        let mut members: Vec<(usize, &'a Combination)> = Vec::new();
        for member in panels.iter().flat_map(|panel| &panel.members) {
            if members.iter().all(|(_, c)| c.target != member.1.target) {
                members.push(*member);
            }
        }
        members.sort_by_key(|(_, c)| (c.group, c.target.clone()));
        Self { members }
    }

    /// Returns only the members of a part, by target.
    pub fn restricted_to(&self, part: &Self) -> Self {
        let is_in = |c: &Combination| part.members.iter().any(|(_, p)| p.target == c.target);
        Self {
            members: self
                .members
                .iter()
                .filter(|(_, c)| is_in(c))
                .copied()
                .collect(),
        }
    }

    /// Names the part of a whole by its groups: `Process, Containers`; `None` if it is the whole.
    pub fn name_in(&self, whole: &Self) -> Option<String> {
        if self.members.len() == whole.members.len() {
            return None;
        }
        let names: Vec<String> = self.groups().iter().map(|g| g.name().to_owned()).collect();
        Some(names.join(" · "))
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

/// Names what a combination has in common with those of other targets: `prime 22 under dd`.
pub(crate) fn title(combination: &Combination) -> String {
    let mut title = combination.workload.clone();
    if let Some(size) = combination.size {
        title.push_str(&format!(" {size}"));
    }
    title.push_str(&under(combination));
    let is_gap = combination.figures.gap().is_some();
    if combination.timing == "published" && !is_gap {
        title.push_str(", published timing");
    }
    title
}

/// Names the load as the end of a sentence does: ` under dd`, nothing for `idle`.
pub(crate) fn under(combination: &Combination) -> String {
    match combination.load.as_str() {
        "idle" => String::new(),
        load => format!(" under {load}"),
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
