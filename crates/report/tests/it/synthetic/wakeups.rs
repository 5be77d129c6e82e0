//! Makes wake-up cells whose figures are known.
//!
//! A thread is walked through its activations by the rule that every place follows: late, it skips what is due
//! before now. Its latencies are folded in the plainest way.

use std::collections::BTreeMap;

use tare_results::CellState;
use tare_results::model::{
    Cell, CellPlan, Fact, LatencyBin, LatencyCount, Outcome, Samples, Wakeup, WakeupSamples,
    WakeupThread, Wakeups, WorstWakeup,
};

use super::{Run, cell};

/// Says how threads are woken.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<'a> {
    pub target: &'a str,
    /// The loads one after the other, or the only one.
    pub loads: &'a [&'a str],
    pub interval_ns: u64,
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
            interval_ns: 100_000,
            activations: 10_000,
            threads: 1,
            traced: false,
            raw: 1 << 20,
            model: None,
        }
    }
}

const BINS: u64 = 1_000;

impl Run {
    /// Adds a cell whose threads woke up with the latencies that `latency` gives for thread, phase and activation.
    pub fn woken(
        &mut self,
        block: u32,
        schedule: Schedule<'_>,
        mut latency: impl FnMut(u32, usize, u64) -> u64,
    ) -> &mut Cell {
        let plan = self.wakeup_plan(block, schedule);
        let mut samples = WakeupSamples::default();
        let threads = (0..schedule.threads)
            .map(|thread| {
                let latency = |phase, activation| latency(thread, phase, activation);
                walk(schedule, thread, latency, &mut samples)
            })
            .collect();
        let mut woken = self.wakeups(threads);
        if let Some(model) = schedule.model {
            woken.facts.push(Fact {
                name: "preemption model".to_owned(),
                value: model.to_owned(),
            });
        }
        let outcome = Outcome::Woken(Box::new(woken));
        let cell = Box::new(cell(plan, outcome));
        let samples = Samples {
            wakeups: samples,
            ..Samples::default()
        };
        self.cells.push((CellState::Done(cell), samples));
        match self.cells.last_mut() {
            Some((CellState::Done(cell), _)) => cell,
            _ => unreachable!("it was just pushed"),
        }
    }

    /// Returns the worst wake-up of the last cell.
    pub fn last_worst(&self) -> Wakeup {
        let (_, samples) = self.cells.last().expect("there is a cell");
        let all = samples.wakeups.peaks.iter().chain(&samples.wakeups.raw);
        *all.max_by_key(|wakeup| wakeup.latency_ns)
            .expect("it has wake-ups")
    }

    fn wakeup_plan(&mut self, block: u32, schedule: Schedule<'_>) -> CellPlan {
        let loads = schedule.loads;
        let seconds = (schedule.activations * schedule.interval_ns) as f64 / 1e9;
        let several = loads.len() > 1;
        let plan = CellPlan {
            id: self.plans.len() as u32 + 1,
            block,
            experiment: "wakeup".to_owned(),
            target: schedule.target.to_owned(),
            load: if several {
                format!("{seconds}s:{}", loads.join(";"))
            } else {
                loads[0].to_owned()
            },
            phases: if several {
                loads.iter().map(|load| (*load).to_owned()).collect()
            } else {
                Vec::new()
            },
            phase_seconds: several.then_some(seconds),
            workload: "wakeup".to_owned(),
            size: None,
            repetitions: schedule.activations * loads.len() as u64,
            timing: "absolute".to_owned(),
            words: format!(
                "workload=wakeup interval={}ns threads={} phases={} trace={} duration={}ns",
                schedule.interval_ns,
                schedule.threads,
                loads.len(),
                u32::from(schedule.traced) * 10,
                schedule.interval_ns * schedule.activations * loads.len() as u64
            ),
            estimate_seconds: 1.0,
            limit_seconds: 60.0,
        };
        self.plans.push(plan.clone());
        plan
    }

    fn wakeups(&self, threads: Vec<WakeupThread>) -> Wakeups {
        let measured = self.measurement(tare_results::model::Batch::default());
        Wakeups {
            agent: measured.agent,
            preparation: measured.preparation,
            calibration: measured.calibration,
            frequencies: measured.frequencies,
            counters: Vec::new(),
            facts: Vec::new(),
            origin_ns: 1_000_000_000,
            threads,
            exceeded: Vec::new(),
            worst: Vec::new(),
        }
    }
}

/// Returns the record of a cell that measured wake-ups.
pub fn woken(cell: &mut Cell) -> &mut Wakeups {
    match &mut cell.outcome {
        Outcome::Woken(woken) => woken,
        other => panic!("it measured no wake-ups: {other:?}"),
    }
}

/// Says that a wake-up was traced, with these events.
pub fn trace(cell: &mut Cell, worst: WorstWakeup) {
    woken(cell).worst.push(worst);
}

fn walk(
    schedule: Schedule<'_>,
    number: u32,
    mut latency: impl FnMut(usize, u64) -> u64,
    samples: &mut WakeupSamples,
) -> WakeupThread {
    let interval = schedule.interval_ns;
    let phases = schedule.loads.len() as u64;
    let all = schedule.activations * phases;
    let bin_ns = (all * interval).div_ceil(BINS).max(1);
    let mut thread = WakeupThread {
        number,
        tid: 100 + number,
        cpu: Some(1 + number),
        policy: "fifo".to_owned(),
        priority: 95,
        interval_ns: interval,
        woken: 0,
        missed: 0,
        min_ns: u64::MAX,
        max_ns: 0,
        sum_ns: 0,
        threshold_ns: interval,
        peaks_seen: 0,
        peaks_kept: 0,
        uncounted: 0,
        uncounted_ns: 0,
        uncounted_max_ns: 0,
        bin_ns,
        raw_kept: 0,
        recording_ns: 90,
    };
    let mut counts: BTreeMap<(u32, u64), u64> = BTreeMap::new();
    let mut bins: BTreeMap<u32, LatencyBin> = BTreeMap::new();
    let mut raw = 0;
    let mut activation = 0;
    while activation < all {
        let phase = (activation / schedule.activations) as usize;
        let latency_ns = latency(phase, activation);
        let wakeup = Wakeup {
            thread: number,
            activation,
            latency_ns,
        };
        thread.woken += 1;
        thread.min_ns = thread.min_ns.min(latency_ns);
        thread.max_ns = thread.max_ns.max(latency_ns);
        thread.sum_ns += latency_ns;
        *counts.entry((phase as u32, latency_ns)).or_default() += 1;
        if latency_ns >= interval {
            thread.peaks_seen += 1;
            thread.peaks_kept += 1;
            samples.peaks.push(wakeup);
        }
        if raw < schedule.raw {
            raw += 1;
            thread.raw_kept += 1;
            samples.raw.push(wakeup);
        }
        let bin = (activation * interval / bin_ns) as u32;
        let bin = bins.entry(bin).or_insert(LatencyBin {
            thread: number,
            bin,
            count: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        });
        bin.count += 1;
        bin.sum_ns += latency_ns;
        bin.min_ns = bin.min_ns.min(latency_ns);
        bin.max_ns = bin.max_ns.max(latency_ns);
        // The next one is the first that is not before now.
        let now = activation * interval + latency_ns;
        let next = now.div_ceil(interval).max(activation + 1).min(all);
        thread.missed += next - activation - 1;
        activation = next;
    }
    let rows = counts.into_iter();
    samples
        .counts
        .extend(rows.map(|((phase, latency_ns), count)| LatencyCount {
            thread: number,
            phase,
            latency_ns,
            count,
        }));
    samples.bins.extend(bins.into_values());
    thread
}

/// Makes latencies as an ordinary kernel shows them: a body around `base`, an exponential tail, rare stalls.
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
