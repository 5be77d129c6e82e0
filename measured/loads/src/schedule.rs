//! Loads one after the other.
//!
//! ```text
//! schedule = load | length ":" load { ";" load }
//! length   = digits ( "ns" | "us" | "ms" | "s" )
//! ```
//!
//! Each load has a *phase* of this length, as in the script of landolfi-2018:
//! `25s:idle;ping;idle;dd+hackbench;du;tar;nc`. A `;` inside a load is written twice. A load alone
//! is a schedule without phases: it runs until somebody ends it. No load begins with a digit, so
//! one text can't be both.
//!
//! As for a load, the canonical text is what cells of a run are compared by.

use std::fmt;
use std::hash::{Hash, Hasher};

use tare_wire::phases::{MAX_DURATION_NS, MAX_PHASES};
use tare_wire::words::parse_ns;

use crate::cpus::Cpus;
use crate::error::SpecError;
use crate::spec::Load;
use crate::tools::Tool;

/// The shortest phase: about the time to start one program.
pub const MIN_PHASE_NS: u64 = 1_000_000;

/// One load without an end, or several phases.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct Schedule {
    /// The canonical text.
    text: String,
    /// None for one load without an end.
    phase_ns: Option<u64>,
    /// At least one.
    loads: Vec<Load>,
}

impl Schedule {
    /// Returns a schedule of phases.
    ///
    /// # Errors
    ///
    /// Returns [`SpecError`] if there is no load or there are too many, or a phase is too short or
    /// too long.
    pub fn new(phase_ns: u64, loads: Vec<Load>) -> Result<Self, SpecError> {
        if loads.is_empty() || loads.len() > MAX_PHASES as usize {
            let much = if loads.is_empty() { "few" } else { "many" };
            return Err(SpecError(format!(
                "{} phases are too {much}: want 1 to {MAX_PHASES}",
                loads.len()
            )));
        }
        let longest = MAX_DURATION_NS / loads.len() as u64;
        if !(MIN_PHASE_NS..=longest).contains(&phase_ns) {
            return Err(no_length(&length(phase_ns)));
        }
        let text = |load: &Load| load.to_string().replace(';', ";;");
        let texts: Vec<String> = loads.iter().map(text).collect();
        Ok(Self {
            text: format!("{}:{}", length(phase_ns), texts.join(";")),
            phase_ns: Some(phase_ns),
            loads,
        })
    }

    /// Returns the schedule without a load.
    pub fn idle() -> Self {
        Load::idle().into()
    }

    /// Parses a schedule or a load.
    ///
    /// # Errors
    ///
    /// Returns [`SpecError`] for other texts. Does not check for tools.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        if !text.starts_with(|first: char| first.is_ascii_digit()) {
            return Load::parse(text).map(Self::from);
        }
        let (length, loads) = text.split_once(':').unwrap_or((text, ""));
        let phase_ns = parse_ns(length.trim_end()).ok_or_else(|| no_length(length))?;
        let loads: Result<Vec<Load>, SpecError> =
            pieces(loads).iter().map(|load| Load::parse(load)).collect();
        Self::new(phase_ns, loads?)
    }

    /// Returns the canonical text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the end of a phrase that names it: ` under dd`; empty without a load.
    pub fn under(&self) -> String {
        match self.is_idle() {
            true => String::new(),
            false => format!(" under {self}"),
        }
    }

    /// Returns its phases, each as a schedule; empty if it has none.
    pub fn phases(&self) -> Vec<Self> {
        let phases = self
            .phase_ns
            .iter()
            .flat_map(|_| self.loads.iter().cloned());
        phases.map(Self::from).collect()
    }

    /// Returns the length of each phase in ns; None if the load runs until it is ended.
    pub fn phase_ns(&self) -> Option<u64> {
        self.phase_ns
    }

    /// Returns the loads in order, at least one. A load of several phases is listed several times.
    pub fn loads(&self) -> &[Load] {
        &self.loads
    }

    /// Returns whether it is a single idle load. Idle phases still have their marks in time.
    pub fn is_idle(&self) -> bool {
        self.phase_ns.is_none() && self.loads.iter().all(Load::is_idle)
    }

    /// Returns whether a load is on the CPUs that are not measured.
    pub fn is_on_others(&self) -> bool {
        self.loads.iter().any(|load| *load.cpus() == Cpus::Others)
    }

    /// Returns the distinct programs that the loads execute, except those of `command:`.
    pub fn tools(&self) -> Vec<Tool> {
        once(self.loads.iter().flat_map(Load::tools))
    }

    /// Returns the distinct programs of `command:`.
    pub fn commands(&self) -> Vec<&str> {
        once(self.loads.iter().filter_map(Load::command))
    }

    /// Returns the part that requires root, and why, if there is one.
    pub fn needs_root(&self) -> Option<(&'static str, &'static str)> {
        self.loads.iter().find_map(Load::needs_root)
    }

    /// Returns the distinct differences from the published loads, on any system.
    pub fn deviations(&self) -> Vec<String> {
        once(self.loads.iter().flat_map(Load::deviations))
    }
}

impl From<Load> for Schedule {
    fn from(load: Load) -> Self {
        Self {
            text: load.to_string(),
            phase_ns: None,
            loads: vec![load],
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Hash for Schedule {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl TryFrom<String> for Schedule {
    type Error = SpecError;

    fn try_from(text: String) -> Result<Self, SpecError> {
        Self::parse(&text)
    }
}

impl From<Schedule> for String {
    fn from(schedule: Schedule) -> Self {
        schedule.text
    }
}

fn no_length(text: &str) -> SpecError {
    SpecError(format!(
        "'{text}' is no length of a phase: want 1ms to 31 days of all phases together, as a whole \
         number with the unit ns, us, ms or s"
    ))
}

/// Splits a text at each single `;`, from the left; a double one becomes a single one.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match pieces.last_mut() {
            Some(piece) if c != ';' || chars.next_if_eq(&';').is_some() => piece.push(c),
            _ => pieces.push(String::new()),
        }
    }
    pieces
}

/// Formats a time in the largest unit of which it is a whole number.
fn length(ns: u64) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let exact = units.into_iter().find(|(_, unit)| ns.is_multiple_of(*unit));
    let (unit, factor) = exact.unwrap_or(("ns", 1));
    format!("{}{unit}", ns / factor)
}

/// Removes duplicates, and keeps the order of first occurrences.
pub(crate) fn once<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_that_mean_the_same_become_the_same_text() {
        for (text, canonical) in [
            (
                "25s:idle;ping;idle;dd+hackbench;du;tar;nc",
                "25s:idle;ping;idle;dd+hackbench;du;tar;nc",
            ),
            (" 25000ms : idle ; cpus=all:dd ", "25s:idle;dd"),
            ("1500us:idle", "1500us:idle"),
            ("1000001ns:idle", "1000001ns:idle"),
            (
                "3s:command:sh -c 'a;; b';cpus=1,0:dd",
                "3s:command:sh -c 'a;; b';cpus=0-1:dd",
            ),
            ("1s:command:date ;;;idle", "1s:command:date ';;';idle"),
            ("dd+command:sh -c 'a; b'", "dd+command:sh -c 'a; b'"),
            ("idle", "idle"),
        ] {
            let schedule = Schedule::parse(text).unwrap();
            assert_eq!(schedule.to_string(), canonical, "{text}");
            assert_eq!(Schedule::parse(canonical), Ok(schedule), "{text}");
        }
    }

    #[test]
    fn a_schedule_is_told_from_a_load() {
        let parse = |text| Schedule::parse(text).unwrap();
        let one = parse("dd");
        assert_eq!((one.phase_ns(), one.loads().len()), (None, 1));
        let several = parse("25s:idle;ping;idle");
        assert_eq!(several.phase_ns(), Some(25_000_000_000));
        assert_eq!(several.loads().len(), 3);
        assert!(parse("idle").is_idle() && !parse("1s:idle").is_idle());
    }

    #[test]
    fn what_all_phases_need_is_told_once() {
        let schedule =
            Schedule::parse("1s:dd;nc;dd+command:true;command:true;ping;cpus=0:dd").unwrap();
        let programs: Vec<&str> = schedule.tools().iter().map(|tool| tool.program).collect();
        assert_eq!(programs, ["dd", "nc", "ping"]);
        assert_eq!(schedule.commands(), ["true"]);
        assert_eq!(schedule.needs_root().unwrap().0, "ping");
        let deviations = schedule.deviations();
        let of = |name: &str| {
            let mine = deviations.iter().filter(|text| text.starts_with(name));
            mine.count()
        };
        assert_eq!((of("dd: "), of("nc: "), of("ping: ")), (1, 1, 2));
    }

    #[test]
    fn what_is_no_schedule_is_told() {
        for (text, part) in [
            ("25", "'25' is no length of a phase: want 1ms to 31 days"),
            ("25:dd", "'25' is no length of a phase"),
            ("0s:dd", "'0s' is no length of a phase"),
            ("999us:dd", "'999us' is no length of a phase"),
            ("2000000s:dd;dd", "'2000000s' is no length of a phase"),
            ("1s:", "there is no load ''"),
            ("1s:dd;", "there is no load ''"),
            ("1s:dd;;nc", "there is no load 'dd;nc'"),
            ("1s:2s:dd", "there is no load '2s'"),
        ] {
            let message = Schedule::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
        let many = format!("1s:{}idle", "idle;".repeat(MAX_PHASES as usize));
        let message = Schedule::parse(&many).unwrap_err().to_string();
        assert_eq!(message, "101 phases are too many: want 1 to 100");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same(
            phase_ns in MIN_PHASE_NS..=MAX_DURATION_NS / 8,
            words in prop::collection::vec(prop::collection::vec("[ -~]{0,6}|;+", 1..4), 1..8),
        ) {
            let loads: Vec<Load> = words
                .iter()
                .map(|words| Load::parse(&format!("command:{}", crate::words::join(words))).unwrap())
                .collect();
            let schedule = Schedule::new(phase_ns, loads).unwrap();
            prop_assert_eq!(Schedule::parse(&schedule.to_string()), Ok(schedule));
        }

        #[test]
        fn any_text_ends_without_panic(text in "[0-9]*(ns|ms|s)?:?.*") {
            if let Ok(schedule) = Schedule::parse(&text) {
                prop_assert_eq!(Schedule::parse(&schedule.to_string()), Ok(schedule));
            }
        }
    }
}
