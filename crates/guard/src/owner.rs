//! Who owns a thing, and where that owner lives.
//!
//! An owner is one guard in one process. Its id goes into the environment of every child, into the
//! name of every scratch folder and into the name of its journal. It begins with the boot and the
//! process, for people who read it; what makes it unique, and keeps others from guessing it, are
//! 64 random bits.

use std::fmt;
use std::fs;

use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};

use crate::error::GuardError;

/// The environment variable by which a process is known to belong to a guard.
///
/// Its value is the owner's id, a slash, and the number of the child in that owner's journal, so
/// that the descendants of one child can be distinguished from those of another.
pub const OWNER_VARIABLE: &str = "TARE_OWNER";

/// Names one guard, uniquely over processes, boots and machines.
///
/// Written as eight hexadecimal digits of the boot id, the process id, sixteen random hexadecimal
/// digits: `3f2a91bc-4242-9f31c4d2e0aa17b3`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OwnerId(String);

impl OwnerId {
    /// Makes a new id for a guard of this process.
    pub(crate) fn new(here: &Place) -> Result<OwnerId, GuardError> {
        // The kernel gives requests of up to 256 bytes whole.
        let mut random = [0_u8; 8];
        getrandom(&mut random, GetRandomFlags::empty())
            .map_err(|errno| GuardError::host("random numbers", errno))?;
        let boot: String = here
            .boot
            .chars()
            .filter(char::is_ascii_hexdigit)
            .take(8)
            .collect();
        let random = u64::from_ne_bytes(random);
        let text = format!("{boot:0>8}-{}-{random:016x}", std::process::id());
        Ok(OwnerId::parse(&text).expect("made of the three parts that parse asks for"))
    }

    /// Reads an id; `None` if the text is not exactly one.
    ///
    /// Strict, because an id that is too short would match what is not ours.
    pub(crate) fn parse(text: &str) -> Option<OwnerId> {
        let hex = |part: &str, digits: usize| {
            part.len() == digits
                && part
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let mut parts = text.split('-');
        let (boot, pid, random) = (parts.next()?, parts.next()?, parts.next()?);
        let sound = parts.next().is_none()
            && hex(boot, 8)
            && pid
                .parse::<u32>()
                .is_ok_and(|number| number.to_string() == pid)
            && hex(random, 16);
        sound.then(|| OwnerId(text.to_owned()))
    }

    /// Gives the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for OwnerId {
    type Error = String;

    fn try_from(text: String) -> Result<OwnerId, String> {
        OwnerId::parse(&text).ok_or_else(|| format!("{text:?} is not an owner's id"))
    }
}

impl From<OwnerId> for String {
    fn from(owner: OwnerId) -> String {
        owner.0
    }
}

/// The kernel and the container in which an owner lives.
///
/// A journal may lie in a home folder that many machines share, or that a container has mounted.
/// Only here can its processes be seen, and only since this boot can its settings be in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The kernel's random id of this boot.
    pub(crate) boot: String,
    /// The host's name.
    pub(crate) host: String,
    /// The machine id of systemd, if there is one: cloned hosts often share a name.
    pub(crate) machine: Option<String>,
    /// The PID namespace.
    pub(crate) pid_namespace: String,
}

/// How the place of a journal relates to the place of its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The same boot and the same PID namespace.
    Here,
    /// This machine, before it was last started: processes and settings are gone, files are not.
    EarlierBoot,
    /// Another machine, or another container on this one.
    Elsewhere,
}

impl Place {
    /// Finds out where this process runs.
    pub(crate) fn here() -> Result<Place, GuardError> {
        let trimmed = |text: String| text.trim().to_owned();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").map(trimmed);
        let machine = fs::read_to_string("/etc/machine-id").map(trimmed);
        let namespace = fs::read_link("/proc/self/ns/pid");
        let host = rustix::system::uname();
        Ok(Place {
            boot: boot.map_err(|source| GuardError::host("the boot id", source))?,
            host: host.nodename().to_string_lossy().into_owned(),
            machine: machine.ok().filter(|id| !id.is_empty()),
            pid_namespace: namespace
                .map_err(|source| GuardError::host("the PID namespace", source))?
                .to_string_lossy()
                .into_owned(),
        })
    }

    /// Says how this place, found in a journal, relates to the reader's.
    pub(crate) fn seen_from(&self, here: &Place) -> Relation {
        if self.boot == here.boot {
            if self.pid_namespace == here.pid_namespace {
                Relation::Here
            } else {
                Relation::Elsewhere
            }
        } else if self.host == here.host && self.machine == here.machine {
            Relation::EarlierBoot
        } else {
            Relation::Elsewhere
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_ids_are_distinct_and_read_back() {
        let here = Place::here().unwrap();
        let (one, other) = (OwnerId::new(&here).unwrap(), OwnerId::new(&here).unwrap());
        assert_ne!(one, other);
        assert_eq!(OwnerId::parse(one.as_str()), Some(one));
    }

    #[test]
    fn what_is_not_exactly_an_id_is_refused() {
        assert!(OwnerId::parse("3f2a91bc-4242-9f31c4d2e0aa17b3").is_some());
        for text in [
            "",
            "-",
            "--",
            "3f2a91bc-4242-9f31c4d2e0aa17b",
            "3f2a91bc-4242-9f31c4d2e0aa17b33",
            "3F2A91BC-4242-9f31c4d2e0aa17b3",
            "3f2a91bc--9f31c4d2e0aa17b3",
            "3f2a91bc-+42-9f31c4d2e0aa17b3",
            "3f2a91bc-042-9f31c4d2e0aa17b3",
            "3f2a91bc-4242-9f31c4d2e0aa17b3-",
            "3f2a91bc-4242-9f31c4d2e0aa17b3/1",
            "../a91bc-4242-9f31c4d2e0aa17b3",
        ] {
            assert_eq!(OwnerId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_place_is_here_before_or_elsewhere() {
        let here = Place::here().unwrap();
        assert_eq!(here.seen_from(&here), Relation::Here);
        let rebooted = Place {
            boot: "another".into(),
            pid_namespace: "any".into(),
            ..here.clone()
        };
        assert_eq!(rebooted.seen_from(&here), Relation::EarlierBoot);
        let container = Place {
            pid_namespace: "pid:[1]".into(),
            ..here.clone()
        };
        assert_eq!(container.seen_from(&here), Relation::Elsewhere);
        let node = Place {
            host: "another".into(),
            ..rebooted.clone()
        };
        assert_eq!(node.seen_from(&here), Relation::Elsewhere);
        let clone = Place {
            machine: Some("another".into()),
            ..rebooted
        };
        assert_eq!(clone.seen_from(&here), Relation::Elsewhere);
    }
}
