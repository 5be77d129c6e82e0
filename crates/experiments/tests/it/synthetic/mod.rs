//! Makes runs whose figures are known.
//!
//! Raw durations are folded here in the plainest way, so that what the crate derives from the
//! folded samples can be compared with what anybody would compute from the raw ones.

pub mod primitives;
pub mod services;
pub mod starts;
pub mod streams;
pub mod wakeups;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use tare_experiments::catalogue;
use tare_figures::claims::{Answer, Reproduction};
use tare_figures::gates::Selector;
use tare_figures::rows::Row;
use tare_host::{Machine, Source};
use tare_pages::{Report, RunData, page, terminal};
use tare_results::CellState;
use tare_results::model::{
    Agent, Bin, Calibration, Cell, CellPlan, Count, Event, Frequency, FrequencySource, Instance,
    Labels, Outcome, Plan, Preparation, Program, Record, SCHEMA, Samples, Schedule, SetHead,
    SetSamples, StudyPlan, Value,
};
use tare_results::target::{self, Group, TargetSpec};
use tare_results::work::Work;

/// The TSC frequency of the machine that never was.
pub const HZ: f64 = 2.6e9;

/// A batch with its samples.
#[derive(Clone, Default)]
pub struct Folded {
    pub head: SetHead,
    pub samples: SetSamples,
    pub threshold: u64,
    pub result: u64,
    pub work: u64,
}

/// Says how a batch is folded.
#[derive(Clone, Copy)]
pub struct Fold {
    pub first_tsc: u64,
    /// Cycles between the end of one repetition and the start of the next.
    pub pause: u64,
    pub threshold: u64,
    pub bins: u64,
    pub capacity: usize,
    pub window: usize,
    pub result: u64,
    pub work: u64,
}

impl Default for Fold {
    fn default() -> Self {
        Self {
            first_tsc: 1_000_000,
            pause: 60,
            threshold: 400,
            bins: 1_000,
            capacity: 1 << 20,
            window: 500,
            result: 8,
            work: 84,
        }
    }
}

impl Fold {
    /// Returns how a spin is folded that lists gaps from `threshold` cycles on.
    pub fn above(threshold: u64) -> Self {
        Self {
            threshold,
            ..Self::default()
        }
    }
}

/// Folds `wall` cycles of spinning with `count` gaps of 20,021 cycles in even distances.
///
/// An undisturbed iteration takes 21 cycles on average, so each gap loses 20,000 cycles.
pub fn evenly(wall: u64, count: u64, threshold: u64) -> Folded {
    let distance = wall / count.max(1);
    let gaps: Vec<(u64, u64)> = (0..count).map(|n| (n * distance + 1_000, 20_021)).collect();
    spin(
        (wall - count * 20_000) / 21,
        20,
        &gaps,
        Fold::above(threshold),
    )
}

/// Folds the durations of `prime` or `copy`.
pub fn timed(durations: &[u64], fold: Fold) -> Folded {
    let sum: u64 = durations.iter().sum();
    let limit = sum / durations.len() as u64 + fold.threshold;
    let wall = sum + fold.pause * (durations.len() as u64 - 1);
    let bin_cycles = wall.div_ceil(fold.bins).max(1);
    let head = SetHead {
        measure: "duration".to_owned(),
        n: durations.len() as u64,
        sum,
        min: durations.iter().copied().min().unwrap_or(0),
        max: durations.iter().copied().max().unwrap_or(0),
        first: fold.first_tsc,
        last: fold.first_tsc.wrapping_add(wall),
        threshold: limit + 1,
        bin: bin_cycles,
        ..SetHead::default()
    };
    let mut folded = Folded {
        head,
        samples: SetSamples::default(),
        threshold: fold.threshold,
        result: fold.result,
        work: fold.work,
    };
    let mut counts = BTreeMap::new();
    let from = (durations.len() - fold.window.min(durations.len())) / 2;
    let mut after = 0;
    for (index, &value) in durations.iter().enumerate() {
        let event = Event {
            index: index as u64,
            at: fold.first_tsc.wrapping_add(after),
            value,
        };
        *counts.entry(value).or_insert(0) += 1;
        if value > limit {
            list(&mut folded, event, fold.capacity);
        }
        if (from..from + fold.window).contains(&index) {
            folded.samples.raw.push(event);
            folded.head.raw += 1;
        }
        add_to_envelope(&mut folded.samples, (after / bin_cycles) as u32, value);
        after += value + fold.pause;
    }
    folded.samples.counts = in_rows(counts);
    folded
}

/// Folds a spin of `reads` timer reads with gaps given as (time after the first read, length).
///
/// Undisturbed iterations alternate between `quiet` and `quiet` + 2 cycles. Where a gap starts
/// within an iteration it starts with it, as in reality.
pub fn spin(reads: u64, quiet: u64, gaps: &[(u64, u64)], fold: Fold) -> Folded {
    let in_gaps: u64 = gaps.iter().map(|gap| gap.1).sum();
    let quiet_reads = reads - gaps.len() as u64;
    let (short, long) = (quiet_reads.div_ceil(2), quiet_reads / 2);
    let wall = short * quiet + long * (quiet + 2) + in_gaps;
    let bin_cycles = wall.div_ceil(fold.bins).max(1);
    let head = SetHead {
        measure: "gap".to_owned(),
        n: reads,
        sum: wall,
        max: gaps.iter().map(|gap| gap.1).max().unwrap_or(0),
        first: fold.first_tsc,
        last: fold.first_tsc.wrapping_add(wall),
        squares_below: Some(short * quiet * quiet + long * (quiet + 2) * (quiet + 2)),
        threshold: fold.threshold,
        bin: bin_cycles,
        ..SetHead::default()
    };
    let mut folded = Folded {
        head,
        samples: SetSamples::default(),
        threshold: fold.threshold,
        result: 0,
        work: reads,
    };
    let mut counts = BTreeMap::new();
    let mut before = 0;
    for (number, &(after, value)) in gaps.iter().enumerate() {
        let index = (after - before) / (quiet + 1) + number as u64;
        let event = Event {
            index,
            at: fold.first_tsc.wrapping_add(after),
            value,
        };
        before += value;
        if list(&mut folded, event, fold.capacity) {
            *counts.entry(value).or_insert(0) += 1;
            add_to_envelope(&mut folded.samples, (after / bin_cycles) as u32, value);
        }
    }
    folded.samples.counts = in_rows(counts);
    folded
}

fn list(Folded { head, samples, .. }: &mut Folded, event: Event, capacity: usize) -> bool {
    head.seen += 1;
    let fits = samples.events.len() < capacity;
    if fits {
        head.kept += 1;
        samples.events.push(event);
    } else {
        head.unkept_max = head.unkept_max.max(event.value);
        head.unkept_sum += event.value;
    }
    fits
}

fn add_to_envelope(samples: &mut SetSamples, bin: u32, value: u64) {
    match samples.envelope.last_mut() {
        Some(last) if last.bin == bin => {
            last.n += 1;
            last.sum += value;
            last.min = last.min.min(value);
            last.max = last.max.max(value);
        }
        _ => samples.envelope.push(Bin {
            bin,
            n: 1,
            sum: value,
            min: value,
            max: value,
        }),
    }
}

fn in_rows(counts: BTreeMap<u64, u64>) -> Vec<Count> {
    let rows = counts.into_iter();
    rows.map(|(value, count)| Count { value, count }).collect()
}

impl Folded {
    /// Returns the numbers beside the samples.
    pub fn values(&self) -> Vec<Value> {
        let values = [
            ("result", "", self.result),
            ("work", "", self.work),
            ("threshold", "cycles", self.threshold),
        ];
        let value = |(measure, unit, value): (&str, &str, u64)| Value {
            measure: measure.to_owned(),
            labels: Labels::default(),
            unit: unit.to_owned(),
            value: value as f64,
        };
        values.map(value).into()
    }
}

/// Derives the figures of a run.
pub fn analyse(data: RunData) -> Report {
    data.analyse(catalogue()).unwrap()
}

/// Returns the row of a figure, such as `delays.total{class=A}`; the first if there are several.
pub fn row<'a>(analysis: &'a Report, figure: &str) -> Option<&'a Row> {
    let selector = Selector::parse(figure).unwrap();
    let mut rows = analysis.rows().0.iter();
    rows.find(|row| selector.matches(row))
}

/// Returns a figure over runs, in cycles if it is a duration; `None` if there is none.
pub fn figure(analysis: &Report, name: &str) -> Option<f64> {
    let row = row(analysis, name)?;
    let estimate = row.over.as_ref().ok()?.estimate;
    let hz = row.tsc_hz.filter(|_| row.unit == "ns");
    Some(hz.map_or(estimate, |hz| estimate * hz / 1e9))
}

/// Returns the ids of the notices of a run.
pub fn ids(analysis: &Report) -> Vec<&'static str> {
    let alarms = analysis.summary().alarms.iter();
    alarms.map(|alarm| alarm.id).collect()
}

/// Returns the text of the notice with this id.
#[track_caller]
pub fn alarm<'a>(analysis: &'a Report, id: &str) -> &'a str {
    let mut alarms = analysis.summary().alarms.iter();
    &alarms.find(|alarm| alarm.id == id).unwrap().text
}

/// Returns the headline of a run, and the sentences after it.
pub fn verdict(analysis: &Report) -> Vec<String> {
    let verdict = &analysis.summary().verdict;
    let mut sentences = vec![verdict.headline.clone()];
    sentences.extend_from_slice(&verdict.details);
    sentences
}

/// Returns the text of the CSV file that the first story writes.
pub fn csv(analysis: &Report) -> String {
    let mut files = (analysis.stories()).flat_map(|story| story.csv(analysis.run()));
    files.next().expect("there is a file").1
}

/// Returns the answers to the claims of a study.
pub fn answers(reproduction: &Reproduction) -> Vec<Answer> {
    let claims = reproduction.claims.iter();
    claims.map(|claim| claim.finding.answer).collect()
}

/// Asserts what the answers to the claims of a study are.
#[track_caller]
pub fn assert_answers(reproduction: &Reproduction, expected: &[Answer]) {
    assert_eq!(answers(reproduction), expected, "{reproduction:#?}");
}

/// Returns what a run finds of the study that it reproduces.
pub fn reproduction(run: Run) -> Reproduction {
    let reproduction = run.analyse().summary().reproduction.clone();
    reproduction.expect("the run reproduces a study")
}

pub const YES: Answer = Answer::Reproduced;
pub const NO: Answer = Answer::NotReproduced;
pub const UNKNOWN: Answer = Answer::CannotBeTold;

/// Returns a machine of which nothing is known.
pub fn unknown_machine() -> Machine {
    let nowhere = tempfile::tempdir().unwrap();
    Machine::collect(&Source::at(nowhere.path()))
}

/// Returns what is shown on a terminal of 120 columns, and on the page, without line breaks.
pub fn shown(analysis: &Report) -> (String, String) {
    let text = terminal::render(analysis, 120, false);
    (plain(&text), plain(&page::render(analysis)))
}

/// Removes what only typesets: kinds of blanks, and where a line may be broken.
pub fn plain(text: &str) -> String {
    let text = text.replace(['\u{a0}', '\u{202f}'], " ");
    let text = text.replace("<wbr>", "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Asserts that no line is wider than the terminal, and that no word is broken from 80 columns on.
#[track_caller]
pub fn assert_fits(analysis: &Report, width: usize) {
    let text = terminal::render(analysis, width, false);
    let wide = text.lines().find(|line| line.chars().count() > width);
    assert_eq!(wide, None, "{width}");
    let unlimited = terminal::render(analysis, 10_000, false);
    let whole: BTreeSet<&str> = unlimited.split_whitespace().collect();
    let broken = text.split_whitespace().find(|word| !whole.contains(word));
    assert!(width < 80 || broken.is_none(), "{broken:?}: {text}");
}

/// Makes the target that a text names.
pub fn spec(text: &str) -> TargetSpec {
    let (kind, options) = target::split(text);
    let group = match kind.as_str() {
        "process" => Group::Process,
        "docker" | "podman" | "runc" | "crun" => Group::Container,
        "linux" if text.contains("root=debian") => Group::DebianGuest,
        "linux" => Group::LinuxGuest,
        "unikernel" => Group::Unikernel,
        "ssh" => Group::Remote,
        _ => Group::Foreign,
    };
    TargetSpec::new(&kind, options, group)
}

/// Collects the cells of a run.
#[derive(Default)]
pub struct Run {
    plans: Vec<CellPlan>,
    cells: Vec<(CellState, Samples)>,
    /// Step of the timer of the cells that are added from now on.
    pub step: u64,
    /// Whether they are emulated.
    pub emulated: bool,
    /// What executes them, if they are guests.
    pub accelerator: Option<&'static str>,
    /// Load under which they are measured; `idle` if empty.
    pub load: &'static str,
    /// The published study that the run reproduces.
    pub reproduces: Option<&'static str>,
    /// What tells its cells from others that measure the same.
    pub further: Option<(&'static str, u64)>,
}

/// Returns the record of a cell that is done.
pub fn record(cell: &mut Cell) -> &mut Record {
    match &mut cell.outcome {
        Outcome::Done { record, .. } => record,
        other => panic!("it was not measured: {other:?}"),
    }
}

/// Returns the program of a cell that is done.
pub fn measured(cell: &mut Cell) -> &mut Program {
    &mut record(cell).programs[0]
}

impl Run {
    /// Starts a run on a timer of this step in cycles.
    pub fn new(step: u64) -> Self {
        Self {
            step,
            ..Self::default()
        }
    }

    /// Adds a cell that is done.
    pub fn done(
        &mut self,
        block: u32,
        target: &str,
        workload: &str,
        size: Option<u64>,
        folded: Folded,
    ) -> &mut Cell {
        let plan = self.plan(block, target, workload, size);
        let record = Record {
            programs: vec![self.program()],
            values: folded.values(),
            sets: vec![folded.head],
            ..Record::default()
        };
        self.push(plan, record, vec![folded.samples])
    }

    /// Adds a cell of `prime` up to 22.
    pub fn prime(&mut self, block: u32, target: &str, durations: &[u64]) -> &mut Cell {
        let folded = timed(durations, Fold::default());
        self.done(block, target, "prime", Some(22), folded)
    }

    /// Adds a cell of `gap`.
    pub fn gap(&mut self, block: u32, target: &str, folded: Folded) -> &mut Cell {
        self.done(block, target, "gap", None, folded)
    }

    /// Adds a cell of `gap` on CPUs 0, 1, … at the same time.
    pub fn gaps_together(&mut self, block: u32, target: &str, each: Vec<Folded>) -> &mut Cell {
        let mut plan = self.plan(block, target, "gap", None);
        plan.work.threads = each.len() as u32;
        plan.work.cpus = Some((0..plan.work.threads).collect());
        self.plans.pop();
        self.plans.push(plan.clone());
        let values = each.first().map(Folded::values).unwrap_or_default();
        let heads = (0..).zip(each).map(|(cpu, folded): (u32, _)| {
            let labels = Labels::default().with("cpu", cpu);
            (
                SetHead {
                    labels,
                    ..folded.head
                },
                folded.samples,
            )
        });
        let (sets, samples) = heads.unzip();
        let record = Record {
            programs: vec![self.program()],
            values,
            sets,
            ..Record::default()
        };
        self.push(plan, record, samples)
    }

    fn push(&mut self, plan: CellPlan, record: Record, sets: Vec<SetSamples>) -> &mut Cell {
        let instances = vec![Instance::default()];
        self.push_samples(plan, record, Samples { instances, sets })
    }

    fn push_samples(&mut self, plan: CellPlan, record: Record, samples: Samples) -> &mut Cell {
        let cell = Box::new(cell(plan, Outcome::done(record)));
        self.cells.push((CellState::Done(cell), samples));
        match self.cells.last_mut() {
            Some((CellState::Done(cell), _)) => cell,
            _ => unreachable!("it was just pushed"),
        }
    }

    /// Adds a cell that failed.
    pub fn failed(&mut self, block: u32, target: &str, workload: &str, reason: &str) {
        let reason = reason.to_owned();
        let outcome = Outcome::Failed { reason };
        let cell = cell(self.plan(block, target, workload, Some(22)), outcome);
        self.lack(CellState::Failed(Box::new(cell)));
    }

    /// Adds a cell that was not tried.
    pub fn not_tried(&mut self, block: u32, target: &str, workload: &str, reason: &str) {
        let reason = reason.to_owned();
        let outcome = Outcome::NotTried { reason };
        let cell = cell(self.plan(block, target, workload, Some(22)), outcome);
        self.lack(CellState::Failed(Box::new(cell)));
    }

    /// Adds a cell that was left out.
    pub fn left_out(&mut self, block: u32, target: &str, workload: &str, reason: &str) {
        let reason = reason.to_owned();
        let outcome = Outcome::LeftOut { reason };
        let cell = cell(self.plan(block, target, workload, Some(22)), outcome);
        self.lack(CellState::Done(Box::new(cell)));
    }

    /// Adds a cell that was not measured.
    pub fn missing(&mut self, block: u32, target: &str, workload: &str) {
        self.plan(block, target, workload, Some(22));
        self.lack(CellState::Missing);
    }

    fn lack(&mut self, state: CellState) {
        self.cells.push((state, Samples::default()));
    }

    /// Ends the run and derives its figures.
    pub fn analyse(self) -> Report {
        analyse(self.data())
    }

    /// Ends the run.
    pub fn data(self) -> RunData {
        let plan = Plan {
            schema: SCHEMA,
            tare_version: "0.1.0".to_owned(),
            experiment: "noise".to_owned(),
            created: Timestamp::UNIX_EPOCH,
            command: vec!["tare".to_owned(), "noise".to_owned()],
            seed: 42,
            cpu: 1,
            cpu_reason: "CPU 1 is the quietest of 0-1 (0.3 % busy)".to_owned(),
            settings: Vec::new(),
            study: self.reproduces.map(|name| StudyPlan {
                name: name.to_owned(),
                reproduces: Some(name.to_owned()),
                quick: false,
                text: String::new(),
            }),
            start_engine: false,
            cells: self.plans,
        };
        RunData {
            plan,
            machine: None,
            cells: self.cells,
        }
    }

    fn plan(&mut self, block: u32, target: &str, workload: &str, size: Option<u64>) -> CellPlan {
        let labels = Labels::default().with("workload", workload);
        let (name, labels) = match size {
            Some(size) => (format!("{workload} {size}"), labels.with("size", size)),
            None => (workload.to_owned(), labels),
        };
        let (labels, further) = match self.further {
            Some((key, value)) => (labels.with(key, value), format!(" {key}={value}")),
            None => (labels, String::new()),
        };
        let work = Work::new(workload, &format!("size={size:?}{further}"));
        let mut plan = CellPlan {
            id: self.plans.len() as u32 + 1,
            block,
            labels,
            limit_seconds: 60.0,
            ..CellPlan::new("noise", spec(target), &name, work)
        };
        if !self.load.is_empty() {
            plan.load = Schedule::parse(self.load).unwrap();
        }
        self.plans.push(plan.clone());
        plan
    }

    fn program(&self) -> Program {
        Program {
            agent: Agent {
                version: "0.1.0".to_owned(),
                environment: "linux".to_owned(),
                sha256: "ab".repeat(32),
                emulated: self.emulated,
                accelerator: self.accelerator.map(str::to_owned),
                kernel: None,
            },
            preparation: Preparation {
                cpu: Some(1),
                buffer_bytes: 16 << 20,
                locked: true,
                latency_held: true,
            },
            calibration: Calibration {
                fenced_region_cycles: 52,
                fenced_cost_cycles: 104.0,
                published_region_cycles: 26,
                published_cost_cycles: 62.5,
                bare_read_cycles: 24.9,
                step_cycles: self.step,
                loop_cycles: 1.0,
            },
            frequencies: vec![
                Frequency {
                    source: FrequencySource::KernelClock,
                    hz: HZ,
                    uncertainty_ppm: Some(0.4),
                    detail: "clocksource=tsc".to_owned(),
                },
                Frequency {
                    source: FrequencySource::DisciplinedClock,
                    hz: HZ * (1.0 + 12e-6),
                    uncertainty_ppm: Some(2.0),
                    detail: "rate of the synchronised system clock".to_owned(),
                },
            ],
            counters: Vec::new(),
            facts: Vec::new(),
        }
    }
}

fn cell(plan: CellPlan, outcome: Outcome) -> Cell {
    Cell {
        schema: SCHEMA,
        plan,
        invocation: "2026-03-01T12:00:00Z".parse().unwrap(),
        started_at: Timestamp::UNIX_EPOCH,
        outcome,
        notices: Vec::new(),
        load: None,
        daemons: Vec::new(),
        other_work: None,
        guest_work: None,
        unswitched: Vec::new(),
    }
}

/// Makes durations as an ordinary Linux shows them: a body of few timer steps, a tick, rare long
/// delays. `base` is the undisturbed duration in cycles, `noise` scales how often it is delayed.
pub fn linux_like(
    repetitions: usize,
    base: u64,
    step: u64,
    noise: f64,
    random: &mut fastrand::Rng,
) -> Vec<u64> {
    const TICK: u64 = (HZ / 250.0) as u64;
    let mut clock = random.u64(..TICK);
    let mut next_tick = TICK;
    let mut durations = Vec::with_capacity(repetitions);
    for _ in 0..repetitions {
        let jitter = random.f64() + random.f64() + random.f64();
        let mut cycles = base + (jitter * 1.4 * step as f64) as u64;
        if clock > next_tick {
            next_tick += TICK;
            if noise > 0.0 {
                cycles += 4_000 + random.u64(..5_000) + random.u64(..4_000);
            }
        }
        if random.f64() < 4e-5 * noise {
            cycles += (1_200.0 * (random.f64() * 5.2).exp()) as u64;
        }
        if random.f64() < 6e-4 * noise {
            cycles += 160 + random.u64(..260);
        }
        cycles = cycles / step * step;
        clock += cycles + 60;
        durations.push(cycles);
    }
    durations
}

/// Makes gaps as an ordinary Linux shows them: a tick of 250 Hz and others at random, over
/// `seconds`. Returns the number of reads, and the gaps.
pub fn gaps_like(
    seconds: f64,
    others_per_second: f64,
    random: &mut fastrand::Rng,
) -> Vec<(u64, u64)> {
    let wall = (seconds * HZ) as u64;
    let tick = (HZ / 250.0) as u64;
    let mut gaps: Vec<(u64, u64)> = (1..wall / tick)
        .map(|n| {
            (
                n * tick + random.u64(..6_000),
                4_200 + random.u64(..3_000) + random.u64(..6_000),
            )
        })
        .collect();
    let others = (seconds * others_per_second) as usize;
    gaps.extend((0..others).map(|_| {
        let length = 1_400.0 * (random.f64().powi(2) * 5.9).exp();
        (random.u64(..wall - 4_000_000), length as u64)
    }));
    gaps.sort_unstable();
    // None may start before the one before it ends.
    let mut free_from = 0;
    gaps.retain(|&(start, length)| {
        let fits = start >= free_from;
        if fits {
            free_from = start + length + 100;
        }
        fits
    });
    gaps
}
