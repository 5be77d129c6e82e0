//! `tare cyclictest`: cyclictest's options and output over a run of `tare wakeup`.
//!
//! Standard output is cyclictest's, so that scripts read it unchanged. The figures that cyclictest
//! leaves out, missed activations and their latency, go to standard error and to further keys of
//! the JSON. The run is like any other, in a folder that is removed at the end.

use std::time::Duration;

use rustix::thread::sched_setaffinity;
use tare_cyclictest::format::Head;
use tare_cyclictest::{Arguments, Screen, Settings, Summary};
use tare_experiments::catalogue;
use tare_figures::analysis::other_work;
use tare_figures::notices::Severity;
use tare_guard::{Guard, Interrupt, default_state_dir};
use tare_host::{Machine, Source};
use tare_lab::{Event, Observer, execute};
use tare_loads::cpus::mask;
use tare_pages::analyse;
use tare_results::model::Cell;
use tare_results::{CellState, MachineRecord, RunFolder};

use super::claim::claim_cpus;
use super::host::allowed_cpus;
use super::measure::{check_gates, require};
use super::run_folder::judge;
use super::{clean_up, close, command_line, write};
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Interval at which the status lines are redrawn.
const TICK: Duration = Duration::from_millis(100);

/// Measures as cyclictest does, and prints cyclictest's output.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> Result<u8, CommandError> {
    let interrupt = Interrupt::install()?;
    clean_up(terminal);
    let allowed = allowed_cpus()?;
    let settings = Settings::new(arguments, &allowed).map_err(CommandError::Usage)?;
    let plan = settings.run_plan(command_line())?;
    check_gates(&arguments.output.fail_if, &plan)?;
    for notice in &settings.notices {
        terminal.warn(notice);
    }
    let machine = MachineRecord::new(Machine::collect(&Source::system()), Vec::new());
    require(&plan, &machine, |target| target.availability(), terminal)?;
    let guard = Guard::open(&default_state_dir()?)?;
    let cpus: Vec<u32> = plan.cells[0].work.measured_cpus().iter().collect();
    let left = Duration::from_nanos(settings.plan.expected_ns());
    let share = arguments.output.share_cpu;
    let _claim = claim_cpus(&cpus, "tare cyclictest", left, share, &guard, terminal)?;
    let others = allowed.without(&settings.plan.cpu.unwrap_or_default());
    if others.count() > 0 {
        // A courtesy to the measured threads: cyclictest's main thread runs anywhere.
        let _ = mask(&others).and_then(|others| sched_setaffinity(None, &others));
    }
    let scratch = guard.scratch("cyclictest-")?;
    let folder = RunFolder::create(&scratch.path().join("run"), &plan, &machine)?;
    let mut watch = Watch {
        terminal,
        interrupt: &interrupt,
        screen: Screen::new(&settings),
        failed: None,
    };
    execute(
        &folder,
        tare_experiments::drive,
        tare_experiments::check,
        &guard,
        &interrupt,
        &mut watch,
    )?;
    let Watch { screen, failed, .. } = watch;
    let code = match (failed, folder.state(plan.cells[0].id)) {
        (Some(error), _) => Err(error),
        (None, CellState::Missing) => Ok(exit::INTERRUPTED),
        (None, CellState::Done(cell)) => conclude(&settings, screen, &folder, &cell, terminal),
        (None, CellState::Failed(cell)) => {
            let why = cell.outcome.reason().unwrap_or_default().to_owned();
            Err(CommandError::Measurement(why))
        }
        (None, CellState::Damaged { reason, .. }) => Err(CommandError::Measurement(reason)),
    };
    drop(scratch);
    close(guard, terminal);
    code
}

/// Prints the result and writes the files. Returns the exit code, which gates decide.
fn conclude(
    settings: &Settings<'_>,
    mut screen: Screen<'_>,
    folder: &RunFolder,
    cell: &Cell,
    terminal: &Terminal,
) -> Result<u8, CommandError> {
    let notices = cell.other_work.iter().flat_map(other_work);
    for notice in notices.filter(|notice| notice.severity >= Severity::Warning) {
        terminal.warn(&notice.text);
    }
    for notice in &cell.notices {
        terminal.warn(notice);
    }
    let Some(record) = cell.outcome.record() else {
        return Ok(exit::INTERRUPTED);
    };
    let samples = folder.samples(cell.plan.id)?;
    let summary = Summary::new(settings, record, &samples)?;
    if let Some((over, lines)) = screen.last(&summary) {
        terminal.print_over(over, &lines)?;
    }
    let output = &settings.arguments.output;
    let mut histogram = summary.histogram().unwrap_or_default();
    if let Some(path) = &output.histfile {
        write(path, &std::mem::take(&mut histogram))?;
    }
    let text = summary.text(&screen, &histogram);
    if !text.is_empty() {
        terminal.print(&text)?;
    }
    let is_json_only = settings.is_json_only();
    let code = match &output.fail_if[..] {
        [] => Ok(exit::DONE),
        gates => judge(
            gates,
            &analyse(folder, catalogue())?,
            is_json_only,
            terminal,
        ),
    };
    if let Some(path) = &output.json {
        let code = code
            .as_ref()
            .map_or_else(CommandError::exit_code, |code| *code);
        let head = Head::of_cell(folder.plan(), folder.machine(), cell, &samples, code);
        let json = summary.json(&head)?;
        match is_json_only {
            true => terminal.print(&json)?,
            false => write(path, &json)?,
        }
    }
    terminal.note(&summary.beyond_cyclictest()?);
    code
}

/// Draws the status lines while the threads measure.
struct Watch<'a> {
    terminal: &'a Terminal,
    interrupt: &'a Interrupt,
    screen: Screen<'a>,
    /// The reason why printing ended, if it did.
    failed: Option<CommandError>,
}

impl Watch<'_> {
    /// Draws the status lines if they have changed. Ends the run if they can't be printed.
    fn draw(&mut self, head: &str) {
        if self.failed.is_some() {
            return;
        }
        let printed = match head {
            "" => Ok(()),
            head => self.terminal.print(head),
        };
        let drawn = printed.and_then(|()| match self.screen.draw() {
            Some((over, lines)) => self.terminal.print_over(over, &lines),
            None => Ok(()),
        });
        if let Err(error) = drawn {
            self.failed = Some(error);
            self.interrupt.request_stop();
        }
    }
}

impl Observer for Watch<'_> {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Ready { latency_held } => {
                let head = self.screen.begin(latency_held);
                self.draw(&head);
            }
            Event::Live(live) => self.screen.update(&live),
            _ => {}
        }
    }

    fn tick(&mut self) -> Option<Duration> {
        self.draw("");
        Some(TICK)
    }
}
