//! The limits of `--fail-if`: what was measured becomes a run of one cell, judged as those of `tare wakeup` are.

use tare_experiments::catalogue;
use tare_experiments::wakeup::{self, Wakeup};
use tare_figures::gates::Gate;
use tare_lab::experiment::Conditions;
use tare_lab::parameter::{Value, Values};
use tare_lab::plan::{self, Frame};
use tare_measured::wakeup::Plan as Measured;
use tare_pages::{Report, RunData};
use tare_results::CellState;
use tare_results::model::{Cell, Outcome, Plan, Record, SCHEMA, Samples};

use crate::commands::conditions;
use crate::commands::measure::check_gates;
use crate::error::CommandError;

/// Makes the plan of the run, and refuses limits that none of its figures can match.
///
/// # Errors
///
/// Returns [`CommandError`] as `tare wakeup` does.
pub fn check(gates: &[Gate], measured: &Measured) -> Result<Plan, CommandError> {
    let numbers = [
        ("interval", Some(measured.interval_ns)),
        ("threads", Some(measured.threads.into())),
        ("duration", measured.duration_ns),
        ("loops", measured.loops),
        (
            "priority",
            Some(measured.priority.into()).filter(|priority| *priority > 0),
        ),
    ];
    let mut values = Values::default();
    for (name, number) in numbers {
        if let Some(number) = number {
            values.give(name, vec![Value::Number(number)]);
        }
    }
    let policy = measured.policy.name().to_owned();
    values.give("policy", vec![Value::Text(policy)]);
    let cpus = measured.cpu;
    let cpu = cpus.and_then(|cpus| cpus.iter().next()).unwrap_or(0);
    let conditions = Conditions {
        targets: conditions::targets(&[], false)?,
        loads: conditions::phases(&[], None),
        cpu,
        cpus,
        cell_limit: None,
        is_watched: false,
    };
    let mut plan = plan::of_one(&Wakeup, &conditions, &values, 1, Frame::default())?;
    for cell in &mut plan.cells {
        cell.work = wakeup::work(measured);
    }
    check_gates(gates, &plan)?;
    Ok(plan)
}

/// Derives the figures of the run.
///
/// # Errors
///
/// Returns [`CommandError::Report`] only if the plan has an unknown experiment.
pub fn analyse(plan: Plan, record: Record, samples: Samples) -> Result<Report, CommandError> {
    let cell = Cell {
        schema: SCHEMA,
        // A plan of no cells is none.
        plan: plan.cells[0].clone(),
        invocation: plan.created,
        started_at: plan.created,
        outcome: Outcome::done(record),
        notices: Vec::new(),
        load: None,
        daemons: Vec::new(),
        other_work: None,
    };
    let run = RunData {
        plan,
        machine: None,
        cells: vec![(CellState::Done(Box::new(cell)), samples)],
    };
    Ok(run.analyse(catalogue())?)
}
