//! From what another tool's file says to plan and cells of a run folder.

use std::path::Path;

use jiff::Timestamp;
use tare_host::{Machine, Source};
use tare_results::model::{
    Agent, Calibration, Cell, CellPlan, Count, Fact, Instance, Labels, Outcome, Plan, Preparation,
    Program, Record, SCHEMA, STARTED, STOPPED, Samples, SetHead, SetSamples, Unit, Value,
};
use tare_results::target::TargetSpec;
use tare_results::work::{RealTime, Rights, Work};
use tare_results::{MachineRecord, RunFolder};
use tare_stats::missed_by;
use tare_wire::scheduling::Policy;

use super::{Column, Foreign, Mean, Series};
use crate::error::ExchangeError;

/// The experiment, and the workload, that measures what those tools do.
const WAKEUP: &str = "wakeup";

const US: u64 = 1_000;

/// A run made of another tool's file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The command of the run.
    pub plan: Plan,
    /// The machine, of which nothing is known.
    pub machine: MachineRecord,
    /// Its cells with their samples.
    pub cells: Vec<(Cell, Samples)>,
}

impl Imported {
    /// Writes the run folder.
    ///
    /// # Errors
    ///
    /// [`ExchangeError::Results`] if it can't be created or written.
    pub fn write(&self, path: &Path) -> Result<RunFolder, ExchangeError> {
        let folder = RunFolder::create(path, &self.plan, &self.machine)?;
        for (cell, samples) in &self.cells {
            folder.write_cell(cell, Some(samples))?;
        }
        Ok(folder)
    }
}

/// Makes a run of a file. `interval_us` is the interval where the file has none; `command` is what
/// imports it.
///
/// # Errors
///
/// [`ExchangeError::NoInterval`] if neither the file nor the caller knows it;
/// [`ExchangeError::NotOutput`] if its figures contradict each other.
pub fn run(
    foreign: &Foreign,
    interval_us: Option<u64>,
    command: Vec<String>,
    now: Timestamp,
) -> Result<Imported, ExchangeError> {
    let is_nothing_there = foreign.series.iter().all(Series::is_empty);
    let series = foreign.series.iter();
    let series = series.filter(|series| is_nothing_there || !series.is_empty());
    let cells = (1..)
        .zip(series)
        .map(|(id, series)| cell(foreign, series, id, interval_us, now));
    let cells: Vec<(Cell, Samples)> = cells.collect::<Result<_, _>>()?;
    let first = foreign
        .series
        .first()
        .and_then(|series| series.threads.first());
    let plan = Plan {
        schema: SCHEMA,
        tare_version: env!("CARGO_PKG_VERSION").to_owned(),
        experiment: WAKEUP.to_owned(),
        created: foreign.started.unwrap_or(now),
        command,
        seed: 0,
        cpu: first.and_then(|thread| thread.cpu).unwrap_or(0),
        cpu_reason: format!("imported from the output of {}", foreign.tool),
        settings: Vec::new(),
        study: None,
        start_engine: false,
        cells: cells.iter().map(|(cell, _)| cell.plan.clone()).collect(),
    };
    // A folder that is not there has no files: the machine on which this is read is another one.
    let unknown = Source::at("/nonexistent/imported");
    Ok(Imported {
        plan,
        machine: MachineRecord::new(Machine::collect(&unknown), Vec::new()),
        cells,
    })
}

fn cell(
    foreign: &Foreign,
    series: &Series,
    id: u32,
    interval_us: Option<u64>,
    now: Timestamp,
) -> Result<(Cell, Samples), ExchangeError> {
    let mut samples = Samples {
        instances: vec![Instance::default()],
        sets: Vec::new(),
    };
    let mut record = Record::default();
    let mut facts = facts(foreign);
    for (number, column) in (0..).zip(&series.threads) {
        let column = &with_greatest(column);
        let interval_ns = interval_ns(foreign, series, column, interval_us)?;
        let sums = Sums::of(column).map_err(|problem| {
            ExchangeError::NotOutput(format!("{} {number}: {problem}", series.name))
        })?;
        let labels = Labels::default().with("thread", number);
        record.sets.push(head(&labels, column, interval_ns, &sums));
        record.values.push(Value {
            measure: "missed".to_owned(),
            labels: labels.clone(),
            unit: String::new(),
            value: missed(column, interval_ns) as f64,
        });
        facts.extend(of_thread(&labels, column, interval_ns));
        let counts = column.counts.iter().map(|(us, count)| Count {
            value: us * US,
            count: *count,
        });
        samples.sets.push(SetSamples {
            counts: counts.collect(),
            ..SetSamples::default()
        });
    }
    let plan = plan(foreign, series, id, &record.sets);
    record.programs.push(Program {
        agent: Agent {
            version: foreign.tool.clone(),
            environment: "linux".to_owned(),
            ..Agent::default()
        },
        preparation: Preparation {
            cpu: series.threads.first().and_then(|column| column.cpu),
            buffer_bytes: 0,
            locked: false,
            latency_held: false,
        },
        calibration: UNKNOWN,
        frequencies: Vec::new(),
        counters: Vec::new(),
        facts,
    });
    let cell = Cell {
        schema: SCHEMA,
        plan,
        invocation: foreign.started.unwrap_or(now),
        started_at: foreign.started.unwrap_or(now),
        outcome: Outcome::done(record),
        notices: notices(foreign, series),
        load: None,
        daemons: Vec::new(),
        other_work: None,
        guest_work: None,
        unswitched: Vec::new(),
    };
    Ok((cell, samples))
}

/// Counts what is beyond the end of the histogram where its latency is known: one alone is the
/// greatest.
fn with_greatest(column: &Column) -> Column {
    let mut counted = column.clone();
    if let (1, Some(max)) = (column.over, column.max)
        && max >= column.limit
    {
        counted.counts.push((max, 1));
        (counted.over, counted.limit) = (0, max + 1);
    }
    counted
}

/// The calibration of a measurement that has none.
const UNKNOWN: Calibration = Calibration {
    fenced_region_cycles: 0,
    fenced_cost_cycles: 0.0,
    published_region_cycles: 0,
    published_cost_cycles: 0.0,
    bare_read_cycles: 0.0,
    step_cycles: 0,
    loop_cycles: 0.0,
};

/// Returns the interval of a thread. Where nothing comes at an interval it is the whole time, in
/// which nothing else is due.
fn interval_ns(
    foreign: &Foreign,
    series: &Series,
    column: &Column,
    given_us: Option<u64>,
) -> Result<u64, ExchangeError> {
    if series.is_periodic {
        if let (Some(stated_us), Some(given_us)) = (column.interval_us, given_us)
            && stated_us != given_us
        {
            return Err(ExchangeError::NotOutput(format!(
                "it says that the threads were due every {stated_us} µs, not every {given_us}: leave out --interval"
            )));
        }
        let us = column.interval_us.or(given_us).filter(|us| *us > 0);
        let ns = us.and_then(|us| us.checked_mul(US));
        let ns = ns.ok_or(ExchangeError::NoInterval)?;
        // Each one was due, and some more may have been missed.
        let woken = column.counted() + u128::from(column.over);
        let least_ns = woken.saturating_mul(ns.into());
        let duration_ns = foreign.duration_ns.unwrap_or(u64::MAX);
        let most_ns = u128::from(duration_ns) * 11 / 10 + 1_000_000_000;
        if least_ns > most_ns {
            return Err(ExchangeError::NotOutput(format!(
                "{woken} latencies of threads that were due every {} µs take {} s, but it says that it measured for {} s",
                ns / US,
                least_ns / 1_000_000_000,
                duration_ns / 1_000_000_000
            )));
        }
        return Ok(ns);
    }
    let longest = column.max.unwrap_or(column.limit) * US;
    Ok(foreign.duration_ns.unwrap_or(0).max(longest).max(US))
}

/// The sums of a thread's figures, in ns.
struct Sums {
    woken: u64,
    uncounted_ns: u64,
    is_least: bool,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Sums {
    /// Adds up; says what contradicts itself.
    fn of(column: &Column) -> Result<Self, String> {
        let many = || "its counts add up to more than any measurement has".to_owned();
        let woken = u64::try_from(column.counted() + u128::from(column.over));
        let woken = woken.map_err(|_| many())?;
        if column.over > 0 && column.max.is_none() {
            return Err(format!(
                "{} latencies are beyond its histogram, and the line that states the greatest is missing (of rtla, measure \
                 without --no-summary)",
                column.over
            ));
        }
        let least = column.counts.first().map(|(us, _)| *us);
        let most = column.counts.last().map(|(us, _)| *us);
        let min = column.min.or(least).unwrap_or(column.limit);
        let max = column.max.or(most).unwrap_or(min).max(min);
        if let (Some(least), Some(most)) = (least, most)
            && (min > least || max < most)
        {
            return Err(format!(
                "it counts latencies from {least} to {most} µs, but names {min} and {max} as least and greatest"
            ));
        }
        let mut counts = column.counts.iter();
        let counted_ns = counts.try_fold(0_u64, |sum, (us, count)| {
            sum.checked_add(us.checked_mul(US)?.checked_mul(*count)?)
        });
        let counted_ns = counted_ns.ok_or_else(many)?;
        check_mean(column, woken, counted_ns, max)?;
        let uncounted_ns = uncounted_ns(column, woken, counted_ns, max);
        let (uncounted_ns, most_ns) = uncounted_ns.ok_or_else(many)?;
        Ok(Self {
            woken,
            uncounted_ns,
            is_least: uncounted_ns < most_ns,
            sum_ns: counted_ns.checked_add(uncounted_ns).ok_or_else(many)?,
            min_ns: if woken == 0 { 0 } else { min * US },
            max_ns: if woken == 0 { 0 } else { max * US },
        })
    }
}

/// Checks that the mean is one that the counts can have: one of those beyond the histogram is the
/// greatest, and the others are from its end up to that.
fn check_mean(column: &Column, woken: u64, counted_ns: u64, max: u64) -> Result<(), String> {
    if woken == 0 {
        return Ok(());
    }
    let with_beyond = |us: u64| {
        let others = column.over.saturating_sub(1) as f64 * us as f64;
        let greatest = column.over.min(1) as f64 * max as f64;
        (counted_ns as f64 / US as f64 + others + greatest) / woken as f64
    };
    let (least, most) = (with_beyond(column.limit.min(max)), with_beyond(max));
    // Whole µs were cut off, so that it is less than the next one.
    let (stated, from, below) = match column.mean {
        Some(Mean::Rounded(mean)) => (mean, mean - 1.0, mean + 1.0),
        Some(Mean::CutOff(mean)) => (mean as f64, mean as f64, mean as f64 + 1.001),
        None => return Ok(()),
    };
    if below < least || from > most {
        return Err(format!(
            "by its counts the mean is from {least:.1} to {most:.1} µs, but it names {stated}"
        ));
    }
    Ok(())
}

/// Returns the sum of the latencies beyond the histogram, as the mean of all shows it: at least, and
/// at most.
///
/// They lie between the histogram's end and the greatest, which one of them is.
fn uncounted_ns(column: &Column, woken: u64, counted_ns: u64, max: u64) -> Option<(u64, u64)> {
    if column.over == 0 {
        return Some((0, 0));
    }
    let least = (column.over - 1)
        .checked_mul(column.limit)?
        .checked_add(max)?;
    let most = column.over.checked_mul(max)?;
    let most = most.max(least);
    let beyond = |all_us: u64| all_us.saturating_sub(counted_ns / US).clamp(least, most);
    let (low, high) = match column.mean {
        Some(Mean::Rounded(mean)) => {
            let us = beyond((mean * woken as f64).max(0.0) as u64);
            (us, us)
        }
        Some(Mean::CutOff(mean)) => {
            let below = mean.checked_add(1)?.checked_mul(woken)?;
            (
                beyond(mean.checked_mul(woken)?),
                beyond(below.saturating_sub(1)),
            )
        }
        None => (least, most),
    };
    Some((low.checked_mul(US)?, high.checked_mul(US)?))
}

fn head(labels: &Labels, column: &Column, interval_ns: u64, sums: &Sums) -> SetHead {
    let length = interval_ns.saturating_mul(sums.woken.max(1));
    SetHead {
        measure: "latency".to_owned(),
        labels: labels.clone(),
        unit: Unit::Ns,
        n: sums.woken,
        sum: sums.sum_ns,
        min: sums.min_ns,
        max: sums.max_ns,
        last: length,
        period: interval_ns,
        threshold: sums.max_ns.saturating_add(1),
        uncounted: column.over,
        uncounted_sum: sums.uncounted_ns,
        sum_at_least: sums.is_least,
        uncounted_min: match column.over {
            0 => 0,
            // The least of all is beyond the end only if all are.
            _ if column.counts.is_empty() => sums.min_ns,
            _ => column.limit.saturating_mul(US),
        },
        uncounted_max: if column.over > 0 { sums.max_ns } else { 0 },
        ..SetHead::default()
    }
}

/// Returns how many activations were missed, as each latency and the interval tell.
fn missed(column: &Column, interval_ns: u64) -> u64 {
    // Of those beyond the end only the greatest is known.
    let longest = column.max.unwrap_or(column.limit);
    let beyond = [
        (longest, column.over.min(1)),
        (column.limit, column.over.saturating_sub(1)),
    ];
    let counts = column.counts.iter().chain(&beyond);
    let missed = |(us, count): &(u64, u64)| {
        missed_by(us.saturating_mul(US), interval_ns).saturating_mul(*count)
    };
    counts.map(missed).fold(0, u64::saturating_add)
}

/// Returns the policy of a thread, as the file states it or its priority tells.
fn policy(column: &Column) -> &str {
    match (column.policy.as_deref(), column.priority) {
        (Some("normal"), _) => "other",
        (Some(stated), _) => stated,
        (None, None) => "unknown",
        (None, Some(0)) => "other",
        (None, Some(_)) => "fifo",
    }
}

/// Returns what is known of a thread.
fn of_thread(labels: &Labels, column: &Column, interval_ns: u64) -> Vec<Fact> {
    let some = |number: u32| (number > 0).then(|| number.to_string());
    let told = [
        ("thread id", some(column.tid)),
        ("CPU", column.cpu.map(|cpu| cpu.to_string())),
        ("priority", some(column.priority.unwrap_or(0))),
        ("interval", Some(format!("{interval_ns} ns"))),
        ("scheduling policy", Some(policy(column).to_owned())),
    ];
    let told = told.into_iter();
    told.filter_map(|(name, value)| Some(fact(name, labels, &value?)))
        .collect()
}

fn fact(name: &str, labels: &Labels, value: &str) -> Fact {
    Fact {
        name: name.to_owned(),
        labels: labels.clone(),
        value: value.to_owned(),
    }
}

fn plan(foreign: &Foreign, series: &Series, id: u32, sets: &[SetHead]) -> CellPlan {
    let first = series.threads.first();
    let interval_ns = sets.first().map_or(US, |head| head.period);
    let woken = sets.first().map_or(0, |head| head.n);
    let duration_ns = foreign
        .duration_ns
        .unwrap_or_else(|| interval_ns.saturating_mul(woken.max(1)));
    let seconds = duration_ns as f64 / 1e9;
    // Only what the file says is known; nothing can be run again.
    let work = Work {
        threads: u32::try_from(sets.len()).unwrap_or(u32::MAX),
        rights: Rights {
            real_time: first.and_then(|column| {
                let policy = match policy(column) {
                    "fifo" => Policy::Fifo,
                    "rr" => Policy::RoundRobin,
                    _ => return None,
                };
                let priority = column.priority.unwrap_or(0);
                Some(RealTime { policy, priority })
            }),
            ..Rights::default()
        },
        ..Work::new(
            WAKEUP,
            &format!("interval={interval_ns}ns duration={duration_ns}ns"),
        )
    };
    CellPlan {
        id,
        block: 1,
        estimate_seconds: seconds,
        limit_seconds: seconds,
        ..CellPlan::new(WAKEUP, TargetSpec::imported(&series.name), WAKEUP, work)
    }
}

fn facts(foreign: &Foreign) -> Vec<Fact> {
    let of_all = Labels::default();
    let command = foreign.command.as_ref();
    let command = command.map(|command| fact("command", &of_all, command));
    let told = foreign.facts.iter();
    let told = told.map(|(name, value)| fact(name, &of_all, value));
    // Without it, the time is that of the import.
    let started = foreign.started.as_ref();
    let started = started.map(|time| fact(STARTED, &of_all, &time.to_string()));
    let stopped = foreign.stopped.as_ref();
    let stopped = stopped.map(|shown| fact(STOPPED, &of_all, shown));
    let own = [command, started, stopped].into_iter().flatten();
    own.chain(told).collect()
}

fn notices(foreign: &Foreign, series: &Series) -> Vec<String> {
    let tool = &foreign.tool;
    let mut notices = foreign.notices.clone();
    notices.extend(foreign.stopped.iter().map(|shown| {
        format!(
            "it stopped at the first latency above its own threshold ('{shown}'): all figures are of the time until then, \
             and how often and how far latencies exceed that is not in it"
        )
    }));
    notices.push(format!(
        "imported from the output of {tool}: 7 µs there stand for {} µs, and 0 stands in place of calibration and \
         preparation, which are unknown; so are the machine and what else ran on it, whatever 'idle' says",
        // oslat counts the first µs as 1.
        if series.name == "oslat" {
            "6 to 7"
        } else {
            "7 to 8"
        }
    ));
    let over: u64 = series.threads.iter().map(|thread| thread.over).sum();
    let is_any_unknown = series.threads.iter().any(|thread| thread.over > 1);
    if over > 0 {
        let known = match is_any_unknown {
            true => {
                "of these the greatest of each thread is known, and of their sum what the mean says; a quantile among \
                 them is not known, only that it is beyond the end"
            }
            false => "each is the greatest of its thread, so that it is known",
        };
        notices.push(format!(
            "latencies beyond the end of the histogram: {over}; {known}"
        ));
    }
    if series.is_periodic {
        notices.push(format!(
            "{tool} does not report missed activations: their number follows from each latency and the interval{}",
            if is_any_unknown {
                ", and is at least that much, since those beyond the histogram count as its end"
            } else {
                ""
            }
        ));
    }
    for empty in foreign
        .series
        .iter()
        .filter(|one| one.is_empty() && !series.is_empty())
    {
        let name = &empty.name;
        notices.push(format!("{name} is skipped: the file has no latency of it"));
    }
    if foreign.started.is_none() {
        notices.push(
            "the file does not say when it was measured: the time is that of the import".to_owned(),
        );
    }
    notices
}
