//! What was measured in one cell, the same for every experiment.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Arrived, Trace};
use crate::{bounded, bounds};
pub use tare_wire::record::{Calibration, Exceeded, FrequencySource, Unit};

/// The measurements of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Who measured: once for each program, image or way of preparing it that differs.
    #[serde(deserialize_with = "bounded::list::<{ bounds::MOST_PROGRAMS }, _, _>")]
    pub programs: Vec<Program>,
    /// Numbers that are not sampled.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "bounded::list::<{ bounds::MOST_CELL_VALUES }, _, _>"
    )]
    pub values: Vec<Value>,
    /// The heads of the sample sets; a set's place here is its number in the Parquet files.
    #[serde(deserialize_with = "bounded::list::<{ bounds::MOST_SETS }, _, _>")]
    pub sets: Vec<SetHead>,
    /// Values above the plan's limit, in the order in which they were seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceeded: Vec<Exceeded>,
    /// The kernel's events around the greatest samples, where they were traced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<Trace>,
    /// The result of the arrivals, where there were many instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived: Option<Arrived>,
}

/// A program or image with measured code, how it was prepared, and what it told of its place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Who ran.
    pub agent: Agent,
    /// How it was prepared.
    pub preparation: Preparation,
    /// The cost of the stamps and the loop.
    pub calibration: Calibration,
    /// Each source's claim about the TSC's frequency.
    pub frequencies: Vec<Frequency>,
    /// Events counted on the measured CPU during the measurement.
    #[serde(default)]
    pub counters: Vec<Counter>,
    /// Facts about the place, as seen from inside.
    #[serde(
        default,
        deserialize_with = "bounded::list::<{ bounds::MOST_FACTS }, _, _>"
    )]
    pub facts: Vec<Fact>,
}

/// What distinguishes sets, values and rows of one measure from each other: `thread=0 phase=3`.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Labels(
    /// Shared, as all figures of a set have the same.
    #[serde(serialize_with = "shared", deserialize_with = "owned")]
    Arc<BTreeMap<String, String>>,
);

fn shared<S: Serializer>(labels: &BTreeMap<String, String>, to: S) -> Result<S::Ok, S::Error> {
    labels.serialize(to)
}

fn owned<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<BTreeMap<String, String>>, D::Error> {
    let members = bounded::members(from, "labels", bounds::MOST_LABELS)?;
    Ok(Arc::new(members.into_iter().collect()))
}

/// The head of a sample set: all samples of one measure under one choice of labels. Values and
/// times are in its unit; the samples themselves are rows of the Parquet files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetHead {
    /// The measured quantity: `duration`, `gap`, `latency`.
    pub measure: String,
    /// What distinguishes the set from others of its measure.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Unit of values and times.
    pub unit: Unit,
    /// Samples.
    pub n: u64,
    /// Sum of all values.
    pub sum: u64,
    /// Least value; 0 where values below the threshold are not known one by one.
    pub min: u64,
    /// Greatest value, whether it is counted and listed or not.
    pub max: u64,
    /// Time of the first sample; of a set that is one part of a measurement in time, of the whole
    /// of it.
    pub first: u64,
    /// Time at which the last sample ended; likewise.
    pub last: u64,
    /// Time between two samples that are due: sample `i` is due at `first + i × period`. 0 if
    /// samples have times of their own.
    #[serde(default)]
    pub period: u64,
    /// Least value that is listed in `events.parquet`.
    pub threshold: u64,
    /// Samples at or above the threshold.
    pub seen: u64,
    /// Samples listed: fewer than seen if the buffer was full.
    pub kept: u64,
    /// Samples listed, where the others are only counted, values from 1024 ticks on to 2 %; null
    /// where all that are kept are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<u64>,
    /// Greatest value at or above the threshold that is not listed; 0 if all are.
    #[serde(default)]
    pub unkept_max: u64,
    /// Sum of the values at or above the threshold that are not listed.
    #[serde(default)]
    pub unkept_sum: u64,
    /// Sum of the squares of the values below the threshold, where `counts.parquet` holds only the
    /// listed ones; null where it holds all samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub squares_below: Option<u64>,
    /// Samples that are in no count, because there was no room for another value.
    #[serde(default)]
    pub uncounted: u64,
    /// Sum of their values.
    #[serde(default)]
    pub uncounted_sum: u64,
    /// Whether that is, and the sum of all with it, what they add up to at least: another tool's file
    /// has a mean that is cut off, or none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sum_at_least: bool,
    /// Least of their values, or less: all are from here to the greatest.
    #[serde(default)]
    pub uncounted_min: u64,
    /// Greatest of their values.
    #[serde(default)]
    pub uncounted_max: u64,
    /// Samples whose end is before their start, since clocks of CPUs differ. They are in no other
    /// figure.
    #[serde(default)]
    pub backwards: u64,
    /// Width of one bin of `envelope.parquet`, from `first` on; 0 if the set has no envelope.
    pub bin: u64,
    /// Samples in `raw.parquet`.
    pub raw: u64,
}

/// One number that is not sampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// The quantity: `missed`, `work`.
    pub measure: String,
    /// What distinguishes it from others of its measure.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Its unit; empty for a mere number.
    pub unit: String,
    /// The number.
    pub value: f64,
}

impl Record {
    /// Returns the program that measured, where there was but one: the first.
    pub fn program(&self) -> Option<&Program> {
        self.programs.first()
    }

    /// Returns the sets of a measure with their numbers.
    pub fn sets_of<'a>(&'a self, measure: &'a str) -> impl Iterator<Item = (usize, &'a SetHead)> {
        let sets = self.sets.iter().enumerate();
        sets.filter(move |(_, head)| head.measure == measure)
    }

    /// Returns a number that is not sampled.
    pub fn value(&self, measure: &str, labels: &Labels) -> Option<f64> {
        let mut values = self.values.iter();
        let found = values.find(|value| value.measure == measure && value.labels == *labels)?;
        Some(found.value)
    }
}

impl SetHead {
    /// Returns the time from the first sample to the end of the last one.
    pub fn length(&self) -> u64 {
        self.last.wrapping_sub(self.first)
    }

    /// Returns how many samples are listed one by one.
    pub fn listed(&self) -> u64 {
        self.listed.unwrap_or(self.kept)
    }
}

impl Program {
    /// Returns whether it reported itself: a command of the user's, or a foreign guest, does not,
    /// so its preparation and calibration are unknown.
    pub fn is_reported(&self) -> bool {
        !self.agent.version.is_empty()
    }

    /// Returns a fact about the place as a whole.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.fact_of(name, &Labels::default())
    }

    /// Returns a fact about one part of the place: about a thread, for example.
    pub fn fact_of(&self, name: &str, labels: &Labels) -> Option<&str> {
        let mut facts = self.facts.iter();
        let found = facts.find(|fact| fact.name == name && fact.labels == *labels)?;
        Some(&found.value)
    }
}

impl Labels {
    /// Reads labels from words `key=value`.
    ///
    /// # Errors
    ///
    /// Returns the word that is none, or whose key is given twice.
    pub fn parse(words: &str) -> Result<Self, String> {
        let mut labels = BTreeMap::new();
        for word in words.split_ascii_whitespace() {
            let (key, value) = word.split_once('=').ok_or_else(|| word.to_owned())?;
            if labels.insert(key.to_owned(), value.to_owned()).is_some() {
                return Err(word.to_owned());
            }
        }
        Ok(Self(Arc::new(labels)))
    }

    /// Makes labels from pairs.
    pub fn of<const N: usize>(pairs: [(&str, &str); N]) -> Self {
        let owned = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Self(Arc::new(owned.into()))
    }

    /// Returns the same with one more, or another value for one.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl fmt::Display) -> Self {
        Arc::make_mut(&mut self.0).insert(key.to_owned(), value.to_string());
        self
    }

    /// Returns the same without one.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        Arc::make_mut(&mut self.0).remove(key);
        self
    }

    /// Returns the value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Returns the value of a label that is a whole number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    /// Iterates over keys and values, by rising key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Says whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (key, value)) in self.iter().enumerate() {
            let between = if number == 0 { "" } else { " " };
            write!(f, "{between}{key}={value}")?;
        }
        Ok(())
    }
}

/// One thing about the place where the measured code ran, as it looks from inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// Its name: `preemption model`, for example.
    pub name: String,
    /// The part that it is about: `thread=1`. Empty for the place as a whole.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Its value.
    pub value: String,
}

/// The fact of imported results that says when they were measured, if their file does.
pub const STARTED: &str = "start time";

/// The fact of imported results whose tool stopped at the first sample above its threshold, with
/// the text that shows it.
pub const STOPPED: &str = "stopped at its threshold";

/// A count of events on the measured CPU during the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counter {
    /// The kind of event: `timer interrupts`, for example.
    pub name: String,
    /// How often it happened.
    pub count: u64,
    /// The CPU, of several that were measured at once.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// Who ran the measured code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// Its version.
    pub version: String,
    /// The system that the measured code ran on: `linux` or `unikernel`.
    pub environment: String,
    /// SHA-256 of the program or image, in hexadecimal.
    pub sha256: String,
    /// Whether an emulator (QEMU's TCG) executed the measured code: then the figures say nothing
    /// of a machine's speed.
    pub emulated: bool,
    /// What executed a guest: `KVM` or `TCG`, with QEMU's version. None where there is no guest.
    #[serde(default)]
    pub accelerator: Option<String>,
    /// The kernel beneath it that the target brought along, with its package and SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// How the measured code was prepared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Preparation {
    /// CPU that it was pinned to.
    pub cpu: Option<u32>,
    /// Size of the buffers in bytes.
    pub buffer_bytes: u64,
    /// Whether they could not be paged out.
    pub locked: bool,
    /// Whether /dev/cpu_dma_latency was held at 0.
    pub latency_held: bool,
}

/// One source's claim about the TSC's frequency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Frequency {
    /// Where the figure comes from.
    pub source: FrequencySource,
    /// The figure.
    pub hz: f64,
    /// Uncertainty of the reading in parts per million, where it is known.
    pub uncertainty_ppm: Option<f64>,
    /// Further details: the kernel's clock source, for example.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_words_and_a_map_in_json() {
        let labels = Labels::parse("thread=1  phase=0").unwrap();
        assert_eq!(labels, Labels::of([("phase", "0"), ("thread", "1")]));
        assert_eq!(labels.to_string(), "phase=0 thread=1");
        assert_eq!(Labels::parse(&labels.to_string()), Ok(labels.clone()));
        let json = serde_json::to_string(&labels).unwrap();
        assert_eq!(json, r#"{"phase":"0","thread":"1"}"#);
        assert_eq!(serde_json::from_str::<Labels>(&json).unwrap(), labels);
        assert_eq!(
            (labels.number("thread"), labels.number("load")),
            (Some(1), None)
        );
        assert_eq!(labels.get("phase"), Some("0"));
        let labels = labels.with("between", "yes").with("phase", "unknown");
        assert_eq!(labels.number("phase"), None);
        assert_eq!(
            labels.without("between").to_string(),
            "phase=unknown thread=1"
        );
        assert!(Labels::parse(" ").unwrap().is_empty());
    }

    #[test]
    fn words_that_are_no_labels_are_named() {
        for (words, wrong) in [("thread=1 idle", "idle"), ("a=1 b=2 a=3", "a=3")] {
            assert_eq!(Labels::parse(words), Err(wrong.to_owned()));
        }
    }
}
