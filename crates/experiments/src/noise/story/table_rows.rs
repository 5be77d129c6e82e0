//! The rows of the tables of all combinations, for terminal and page.
//!
//! With a few targets each row names workload and target. With many, the targets of one group stand below a
//! heading that names workload and group.

use crate::analysis::{Combination, CombinedFigures};
use crate::panels::{MANY, Panel, target_name};
use crate::words;

/// Is a row of a table.
pub(crate) enum Row<'a, T> {
    /// Names what the rows below it have in common.
    Heading(String),
    /// Is a combination, by its name.
    Of(Entry<'a, T>),
}

/// Is a combination in a table.
pub(crate) struct Entry<'a, T> {
    pub name: String,
    pub combination: &'a Combination,
    pub figures: &'a T,
}

/// Returns the combinations that have figures of one kind, in the order of the report.
pub(crate) fn rows<'a, T>(
    panels: &[Panel<'a>],
    of: impl Fn(&'a CombinedFigures) -> Option<&'a T>,
) -> Vec<Row<'a, T>> {
    let mut rows = Vec::new();
    for panel in panels {
        let has_headings = panel.members.len() > MANY && panel.groups().len() > 1;
        let mut heading = None;
        for (_, combination) in &panel.members {
            let Some(figures) = of(&combination.figures) else {
                continue;
            };
            let name = if has_headings {
                if heading != Some(combination.group) {
                    heading = Some(combination.group);
                    let group = combination.group.name();
                    rows.push(Row::Heading(format!("{} · {group}", panel.title())));
                }
                target_name(combination)
            } else {
                words::name(combination)
            };
            rows.push(Row::Of(Entry {
                name,
                combination,
                figures,
            }));
        }
    }
    rows
}

/// Returns the first entry.
pub(crate) fn first<'r, 'a, T>(rows: &'r [Row<'a, T>]) -> Option<&'r Entry<'a, T>> {
    rows.iter().find_map(|row| match row {
        Row::Of(entry) => Some(entry),
        Row::Heading(_) => None,
    })
}
