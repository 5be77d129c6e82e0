//! `tare wakeup`: measures how late sleeping threads are woken.

use std::io::{IsTerminal, stderr};

use tare_experiments::wakeup::{self, DEFAULT_RUNS, DEFAULT_TRACE, Options, Trace};
use tare_lab::experiment::Place;
use tare_loads::cpus::current;
use tare_wire::cpus::Cpus;
use tare_wire::scheduling::Policy;

use super::measure::{Request, frame, measure};
use super::place;
use crate::actions::Action;
use crate::cli::wakeup::{Affinity, WakeupArguments};
use crate::error::CommandError;
use crate::terminal::Terminal;

/// Is how long a run waits for a latency above a limit, unless said otherwise.
const WAITING_NS: u64 = 60_000_000_000;
/// Is how often the current result is told to somebody who looks.
const LIVE_NS: u64 = 500_000_000;

/// Measures how late threads are woken here.
pub fn run(arguments: &WakeupArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    if !arguments.on_threshold.is_empty()
        && arguments.trace_above.is_none()
        && arguments.resume.is_none()
    {
        let why =
            "--on-threshold says what to do when a limit is exceeded: give one by --trace-above";
        return Err(CommandError::Usage(why.to_owned()));
    }
    let threads = Threads::of(arguments)?;
    let request = Request {
        name: wakeup::NAME,
        output: arguments.output.clone(),
        resume: arguments.resume.clone(),
        cpus: threads.cpus.iter().flat_map(Cpus::iter).collect(),
        dry_run: arguments.dry_run,
        json: arguments.json,
        fail_if: &arguments.fail_if,
        more_runs: arguments.runs,
        start_engine: arguments.start_engine,
        actions: &arguments.on_threshold,
    };
    measure(&request, terminal, |host| {
        let measured = threads.cpus.unwrap_or_else(|| Cpus::one(host.cpu));
        keep_main_alive(arguments, &measured)?;
        let cpus = arguments.load_cpus.as_ref();
        let place = Place {
            targets: place::targets(&arguments.target)?,
            loads: match arguments.phase {
                Some(_) => place::phases(&arguments.load, cpus),
                None => place::loads(&arguments.load, cpus)?,
            },
            cpu: host.cpu,
            cell_limit: arguments.cell_limit,
        };
        let waits = arguments.trace_above.is_some();
        let runs = arguments
            .runs
            .unwrap_or(if waits { 1 } else { DEFAULT_RUNS });
        let settings = arguments.set.clone();
        let frame = frame(host, arguments.seed, settings, arguments.start_engine);
        let options = options(arguments, threads);
        Ok(wakeup::plan(&options, &place, runs, frame)?)
    })
}

fn options(arguments: &WakeupArguments, threads: Threads) -> Options {
    let waits = arguments.trace_above.is_some();
    let default = Options::default();
    let ends =
        arguments.duration.is_some() || arguments.loops.is_some() || arguments.phase.is_some();
    Options {
        interval_ns: arguments.interval.unwrap_or(default.interval_ns),
        distance_ns: arguments.distance.or(arguments.smp.then_some(0)),
        threads: threads.number,
        cpus: threads.cpus,
        main: arguments.mainaffinity,
        policy: arguments.policy.into(),
        priority: arguments.priority,
        duration_ns: arguments
            .duration
            .or((waits && !ends).then_some(WAITING_NS)),
        loops: arguments.loops,
        phase_ns: arguments.phase,
        threshold_ns: arguments.threshold,
        trace: match arguments.trace {
            trace if waits => Trace::Every(trace.unwrap_or(DEFAULT_TRACE)),
            Some(trace) => Trace::Extra(trace),
            None => Trace::Off,
        },
        above_ns: arguments.trace_above,
        go_on: arguments.on_threshold.contains(&Action::Continue),
        live_ns: stderr().is_terminal().then_some(LIVE_NS),
    }
}

/// Says how many threads are asked for, and where.
#[derive(Clone, Copy, Debug)]
struct Threads {
    /// One for each CPU if None.
    number: Option<u32>,
    /// The one that is chosen if None.
    cpus: Option<Cpus>,
}

impl Threads {
    fn of(arguments: &WakeupArguments) -> Result<Self, CommandError> {
        let given = match &arguments.affinity {
            Some(Affinity::These(cpus)) => Some(*cpus),
            Some(Affinity::All) => Some(all()?),
            None if arguments.smp => Some(all()?),
            None => None,
        };
        Ok(match (arguments.threads, given) {
            (None, cpus) => Self { number: None, cpus },
            (Some(0), cpus) => Self {
                number: None,
                cpus: Some(cpus.map_or_else(all, Ok)?),
            },
            // One thread takes the chosen CPU, or the first that is named.
            (Some(1), None) => Self {
                number: None,
                cpus: None,
            },
            (Some(number), Some(cpus)) => Self {
                number: Some(number),
                cpus: Some(cpus.iter().take(number as usize).collect()),
            },
            (Some(number), None) => {
                let all: Vec<u32> = all()?.iter().collect();
                let last = all.iter().rev().take(number as usize);
                Self {
                    number: Some(number),
                    cpus: Some(last.copied().collect()),
                }
            }
        })
    }
}

/// Returns all CPUs that this process may use.
fn all() -> Result<Cpus, CommandError> {
    current().map_err(|errno| {
        CommandError::Usage(format!(
            "which CPUs may be used can't be found out ({errno}): name them with -a"
        ))
    })
}

/// Refuses to put the thread that watches where measuring ones of real-time priority come first.
fn keep_main_alive(arguments: &WakeupArguments, measured: &Cpus) -> Result<(), CommandError> {
    let policy = Policy::from(arguments.policy);
    let Some(main) = arguments.mainaffinity else {
        return Ok(());
    };
    if policy == Policy::Other || main.iter().any(|cpu| !measured.contains(cpu)) {
        return Ok(());
    }
    Err(CommandError::Usage(format!(
        "--mainaffinity {main} leaves the thread that starts and watches the measurement no CPU but a \
         measured one: threads under SCHED_{} come first there, and if they never got to sleep, nobody \
         could end them; choose another CPU with --mainaffinity or -a",
        policy.name().to_uppercase(),
    )))
}
