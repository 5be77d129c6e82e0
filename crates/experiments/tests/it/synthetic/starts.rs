//! Makes cells of starts whose figures are known.
//!
//! Instances arrive one interval apart, and take what the test says. All times are those of a clock
//! that begins at one second.

use tare_results::CellState;
use tare_results::model::{
    Arrivals, Arrived, Cell, CellPlan, Failure, Instance, InstanceOutcome, Labels, Record, Rung,
    Samples, Value,
};
use tare_results::work::Work;

use super::{Run, spec};

/// When the first instance is planned.
pub const BEGIN_NS: u64 = 1_000_000_000;

/// A ms in ns.
pub const MS: u64 = 1_000_000;

/// Says how instances of a cell are started.
#[derive(Clone, Copy, Debug)]
pub struct Starts<'a> {
    pub target: &'a str,
    /// The interval as it is typed, and in ns; `alone` and None.
    pub interval: (&'a str, Option<u64>),
    /// How many instances are started before any counts, and how many count.
    pub warmup: u64,
    pub counted: u64,
    pub saturated: Option<&'a str>,
    pub not_open_loop: Option<&'a str>,
    /// The work, unless it is the default one.
    pub work: Option<&'a str>,
    /// Whether Docker's engine ran beside it.
    pub beside: bool,
    /// Numbers of the record: name and value.
    pub values: &'a [(&'a str, f64)],
}

impl Starts<'_> {
    /// Processes, 16 of them a second.
    pub const DEFAULT: Self = Self {
        target: "process",
        interval: ("1/16s", Some(62_500_000)),
        warmup: 4,
        counted: 32,
        saturated: None,
        not_open_loop: None,
        work: None,
        beside: false,
        values: &[],
    };
}

/// Makes an instance that ended as it should: its main after half the time, its end 1 ms after it
/// was ready.
pub fn done(planned_ns: u64, lag_ns: u64, takes_ns: u64) -> Instance {
    let started_ns = planned_ns + lag_ns;
    Instance {
        planned_ns,
        started_ns,
        main_ns: started_ns + takes_ns / 2,
        ready_ns: started_ns + takes_ns,
        exited_ns: started_ns + takes_ns + MS,
        fate: InstanceOutcome::Done.number(),
        user_ns: 300_000,
        system_ns: 200_000,
        own_ns: 100_000,
        peak_bytes: 1 << 20,
        ..Instance::default()
    }
}

/// Makes an instance that did not.
pub fn lost(planned_ns: u64, fate: InstanceOutcome) -> Instance {
    let started_ns = match fate {
        InstanceOutcome::Rejected => 0,
        _ => planned_ns,
    };
    let exited_ns = match fate {
        InstanceOutcome::Failed => planned_ns + MS,
        _ => 0,
    };
    Instance {
        planned_ns,
        started_ns,
        exited_ns,
        fate: fate.number(),
        ..Instance::default()
    }
}

impl Run {
    /// Adds a cell whose instances are what `make` makes of their number and the time for which
    /// they are planned.
    pub fn started(
        &mut self,
        block: u32,
        starts: Starts<'_>,
        make: impl Fn(u64, u64) -> Instance,
    ) -> &mut Cell {
        let plan = self.start_plan(block, starts);
        let interval_ns = starts.interval.1.unwrap_or(100 * MS);
        let due_ns = |number: u64| BEGIN_NS + number * interval_ns;
        let instances = (0..starts.warmup + starts.counted).map(|number| Instance {
            counts: u32::from(number >= starts.warmup),
            ..make(number, due_ns(number))
        });
        let instances: Vec<Instance> = instances.collect();
        let failed = instances
            .iter()
            .filter(|one| one.outcome() == InstanceOutcome::Failed)
            .count() as u64;
        let failure = Failure {
            reason: "exit status 7".to_owned(),
            count: failed,
        };
        let value = |(measure, value): &(&str, f64)| Value {
            measure: (*measure).to_owned(),
            labels: Labels::default(),
            unit: "ns".to_owned(),
            value: *value,
        };
        let record = Record {
            programs: vec![self.program()],
            values: starts.values.iter().map(value).collect(),
            arrived: Some(Arrived {
                from_ns: due_ns(starts.warmup),
                until_ns: due_ns(starts.warmup + starts.counted),
                failures: (failed > 0).then_some(failure).into_iter().collect(),
                saturated: starts.saturated.map(str::to_owned),
                not_open_loop: starts.not_open_loop.map(str::to_owned),
            }),
            ..Record::default()
        };
        let samples = Samples {
            instances,
            sets: Vec::new(),
        };
        self.push_samples(plan, record, samples)
    }

    /// Adds a cell that was not measured.
    pub fn not_started(&mut self, block: u32, starts: Starts<'_>) {
        self.start_plan(block, starts);
        self.lack(CellState::Missing);
    }

    fn start_plan(&mut self, block: u32, starts: Starts<'_>) -> CellPlan {
        let (interval, interval_ns) = starts.interval;
        let mut labels = Labels::default().with("interval", interval);
        if let Some(work) = starts.work {
            labels = labels.with("work", work);
        }
        if starts.beside {
            labels = labels.with("beside", "dockerd");
        }
        let plan = CellPlan {
            id: self.plans.len() as u32 + 1,
            block,
            labels,
            arrivals: Some(Arrivals {
                interval_ns,
                warmup_ns: starts.warmup * interval_ns.unwrap_or(100 * MS),
                measure_ns: starts.counted * interval_ns.unwrap_or(100 * MS),
                most_live: 256,
                most_bytes: None,
                report: None,
                command: None,
            }),
            rung: Some(Rung {
                ladder: starts.target.to_owned(),
                step: interval_ns.map_or(0, |ns| (1e9 / ns as f64).log2() as u32),
            }),
            beside_engine: starts.beside,
            limit_seconds: 60.0,
            ..CellPlan::new(
                "start",
                spec(starts.target),
                "hello",
                Work::new("start", &format!("work={}", starts.work.unwrap_or("hello"))),
            )
        };
        self.plans.push(plan.clone());
        plan
    }
}
