//! Progress of a run: how far it is, how long it still takes, the latest result.
//!
//! On a terminal that is one line, redrawn four times a second from the loop that waits for the
//! instance, without another thread. Elsewhere each finished cell is a line.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use tare_experiments::catalogue;
use tare_figures::rows::{Figure, written};
use tare_guard::{CpuClaim, Interrupt};
use tare_lab::units::{counted, human};
use tare_lab::{Event, Observer};
use tare_results::RunFolder;
use tare_results::model::{Cell, CellPlan, Exceeded, Outcome, Samples, Schedule};
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use tare_targets::instance::Finish;
use tare_wire::record::Live;

use crate::actions::Actions;
use crate::commands::host::{Aside, Host};
use crate::ending::Ending;
use crate::terminal::{Line, Terminal};

/// How often the line is redrawn.
const REDRAW: Duration = Duration::from_millis(250);

/// Shows the progress of a run on standard error.
pub struct Progress<'a> {
    terminal: &'a Terminal,
    /// The line, where there is a terminal to show it on.
    line: Option<Line<'a>>,
    remaining: Remaining,
    current: String,
    /// Whether its guest boots.
    is_booting: bool,
    /// The measure of the running cell, and its unit.
    measure: (&'static str, &'static str),
    latest: String,
    number: usize,
    of: usize,
    begun: Instant,
    /// The latest live figures of each set of the running cell.
    live: BTreeMap<u32, Live>,
    /// Actions on a value above a limit.
    actions: Actions<'a>,
    ending: Ending<'a>,
    /// The plan of the running cell.
    plan: Option<CellPlan>,
    /// The claim that shows other runs how long the CPUs are still measured.
    claim: Option<CpuClaim>,
    host: &'a Host,
    /// Keeps tare off the CPUs of the running cell.
    aside: Option<Aside>,
}

impl<'a> Progress<'a> {
    /// Prepares to show the progress of the cells that are missing from `folder`, and to act when a
    /// limit is exceeded.
    pub fn new(
        folder: &RunFolder,
        host: &'a Host,
        (actions, ending): (Actions<'a>, Ending<'a>),
        claim: Option<CpuClaim>,
        terminal: &'a Terminal,
    ) -> Self {
        let missing = folder.missing();
        Self {
            terminal,
            line: terminal.progress(missing.len() as u64, "{bar:20} {pos}/{len} {wide_msg}"),
            remaining: Remaining::new(missing.into_iter().cloned()),
            current: String::new(),
            is_booting: false,
            measure: ("", ""),
            latest: String::new(),
            number: 0,
            of: 0,
            begun: Instant::now(),
            live: BTreeMap::new(),
            actions,
            ending,
            plan: None,
            claim,
            host,
            aside: None,
        }
    }

    /// Takes the line away, and waits for what was started. Returns whether the run ended before its
    /// last cell because of a gate or an action.
    pub fn close(self, interrupt: &Interrupt) -> bool {
        drop(self.line);
        self.actions.finish(interrupt, self.terminal);
        self.ending.has_ended
    }

    fn redraw(&self) {
        if let Some(line) = &self.line {
            let left = human(self.remaining.left(self.begun.elapsed()));
            let latest = match (self.live.is_empty(), self.latest.as_str()) {
                (false, _) => format!(" · {}", so_far(&self.live, self.measure)),
                (true, "") => String::new(),
                (true, latest) => format!(" · {latest}"),
            };
            let doing = if self.is_booting { "booting" } else { "now" };
            line.say(&format!("{left} left · {doing} {}{latest}", self.current));
        }
    }
}

impl Observer for Progress<'_> {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::CellBegan { plan, number, of } => self.began(plan, number, of),
            Event::Booting => {
                self.is_booting = true;
                self.redraw();
            }
            Event::Ready { .. } => self.is_booting = false,
            Event::Live(live) => {
                self.live.insert(live.set, live);
            }
            Event::Exceeded(exceeded) => self.exceeded(&exceeded),
            Event::Finishing(finish) => self.finishing(finish),
            Event::Ended { cell, samples } => self.ended(cell, samples),
        }
    }

    fn tick(&mut self) -> Option<Duration> {
        let again = self.actions.look(self.terminal);
        if self.line.is_none() {
            return again;
        }
        self.redraw();
        Some(REDRAW)
    }
}

impl Progress<'_> {
    fn began(&mut self, plan: &CellPlan, number: usize, of: usize) {
        (self.number, self.of) = (number, of);
        self.current = plan.label();
        self.plan = Some(plan.clone());
        self.is_booting = false;
        self.measure = measure(plan);
        self.begun = Instant::now();
        self.live.clear();
        match plan.has_its_cpus() {
            false => self.aside = None,
            true if self.aside.is_none() => self.aside = Some(self.host.step_aside(self.terminal)),
            true => {}
        }
        self.redraw();
    }

    fn exceeded(&mut self, exceeded: &Exceeded) {
        let (measure, _) = self.measure;
        let text = format!(
            "{}: {measure} of {} above the limit, sample {} of set {}",
            self.current,
            written(exceeded.value as f64, "ns"),
            exceeded.index,
            exceeded.set
        );
        self.actions.act(measure, exceeded, self.terminal);
        if let Some(plan) = self
            .plan
            .as_ref()
            .filter(|_| self.actions.ends_at(exceeded.value))
        {
            self.ending.ask(plan);
        }
        self.terminal.note(&text);
    }

    fn finishing(&mut self, finish: Finish) {
        let text = match finish {
            Finish::Early => "ending this cell; what it has measured so far is reported".to_owned(),
            Finish::ByItself => format!(
                "finishing this cell ({}); again to stop",
                self.remaining.told(self.begun.elapsed())
            ),
            Finish::AtOnce => return,
        };
        self.terminal.note(&text);
    }

    fn ended(&mut self, cell: &Cell, samples: Option<&Samples>) {
        self.remaining.finished(&cell.plan, self.begun.elapsed());
        if let Some(claim) = &mut self.claim {
            claim.expect(self.remaining.left(Duration::ZERO));
        }
        self.live.clear();
        let label = cell.plan.label();
        let failed = match &cell.outcome {
            Outcome::Failed { reason } => {
                self.latest = format!("{label}: failed");
                Some(format!("cell {} ({label}) failed: {reason}", cell.plan.id))
            }
            Outcome::Done { .. } | Outcome::LeftOut { .. } | Outcome::NotTried { .. } => {
                let none = Samples::default();
                self.latest = catalogue().live(cell, samples.unwrap_or(&none));
                None
            }
        };
        match (&self.line, failed) {
            (_, Some(text)) => self.terminal.warn(&text),
            (None, None) => self
                .terminal
                .note(&format!("[{}/{}] {}", self.number, self.of, self.latest)),
            (Some(_), None) => {}
        }
        if let Some(line) = &self.line {
            line.done(1);
        }
        self.redraw();
        self.ending.look(cell, self.terminal);
    }
}

/// Returns what a cell tells while it runs, and its unit: the first measure of its experiment that has
/// a greatest value.
fn measure(plan: &CellPlan) -> (&'static str, &'static str) {
    let view = catalogue().view(&plan.experiment);
    let mut all = view.into_iter().flat_map(|view| view.measures());
    let first = all.find(|measure| measure.figures.contains(&Figure::Max));
    first.map_or(("value", ""), |measure| (measure.id, measure.unit))
}

/// Says what the sets of a cell have seen so far.
fn so_far(live: &BTreeMap<u32, Live>, (measure, unit): (&str, &str)) -> String {
    let all = || live.values();
    let n: u64 = all().map(|set| set.n).sum();
    let missed: u64 = all().map(|set| set.missed).sum();
    let sum: u64 = all().map(|set| set.sum).sum();
    let max = all().map(|set| set.max).max().unwrap_or_default();
    let missed = match missed {
        0 => String::new(),
        missed => format!(", {missed} missed"),
    };
    format!(
        "{measure} mean {}, max {}, {}{missed}",
        written(sum as f64 / n.max(1) as f64, unit),
        written(max as f64, unit),
        counted(n, "sample", "samples"),
    )
}

/// Estimates the time left from what cells of the same kind took; of other kinds from their
/// estimate, corrected by what the finished cells took of theirs.
struct Remaining {
    /// Cells that have not finished.
    cells: Vec<CellPlan>,
    /// Time and number of those that have, by what they repeat.
    taken: HashMap<(TargetSpec, Schedule, Work), (Duration, u32)>,
    /// The estimated and the actual time of the finished cells, in seconds.
    estimated: f64,
    took: f64,
}

impl Remaining {
    fn new(cells: impl Iterator<Item = CellPlan>) -> Self {
        Self {
            cells: cells.collect(),
            taken: HashMap::new(),
            estimated: 0.0,
            took: 0.0,
        }
    }

    fn finished(&mut self, plan: &CellPlan, took: Duration) {
        self.cells.retain(|cell| cell.id != plan.id);
        let (time, number) = self.taken.entry(kind(plan)).or_default();
        *time += took;
        *number += 1;
        self.estimated += plan.estimate_seconds;
        self.took += took.as_secs_f64();
    }

    /// Returns the time left, if the cell that runs now has been running for `elapsed`.
    fn left(&self, elapsed: Duration) -> Duration {
        let others = self.cells.iter().skip(1);
        self.of_running(elapsed) + others.map(|cell| self.of(cell)).sum::<Duration>()
    }

    /// Returns the same of the cell that runs now alone.
    fn of_running(&self, elapsed: Duration) -> Duration {
        let running = self.cells.first().map(|cell| self.of(cell));
        running.unwrap_or_default().saturating_sub(elapsed)
    }

    /// Says how long the cell takes yet.
    fn told(&self, elapsed: Duration) -> String {
        match self.of_running(elapsed) {
            Duration::ZERO => "it takes longer than estimated".to_owned(),
            left => format!("{} left", human(left)),
        }
    }

    fn of(&self, cell: &CellPlan) -> Duration {
        let correction = match self.estimated > 0.0 {
            true => self.took / self.estimated,
            false => 1.0,
        };
        match self.taken.get(&kind(cell)) {
            Some((time, number)) => *time / *number,
            None => {
                Duration::try_from_secs_f64(cell.estimate_seconds * correction).unwrap_or_default()
            }
        }
    }
}

fn kind(plan: &CellPlan) -> (TargetSpec, Schedule, Work) {
    (plan.target.clone(), plan.load.clone(), plan.work.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sets_have_seen_is_told_together() {
        let live = |set, n, missed, sum, max| Live {
            set,
            tid: 1,
            n,
            missed,
            min: 1,
            last: 1,
            sum,
            max,
        };
        let sets = [
            live(0, 100, 2, 500_000, 40_000),
            live(1, 300, 0, 300_000, 12_345),
        ];
        let live = sets.into_iter().map(|live| (live.set, live));
        assert_eq!(
            so_far(&live.collect(), ("latency", "ns")),
            "latency mean 2.00 µs, max 40.0 µs, 400 samples, 2 missed"
        );
    }

    #[test]
    fn the_time_left_follows_what_cells_really_took() {
        let cell = |id, workload: &str| CellPlan {
            id,
            block: id,
            estimate_seconds: 10.0,
            limit_seconds: 100.0,
            ..CellPlan::new(
                "noise",
                tare_targets::process::spec(),
                workload,
                Work::new(workload, ""),
            )
        };
        let cells = [cell(1, "gap"), cell(2, "prime"), cell(3, "gap")];
        let mut remaining = Remaining::new(cells.clone().into_iter());
        assert_eq!(remaining.left(Duration::ZERO), Duration::from_secs(30));
        assert_eq!(
            remaining.left(Duration::from_secs(4)),
            Duration::from_secs(26)
        );
        assert_eq!(remaining.told(Duration::from_secs(4)), "6 s left");
        let late = remaining.told(Duration::from_secs(11));
        assert_eq!(late, "it takes longer than estimated");
        // It took twice as long as estimated; so will the other one.
        remaining.finished(&cells[0], Duration::from_secs(20));
        assert_eq!(remaining.left(Duration::ZERO), Duration::from_secs(40));
        // A cell that takes longer than expected does not eat into the others.
        assert_eq!(
            remaining.left(Duration::from_secs(99)),
            Duration::from_secs(20)
        );
    }
}
