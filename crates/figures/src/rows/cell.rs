//! What a cell that is done has measured, for measures to derive figures from.

use std::any::Any;
use std::cell::OnceCell;

use tare_results::frequency::{self, AGREEMENT_PPM, TscFrequency};
use tare_results::model::{
    self, Cell, CellPlan, Counter, Labels, Program, Record, SetHead, SetSamples, Unit,
};
use tare_stats::Counts;

use crate::group::distinct;

use super::measure::{Figure, RunFigure, Sample, Samples};

/// The record and the samples of a cell that is done.
pub struct CellData<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Its record.
    pub record: &'a Record,
    /// Its samples.
    pub samples: &'a model::Samples,
    /// The CPU, of a part of a cell that measured several at once.
    pub cpu: Option<u64>,
    shared: OnceCell<Box<dyn Any>>,
}

/// The label of the sets of each CPU, of several that are measured at once.
pub const CPU: &str = "cpu";

impl<'a> CellData<'a> {
    /// Takes a cell that is done with its samples; `None` for another.
    #[must_use]
    pub fn new(cell: &'a Cell, samples: &'a model::Samples) -> Option<Self> {
        Some(Self {
            cell,
            record: cell.outcome.record()?,
            samples,
            cpu: None,
            shared: OnceCell::new(),
        })
    }

    /// Divides a cell that measured several CPUs at once by them; another is one part.
    #[must_use]
    pub fn parts(&self) -> Vec<Self> {
        let cpus = self.record.sets.iter();
        let cpus = distinct(cpus.filter_map(|head| head.labels.number(CPU)).map(Some));
        let cpus = if cpus.is_empty() { vec![None] } else { cpus };
        let part = |cpu| Self {
            cpu,
            shared: OnceCell::new(),
            ..*self
        };
        cpus.into_iter().map(part).collect()
    }

    /// Returns the label of its part; none of a whole cell.
    #[must_use]
    pub fn labels(&self) -> Labels {
        let label = |cpu| Labels::default().with(CPU, cpu);
        self.cpu.map_or_else(Labels::default, label)
    }

    /// Returns what several measures of the cell are made of, and is derived but once: one thing
    /// for each experiment.
    ///
    /// # Panics
    ///
    /// Panics if it is asked for things of two types.
    pub fn shared<T: 'static>(&self, derive: impl FnOnce() -> T) -> &T {
        let kept = self.shared.get_or_init(|| Box::new(derive()));
        kept.downcast_ref().expect("one thing is shared")
    }

    /// Returns what was asked of the cell.
    #[must_use]
    pub fn plan(&self) -> &'a CellPlan {
        &self.cell.plan
    }

    /// Returns the program that measured; the first one if there are several.
    #[must_use]
    pub fn program(&self) -> Option<&'a Program> {
        self.record.program()
    }

    /// Returns the frequency of the TSC; `None` if it is unknown.
    #[must_use]
    pub fn tsc(&self) -> Option<TscFrequency> {
        frequency::choose(&self.program()?.frequencies)
    }

    /// Returns the factor that turns values of a set into ns; `None` if they are cycles of unknown
    /// length.
    #[must_use]
    pub fn ns(&self, head: &SetHead) -> Option<f64> {
        match head.unit {
            Unit::Ns => Some(1.0),
            Unit::Cycles => Some(1e9 / self.tsc()?.hz),
        }
    }

    /// Returns the frequency of the TSC if the cell was measured in its ticks and the frequency is
    /// known.
    #[must_use]
    pub fn hz(&self) -> Option<f64> {
        let mut sets = self.record.sets.iter();
        let in_cycles = sets.any(|head| head.unit == Unit::Cycles);
        in_cycles.then(|| self.tsc().map(|tsc| tsc.hz)).flatten()
    }

    /// Returns by how much the frequency of the TSC may be off in which the cell was measured, in
    /// parts per million; 0 if it was measured in ns.
    #[must_use]
    pub fn clock_ppm(&self) -> f64 {
        let tsc = self.hz().and(self.tsc());
        tsc.map_or(0.0, |tsc| tsc.uncertainty_ppm.unwrap_or(AGREEMENT_PPM))
    }

    /// Returns the least difference of two times, in ns; `None` if it is unknown.
    #[must_use]
    pub fn resolution_ns(&self) -> Option<f64> {
        let mut sets = self.record.sets.iter();
        if sets.all(|head| head.unit == Unit::Ns) {
            return Some(1.0);
        }
        let step_cycles = self.program()?.calibration.step_cycles;
        Some(step_cycles as f64 / self.hz()? * 1e9)
    }

    /// Takes the sets of a measure as they are, each with its labels. Samples that were not counted
    /// one by one are known by their range only, and so is the mean with them.
    ///
    /// # Errors
    ///
    /// The problem with the samples.
    pub fn sampled(&self, measure: &str) -> Samples {
        let sets = self.sets(measure).map(|(head, set)| {
            let (known, more) = (counts(set)?, head.uncounted);
            let with = |value: u64| {
                let more = (more > 0).then_some((value, more));
                let all = Counts::from_pairs(known.iter().chain(more));
                let all = all.map_err(|error| error.to_string())?;
                Ok::<_, String>(Sample::Counts(all, self.ns(head)))
            };
            let least = with(head.uncounted_min)?;
            let mean = least.figure(Figure::Mean).and_then(RunFigure::at_least);
            let sample = match more {
                0 => least,
                _ => Sample::Between {
                    mean: mean.map(RunFigure::AtLeast),
                    ends: vec![least, with(head.uncounted_max)?],
                    least: None,
                },
            };
            Ok((head.labels.clone(), sample))
        });
        sets.collect()
    }

    /// Takes the values of a measure, each with its labels.
    ///
    /// # Errors
    ///
    /// None: a value needs nothing else.
    pub fn valued(&self, measure: &str) -> Samples {
        let values = self
            .record
            .values
            .iter()
            .filter(|value| value.measure == measure && is_of(self.cpu, &value.labels));
        Ok(values
            .map(|value| (value.labels.clone(), Sample::Number(value.value)))
            .collect())
    }

    /// Takes the sets of a measure, of which each sample is the time of a pass, as bandwidths in
    /// bytes/s: the value `bytes` with a set's labels is what a pass moves.
    ///
    /// # Errors
    ///
    /// The problem with the samples.
    pub fn bandwidths(&self, measure: &str) -> Samples {
        let sets = self.sets(measure).filter_map(|(head, set)| {
            let bytes = self.record.value("bytes", &head.labels)?;
            Some((&head.labels, bytes / self.ns(head)? * 1e9, counts(set)))
        });
        let samples = sets.map(|(labels, of_a_tick, passes)| {
            let passes = passes?;
            let passes = passes.iter().filter(|(ticks, _)| *ticks > 0);
            let rates = passes.flat_map(|(ticks, count)| {
                let rate = (of_a_tick / ticks as f64) as u64;
                std::iter::repeat_n(rate, count as usize)
            });
            let rates: Vec<u64> = rates.collect();
            let sample = Sample::Counts(Counts::from_samples(rates), Some(1.0));
            Ok((labels.clone(), sample))
        });
        let is_known = |sample: &Result<(_, Sample), String>| !matches!(sample, Ok((_, Sample::Counts(rates, _))) if rates.is_empty());
        samples.filter(is_known).collect()
    }

    /// Returns the heads of its sets.
    pub fn heads(&self) -> impl Iterator<Item = &'a SetHead> {
        let cpu = self.cpu;
        let sets = self.record.sets.iter();
        sets.filter(move |head| is_of(cpu, &head.labels))
    }

    /// Returns what its programs counted.
    pub fn counters(&self) -> impl Iterator<Item = &'a Counter> {
        let cpu = self.cpu;
        let programs = self.record.programs.iter();
        let all = programs.flat_map(|program| &program.counters);
        all.filter(move |counter| is_of(cpu, &counter.labels))
    }

    /// Returns the sets of a measure, with their samples.
    pub fn sets<'m>(
        &self,
        measure: &'m str,
    ) -> impl Iterator<Item = (&'a SetHead, &'a SetSamples)> + use<'a, 'm> {
        let sets = self.record.sets.iter().zip(&self.samples.sets);
        let cpu = self.cpu;
        sets.filter(move |(head, _)| head.measure == measure && is_of(cpu, &head.labels))
    }
}

fn is_of(cpu: Option<u64>, labels: &Labels) -> bool {
    cpu.is_none_or(|_| labels.number(CPU) == cpu)
}

/// Returns exact counts per value of a set.
///
/// # Errors
///
/// Says what is wrong with them.
pub fn counts(set: &SetSamples) -> Result<Counts, String> {
    Counts::from_pairs(set.counts.iter().map(|row| (row.value, row.count)))
        .map_err(|error| error.to_string())
}
