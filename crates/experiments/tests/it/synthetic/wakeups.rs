//! Makes wake-up cells whose figures are known.
//!
//! A thread is walked through its activations by the rule that every place follows: late, it skips
//! what is due before now. Its latencies are folded in the plainest way.

use std::collections::BTreeMap;

use tare_results::model::{
    self, Bin, Cell, CellPlan, Event, Fact, Labels, Load, LoadPhase, LoadPlace, Record, SetHead,
    SetSamples, TraceEvent, TraceKind, Unit, Value,
};
use tare_results::work::{Rights, Work};
use tare_wire::phases::{slot_begin_ns, slots_apart};

use super::{Run, in_rows, record, spec};

/// Says how threads are woken.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<'a> {
    pub target: &'a str,
    /// The loads one after the other, or the only one.
    pub loads: &'a [&'a str],
    pub interval_ns: u64,
    /// How late each phase's load began; they are not told of if this is empty.
    pub late_ns: &'a [u64],
    /// Activations in each phase.
    pub activations: u64,
    pub threads: u32,
    pub traced: bool,
    /// Wake-ups that are kept as they were.
    pub raw: usize,
    /// Preemption model that the place tells.
    pub model: Option<&'a str>,
}

impl Default for Schedule<'_> {
    fn default() -> Self {
        Self {
            target: "process",
            loads: &["idle"],
            late_ns: &[],
            interval_ns: 100_000,
            activations: 10_000,
            threads: 1,
            traced: false,
            raw: 1 << 20,
            model: None,
        }
    }
}

impl<'a> Schedule<'a> {
    /// Returns how the threads of a target are woken.
    pub fn of(target: &'a str) -> Self {
        Self {
            target,
            ..Self::default()
        }
    }

    /// Returns how threads are woken under these loads.
    pub fn under(loads: &'a [&'a str]) -> Self {
        Self {
            loads,
            ..Self::default()
        }
    }
}

const BINS: u64 = 1_000;

impl Run {
    /// Adds a cell whose threads woke up with the latencies that `latency` gives for thread, phase
    /// and activation.
    pub fn woken(
        &mut self,
        block: u32,
        schedule: Schedule<'_>,
        mut latency: impl FnMut(u32, usize, u64) -> u64,
    ) -> &mut Cell {
        let plan = self.wakeup_plan(block, schedule);
        let load = load(schedule);
        // Wake-ups are counted in slots of a phase, each of which belongs to its load as a whole or
        // not at all.
        let phase_ns = schedule.activations * schedule.interval_ns;
        let is_between = |planned_ns| {
            let late_ns = schedule.late_ns.get((planned_ns / phase_ns) as usize);
            let apart = late_ns.map_or(0, |late_ns| slots_apart(*late_ns, phase_ns));
            planned_ns % phase_ns < slot_begin_ns(phase_ns, apart)
        };
        let mut woken = Record {
            programs: vec![self.program()],
            ..Record::default()
        };
        let mut sets = Vec::new();
        for thread in 0..schedule.threads {
            let latency = |phase, activation| latency(thread, phase, activation);
            walk(
                schedule,
                thread,
                latency,
                is_between,
                (&mut woken, &mut sets),
            );
        }
        if let Some(model) = schedule.model {
            let labels = Labels::default();
            woken.programs[0]
                .facts
                .push(fact("preemption model", &labels, model));
        }
        let cell = self.push(plan, woken, sets);
        cell.load = load;
        cell
    }

    fn wakeup_plan(&mut self, block: u32, schedule: Schedule<'_>) -> CellPlan {
        let loads = schedule.loads;
        let seconds = (schedule.activations * schedule.interval_ns) as f64 / 1e9;
        let further = self.further.map(|(key, value)| format!(" {key}={value}"));
        let work = Work {
            threads: schedule.threads,
            rights: Rights {
                kernel_events: schedule.traced,
                ..Rights::default()
            },
            ..Work::new(
                "wakeup",
                &format!(
                    "interval={}ns duration={}ns{}",
                    schedule.interval_ns,
                    schedule.interval_ns * schedule.activations * loads.len() as u64,
                    further.unwrap_or_default()
                ),
            )
        };
        let mut plan = CellPlan {
            id: self.plans.len() as u32 + 1,
            block,
            load: model::Schedule::parse(loads[0]).unwrap(),
            labels: match schedule.traced {
                true => Labels::of([("traced", "yes")]),
                false => Labels::default(),
            },
            limit_seconds: 60.0,
            ..CellPlan::new("wakeup", spec(schedule.target), "wakeup", work)
        };
        if let Some((key, value)) = self.further {
            plan.labels = plan.labels.with(key, value);
        }
        if loads.len() > 1 {
            let phase_ns = schedule.activations * schedule.interval_ns;
            let text = format!("{phase_ns}ns:{}", loads.join(";"));
            plan.load = model::Schedule::parse(&text).unwrap();
            plan.phases = plan.load.phases();
            plan.phase_seconds = Some(seconds);
        }
        self.plans.push(plan.clone());
        plan
    }
}

/// Returns a number that was told of the first thread of a cell.
pub fn told<'a>(cell: &'a mut Cell, measure: &str) -> &'a mut f64 {
    let mut values = record(cell).values.iter_mut();
    let value = values.find(|value| value.measure == measure);
    &mut value.expect("it was told").value
}

/// Returns an event of a trace.
pub fn event(at_ns: i64, what: TraceKind) -> TraceEvent {
    TraceEvent {
        at_ns,
        what,
        from_user: false,
        sender: None,
        waited_ns: None,
        stack: Vec::new(),
    }
}

fn fact(name: &str, labels: &Labels, value: &str) -> Fact {
    Fact {
        name: name.to_owned(),
        labels: labels.clone(),
        value: value.to_owned(),
    }
}

/// Says when the loads of a schedule were; each held up the next one by its `dd`.
fn load(schedule: Schedule<'_>) -> Option<Load> {
    let phase_ns = schedule.activations * schedule.interval_ns;
    let due_ns = |number: usize| 1_000_000_000 + number as u64 * phase_ns;
    let late_ns = |number: usize| schedule.late_ns.get(number).copied().unwrap_or(0);
    let phase = |(number, load): (usize, &&str)| LoadPhase {
        number: number as u32,
        load: (*load).to_owned(),
        due_ns: due_ns(number),
        started_ns: due_ns(number) + late_ns(number),
        stopping_ns: due_ns(number + 1),
        stopped_ns: due_ns(number + 1) + late_ns(number + 1),
        last_tool: load.contains("dd").then(|| "dd".to_owned()),
        achieved: Vec::new(),
    };
    (!schedule.late_ns.is_empty()).then(|| Load {
        place: LoadPlace::Beside,
        achieved: Vec::new(),
        notices: Vec::new(),
        phases: schedule.loads.iter().enumerate().map(phase).collect(),
        left: Vec::new(),
    })
}

/// Walks a thread through its activations, and adds what it tells: a set for each phase, and one
/// for what was planned before its load began.
fn walk(
    schedule: Schedule<'_>,
    number: u32,
    mut latency: impl FnMut(usize, u64) -> u64,
    is_between: impl Fn(u64) -> bool,
    (woken, samples): (&mut Record, &mut Vec<SetSamples>),
) {
    let period = schedule.interval_ns;
    let phases = schedule.loads.len();
    let all = schedule.activations * phases as u64;
    let first = 1_000_000_000;
    let width = (all * period).div_ceil(BINS).max(1);
    let labels = Labels::default().with("thread", number);
    // Two for each phase: of its load, and of the time before that began.
    let head = |place: usize| SetHead {
        measure: "latency".to_owned(),
        labels: match (phases, place % 2) {
            (1, _) => labels.clone(),
            (_, 0) => labels.clone().with("phase", place / 2),
            _ => labels
                .clone()
                .with("phase", place / 2)
                .with("between", "yes"),
        },
        unit: Unit::Ns,
        min: u64::MAX,
        first,
        last: first + all * period,
        period,
        threshold: period,
        bin: width,
        ..SetHead::default()
    };
    let mut heads: Vec<SetHead> = (0..2 * phases).map(head).collect();
    let mut sets = vec![SetSamples::default(); 2 * phases];
    let mut counts: Vec<BTreeMap<u64, u64>> = vec![BTreeMap::new(); 2 * phases];
    let mut bins: BTreeMap<u32, Bin> = BTreeMap::new();
    let (mut raw, mut missed) = (0, 0);
    let mut index = 0;
    while index < all {
        let phase = (index / schedule.activations) as usize;
        let value = latency(phase, index);
        let at = first + index * period;
        let event = Event { index, at, value };
        let place = 2 * phase + usize::from(is_between(index * period));
        let (head, set) = (&mut heads[place], &mut sets[place]);
        head.n += 1;
        head.min = head.min.min(value);
        head.max = head.max.max(value);
        head.sum += value;
        *counts[place].entry(value).or_default() += 1;
        if value >= period {
            head.seen += 1;
            head.kept += 1;
            set.events.push(event);
        }
        if raw < schedule.raw {
            raw += 1;
            head.raw += 1;
            set.raw.push(event);
        }
        let bin = (index * period / width) as u32;
        let bin = bins.entry(bin).or_insert(Bin {
            bin,
            n: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        });
        bin.n += 1;
        bin.sum += value;
        bin.min = bin.min.min(value);
        bin.max = bin.max.max(value);
        // The next one is the first that is not before now.
        let now = index * period + value;
        let next = now.div_ceil(period).max(index + 1).min(all);
        missed += next - index - 1;
        index = next;
    }
    // A bin that reaches into the next phase or slot belongs to the one in which it starts.
    for bin in bins.into_values() {
        let begin = u64::from(bin.bin) * width;
        let phase = begin / (schedule.activations * period);
        let place = 2 * phase as usize + usize::from(is_between(begin));
        sets[place].envelope.push(bin);
    }
    for (set, counts) in sets.iter_mut().zip(counts) {
        set.counts = in_rows(counts);
    }
    for (place, (mut head, set)) in heads.into_iter().zip(sets).enumerate() {
        if place % 2 == 0 || head.n > 0 {
            head.min = head.min.min(head.max);
            woken.sets.push(head);
            samples.push(set);
        }
    }
    let value = |measure: &str, unit: &str, value| Value {
        measure: measure.to_owned(),
        labels: labels.clone(),
        unit: unit.to_owned(),
        value,
    };
    woken.values.extend([
        value("missed", "", missed as f64),
        value("recording time", "ns", 90.0),
    ]);
    woken.programs[0].facts.extend([
        fact("thread id", &labels, &(100 + number).to_string()),
        fact("CPU", &labels, &(1 + number).to_string()),
        fact("priority", &labels, "95"),
        fact("scheduling policy", &labels, "fifo"),
    ]);
}

/// Makes latencies as an ordinary kernel shows them: a body around `base`, an exponential tail,
/// rare stalls.
pub fn linux_like(base: f64, tail: f64, stalls: f64, random: &mut fastrand::Rng) -> u64 {
    let jitter = 1.0 + 0.25 * (random.f64() + random.f64() - 1.0);
    let mut ns = base * jitter;
    if random.f64() < 0.03 {
        ns += -tail * (1.0 - random.f64()).ln();
    }
    if random.f64() < stalls {
        ns += 40.0 * tail * (1.0 - random.f64()).powi(-1).min(60.0);
    }
    ns as u64
}
