//! The table of the kinds of target that exist, and how a target is made of a text.
//!
//! A target is a kind, then options ([`tare_results::target`]). Both are checked before anything starts.

use tare_results::target::{self, TargetOption, TargetSpec};

use crate::container;
use crate::container::docker::DockerTarget;
use crate::container::podman::Podman;
use crate::container::runtime::Runtime;
use crate::error::TargetError;
use crate::foreign::{self, Foreign};
use crate::linux::{self, Linux};
use crate::measured::MeasuredFile;
use crate::options::Options;
use crate::process::Process;
use crate::ssh::{self, Ssh};
use crate::unikernel::{Settings, Unikernel};
use crate::{Availability, Target};

/// A kind of target.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// What must be said of it besides its name, if something must.
    pub required: Option<Required>,
    /// Makes a target of the kind.
    make: Make,
}

type Make = fn(Options) -> Result<Box<dyn Target>, TargetError>;

/// What a kind of target needs that is nothing by its name alone.
#[derive(Clone, Copy, Debug)]
pub struct Required {
    /// How it is written.
    pub form: &'static str,
    /// Looks whether such a target can be used here, as far as that does not depend on what is left
    /// open.
    here: fn() -> Availability,
}

impl Kind {
    /// Tell whether targets of this kind can be used here, and what would have to be done.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if the kind can't be made, which is a mistake in the table.
    pub fn availability(&self) -> Result<Availability, TargetError> {
        match self.required {
            Some(required) => Ok((required.here)()),
            None => Ok(parse(self.name)?.availability()),
        }
    }
}

/// The kinds of target.
pub const KINDS: &[Kind] = &[
    kind("process", "a process on this machine", |options| {
        options.finish()?;
        Ok(Box::new(Process::new(MeasuredFile::agent())))
    }),
    kind("docker", "a container of Docker's engine", |options| {
        Ok(Box::new(DockerTarget::new(container::Settings::read(
            options,
        )?)))
    }),
    kind(
        "podman",
        "a container of podman, which has no daemon",
        |options| Ok(Box::new(Podman::new(container::Settings::read(options)?))),
    ),
    kind(
        "runc",
        "a container of the runtime runc, without an engine",
        |options| Ok(Box::new(Runtime::runc(container::Settings::read(options)?))),
    ),
    kind(
        "crun",
        "a container of the runtime crun, without an engine",
        |options| Ok(Box::new(Runtime::crun(container::Settings::read(options)?))),
    ),
    kind(
        "linux",
        "a Linux kernel of its own and nothing but the agent on it, as a guest in QEMU",
        |options| Ok(Box::new(Linux::new(linux::Settings::read(options)?))),
    ),
    Kind {
        required: Some(Required {
            form: ssh::FORM,
            here: ssh::here,
        }),
        ..kind(
            "ssh",
            "the agent on another machine, by OpenSSH's client",
            |options| Ok(Box::new(Ssh::new(ssh::Settings::read(options)?))),
        )
    },
    Kind {
        required: Some(Required {
            form: foreign::FORM,
            here: foreign::here,
        }),
        ..kind(
            "guest",
            "anything else that QEMU boots, to measure how it starts",
            |options| Ok(Box::new(Foreign::new(foreign::Settings::read(options)?))),
        )
    },
    kind(
        "unikernel",
        "the measured code without an operating system, as a guest in QEMU",
        |options| Ok(Box::new(Unikernel::new(Settings::read(options)?))),
    ),
];

const fn kind(name: &'static str, summary: &'static str, make: Make) -> Kind {
    Kind {
        name,
        summary,
        required: None,
        make,
    }
}

/// Make the target that a text names.
///
/// # Errors
///
/// Returns [`TargetError`] for an unknown name or option. Whether the target can be used is told
/// by [`Target::availability`].
pub fn parse(text: &str) -> Result<Box<dyn Target>, TargetError> {
    let (kind, options) = target::split(text);
    make(&kind, options)
}

/// Make the target that a plan names.
///
/// # Errors
///
/// Returns [`TargetError`] if this version does not know it.
pub fn of(spec: &TargetSpec) -> Result<Box<dyn Target>, TargetError> {
    make(&spec.kind, spec.options.clone())
}

fn make(name: &str, options: Vec<TargetOption>) -> Result<Box<dyn Target>, TargetError> {
    let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        return Err(TargetError::Unknown {
            name: name.to_owned(),
            known: known.join(", "),
        });
    };
    (kind.make)(Options::new(kind.name, options))
}

#[cfg(test)]
mod tests {
    use tare_results::target::{Clock, Group};

    use super::*;

    #[test]
    fn every_kind_is_made_by_its_name() {
        for kind in KINDS {
            match (parse(kind.name), kind.required) {
                (Ok(target), None) => assert_eq!(target.spec(), kind.name),
                (Err(error), Some(required)) => {
                    let start = format!("{},", kind.name);
                    assert!(required.form.starts_with(&start));
                    assert!(error.to_string().ends_with(required.form), "{error}");
                }
                (made, _) => panic!("{}: {made:?}", kind.name),
            }
        }
    }

    #[test]
    fn the_group_and_the_clock_are_the_target_s() {
        for (text, group, clock) in [
            ("process", Group::Process, Clock::Host),
            ("crun", Group::Container, Clock::Host),
            ("docker,cpus=all", Group::Container, Clock::Host),
            ("linux,preempt=full", Group::LinuxGuest, Clock::Host),
            ("linux,root=debian,cpus=2", Group::DebianGuest, Clock::Host),
            (
                "linux,clock=instructions",
                Group::LinuxGuest,
                Clock::Instructions,
            ),
            (
                "linux,cmdline=quiet,,clock=instructions",
                Group::LinuxGuest,
                Clock::Host,
            ),
            ("unikernel,irq=off", Group::Unikernel, Clock::Host),
            ("ssh,host=lab", Group::Remote, Clock::Host),
        ] {
            let spec = parse(text).unwrap().spec();
            assert_eq!((spec.group, spec.clock), (group, clock), "{text}");
            assert_eq!(of(&spec).unwrap().spec(), spec);
        }
    }

    #[test]
    fn unknown_names_and_options_are_told() {
        for (text, message) in [
            (
                "dokcer",
                "there is no target 'dokcer'; known: process, docker, podman, runc, crun, linux, ssh, guest, unikernel. `tare targets` tells which are usable",
            ),
            (
                "",
                "there is no target ''; known: process, docker, podman, runc, crun, linux, ssh, guest, unikernel. `tare targets` tells which are usable",
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
