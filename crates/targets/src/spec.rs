//! The table of the kinds of target, and how a target is made from a text.
//!
//! A target is a kind and options ([`tare_results::target`]). Both are checked before anything
//! starts.

use std::sync::OnceLock;

use tare_host::visible_in_line;
use tare_results::target::{self, TargetOption, TargetSpec};

use crate::container::docker::DockerTarget;
use crate::container::podman::Podman;
use crate::container::runtime::Runtime;
use crate::error::TargetError;
use crate::foreign::{self, Foreign};
use crate::linux::{self, Linux};
use crate::measured::MeasuredFile;
use crate::options::{self, Opt, Options};
use crate::process::Process;
use crate::ssh::{self, Ssh};
use crate::unikernel::{self, Unikernel};
use crate::{Availability, Target, container};

/// A kind of target.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// A description in a few words.
    pub summary: &'static str,
    /// Its options, in canonical order.
    pub options: &'static [Opt],
    /// Makes a target.
    pub make: fn(&Options) -> Result<Box<dyn Target>, TargetError>,
    /// Finds out whether targets can be used here, as far as that does not depend on options that
    /// must be given; None if there are no such options.
    pub here: Option<fn() -> Availability>,
}

impl Kind {
    /// Returns whether targets of this kind can be used here, and what to do if not.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if the kind cannot be made, which is a mistake in the table.
    pub fn availability(&self) -> Result<Availability, TargetError> {
        match self.here {
            Some(here) => Ok(here()),
            None => Ok(parse(self.name)?.availability()),
        }
    }

    /// Returns how targets of this kind are written: `ssh,host=[USER@]HOST[,port=N]…`.
    pub fn form(&self) -> String {
        options::form(self.name, self.options)
    }
}

/// The kinds of target of tare.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "process",
        summary: "a process on this machine",
        options: &[],
        make: |_| Ok(Box::new(Process::new(MeasuredFile::agent()))),
        here: None,
    },
    Kind {
        name: "docker",
        summary: "a container of Docker's engine",
        options: container::WITH_IMAGE,
        make: |options| {
            let settings = container::Settings::read(options)?;
            Ok(Box::new(DockerTarget::new(settings)))
        },
        here: None,
    },
    Kind {
        name: "podman",
        summary: "a container of podman, which has no daemon",
        options: container::WITH_IMAGE,
        make: |options| Ok(Box::new(Podman::new(container::Settings::read(options)?))),
        here: None,
    },
    Kind {
        name: "runc",
        summary: "a container of the runtime runc, without an engine",
        options: container::OPTIONS,
        make: |options| Ok(Box::new(Runtime::runc(container::Settings::read(options)?))),
        here: None,
    },
    Kind {
        name: "crun",
        summary: "a container of the runtime crun, without an engine",
        options: container::OPTIONS,
        make: |options| Ok(Box::new(Runtime::crun(container::Settings::read(options)?))),
        here: None,
    },
    Kind {
        name: "linux",
        summary: "its own Linux kernel and nothing but the agent on it, as a guest in QEMU",
        options: linux::OPTIONS,
        make: |options| Ok(Box::new(Linux::new(linux::Settings::read(options)?))),
        here: None,
    },
    Kind {
        name: "ssh",
        summary: "the agent on another machine, by OpenSSH's client",
        options: ssh::OPTIONS,
        make: |options| Ok(Box::new(Ssh::new(ssh::Settings::read(options)))),
        here: Some(ssh::here),
    },
    Kind {
        name: "guest",
        summary: "anything else that QEMU boots, to measure how it starts",
        options: foreign::OPTIONS,
        make: |options| Ok(Box::new(Foreign::new(foreign::Settings::read(options)?))),
        here: Some(foreign::here),
    },
    Kind {
        name: "unikernel",
        summary: "the measured code without an operating system, as a guest in QEMU",
        options: unikernel::OPTIONS,
        make: |options| {
            Ok(Box::new(Unikernel::new(unikernel::Settings::read(
                options,
            )?)))
        },
        here: None,
    },
];

static INSTALLED: OnceLock<&'static [Kind]> = OnceLock::new();

/// Replaces the table by that of another program; `docs/adding-a-target.md` shows one. Must be
/// called before anything asks for a target; afterwards it has no effect.
pub fn install(kinds: &'static [Kind]) {
    let _ = INSTALLED.set(kinds);
}

/// Returns the kinds of target that exist.
pub fn kinds() -> &'static [Kind] {
    INSTALLED.get_or_init(|| KINDS)
}

/// Makes the target that a text names.
///
/// # Errors
///
/// Returns [`TargetError`] for an unknown kind or option. [`Target::availability`] says whether the
/// target can be used.
pub fn parse(text: &str) -> Result<Box<dyn Target>, TargetError> {
    let visible = visible_in_line(text);
    if visible != text {
        let problem = format!("the target '{visible}' has control characters, as none has");
        return Err(TargetError::Usage(problem));
    }
    let (kind, options) = target::split(text);
    make(&kind, options)
}

/// Makes the target that a plan names.
///
/// # Errors
///
/// Returns [`TargetError`] if this version does not know it.
pub fn of(spec: &TargetSpec) -> Result<Box<dyn Target>, TargetError> {
    make(&spec.kind, spec.options.clone())
}

fn make(name: &str, typed: Vec<TargetOption>) -> Result<Box<dyn Target>, TargetError> {
    let kind = find(name)?;
    (kind.make)(&Options::read(kind.name, kind.options, typed)?)
}

fn find(name: &str) -> Result<&'static Kind, TargetError> {
    let mut all = kinds().iter();
    all.find(|kind| kind.name == name).ok_or_else(|| {
        let known: Vec<&str> = kinds().iter().map(|kind| kind.name).collect();
        TargetError::Unknown {
            name: name.to_owned(),
            known: known.join(", "),
        }
    })
}

/// Reads options of a kind of target.
#[cfg(test)]
pub(crate) fn options(kind: &str, text: &str) -> Options {
    let comma = if text.is_empty() { "" } else { "," };
    let (_, typed) = target::split(&format!("{kind}{comma}{text}"));
    let kind = find(kind).unwrap();
    Options::read(kind.name, kind.options, typed).unwrap()
}

#[cfg(test)]
mod tests {
    use tare_results::target::{Clock, Group};

    use super::*;

    #[test]
    fn every_kind_is_made_by_its_name() {
        for kind in KINDS {
            match (parse(kind.name), kind.here) {
                (Ok(target), None) => assert_eq!(target.spec(), kind.name),
                (Err(error), Some(_)) => {
                    assert!(error.to_string().ends_with(&kind.form()), "{error}");
                }
                (made, _) => panic!("{}: {made:?}", kind.name),
            }
        }
    }

    #[test]
    fn control_characters_are_refused_in_one_line() {
        for text in [
            "process\nerror: no",
            "ssh,host=a\u{1b}",
            "x\r",
            "\u{202e}",
            "\u{2028}",
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(
                error.ends_with("control characters, as none has"),
                "{error}"
            );
            assert!(!error.contains(['\n', '\r', '\u{1b}', '\u{202e}', '\u{2028}']));
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
                "there is no target 'dokcer'; known: process, docker, podman, runc, crun, linux, ssh, guest, unikernel. `tare targets` shows which are usable",
            ),
            (
                "",
                "there is no target ''; known: process, docker, podman, runc, crun, linux, ssh, guest, unikernel. `tare targets` shows which are usable",
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
