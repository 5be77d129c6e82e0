//! How rows are named in sentences, and how figures are written.

use super::cell::CellData;
use super::derive::Row;
use super::measure::{Figure, Measure};
use crate::format::Numbers;
use tare_results::model::Labels;

/// Writes a figure with its unit.
#[must_use]
pub fn written(value: f64, unit: &str) -> String {
    const N: Numbers = Numbers::PLAIN;
    match unit {
        "ns" => N.ns(value, None),
        "1" => N.percent(value),
        "1/s" => N.rate(value),
        "bytes" => N.bytes(value as u64),
        "bytes/s" => N.byte_rate(value),
        "Hz" => format!("{} GHz", N.fixed(value / 1e9, 2)),
        "" => N.short(value),
        unit => format!("{} {unit}", N.short(value)),
    }
}

impl Row {
    /// Returns whether a label has a value; `target`, `group` and `load` are labels, too.
    #[must_use]
    pub fn has(&self, label: &str, value: &str) -> bool {
        match label {
            "target" => self.target == value,
            "load" => self.load.as_str() == value,
            "group" => self.group.capabilities().id == value,
            label => {
                let own = self.labels.get(label);
                own.is_some_and(|own| is_value(label, own, value))
            }
        }
    }

    /// Names the row's target; marked if its times are not those of a machine.
    #[must_use]
    pub fn marked_target(&self) -> String {
        match (self.counts_instructions, self.emulated) {
            (true, _) => format!("{} (instructions)", self.target),
            (false, true) => format!("{} (emulated)", self.target),
            (false, false) => self.target.clone(),
        }
    }

    /// Names the row's target, with what must be known of it, load and labels:
    /// `unikernel (emulated) under dd, thread 0`.
    #[must_use]
    pub fn place(&self) -> String {
        self.marked_target() + &self.load.under() + &behind(&self.labels, &[])
    }

    /// Names the row in a sentence: `latency.p99.9 of process under dd`.
    #[must_use]
    pub fn name(&self) -> String {
        let Measure { id, .. } = self.measure;
        format!("{id}.{} of {}", self.figure, self.place())
    }
}

/// Writes labels except `told` behind a name: ` (dns), work=prime:1000 at 64/s`; nothing if there are
/// no others. The value `all` needs no word.
#[must_use]
pub fn behind(labels: &Labels, told: &[&str]) -> String {
    const SERVICE: &str = "service";
    let is_told = |key: &str| !told.contains(&key);
    let service = labels.get(SERVICE).filter(|_| is_told(SERVICE));
    let service = service.map(|service| format!(" ({service})"));
    // Arrays are those of all kernels.
    let kernel = labels.get("kernel").filter(|_| is_told("kernel"));
    let own = [SERVICE, "kernel"];
    let others = labels
        .iter()
        .filter(|(key, value)| is_told(key) && !own.contains(key) && *value != "all");
    let workload = labels.get("workload").filter(|_| is_told("workload"));
    let others = others.map(|(key, value)| match key {
        "area" | "primitive" => with(value),
        "size" if workload.is_some() => String::new(),
        "workload" => match labels.get("size").filter(|_| is_told("size")) {
            Some(size) => with(&format!("{value} {size}")),
            None => with(value),
        },
        "size" if labels.get("kernel").is_some() => {
            let bytes = labels.number(key).unwrap_or_default();
            with(&format!("arrays of {}", Numbers::PLAIN.bytes(bytes)))
        }
        "network" => with(&format!("{value} network")),
        "rate" if value == "highest" => " at its highest rate".to_owned(),
        _ => with(&labelled(labels, key, value)),
    });
    let (rates, others): (Vec<_>, Vec<_>) = others.partition(|text| text.starts_with(" at "));
    let others = others.into_iter().chain(kernel.map(with));
    service.into_iter().chain(others).chain(rates).collect()
}

/// Writes one more word behind a name: `, alone`, ` at 64/s`.
#[must_use]
pub fn with(word: &str) -> String {
    let between = if word.ends_with("/s") { " at" } else { "," };
    format!("{between} {word}")
}

/// Writes a label among others: `thread 0`, `2 threads`, `CPU 2`, `traced=yes`; an interval in parts
/// of a second or whole seconds, and an offered rate, as a rate: `64/s`, `0.5/s`, and `alone` as that;
/// a size in bytes with its unit: `size=64KiB`. The size of a workload is a number of its elements.
#[must_use]
pub fn labelled(labels: &Labels, key: &str, value: &str) -> String {
    let is_bytes = ["size", "memory"].contains(&key) && labels.get("workload").is_none();
    let bytes = value.parse::<u64>().ok().filter(|_| is_bytes);
    if let Some(bytes) = bytes.filter(|bytes| *bytes >= 1_024) {
        return format!("{key}={}", Numbers::PLAIN.bytes(bytes).replace(' ', ""));
    }
    let seconds = seconds(value).filter(|_| key == "interval");
    let rate = seconds.filter(|seconds| value.contains('/') || *seconds >= 1.0);
    let rate = rate.map(|seconds| 1.0 / seconds);
    let offered = labels.number("rate").filter(|_| key == "rate");
    match (key, value, rate.or(offered.map(|rate| rate as f64))) {
        ("interval", "alone", _) => value.to_owned(),
        ("cpu", cpu, _) if cpu.parse::<u32>().is_ok() => format!("CPU {cpu}"),
        ("class" | "part" | "phase" | "thread", ..) => format!("{key} {value}"),
        ("threads", number, _) => format!("{number} threads"),
        (_, _, Some(rate)) => Numbers::PLAIN.rate(rate),
        _ => format!("{key}={value}"),
    }
}

/// Returns whether a label has a value that may be written in another way: an interval is also that
/// of a rate, or in another unit.
pub(crate) fn is_value(key: &str, own: &str, wanted: &str) -> bool {
    let is_near = |(own, wanted): (f64, f64)| (own - wanted).abs() < 1e-9 * own;
    let both = || seconds(own).zip(seconds(wanted));
    own == wanted || key == "interval" && both().is_some_and(is_near)
}

/// Reads an interval in seconds: `64/s`, `1/64s`, `3/8s`, `20ms`.
fn seconds(interval: &str) -> Option<f64> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0);
    if let Some((above, below)) = interval.split_once('/') {
        return Some(match below.strip_suffix('s')? {
            "" => 1.0 / number(above)?,
            below => number(above)? / number(below)?,
        });
    }
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let mut units = units.into_iter();
    units.find_map(|(unit, size)| Some(number(interval.strip_suffix(unit)?)? * size))
}

/// Says in one short line what a cell has shown of its first measure.
///
/// # Errors
///
/// The problem with the samples of the cell.
pub fn live(measures: &'static [Measure], data: &CellData<'_>) -> Result<String, String> {
    const SHOWN: usize = 3;
    for measure in measures {
        let samples = measure.samples(data)?;
        let Some((labels, sample)) = samples.first() else {
            continue;
        };
        let unit = if sample.is_in_cycles() {
            "cycles"
        } else {
            measure.unit
        };
        let figure = |figure: &Figure| {
            let value = measure.figure(*figure, sample)?.value()?;
            Some(format!("{figure} {}", written(value, figure.unit(unit))))
        };
        let figures: Vec<String> = measure
            .figures
            .iter()
            .filter_map(figure)
            .take(SHOWN)
            .collect();
        // Of requests that were lost, no latency is known.
        if figures.is_empty() {
            continue;
        }
        let of = behind(labels, &[]);
        return Ok(format!("{}{of}: {}", measure.title, figures.join(", ")));
    }
    Err("it measured nothing".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_behind_a_name_as_in_sentences() {
        for (words, told, text) in [
            ("place=all rate=1000 service=dns", "", " (dns) at 1,000/s"),
            ("place=inside service=dns", "service", ", place=inside"),
            ("rate=highest service=dns", "", " (dns) at its highest rate"),
            ("interval=1/64s work=hello", "", ", work=hello at 64/s"),
            ("interval=alone part=main", "", ", alone, part main"),
            ("area=syscall primitive=getpid", "", ", syscall, getpid"),
            ("interval=100us", "", ", interval=100us"),
            ("cpu=2 workload=gap", "workload", ", CPU 2"),
            (
                "above=400cycles size=22 workload=prime",
                "",
                ", above=400cycles, prime 22",
            ),
            ("size=22 workload=prime", "workload", ", size=22"),
            (
                "phase=1 thread=0 threads=2",
                "",
                ", phase 1, thread 0, 2 threads",
            ),
            ("kernel=add size=16777216", "", ", arrays of 16 MiB, add"),
        ] {
            let labels = Labels::parse(words).unwrap();
            assert_eq!(behind(&labels, &[told]), text, "{words}");
        }
    }
}
