//! The plan of primitives, as words.

use core::fmt;

use tare_wire::cpus::Cpus;
use tare_wire::words::PlanError;

use super::{Area, Primitive};
use crate::words::{self, Slot, Word};

/// The description of the words, for the help.
pub const USAGE: &str = "
Words of primitives:
  workload=primitives area=AREA  measure those of an area
  only=PATTERN,PATTERN      only those with such an id (* and ? stand for any), or tag
  budget=TIME               how long each series is measured (default 20ms)
  limit=TIME                time limit for one primitive (default 25s)
  dir=FOLDER                where files are written (default /var/tmp)
  remote=FOLDER             a folder of another machine that is mounted here
  largest=BYTES             the largest file that is written (default 134217728)
  peer=ADDRESS:PORT         where 'tare-agent peer' answers on another machine
  cache=BYTES               the largest cache; arrays and curves go beyond it
  cpu=LIST                  CPUs: one is measured, others are for the other side
  place=N                   which of them is measured: 0 is the first (default: the last)
";

/// The default length of a series.
const BUDGET_NS: u64 = 20_000_000;
/// The default time limit of a primitive.
const LIMIT_NS: u64 = 25_000_000_000;
/// The default folder for files: it survives reboots, so it is usually on a disk.
pub const FOLDER: &str = "/var/tmp";

/// The default size of the largest file.
const LARGEST: u64 = 128 << 20;

/// The plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan<'a> {
    /// The area.
    pub area: Area,
    /// Patterns, separated by commas, that select primitives; all if None.
    pub only: Option<&'a str>,
    /// Length of a series.
    pub budget_ns: u64,
    /// Time limit of a primitive.
    pub limit_ns: u64,
    /// Folder for files.
    pub dir: &'a str,
    /// Folder of another machine.
    pub remote: Option<&'a str>,
    /// Size of the largest file, in bytes.
    pub largest: u64,
    /// Address of a peer on another machine.
    pub peer: Option<&'a str>,
    /// Size of the largest cache in bytes, if known.
    pub cache: Option<u64>,
    /// CPUs: one is measured, the others are for partners; any if None.
    pub cpus: Option<Cpus>,
    /// Index of the measured CPU among them, from 0; the last one if None.
    pub place: Option<u64>,
}

/// The keys whose values are texts.
const TEXTS: [&str; 5] = ["area", "only", "dir", "remote", "peer"];

impl<'a> Plan<'a> {
    /// The words that are not texts.
    const WORDS: [Word<Self>; 6] = [
        ("budget", |plan| Slot::Time(&mut plan.budget_ns)),
        ("limit", |plan| Slot::Time(&mut plan.limit_ns)),
        ("largest", |plan| Slot::Number(&mut plan.largest)),
        ("cache", |plan| Slot::AnyNumber(&mut plan.cache)),
        ("place", |plan| Slot::AnyNumber(&mut plan.place)),
        ("cpu", |plan| Slot::Cpus(&mut plan.cpus)),
    ];

    /// Reads a plan from its words.
    ///
    /// # Errors
    ///
    /// Returns [`PlanError`] for an invalid or missing word.
    pub fn parse(given: impl IntoIterator<Item = &'a str>) -> Result<Self, PlanError<'a>> {
        let mut texts: [Option<&'a str>; TEXTS.len()] = [None; TEXTS.len()];
        let mut twice = None;
        let others = given.into_iter().filter(|word| {
            let place = word.split_once('=').and_then(|(key, value)| {
                Some((TEXTS.iter().position(|text| *text == key)?, value))
            });
            if let Some((place, value)) = place
                && texts[place].replace(value).is_some()
            {
                twice = Some(TEXTS[place]);
            }
            place.is_none()
        });
        let mut plan = Self {
            area: Area::Fault,
            only: None,
            budget_ns: BUDGET_NS,
            limit_ns: LIMIT_NS,
            dir: FOLDER,
            remote: None,
            largest: LARGEST,
            peer: None,
            cache: None,
            cpus: None,
            place: None,
        };
        words::read(&mut plan, &Self::WORDS, others, &[])?;
        if let Some(key) = twice {
            return Err(PlanError::Twice(key));
        }
        let [area, only, dir, remote, peer] = texts;
        let value = area.ok_or(PlanError::Missing("area"))?;
        let area = Area::parse(value).ok_or(PlanError::BadValue {
            key: "area",
            value,
            wanted: "an area of primitives",
        })?;
        let dir = dir.unwrap_or(FOLDER);
        Ok(Self {
            area,
            only,
            dir,
            remote,
            peer,
            ..plan
        })
    }

    /// Returns whether a primitive is selected.
    pub fn has(&self, primitive: &Primitive) -> bool {
        let mut patterns = self.only.unwrap_or("*").split(',');
        primitive.area == self.area && patterns.any(|pattern| primitive.is_meant(pattern))
    }

    /// Returns the measured CPU.
    pub fn cpu(&self) -> Option<u32> {
        let mut cpus = self.cpus.as_ref()?.iter();
        match self.place {
            Some(place) => cpus.nth(usize::try_from(place).ok()?),
            None => cpus.last(),
        }
    }

    /// Returns the CPUs for partners.
    pub fn other_cpus(&self) -> impl Iterator<Item = u32> {
        let measured = self.cpu();
        let cpus = self.cpus.iter().flat_map(Cpus::iter);
        cpus.filter(move |cpu| Some(*cpu) != measured)
    }
}

impl fmt::Display for Plan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workload=primitives area={}", self.area.name())?;
        let dir = Some(self.dir).filter(|dir| *dir != FOLDER);
        for (key, text) in [
            ("only", self.only),
            ("dir", dir),
            ("remote", self.remote),
            ("peer", self.peer),
        ] {
            if let Some(text) = text {
                write!(f, " {key}={text}")?;
            }
        }
        f.write_str(" ")?;
        words::write(*self, &Self::WORDS, f)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn a_plan_is_written_as_it_is_read() {
        let text = "workload=primitives area=file only=read*,stat dir=/mnt remote=/net peer=10.0.0.2:7 budget=5000000ns \
                    limit=1000000000ns largest=4096 cache=33554432 place=1 cpu=0-2";
        let plan = Plan::parse(text.split_whitespace()).unwrap();
        assert_eq!(plan.to_string(), text);
        assert_eq!((plan.cpu(), plan.other_cpus().next()), (Some(1), Some(0)));
        let last = Plan {
            place: None,
            ..plan
        };
        assert_eq!((last.cpu(), last.other_cpus().next()), (Some(2), Some(0)));
        let plain = Plan::parse(["workload=primitives", "area=ipc"]).unwrap();
        assert_eq!((plain.dir, plain.budget_ns), (FOLDER, BUDGET_NS));
        assert_eq!((plain.cpu(), plain.other_cpus().count()), (None, 0));
    }

    #[test]
    fn words_that_are_wrong_are_named() {
        for (text, told) in [
            ("", "plan: 'area=…' is missing"),
            ("area=cpu", "plan: 'area=cpu': want an area of primitives"),
            ("area=file area=ipc", "plan: 'area' is given twice"),
            ("area=file folder=/", "plan: no such key 'folder'"),
        ] {
            let words = ["workload=primitives"].into_iter();
            let error = Plan::parse(words.chain(text.split_whitespace())).unwrap_err();
            assert_eq!(error.to_string(), told);
        }
    }
}
