//! Gaps of a long run over time: of each moment and length, how often, as OSADL shows it.

use std::collections::BTreeMap;
use std::time::Duration;

use maud::Markup;
use tare_lab::units::human;
use tare_pages::html::parts::N;
use tare_pages::kit::heat_map::HeatMap;
use tare_stats::Counts;

use super::super::panels::{Member, Panel};

/// The most moments that are drawn next to each other.
const COLUMNS: usize = 96;

/// The lengths at which rows begin within each power of ten.
const ROWS: [u64; 3] = [1, 2, 5];

/// The gaps of one cell of a long run.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Moment {
    /// When it began, in seconds of the Unix epoch.
    began: i64,
    /// Its time, in seconds.
    seconds: f64,
    /// Gaps by the row of their length.
    rows: BTreeMap<u64, u64>,
}

impl Moment {
    /// Takes the lengths of the gaps of a cell, in cycles of `ns` each.
    pub fn new(began: i64, seconds: f64, counts: &Counts, ns: f64) -> Self {
        let mut rows = BTreeMap::new();
        for (cycles, count) in counts.iter() {
            *rows.entry(row_of((cycles as f64 * ns) as u64)).or_default() += count;
        }
        Self {
            began,
            seconds,
            rows,
        }
    }
}

/// Returns the length in ns at which the row of a length begins.
fn row_of(ns: u64) -> u64 {
    let power = 10_u64.pow(ns.checked_ilog10().unwrap_or(0));
    let begins = ROWS.into_iter().map(|factor| power * factor);
    begins.rev().find(|begin| *begin <= ns).unwrap_or(0)
}

/// Renders the gaps of each member over time; none of a run that is not long.
pub(super) fn over_time(panel: &Panel<'_>) -> impl Iterator<Item = Markup> {
    let members = panel.members.iter();
    members.filter_map(|member| map(panel, member))
}

fn map(panel: &Panel<'_>, member: &Member<'_>) -> Option<Markup> {
    let moments = &member.pictures.moments;
    let first = moments.first()?.began;
    let together = moments.len().div_ceil(COLUMNS);
    let columns = moments.chunks(together);
    let tiles = columns.flat_map(|column| {
        let since = column.first().map_or(0, |moment| moment.began - first);
        let seconds: f64 = column.iter().map(|moment| moment.seconds).sum();
        let mut rows: BTreeMap<u64, u64> = BTreeMap::new();
        for (row, count) in column.iter().flat_map(|moment| &moment.rows) {
            *rows.entry(*row).or_default() += count;
        }
        let at = since.unsigned_abs();
        let tile = move |(row, count): (u64, u64)| ([at, row], count as f64 / seconds);
        rows.into_iter().map(tile)
    });
    let mut map = HeatMap {
        title: format!(
            "Gaps over time{} · {}",
            panel.plan().load.under(),
            member.case.target()
        ),
        read: String::new(),
        axes: ["since the first cell", "gaps from"],
        tiles: tiles.collect(),
        labels: [
            |seconds| human(Duration::from_secs(seconds)),
            |ns| N.ns_tick(ns as f64),
        ],
        write: |rate| N.rate(rate),
    };
    let (low, high) = map.ends()?;
    let each = match together {
        1 => "one cell".to_owned(),
        cells => format!("{cells} cells"),
    };
    map.read = format!(
        "Each column is {each}, each row the gaps from its length to that of the next row. The strongest tile has {}, the faintest {}; \
         shades are logarithmic, and where there is none, there was no such gap.",
        N.rate(high),
        N.rate(low)
    );
    map.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_at_1_2_and_5_of_each_power_of_ten() {
        let rows = [1, 499, 500, 999, 1_000, 1_999, 20_000, 7_000_000].map(row_of);
        assert_eq!(rows, [1, 200, 500, 500, 1_000, 1_000, 20_000, 5_000_000]);
    }
}
