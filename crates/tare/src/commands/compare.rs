//! `tare compare`: which figures differ between runs, or within one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tare_experiments::catalogue;
use tare_figures::Run;
use tare_figures::compare::{Comparison, Comparisons, SCHEMA, compare, side, sides_by};
use tare_figures::notices::State;
use tare_pages::{Report, analyse, terminal as tables};
use tare_results::RunFolder;
use tare_results::model::STARTED;

use super::clean_up;
use crate::cli::compare::{BY, CompareArguments};
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

mod itself;

/// Compares runs.
pub fn run(arguments: &CompareArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    if arguments.quiet {
        terminal.be_quiet();
    }
    if arguments.itself {
        return itself::run(arguments, terminal);
    }
    clean_up(terminal);
    let by = arguments.by.as_ref();
    let (comparisons, is_damaged) = match by.and_then(|by| BY.into_iter().find(|known| known == by))
    {
        Some(by) => {
            let [path] = arguments.base.as_slice() else {
                let why = "--by compares within one run: give one folder".to_owned();
                return Err(CommandError::Usage(why));
            };
            let report = read(path)?;
            let is_damaged = warn_of_damage(&name(path), &report, terminal);
            let sides = sides_by(by, &name(path), report.run())?;
            let compared = sides.iter().map(|(base, new)| compare(base, new));
            (compared.collect::<Result<_, _>>()?, is_damaged)
        }
        None => {
            let (compared, is_damaged) = between(&arguments.base, &arguments.to, terminal)?;
            (vec![compared], is_damaged)
        }
    };
    let comparisons = Comparisons {
        schema: SCHEMA,
        comparisons,
    };
    if arguments.json {
        terminal.print_json(&comparisons)?;
    }
    for comparison in comparisons.comparisons.iter().filter(|_| !arguments.json) {
        match (arguments.quiet, arguments.markdown) {
            (true, _) => {
                let mut said = comparison.verdict.iter();
                said.try_for_each(|sentence| terminal.print_sentence(sentence))?;
            }
            (_, true) => terminal.print(&tables::compare_markdown(comparison))?,
            (_, false) => terminal.print_text(&tables::compare(comparison, terminal.width()))?,
        }
    }
    match gate(&comparisons.comparisons, arguments, terminal)? {
        exit::DONE if is_damaged => Ok(exit::FAILED),
        code => Ok(code),
    }
}

/// Warns of cells whose files can't be believed, which are in no comparison. Says whether there are
/// any.
fn warn_of_damage(name: &str, report: &Report, terminal: &Terminal) -> bool {
    let all = report.summary().not_measured.iter();
    let mut damaged =
        all.filter(|cell| matches!(cell.state, State::Damaged | State::Contradictory));
    let Some(first) = damaged.next() else {
        return false;
    };
    let also = match damaged.count() {
        0 => String::new(),
        more => format!(", nor are {more} more"),
    };
    terminal.warn(&format!(
        "{name}: cell {} ({}) is not compared{also}: {}",
        first.id, first.label, first.reason
    ));
    true
}

/// Compares the runs of two sides; also says whether cells were left out because they are damaged.
pub(super) fn between(
    base: &[PathBuf],
    new: &[PathBuf],
    terminal: &Terminal,
) -> Result<(Comparison, bool), CommandError> {
    // A run that is given twice would confirm itself.
    let mut seen = BTreeSet::new();
    for path in base.iter().chain(new) {
        if !seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
            let why = format!("{} is given twice: give each run once", path.display());
            return Err(CommandError::Usage(why));
        }
    }
    let read_all = |paths: &[PathBuf]| -> Result<Vec<(String, Report)>, CommandError> {
        let read = paths.iter().map(|path| Ok((name(path), read(path)?)));
        read.collect()
    };
    let (base, new) = (read_all(base)?, read_all(new)?);
    let mut known: Vec<(&str, &Run)> = Vec::new();
    let mut is_damaged = false;
    for (name, report) in base.iter().chain(&new) {
        is_damaged |= warn_of_damage(name, report, terminal);
        let run = report.run();
        if let Some((of, _)) = known.iter().find(|(_, of)| is_copy(of, run)) {
            let why = format!("{name} is a copy of {of}: give each run once");
            return Err(CommandError::Usage(why));
        }
        known.push((name, run));
    }
    let of = |label: &str, runs: &[(String, Report)]| {
        side(
            label,
            runs.iter().map(|(name, run)| (name.clone(), run.run())),
        )
    };
    let compared = compare(&of("BASE", &base), &of("NEW", &new))?;
    Ok((compared, is_damaged))
}

/// Returns whether two folders hold the same run. When a file of another tool was imported tells
/// nothing of that: what it counts does, unless it states another time.
fn is_copy(one: &Run, other: &Run) -> bool {
    let all_figures = |run: &Run| {
        let rows = run.rows.0.iter().map(|row| {
            let each: Vec<_> = row.each.iter().map(|each| each.figure).collect();
            (row.name(), each)
        });
        rows.collect::<Vec<_>>()
    };
    let started = |run: &Run| {
        let records = run.cells.iter().filter_map(|cell| cell.outcome.record());
        let mut facts = records
            .flat_map(|record| &record.programs)
            .flat_map(|of| &of.facts);
        facts
            .find(|fact| fact.name == STARTED)
            .map(|fact| fact.value.clone())
    };
    match one.is_imported() && other.is_imported() {
        true => started(one) == started(other) && all_figures(one) == all_figures(other),
        false => (one.plan.created, one.plan.seed) == (other.plan.created, other.plan.seed),
    }
}

/// Judges comparisons by all gates, and says what decides.
fn gate(
    comparisons: &[Comparison],
    arguments: &CompareArguments,
    terminal: &Terminal,
) -> Result<u8, CommandError> {
    let mut code = exit::DONE;
    for gate in &arguments.fail_if {
        for judgement in gate.judge_all(comparisons, arguments.allow_single)? {
            if judgement.failed {
                code = exit::THRESHOLD;
            }
            if arguments.json {
                terminal.note(&judgement.sentence);
            } else {
                terminal.print_sentence(&judgement.sentence)?;
            }
        }
    }
    Ok(code)
}

fn read(path: &Path) -> Result<Report, CommandError> {
    Ok(analyse(&RunFolder::open(path)?, catalogue())?)
}

/// Names a run by its folder.
fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
