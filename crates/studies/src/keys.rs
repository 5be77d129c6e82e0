//! The keys of a study file, for what reads a file and what checks its documentation. Their values,
//! defaults and meanings stand in `docs/studies.md`.
//!
//! The keys of an experiment are these and its own parameters
//! ([`tare_lab::Experiment::parameters`]).

/// The keys of the study itself.
pub const STUDY: &[&str] = &[
    "name",
    "title",
    "reproduces",
    "targets",
    "loads",
    "runs",
    "order",
    "seed",
    "cpu",
    "cell-limit",
    "settings",
    "start-engine",
    "experiment",
    "exclude",
    "quick",
];

/// The keys that every `[[experiment]]` has, whatever its kind.
pub const EXPERIMENT: &[&str] = &["kind", "targets", "loads", "runs", "cell-limit", "quick"];

/// The keys of `[[exclude]]`: a combination is excluded if it has one of the values of every key
/// that is given. Names of parameters that take several values are keys, too.
pub const EXCLUDE: &[&str] = &["kind", "target", "load"];

/// The keys of the study and of an experiment that a `[quick]` table can't have.
pub const FULL_ONLY: &[&str] = &[
    "name",
    "title",
    "reproduces",
    "order",
    "experiment",
    "exclude",
    "kind",
    "quick",
];
