//! The grammar of a target, and the table of those that exist.
//!
//! A target is a name, then options: `name,key=value,key=value`. Names and options are checked
//! before anything starts.

use crate::error::TargetError;
use crate::process::Process;
use crate::{Target, agent};

/// Describes a kind of target.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// Makes a target of the kind.
    make: fn(&Spec<'_>) -> Result<Box<dyn Target>, TargetError>,
}

/// Lists the kinds of target.
pub const KINDS: &[Kind] = &[Kind {
    name: "process",
    summary: "a process on this machine",
    make: |spec| {
        spec.only(&[])?;
        Ok(Box::new(Process::new(agent::Agent::find())))
    },
}];

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
    (kind.make)(&Spec {
        target: kind.name,
        options: parts.collect(),
    })
}

/// Holds the options of a target as they were written.
struct Spec<'a> {
    target: &'static str,
    options: Vec<&'a str>,
}

impl Spec<'_> {
    /// Refuses options that are not in `known`.
    fn only(&self, known: &[&str]) -> Result<(), TargetError> {
        let key = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
        let Some(option) = self
            .options
            .iter()
            .map(|option| key(option))
            .find(|key| !known.contains(&key.as_str()))
        else {
            return Ok(());
        };
        let known = match known {
            [] => "; it takes none".to_owned(),
            known => format!("; it takes {}", known.join(", ")),
        };
        Err(TargetError::UnknownOption {
            target: self.target,
            option,
            known,
        })
    }
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
                "there is no target 'dokcer'; known: process. `tare targets` tells which are usable",
            ),
            (
                "",
                "there is no target ''; known: process. `tare targets` tells which are usable",
            ),
            (
                "process,cpus=2",
                "the target 'process' has no option 'cpus'; it takes none",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), message);
        }
    }
}
