//! `tare export`: wake-ups of a run in the formats of other tools.

use tare_cyclictest::Latencies;
use tare_cyclictest::format::{Head, Histogram, Unit, histogram, json};
use tare_exchange::csv;
use tare_exchange::hgrm::{Uncounted, hgrm};
use tare_experiments::wakeup;
use tare_results::model::{Cell, Record, Samples, SetHead};
use tare_results::{CellState, RunFolder, create_folder, write_file};
use tare_stats::{Counts, StatsError};

use super::clean_up;
use super::run_folder::open;
use crate::cli::exchange::{ExportArguments, Format};
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Writes the cells that were asked for.
pub fn run(arguments: &ExportArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    if arguments.response && matches!(arguments.format, Format::Raw | Format::Events) {
        let why = "--response: a missed activation has no wake-up, so raw and events have nothing to say of it";
        return Err(CommandError::Usage(why.to_owned()));
    }
    let folder = open(arguments.run.as_deref())?;
    let (cells, is_damaged) = chosen(&folder, arguments, terminal)?;
    if cells.is_empty() {
        return Ok(exit::FAILED);
    }
    match (&arguments.output, &cells[..]) {
        (None, [cell]) => terminal.print(&content(&folder, cell, arguments, terminal)?)?,
        (None, cells) => {
            let list: Vec<String> = cells.iter().map(name).collect();
            return Err(CommandError::Usage(format!(
                "there are {} cells with wake-ups: choose one with --cell, or name a folder with --output: {}",
                cells.len(),
                list.join(", ")
            )));
        }
        (Some(output), [cell]) if !output.is_dir() => {
            let text = content(&folder, cell, arguments, terminal)?;
            write_file(output, text.as_bytes(), arguments.force)?;
        }
        (Some(output), cells) => {
            create_folder(output)?;
            for cell in cells {
                let name = format!("cell-{:04}.{}", cell.plan.id, suffix(arguments.format));
                let text = content(&folder, cell, arguments, terminal)?;
                write_file(&output.join(name), text.as_bytes(), arguments.force)?;
            }
        }
    }
    match is_damaged {
        true => Ok(exit::FAILED),
        false => Ok(exit::DONE),
    }
}

/// Finds the cells that are asked for and have wake-ups; says whether others are damaged, and warns of
/// them.
fn chosen(
    folder: &RunFolder,
    arguments: &ExportArguments,
    terminal: &Terminal,
) -> Result<(Vec<Cell>, bool), CommandError> {
    let plans = folder.plan().cells.iter();
    let wanted = plans.filter(|plan| {
        (arguments.cell.is_empty() || arguments.cell.contains(&plan.id))
            && plan.experiment == wakeup::NAME
            && arguments
                .target
                .as_ref()
                .is_none_or(|target| plan.target == **target)
    });
    let mut is_damaged = false;
    let cells: Vec<Cell> = wanted
        .filter_map(|plan| match folder.state(plan.id) {
            CellState::Done(cell) if cell.outcome.record().is_some() => Some(*cell),
            CellState::Damaged { path, reason } => {
                is_damaged = true;
                let path = path.display();
                terminal.warn(&format!(
                    "cell {} ({}) is damaged and not exported: {path} {reason}",
                    plan.id,
                    plan.label()
                ));
                None
            }
            _ => None,
        })
        .collect();
    if cells.is_empty() && !is_damaged {
        return Err(CommandError::Usage(format!(
            "{} has no such cell with wake-ups; `tare report {0}` shows what it has",
            folder.path().display()
        )));
    }
    Ok((cells, is_damaged))
}

fn name(cell: &Cell) -> String {
    format!("{} ({})", cell.plan.id, cell.plan.label())
}

/// Makes the text of one cell.
fn content(
    folder: &RunFolder,
    cell: &Cell,
    arguments: &ExportArguments,
    terminal: &Terminal,
) -> Result<String, CommandError> {
    let Some(record) = cell.outcome.record() else {
        return Ok(String::new());
    };
    let samples = folder.samples(cell.plan.id)?;
    warn(cell, record, arguments.format, terminal);
    Ok(make(folder, cell, record, &samples, arguments)?)
}

fn make(
    folder: &RunFolder,
    cell: &Cell,
    record: &Record,
    samples: &Samples,
    arguments: &ExportArguments,
) -> Result<String, StatsError> {
    let latencies = || {
        let all = Latencies::of_cell(record, samples)?;
        match arguments.response {
            true => all.iter().map(Latencies::response).collect(),
            false => Ok(all),
        }
    };
    // Beyond the end of another tool's histogram nothing is known: no row of it is made up.
    let ends = record.sets.iter().filter(|head| head.uncounted > 0);
    let ends = ends.map(|head| head.uncounted_min / 1_000);
    let size = arguments.histogram.min(Histogram::MOST);
    let size = ends.fold(size, u64::min);
    let unit = Unit::Micros;
    Ok(match arguments.format {
        Format::Cyclictest => {
            let all = false;
            histogram(&latencies()?, &Histogram { size, unit, all })
        }
        Format::CyclictestJson => {
            let (run, machine) = (folder.plan(), folder.machine());
            let head = Head::of_cell(run, machine, cell, samples, exit::DONE);
            json(&head, &latencies()?, size, unit)?
        }
        Format::Hgrm => {
            let latencies = latencies()?;
            let counts = Counts::merge_all(latencies.iter().map(|thread| &thread.counts))?;
            let threads = latencies.iter().map(|latencies| &latencies.thread);
            let threads = threads.filter(|thread| thread.uncounted > 0);
            let none = Uncounted {
                sum: Some(0),
                ..Uncounted::default()
            };
            let uncounted = threads.fold(none, |all, thread| Uncounted {
                count: all.count + thread.uncounted,
                sum: all
                    .sum
                    .filter(|_| !thread.sum_at_least)
                    .map(|sum| sum + u128::from(thread.uncounted_ns)),
                min: match all.count {
                    0 => thread.uncounted_min_ns,
                    _ => all.min.min(thread.uncounted_min_ns),
                },
                max: all.max.max(thread.uncounted_max_ns),
            });
            hgrm(&counts, &uncounted)
        }
        Format::Csv if arguments.response => csv::response_histogram(record, samples)?,
        Format::Csv => csv::histogram(record, samples),
        Format::Raw => csv::raw(record, samples),
        Format::Events => csv::events(cell, record),
    })
}

/// Says what is not in the text although it was measured.
fn warn(cell: &Cell, record: &Record, format: Format, terminal: &Terminal) {
    let sum = |of: fn(&SetHead) -> u64| record.sets.iter().map(of).fold(0, u64::saturating_add);
    let (woken, raw) = (sum(|head| head.n), sum(|head| head.raw));
    let uncounted = sum(|head| head.uncounted);
    let id = cell.plan.id;
    if let Some(why) = cell.outcome.cut_short() {
        terminal.warn(&format!(
            "cell {id} was cut short ({why}): this covers the wake-ups until then"
        ));
    }
    match format {
        Format::Raw if raw < woken => terminal.warn(&format!(
            "of the {woken} wake-ups of cell {id} only the first {raw} were kept one by one; csv has all"
        )),
        Format::Hgrm | Format::Csv if uncounted > 0 => terminal.warn(&format!(
            "{uncounted} of the {woken} wake-ups of cell {id} were not counted one by one: {}",
            match format {
                Format::Csv => "they are left out",
                _ => "percentiles among them are left out, except for the maximum",
            }
        )),
        _ => {}
    }
}

fn suffix(format: Format) -> &'static str {
    match format {
        Format::Cyclictest => "cyclictest.txt",
        Format::CyclictestJson => "json",
        Format::Hgrm => "hgrm",
        Format::Csv => "csv",
        Format::Raw => "raw.csv",
        Format::Events => "events.csv",
    }
}
