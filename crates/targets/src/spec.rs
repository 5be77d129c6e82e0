//! The grammar of a target, and the table of those that exist.
//!
//! A target is a name, then options: `name,key=value,key=value`. Names and options are checked
//! before anything starts.

use crate::Target;
use crate::error::TargetError;
use crate::measured::MeasuredFile;
use crate::options::Options;
use crate::process::Process;
use crate::unikernel::{Settings, Unikernel};

/// Describes a kind of target.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// Makes a target of the kind.
    make: fn(Options<'_>) -> Result<Box<dyn Target>, TargetError>,
}

/// Lists the kinds of target.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "process",
        summary: "a process on this machine",
        make: |options| {
            options.finish()?;
            Ok(Box::new(Process::new(MeasuredFile::agent())))
        },
    },
    Kind {
        name: "unikernel",
        summary: "the measured code without an operating system, as a guest in QEMU",
        make: |options| Ok(Box::new(Unikernel::new(Settings::read(options)?))),
    },
];

/// Makes the target that a text names.
///
/// # Errors
///
/// Returns [`TargetError`] for an unknown name or option. Whether the target can be used is told
/// by [`Target::availability`].
pub fn parse(text: &str) -> Result<Box<dyn Target>, TargetError> {
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default();
    let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        return Err(TargetError::Unknown {
            name: name.to_owned(),
            known: known.join(", "),
        });
    };
    (kind.make)(Options::split(kind.name, parts)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_made_by_its_name() {
        for kind in KINDS {
            assert_eq!(parse(kind.name).unwrap().spec(), kind.name);
        }
    }

    #[test]
    fn unknown_names_and_options_are_told() {
        for (text, message) in [
            (
                "dokcer",
                "there is no target 'dokcer'; known: process, unikernel. `tare targets` tells which are usable",
            ),
            (
                "",
                "there is no target ''; known: process, unikernel. `tare targets` tells which are usable",
            ),
            (
                "process,cpus=2",
                "the target 'process' has no option 'cpus'; it takes: none",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message);
        }
    }
}
