//! What every measuring command does around its plan: owns what it starts, looks at the machine,
//! opens the run folder, runs what is missing, shows the result.
//!
//! A command brings the plan; whether it comes from arguments or from a study makes no difference
//! from here on.

use std::collections::BTreeSet;
use std::path::Path;

use tare_experiments::{catalogue, find};
use tare_figures::gates::{Gate, GateError};
use tare_figures::notices::State;
use tare_figures::rows::written;
use tare_guard::{Guard, Interrupt, default_state_dir};
use tare_lab::check::{Usable, check};
use tare_lab::plan::{Frame, Starts, more_runs};
use tare_lab::units::counted;
use tare_lab::{Settings, Tally, execute};
use tare_pages::Report;
use tare_results::model::{CellPlan, Plan, SettingPlan};
use tare_results::{CellState, MachineRecord, RunFolder};
use tare_wire::cpus::Cpus;

use super::claim::{claim, taken};
use super::describe::{describe, describe_missing, introduce};
use super::host::{Host, allowed_cpus};
use super::run_folder::{judge, new_path, present};
use super::{clean_up, close, command_line, resume};
use crate::actions::{Actions, On};
use crate::cli::measure::RunOptions;
use crate::ending::Ending;
use crate::error::CommandError;
use crate::exit;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// Says how a measuring command is to run.
#[derive(Debug)]
pub struct Request<'a> {
    /// Name of the run's folder after the time.
    pub name: &'a str,
    /// Run to go on with, instead of making a plan.
    pub resume: Option<&'a Path>,
    /// CPUs to measure on; one is chosen if there are none.
    pub cpus: Vec<u32>,
    /// Runs of each combination to add to the run that is resumed.
    pub more_runs: Option<u32>,
    /// What to do at once when a limit of the plan is exceeded, and at the end.
    pub actions: &'a [On],
    /// What holds for whatever is run.
    pub options: &'a RunOptions,
}

/// Measures what `plan` asks for, or what is missing from the run that is to be resumed. Returns
/// the exit code.
///
/// # Errors
///
/// Returns [`CommandError`] if nothing could be started, or the run could not go on; what was
/// measured before is kept and shown.
pub fn measure(
    request: &Request<'_>,
    terminal: &Terminal,
    plan: impl FnOnce(&Host) -> Result<Plan, CommandError>,
) -> Result<u8, CommandError> {
    if request.options.dry_run {
        let mut host = Host::look(&cpus_of(request)?, &taken())?;
        terminal.print_lines(&preview(request, &mut host, plan, terminal)?)?;
        return Ok(exit::DONE);
    }
    // Before anything is started or written, so that no moment is left in which Ctrl-C does what
    // it does by default.
    let interrupt = Interrupt::install()?;
    if request.options.result.quiet {
        terminal.be_quiet();
    }
    interrupt.prepare(true);
    match run(request, &interrupt, terminal, plan) {
        // Whatever could not be made ready was given up because of that.
        Err(_) if interrupt.prepares() && interrupt.stop_requested() => Ok(interrupted(terminal)),
        ran => ran,
    }
}

/// Says that the user asked to end before anything was measured. Returns the exit code.
pub fn interrupted(terminal: &Terminal) -> u8 {
    terminal.note("interrupted: nothing was measured");
    exit::INTERRUPTED
}

fn run(
    request: &Request<'_>,
    interrupt: &Interrupt,
    terminal: &Terminal,
    plan: impl FnOnce(&Host) -> Result<Plan, CommandError>,
) -> Result<u8, CommandError> {
    clean_up(terminal);
    let guard = Guard::open(&default_state_dir()?)?;
    let options = request.options;
    let json = options.result.json;
    let mut host = Host::look(&cpus_of(request)?, &taken())?;
    let (folder, settings, claim) = match request.resume {
        Some(path) => {
            let mut folder = resume::open(path, &host.record, options)?;
            host.is_for(folder.plan(), terminal);
            check_gates(&options.result.fail_if, folder.plan())?;
            let more = added(request, folder.plan())?;
            require(
                folder.plan(),
                &host.record,
                |target| target.availability(),
                terminal,
            )?;
            let cells = folder.missing().into_iter().chain(&more);
            let claim = claim(cells, path, options.share_cpu, &guard, terminal)?;
            let settings = Settings::change(&folder.plan().settings, &guard)?;
            if !more.is_empty() {
                folder.extend(more)?;
            }
            (folder, settings, claim)
        }
        None => {
            let plan = plan(&host)?;
            host.is_for(&plan, terminal);
            check_gates(&options.result.fail_if, &plan)?;
            require(
                &plan,
                &host.record,
                |target| target.availability(),
                terminal,
            )?;
            let path = options.output.clone();
            let path = path.map_or_else(|| new_path(request.name), Ok)?;
            let cells = plan.cells.iter();
            let claim = claim(cells, &path, options.share_cpu, &guard, terminal)?;
            // Before there is a folder: a setting that can't be changed leaves none.
            let settings = Settings::change(&plan.settings, &guard)?;
            (
                RunFolder::create(&path, &plan, &host.record)?,
                settings,
                claim,
            )
        }
    };
    match folder.missing().is_empty() {
        true => terminal.tell(&complete(&folder)),
        false => introduce(&folder, &host, terminal),
    }

    let actions = Actions::new(request.actions, &guard);
    let ending = Ending::new(&folder, &options.result.fail_if, interrupt);
    let mut progress = Progress::new(&folder, &host, (actions, ending), claim, terminal);
    interrupt.prepare(false);
    let tally = execute(
        &folder,
        tare_experiments::drive,
        tare_experiments::check,
        &guard,
        interrupt,
        &mut progress,
    );
    let tally = tally.and_then(|tally| settings.restore().map(|()| tally));
    let has_ended = progress.close(interrupt);
    close(guard, terminal);
    interrupt.nothing_is_left();
    let tally = match tally {
        Ok(tally) => tally,
        Err(error) => {
            // Earlier results are not lost: they are shown, if possible.
            if done(&folder) > 0 {
                if let Err(error) = present(&folder, None, &options.result, terminal) {
                    terminal.warn(&error.to_string());
                }
                terminal.note(&kept(&folder));
            }
            return Err(error.into());
        }
    };
    let presented = present(&folder, None, &options.result, terminal)?;
    let analysis = &presented.analysis;
    let code = conclude(&folder, analysis, (tally, has_ended), json, terminal)?;
    if code == exit::INTERRUPTED {
        // Gates are of what was planned, and that is not there yet.
        return Ok(code);
    }
    match judge(&options.result.fail_if, analysis, json, terminal) {
        Ok(_) if code == exit::DONE && !presented.is_written => Ok(exit::FAILED),
        Ok(judged) if code == exit::DONE => Ok(judged),
        Ok(_) => Ok(code),
        // Without the cells that failed there may be nothing left to judge.
        Err(error) if code == exit::FAILED => {
            terminal.warn(&error.to_string());
            Ok(code)
        }
        Err(error) => Err(error),
    }
}

/// Returns the CPUs to measure on, if any are asked for.
fn cpus_of(request: &Request<'_>) -> Result<Vec<u32>, CommandError> {
    Ok(match request.resume {
        // The plan of the run decides; another CPU would be another measurement.
        Some(path) => measured_cpus(RunFolder::open(path)?.plan()),
        None => request.cpus.clone(),
    })
}

/// Describes what would be measured. Nothing is started or written for that, nor is anything asked
/// that runs: what a target needs is only looked for.
fn preview(
    request: &Request<'_>,
    host: &mut Host,
    plan: impl FnOnce(&Host) -> Result<Plan, CommandError>,
    terminal: &Terminal,
) -> Result<String, CommandError> {
    let gates = &request.options.result.fail_if;
    let Some(path) = request.resume else {
        let plan = plan(host)?;
        host.is_for(&plan, terminal);
        check_gates(gates, &plan)?;
        require(&plan, &host.record, |target| target.present(), terminal)?;
        return Ok(describe(&plan, host));
    };
    let folder = RunFolder::open(path)?;
    host.is_for(folder.plan(), terminal);
    resume::same_machine(&folder, &host.record)?;
    check_gates(gates, folder.plan())?;
    let more = added(request, folder.plan())?;
    Ok(describe_missing(&folder, more, host))
}

/// Returns the cells to add to a run that is resumed.
fn added(request: &Request<'_>, plan: &Plan) -> Result<Vec<CellPlan>, CommandError> {
    Ok(match request.more_runs {
        Some(runs) => more_runs(plan, |cell| runs_of(cell, runs))?,
        None => Vec::new(),
    })
}

/// Returns how often a combination runs if `asked` runs are added to each.
fn runs_of(cell: &CellPlan, asked: u32) -> u32 {
    let experiment = find(&cell.experiment);
    experiment.map_or(asked, |experiment| experiment.runs_of(cell, asked))
}

/// Refuses gates that no figure of a plan can match, before anything is measured.
pub fn check_gates(gates: &[Gate], plan: &Plan) -> Result<(), CommandError> {
    let checked: Result<(), GateError> = gates
        .iter()
        .try_for_each(|gate| gate.check(plan, catalogue()));
    Ok(checked?)
}

/// Returns the CPUs of this machine that the cells of a plan are pinned to.
fn measured_cpus(plan: &Plan) -> Vec<u32> {
    let several = plan.cells.iter().filter_map(|cell| cell.work.cpus.as_ref());
    let mut cpus: BTreeSet<u32> = several.flat_map(Cpus::iter).collect();
    cpus.insert(plan.cpu);
    cpus.into_iter().collect()
}

/// Returns what a plan says of the run as a whole.
pub fn frame(
    host: &Host,
    seed: Option<u64>,
    settings: Vec<SettingPlan>,
    start_engine: bool,
) -> Frame {
    Frame {
        seed: seed.unwrap_or_else(|| fastrand::u64(..)),
        cpu: host.cpu,
        cpu_reason: host.cpu_reason.clone(),
        settings,
        start_engine,
        command: command_line(),
        study: None,
        starts: Starts::Remembered,
    }
}

/// Refuses to start if a target, a load, a CPU or a policy of the plan can't be used here. Further
/// reasons are warnings, and so are those for which cells of a study are left out.
pub fn require(
    plan: &Plan,
    machine: &MachineRecord,
    usable: Usable,
    terminal: &Terminal,
) -> Result<(), CommandError> {
    let findings = check(plan, machine, &allowed_cpus()?, usable)?;
    let errors = findings.into_iter().map(CommandError::from);
    let is_left_out = |error: &CommandError| matches!(error, CommandError::LeftOut { .. });
    let (left_out, errors): (Vec<_>, Vec<_>) = errors.partition(is_left_out);
    let mut errors = errors.into_iter();
    let first = errors.next();
    for other in left_out.into_iter().chain(errors) {
        terminal.warn(&other.to_string());
    }
    first.map_or(Ok(()), Err)
}

/// Says what was not done, and decides the exit code. A run that a gate or an action has ended is
/// not interrupted.
fn conclude(
    folder: &RunFolder,
    analysis: &Report,
    (tally, has_ended): (Tally, bool),
    json: bool,
    terminal: &Terminal,
) -> Result<u8, CommandError> {
    if tally.failed + tally.not_tried > 0 {
        let not_tried = match tally.not_tried {
            0 => String::new(),
            not_tried => format!(", {not_tried} not tried"),
        };
        terminal.warn(&format!(
            "{} of {} cells failed{not_tried}, see the report; {} runs them again",
            tally.failed,
            folder.plan().cells.len(),
            folder.resume_command()
        ));
    }
    let cells = analysis.summary().not_measured.iter();
    let empty = cells.filter(|cell| matches!(cell.state, State::Contradictory | State::Empty));
    match empty.count() {
        0 => {}
        empty => terminal.warn(&format!(
            "{empty} of {} cells ended without a figure, see the report",
            folder.plan().cells.len()
        )),
    }
    if tally.cut_short + tally.left > 0 {
        let missing = counted(tally.left, "cell is", "cells are");
        let what = match (tally.cut_short, tally.left) {
            (0, _) => format!("{missing} missing"),
            (_, 0) => "one cell was cut short".to_owned(),
            (_, _) => format!("one cell was cut short, {missing} missing"),
        };
        let why = if has_ended {
            "ended early"
        } else {
            "interrupted"
        };
        terminal.note(&format!(
            "{why}: {what}; {} continues the run",
            folder.resume_command()
        ));
        if !has_ended {
            return Ok(exit::INTERRUPTED);
        }
    }
    let exceeded = exceeded(analysis);
    if let Some(sentence) = &exceeded {
        match json {
            true => terminal.note(sentence),
            false => terminal.print_sentence(sentence)?,
        }
    }
    Ok(
        if tally.failed + tally.not_tried > 0 || analysis.run().cells.is_empty() {
            exit::FAILED
        } else if exceeded.is_some() {
            exit::THRESHOLD
        } else {
            exit::DONE
        },
    )
}

/// Says what was above the limit of its plan, the greatest value first; `None` if nothing was.
fn exceeded(analysis: &Report) -> Option<String> {
    let cells = analysis.run().cells.iter();
    let all: Vec<_> = cells
        .filter_map(|cell| Some((&cell.plan, cell.outcome.record()?)))
        .flat_map(|(plan, record)| record.exceeded.iter().map(move |of| (plan, record, of)))
        .collect();
    let (plan, record, greatest) = all.iter().rev().max_by_key(|(.., of)| of.value)?;
    let head = record.sets.get(greatest.set as usize)?;
    let in_unit = |ns: u64| written(ns as f64, "ns");
    let labels = match head.labels.is_empty() {
        true => String::new(),
        false => format!(" ({})", head.labels),
    };
    let others = match all.len() - 1 {
        0 => String::new(),
        n => format!(
            "; {} reported above it",
            counted(n, "more sample was", "more samples were")
        ),
    };
    Some(format!(
        "Limit exceeded: {} of {}, sample {}{labels} in cell {} ({}), above {}{others}.",
        head.measure,
        in_unit(greatest.value),
        greatest.index,
        plan.id,
        plan.label(),
        plan.work.above.map_or_else(String::new, in_unit)
    ))
}

fn complete(folder: &RunFolder) -> String {
    format!(
        "{} is complete: there is nothing to measure; --runs N adds runs of each combination",
        folder.path().display()
    )
}

fn kept(folder: &RunFolder) -> String {
    format!(
        "{} kept; {} continues the run",
        counted(done(folder), "cell is", "cells are"),
        folder.resume_command()
    )
}

/// Counts the cells that were measured.
fn done(folder: &RunFolder) -> usize {
    let cells = folder.plan().cells.iter();
    cells
        .filter(|cell| matches!(folder.state(cell.id), CellState::Done(_)))
        .count()
}
