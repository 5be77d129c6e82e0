//! What is lost below any operating system, and what the operating system adds, in tables.

use maud::{Markup, html};

use crate::analysis::{Attribution, Finding, Observed, Part, Quantity, Split};
use crate::words;

use super::parts::{N, Table, none};

/// Renders the tables of all splits; `None` if there are none.
pub(super) fn attribution(attribution: &Attribution) -> Option<Markup> {
    if attribution.splits.is_empty() {
        return None;
    }
    let is_bound = attribution.splits.iter().any(|split| split.is_bound);
    Some(html! {
        p.read {
            "A unikernel that takes no interrupts loses only what is taken from below it: by the firmware, by a \
             hypervisor. What another target loses beyond that, on the same CPU and in the same blocks, its operating \
             system adds. Means over the blocks; the interval is that of the paired differences over blocks at \
             95 %, for each row by itself."
        }
        @if is_bound {
            p.read {
                "The unikernel is a guest of this machine's kernel, which can interrupt it too. So what stands as lost \
                 below is at most that, and what the operating system adds is at least that."
            }
        }
        @for split in attribution.splits.iter().filter(|split| !is_guest(split)) {
            h3 { (title(split)) }
            (table(split).render())
        }
        @if let Some(table) = guests(attribution) {
            h3 { "What each guest's own kernel adds" }
            p.read {
                "Against the unikernel as a guest beside it: the same lies below both, so this is no bound."
            }
            (table.render())
        }
    })
}

fn is_guest(split: &Split) -> bool {
    split.group.is_guest()
}

/// Makes the table of the guests, a row for each; `None` without guests.
fn guests(attribution: &Attribution) -> Option<Table> {
    let mut table = Table::new([
        "target",
        "quantity",
        "target",
        "below any\noperating system",
        "its kernel\nadds (mean)",
        "95 % interval",
    ]);
    for split in attribution.splits.iter().filter(|split| is_guest(split)) {
        // The classes are in summary.json.
        for (place, part) in split.parts.iter().take(2).enumerate() {
            let (adds, interval) = added(part);
            let name = if place == 0 {
                split.target.as_str()
            } else {
                ""
            };
            table.row([
                name.to_owned(),
                self::name(part.quantity),
                figure(part, part.all),
                figure(part, part.below),
                adds,
                interval,
            ]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn title(split: &Split) -> String {
    let mut title = format!(
        "{} against {}, {}",
        split.target, split.reference, split.workload
    );
    if let Some(size) = split.size {
        title.push_str(&format!(" {}", N.count(size)));
    }
    if split.load != "idle" {
        title.push_str(&format!(" under {}", split.load));
    }
    let blocks = words::counted(N, split.blocks.len() as u64, "block", "blocks");
    format!("{title} ({blocks})")
}

fn table(split: &Split) -> Table {
    let (at_most, at_least) = if split.is_bound {
        ("at most ", "at least ")
    } else {
        ("", "")
    };
    let mut table = Table::new([
        "",
        &split.target,
        &format!("{at_most}below any\noperating system"),
        &format!("the operating system\nadds {at_least}(mean)"),
        "95 % interval",
    ]);
    for part in &split.parts {
        let lower = if part.observed == Observed::Partly {
            ",\nas far as listed"
        } else {
            ""
        };
        let (adds, interval) = added(part);
        table.row([
            format!("{}{lower}", name(part.quantity)),
            figure(part, part.all),
            figure(part, part.below),
            adds,
            interval,
        ]);
    }
    table
}

fn name(quantity: Quantity) -> String {
    let class = |class: char, above: u64, up_to: Option<u64>| {
        let above = N.count(above);
        match up_to {
            Some(up_to) => format!("class {class}, {above} to {} cycles", N.count(up_to)),
            None => format!("class {class}, above {above} cycles"),
        }
    };
    match quantity {
        Quantity::TimeLost => "time lost".to_owned(),
        Quantity::GapsPerSecond => "gaps per second".to_owned(),
        Quantity::TimeInDelays { above_cycles } => {
            format!("time in delays above {} cycles", N.count(above_cycles))
        }
        Quantity::ClassPerSecond {
            class: letter,
            above_cycles,
            up_to_cycles,
        } => format!("{}, per second", class(letter, above_cycles, up_to_cycles)),
        Quantity::ClassPerMillion {
            class: letter,
            above_cycles,
            up_to_cycles,
        } => format!(
            "{}, of a million",
            class(letter, above_cycles, up_to_cycles)
        ),
    }
}

fn is_share(part: &Part) -> bool {
    matches!(
        part.quantity,
        Quantity::TimeLost | Quantity::TimeInDelays { .. }
    )
}

fn figure(part: &Part, value: f64) -> String {
    if is_share(part) {
        N.percent(value)
    } else {
        N.short(value)
    }
}

/// Writes what the operating system adds, and the interval of the difference.
fn added(part: &Part) -> (String, String) {
    let interval = part.difference.map_or_else(none, |difference| {
        if is_share(part) {
            words::signed_share_range(N, &difference)
        } else {
            words::signed_range(N, &difference)
        }
    });
    let added = match (part.finding, part.difference) {
        (Finding::Added, Some(difference)) => figure(part, difference.estimate),
        (Finding::NotDistinguishable, _) => "not\ndistinguishable".to_owned(),
        (Finding::Added | Finding::TooFewBlocks, _) => "too few\nblocks".to_owned(),
    };
    (added, interval)
}
