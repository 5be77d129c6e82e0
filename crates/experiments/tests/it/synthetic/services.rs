//! Makes cells of services whose figures are known.

use tare_results::model::{
    Cell, CellPlan, Count, Labels, Record, Samples, SetHead, SetSamples, Value,
};
use tare_results::work::Work;

use super::{Run, spec};

/// The outcome of 1,000 requests.
#[derive(Clone, Copy)]
pub struct Asked {
    /// Labels of the cell besides its service.
    pub labels: &'static [(&'static str, &'static str)],
    /// Id of the server.
    pub server: &'static str,
    /// The client's words besides the number of its requests.
    pub words: &'static str,
    /// CPU time of an answer, in ns.
    pub cpu_ns: f64,
    pub answered: f64,
    /// Time until the last answer, in ns.
    pub window_ns: f64,
    /// The shortest latency in ns, the others being longer by 10 ns each; without it, there are
    /// none.
    pub took_ns: Option<u64>,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            labels: &[],
            server: "dns",
            words: "",
            cpu_ns: 20e3,
            answered: 1_000.0,
            window_ns: 1e9,
            took_ns: None,
        }
    }
}

impl Run {
    /// Adds a cell of a name server that was asked.
    pub fn asked(&mut self, block: u32, target: &str, asked: Asked) -> &mut Cell {
        let labels = [("service", "dns")].into_iter();
        let labels = labels.chain(asked.labels.iter().copied());
        let words = format!(
            "protocol=dns requests=1000 limit=250000000ns {}",
            asked.words
        );
        let plan = CellPlan {
            id: self.plans.len() as u32 + 1,
            block,
            labels: labels.fold(Labels::default(), |all, (key, value)| all.with(key, value)),
            limit_seconds: 60.0,
            server: Some(Work::new(asked.server, "")),
            ..CellPlan::new(
                "service",
                spec(target),
                "dns",
                Work::new("service", words.trim()),
            )
        };
        self.plans.push(plan.clone());
        let value = |measure: &str, labels: Labels, unit: &str, value: f64| Value {
            measure: measure.to_owned(),
            labels,
            unit: unit.to_owned(),
            value,
        };
        let inside = Labels::of([("place", "inside")]);
        let none = Labels::default;
        let record = Record {
            programs: vec![self.program()],
            values: vec![
                value("cpu", inside, "ns", asked.cpu_ns * asked.answered),
                value("requests", none(), "", 1_000.0),
                value("answered", none(), "", asked.answered),
                value("window", none(), "ns", asked.window_ns),
            ],
            sets: asked
                .took_ns
                .into_iter()
                .flat_map(|ns| ["service", "response"].map(|of| head(of, ns)))
                .collect(),
            ..Record::default()
        };
        let sets = record.sets.iter().map(|head| SetSamples {
            counts: (0..head.n)
                .map(|number| Count {
                    value: head.min + 10 * number,
                    count: 1,
                })
                .collect(),
            ..SetSamples::default()
        });
        let samples = Samples {
            sets: sets.collect(),
            ..Samples::default()
        };
        self.push_samples(plan, record, samples)
    }
}

/// Returns the head of 1,000 latencies in steps of 10 ns.
fn head(measure: &str, min: u64) -> SetHead {
    SetHead {
        measure: measure.to_owned(),
        n: 1_000,
        sum: 1_000 * min + 10 * (999 * 1_000 / 2),
        min,
        max: min + 9_990,
        ..SetHead::default()
    }
}
