//! The parameters of `primitives`.

use std::io;
use std::path::Path;

use tare_host::read_ordinary;
use tare_lab::ExperimentError;
use tare_lab::parameter::{Parameter, Takes, Values};
use tare_lab::units::bytes;
use tare_measured::primitives::{FOLDER, Primitive};
use tare_wire::cpus::Cpus;

use super::contradiction;

const BASE: Parameter = Parameter {
    heading: "Primitives",
    ..Parameter::NEW
};

pub(super) const ONLY: Parameter = Parameter {
    name: "only",
    value: "PATTERN",
    takes: Takes::text(
        "the id of a primitive with * and ? for any characters, an area or a tag",
        is_known,
    ),
    many: true,
    default: "all",
    meaning: "Primitives to measure: ids with * and ? for any characters, an area (processor, syscall, signal, process, switch, \
              scheduling, memory, fault, ipc, network, file) or a tag",
    ..BASE
};

pub(super) const BUDGET: Parameter = Parameter {
    name: "budget",
    value: "TIME",
    takes: Takes::time("ms", [1_000_000, 10_000_000_000]),
    default: "20ms",
    meaning: "Measurement time of each series of a primitive: milliseconds, or with a unit",
    ..BASE
};

pub(super) const LIMIT: Parameter = Parameter {
    name: "primitive-limit",
    value: "TIME",
    takes: Takes::time("s", [1_000_000_000, 3_600_000_000_000]),
    default: "25s",
    meaning: "Time limit for one primitive, after which the others go on: seconds, or with a unit",
    ..BASE
};

pub(super) const DIR: Parameter = Parameter {
    name: "dir",
    takes: PATH,
    value: "DIR",
    default: FOLDER,
    meaning: "Folder, on the target, in which files are written and removed again",
    ..BASE
};

pub(super) const LARGEST: Parameter = Parameter {
    name: "largest-file",
    value: "SIZE",
    takes: Takes::text("a size such as 512M or 8G", |text| bytes(text).is_some()),
    default: "128M",
    meaning: "Size of the largest file written to find the file cache's capacity, such as 8G",
    ..BASE
};

pub(super) const REMOTE: Parameter = Parameter {
    name: "remote-dir",
    takes: PATH,
    value: "DIR",
    default: "none",
    meaning: "Directory of a remote file system on the target, to read a file from",
    ..BASE
};

pub(super) const PEER: Parameter = Parameter {
    name: "peer",
    value: "ADDRESS:PORT",
    takes: Takes::text("an address with a port, such as 10.0.0.2:7000", |text| {
        text.contains(':') && is_word(text)
    }),
    default: "none",
    meaning: "Address of another machine that runs 'tare-agent peer ADDRESS:PORT', to measure the network to it as well",
    ..BASE
};

pub(super) const PREDICTIONS: Parameter = Parameter {
    name: "predictions",
    value: "FILE",
    takes: Takes::text("a file of predictions (.toml)", |text| {
        text.ends_with(".toml")
    }),
    default: "those of tare",
    meaning: "File whose predictions take the place of tare's own, line by line",
    ..BASE
};

const CPU: Parameter = Parameter {
    name: "cpu",
    value: "N[,OTHER[,FAR]]",
    takes: Takes::text("a CPU, or up to three separated by commas", |text| {
        cpus(text).is_some()
    }),
    default: "an isolated one, else the quietest other than CPU 0; with one of its socket that shares no core with it, and one of another socket",
    meaning: "CPU to measure on, and others for the peer process",
    ..BASE
};

/// The greatest size of a file of predictions, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// A path that is a word of a plan.
const PATH: Takes = Takes::Text {
    wanted: "an absolute path without blanks",
    fits: |text| text.starts_with('/') && is_word(text),
};

/// Lists the parameters.
pub(super) const ALL: &[Parameter] = &[
    ONLY,
    BUDGET,
    LIMIT,
    DIR,
    LARGEST,
    REMOTE,
    PEER,
    PREDICTIONS,
    CPU,
];

fn is_word(text: &str) -> bool {
    !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Says whether a pattern means at least one primitive.
fn is_known(pattern: &str) -> bool {
    !pattern.contains(',')
        && tare_measured::primitives::linux::all().any(|primitive| primitive.is_meant(pattern))
}

/// Reads the measured CPU, and those of the other side.
fn cpus(text: &str) -> Option<(u32, Vec<u32>)> {
    let all: Option<Vec<u32>> = text.split(',').map(|cpu| cpu.parse().ok()).collect();
    let all = all?;
    let set = Cpus::checked(all.iter().copied())?;
    // None is given twice.
    let (measured, others) = all.split_first()?;
    (set.count() as usize == all.len() && all.len() <= 3).then(|| (*measured, others.to_vec()))
}

/// Returns the CPUs that were given: the measured one, and the others.
pub(super) fn given_cpus(values: &Values) -> Option<(u32, Vec<u32>)> {
    values.text(CPU.name).and_then(cpus)
}

/// Returns them as a set.
pub(super) fn cpu_set(values: &Values) -> Option<Cpus> {
    let (measured, others) = given_cpus(values)?;
    Some(std::iter::once(measured).chain(others).collect())
}

/// Returns the primitives that are wanted, in the order of reports.
pub(super) fn wanted(values: &Values) -> Vec<&'static Primitive> {
    let patterns = values.texts(ONLY.name);
    let is_wanted = |primitive: &&Primitive| {
        patterns.is_empty() || patterns.iter().any(|pattern| primitive.is_meant(pattern))
    };
    tare_measured::primitives::linux::all()
        .filter(is_wanted)
        .collect()
}

/// Reads the file of predictions that was given.
///
/// # Errors
///
/// Returns [`ExperimentError`] if it can't be read.
pub(super) fn own_predictions(values: &Values) -> Result<Option<String>, ExperimentError> {
    let path = values.text(PREDICTIONS.name);
    path.map(|path| {
        read_ordinary(Path::new(path), MOST_BYTES)
            .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
            .map_err(|error| contradiction(format!("predictions {path} can't be read: {error}")))
    })
    .transpose()
}
