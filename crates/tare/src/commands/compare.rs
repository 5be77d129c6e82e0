//! `tare compare`: which figures differ between runs, or within one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tare_experiments::catalogue;
use tare_figures::compare::{Comparison, Comparisons, SCHEMA, compare, side, sides_by};
use tare_pages::{Report, analyse, terminal as tables};
use tare_results::RunFolder;
use tare_results::model::Plan;

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
    let comparisons = match by.and_then(|by| BY.into_iter().find(|known| known == by)) {
        Some(by) => {
            let [path] = arguments.base.as_slice() else {
                let why = "--by compares within one run: give one folder".to_owned();
                return Err(CommandError::Usage(why));
            };
            let sides = sides_by(by, &name(path), read(path)?.run())?;
            let compared = sides.iter().map(|(base, new)| compare(base, new));
            compared.collect::<Result<_, _>>()?
        }
        None => vec![between(&arguments.base, &arguments.to)?],
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
    gate(&comparisons.comparisons, arguments, terminal)
}

/// Compares the runs of two sides.
pub(super) fn between(base: &[PathBuf], new: &[PathBuf]) -> Result<Comparison, CommandError> {
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
    let mut known: Vec<(&str, &Plan)> = Vec::new();
    for (name, run) in base.iter().chain(&new) {
        let plan = &run.run().plan;
        let is_copy = |(_, of): &&(&str, &Plan)| (of.created, of.seed) == (plan.created, plan.seed);
        if let Some((of, _)) = known.iter().find(is_copy) {
            let why = format!("{name} is a copy of {of}: give each run once");
            return Err(CommandError::Usage(why));
        }
        known.push((name, plan));
    }
    let of = |label: &str, runs: &[(String, Report)]| {
        side(
            label,
            runs.iter().map(|(name, run)| (name.clone(), run.run())),
        )
    };
    Ok(compare(&of("BASE", &base), &of("NEW", &new))?)
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
