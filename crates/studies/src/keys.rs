//! The keys of a study file, as data: what reads a file, explains it and describes the format all
//! look here.
//!
//! The keys of an experiment are these and the parameters that it says itself
//! ([`tare_lab::Experiment::parameters`]).

/// Describes a key of a study file.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// The values that it takes.
    pub takes: &'static str,
    /// The default.
    pub default: &'static str,
    /// The meaning.
    pub meaning: &'static str,
    /// Whether a [quick] table may have it.
    pub in_quick: bool,
}

/// Lists the keys of the study itself.
pub const STUDY: &[Key] = &[
    key("name", "text", "the file's name", "how the run is called"),
    key("title", "text", "none", "what it is about, in a line"),
    key(
        "reproduces",
        "name of a published study",
        "none",
        "the published study whose tables and claims the report shows next to the figures",
    ),
    quick("targets", "list of targets", "process", "where it runs"),
    quick("loads", "list of loads", "idle", "the background work"),
    quick(
        "runs",
        "whole number",
        "6",
        "how often each combination runs",
    ),
    key(
        "order",
        "\"interleaved\"",
        "\"interleaved\"",
        "each block holds every combination once, in random order",
    ),
    quick(
        "seed",
        "whole number",
        "random, and printed",
        "seed of the order within each block",
    ),
    quick(
        "cpu",
        "whole number",
        "an isolated one, else the quietest other than CPU 0",
        "CPU to measure on",
    ),
    quick(
        "cell-limit",
        "text: number and unit (ms, s, m, h)",
        "by the cell's estimate",
        "time after which a cell counts as hung",
    ),
    quick(
        "settings",
        "table of texts",
        "none",
        "kernel settings changed for the time of the run, by sysctl name or file",
    ),
    quick(
        "start-engine",
        "true",
        "false",
        "a private Docker engine runs while containers of it are measured, as with --start-engine",
    ),
    key(
        "experiment",
        "tables [[experiment]]",
        "",
        "what is measured",
    ),
    key(
        "exclude",
        "tables [[exclude]]",
        "none",
        "combinations that are left out",
    ),
    key(
        "quick",
        "table [quick]",
        "none",
        "what is different in the shorter variant, --quick",
    ),
];

/// Lists the keys that every [[experiment]] has, whatever its kind.
pub const EXPERIMENT: &[Key] = &[
    key("kind", "name of an experiment", "", "which experiment"),
    quick("targets", "list of targets", "the study's", "where it runs"),
    quick(
        "loads",
        "list of loads",
        "the study's",
        "the background work",
    ),
    quick(
        "runs",
        "whole number",
        "the study's",
        "how often each combination runs",
    ),
    quick(
        "cell-limit",
        "text: number and unit (ms, s, m, h)",
        "the study's",
        "time after which a cell counts as hung",
    ),
    key(
        "quick",
        "table [experiment.quick]",
        "none",
        "what is different in the shorter variant",
    ),
];

/// Lists the keys of [[exclude]]: a combination is excluded if it has one of the values of every
/// key that is given. Names of parameters that take several values are keys, too.
pub const EXCLUDE: &[Key] = &[
    key("kind", "list of experiments", "any", "of these experiments"),
    key("target", "list of targets", "any", "on these targets"),
    key("load", "list of loads", "any", "under these loads"),
];

const fn key(
    name: &'static str,
    takes: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key {
        name,
        takes,
        default,
        meaning,
        in_quick: false,
    }
}

const fn quick(
    name: &'static str,
    takes: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key {
        in_quick: true,
        ..key(name, takes, default, meaning)
    }
}
