//! The words of a plan, `key=value` each: one table defines how they are read and written.
//!
//! The agent receives them as arguments, the unikernel on its command line. A word without `=`, an
//! unknown key and a duplicate are errors, so that a typing mistake cannot select another
//! measurement.

use core::fmt::{self, Display};
use core::str::FromStr;

use heapless::Vec;
use tare_wire::cpus::Cpus;
use tare_wire::scheduling::Policy;
use tare_wire::words::{PlanError, parse_ns};

/// A word of a plan: its key, and the field for its value.
pub type Word<P> = (&'static str, fn(&mut P) -> Slot<'_>);

/// The field for a value, by its form. An optional value is written only if present.
pub enum Slot<'p> {
    /// A whole number.
    Number(&'p mut u64),
    /// A 32-bit number.
    Small(&'p mut u32),
    /// An optional whole number.
    AnyNumber(&'p mut Option<u64>),
    /// An optional 32-bit number.
    AnySmall(&'p mut Option<u32>),
    /// A time in ns.
    Time(&'p mut u64),
    /// An optional time in ns.
    AnyTime(&'p mut Option<u64>),
    /// Optional CPUs.
    Cpus(&'p mut Option<Cpus>),
    /// A value of another form.
    Form(&'p mut dyn Form),
}

/// A value with its own notation.
pub trait Form {
    /// Parses the value; the error describes a valid one.
    fn read(&mut self, text: &str) -> Result<(), &'static str>;

    /// Passes the value to `put`, unless it is the default.
    fn write(&self, put: Put<'_>) -> fmt::Result;
}

/// A function that writes the value of a word.
pub type Put<'a> = &'a mut dyn FnMut(&dyn Display) -> fmt::Result;

impl Slot<'_> {
    fn read(self, text: &str) -> Result<(), &'static str> {
        match self {
            Self::Number(number) => *number = whole(text)?,
            Self::Small(number) => *number = whole(text)?,
            Self::AnyNumber(number) => *number = Some(whole(text)?),
            Self::AnySmall(number) => *number = Some(whole(text)?),
            Self::Time(ns) => *ns = time(text)?,
            Self::AnyTime(ns) => *ns = Some(time(text)?),
            Self::Cpus(cpus) => *cpus = Some(Cpus::parse(text).ok_or("CPUs such as 0,2-3")?),
            Self::Form(form) => form.read(text)?,
        }
        Ok(())
    }

    fn write(self, put: Put<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => put(number),
            Self::Small(number) => put(number),
            Self::AnyNumber(number) => number.iter().try_for_each(|number| put(number)),
            Self::AnySmall(number) => number.iter().try_for_each(|number| put(number)),
            Self::Time(ns) => put(&format_args!("{ns}ns")),
            Self::AnyTime(ns) => ns.iter().try_for_each(|ns| put(&format_args!("{ns}ns"))),
            Self::Cpus(cpus) => cpus.iter().try_for_each(|cpus| put(cpus)),
            Self::Form(form) => form.write(put),
        }
    }
}

fn whole<T: FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| "a whole number")
}

fn time(text: &str) -> Result<u64, &'static str> {
    parse_ns(text).ok_or("a whole number with the unit ns, us, ms or s")
}

/// The words that were read.
pub struct Parsed<'a> {
    /// The experiment that they select.
    pub workload: &'a str,
    /// Their keys.
    pub keys: Vec<&'a str, 64>,
}

/// Reads words into a plan; absent words leave their fields unchanged.
///
/// # Errors
///
/// Returns [`PlanError`] for an unknown key, a duplicate, an invalid value, or a missing required
/// word.
pub fn read<'a, P>(
    plan: &mut P,
    table: &[Word<P>],
    words: impl IntoIterator<Item = &'a str>,
    needed: &[&'static str],
) -> Result<Parsed<'a>, PlanError<'a>> {
    let (workload, keys) = ("", Vec::new());
    let mut given = Parsed { workload, keys };
    for word in words {
        let (key, value) = word.split_once('=').ok_or(PlanError::NotAPair(word))?;
        if given.keys.contains(&key) {
            return Err(PlanError::Twice(key));
        }
        match table.iter().find(|(name, _)| *name == key) {
            Some((_, slot)) => {
                let read = slot(plan).read(value);
                read.map_err(|wanted| PlanError::BadValue { key, value, wanted })?;
            }
            None if key == "workload" => given.workload = value,
            None => return Err(PlanError::UnknownKey(key)),
        }
        // The table has fewer keys than the list has room for.
        let _ = given.keys.push(key);
    }
    match needed.iter().find(|key| !given.keys.contains(key)) {
        Some(missing) => Err(PlanError::Missing(missing)),
        None => Ok(given),
    }
}

/// Writes words of a plan.
pub fn write<P: Copy>(mut plan: P, words: &[Word<P>], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut between = "";
    for (key, slot) in words {
        slot(&mut plan).write(&mut |value| {
            write!(f, "{}{key}={value}", core::mem::replace(&mut between, " "))
        })?;
    }
    Ok(())
}

impl Form for bool {
    fn read(&mut self, text: &str) -> Result<(), &'static str> {
        *self = match text {
            "yes" => true,
            "no" => false,
            _ => return Err("yes or no"),
        };
        Ok(())
    }

    fn write(&self, put: Put<'_>) -> fmt::Result {
        match self {
            true => put(&"yes"),
            false => Ok(()),
        }
    }
}

impl Form for Policy {
    fn read(&mut self, text: &str) -> Result<(), &'static str> {
        *self = Self::parse(text).ok_or("fifo, rr, deadline or other")?;
        Ok(())
    }

    fn write(&self, put: Put<'_>) -> fmt::Result {
        put(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use proptest::prelude::*;

    use crate::{noise, wakeup};

    proptest! {
        #[test]
        fn what_is_read_is_written_so_that_it_is_read_again(
            text in "((cpu|main|trace|loops|live|go-on|policy|window|threshold)=([0-9]{1,20}|yes|rr|[1-9](ns|s)) ){0,3}",
        ) {
            let text = std::format!("workload=wakeup interval=1ms duration=1s {text}");
            let parse = |text: &str| wakeup::Plan::parse(text.split_whitespace()).ok();
            if let Some(plan) = parse(&text) {
                prop_assert_eq!(parse(&plan.to_string()), Some(plan));
            }
            let text = text.replace("wakeup interval=1ms duration=1s", "gap repetitions=1");
            let parse = |text: &str| noise::Plan::parse(text.split_whitespace()).ok();
            if let Some(plan) = parse(&text) {
                prop_assert_eq!(parse(&plan.to_string()), Some(plan));
            }
        }

        #[test]
        fn any_text_ends_without_panic(text in "\\PC{0,80}") {
            let _ = wakeup::Plan::parse(text.split_whitespace());
            let _ = noise::Plan::parse(text.split_whitespace());
        }
    }

    #[test]
    fn errors_name_the_word() {
        const NUMBER: &str = "a whole number";
        const TIME: &str = "a whole number with the unit ns, us, ms or s";
        for (text, wrong) in [
            ("workload", "'workload' is not of the form key=value"),
            ("wrokload=wakeup", "no such key 'wrokload'"),
            ("cpu=1 cpu=2", "'cpu' is given twice"),
            ("workload=a workload=a", "'workload' is given twice"),
            ("raw=many", &std::format!("'raw=many': want {NUMBER}")),
            (
                "trace=4294967296",
                &std::format!("'trace=4294967296': want {NUMBER}"),
            ),
            ("live=1", &std::format!("'live=1': want {TIME}")),
            ("interval=1h", &std::format!("'interval=1h': want {TIME}")),
            ("cpu=x", "'cpu=x': want CPUs such as 0,2-3"),
            ("go-on=1", "'go-on=1': want yes or no"),
            (
                "policy=nice",
                "'policy=nice': want fifo, rr, deadline or other",
            ),
            ("spread=out", "'spread=out': want shared, same or falling"),
            ("interval=1ms", "'workload=…' is missing"),
            ("workload=wakeup", "'interval=…' is missing"),
        ] {
            let error = wakeup::Plan::parse(text.split_whitespace()).unwrap_err();
            assert_eq!(error.to_string(), std::format!("plan: {wrong}"));
        }
    }
}
