//! The grammar of a load.
//!
//! ```text
//! load  = [ "cpus=" cpus ":" ] part { "+" part }
//! part  = name [ ":" words ]
//! cpus  = "all" | "others" | list            list as in 0-2,5
//! ```
//!
//! `command:` takes the rest of the text, whatever stands in it, so it can only be the last part.
//! The canonical text is what cells of a run are compared by: two texts that mean the same load
//! become the same text.

use std::fmt;

use crate::cpus::Cpus;
use crate::error::SpecError;
use crate::kinds::{COMMAND, IDLE, KINDS, Kind};
use crate::schedule::once;
use crate::tools::Tool;
use crate::words;

/// A load: nothing, or one or several kinds of background work at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    cpus: Cpus,
    parts: Vec<Part>,
}

/// One part of a load.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) kind: &'static Kind,
    /// The words after the colon.
    pub(crate) words: Vec<String>,
}

impl Load {
    /// Returns the load that does nothing.
    pub fn idle() -> Self {
        Self {
            cpus: Cpus::All,
            parts: Vec::new(),
        }
    }

    /// Parses a load.
    ///
    /// # Errors
    ///
    /// Returns [`SpecError`] for an invalid text. Does not check for tools.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let (cpus, mut rest) = match text.strip_prefix("cpus=") {
            None => (Cpus::All, text),
            Some(prefixed) => {
                let bad = || {
                    SpecError(format!(
                        "'{}' are no CPUs for a load: want all, others (all but the measured one) \
                         or a list such as 0-2,5",
                        prefixed.split(':').next().unwrap_or_default()
                    ))
                };
                let (cpus, rest) = prefixed.split_once(':').ok_or_else(bad)?;
                (Cpus::parse(cpus).ok_or_else(bad)?, rest)
            }
        };
        let mut parts: Vec<Part> = Vec::new();
        loop {
            let words = rest.strip_prefix(COMMAND.name);
            let takes_all = words.is_some_and(|words| words.starts_with(':'));
            let (part, more) = match rest.split_once('+') {
                Some((part, more)) if !takes_all => (part, Some(more)),
                _ => (rest, None),
            };
            let part = Part::parse(part)?;
            if parts.contains(&part) {
                return Err(SpecError(format!("the load '{part}' is given twice")));
            }
            parts.push(part);
            match more {
                Some(more) => rest = more,
                None => break,
            }
        }
        let idle = parts.iter().any(|part| part.kind.name == IDLE.name);
        match (idle, parts.len()) {
            (true, 1) => Ok(Self::idle()),
            (true, _) => Err(SpecError(
                "'idle' is no load, so it can't be joined to one".to_owned(),
            )),
            (false, _) => Ok(Self { cpus, parts }),
        }
    }

    /// Returns whether it does nothing.
    pub fn is_idle(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the CPUs that it runs on.
    pub fn cpus(&self) -> &Cpus {
        &self.cpus
    }

    /// Returns the same load on other CPUs.
    #[must_use]
    pub fn on(self, cpus: Cpus) -> Self {
        let cpus = if self.is_idle() { Cpus::All } else { cpus };
        Self { cpus, ..self }
    }

    /// Returns the distinct programs that it executes, except that of `command:`, whose package is
    /// unknown.
    pub fn tools(&self) -> Vec<Tool> {
        once(self.parts.iter().flat_map(|part| part.kind.tools).copied())
    }

    /// Returns the program of a `command:`, if there is one.
    pub fn command(&self) -> Option<&str> {
        let mut parts = self.parts.iter();
        let command = parts.find(|part| part.kind.name == COMMAND.name)?;
        command.words.first().map(String::as_str)
    }

    /// Returns why one of its parts requires root, if it does.
    pub fn needs_root(&self) -> Option<(&'static str, &'static str)> {
        let mut kinds = self.parts.iter().map(|part| part.kind);
        kinds.find_map(|kind| Some((kind.name, kind.root?)))
    }

    /// Returns its differences from the published load, on any system. The driver's notices report
    /// those that depend on the system.
    pub fn deviations(&self) -> Vec<String> {
        let texts = |part: &Part| {
            let kind = part.kind;
            let deviations = kind.deviations.iter();
            deviations.map(|text| format!("{}: {text}", kind.name))
        };
        self.parts.iter().flat_map(texts).collect()
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_idle() {
            return f.write_str(IDLE.name);
        }
        if self.cpus != Cpus::All {
            write!(f, "cpus={}:", self.cpus)?;
        }
        for (number, part) in self.parts.iter().enumerate() {
            let plus = if number == 0 { "" } else { "+" };
            write!(f, "{plus}{part}")?;
        }
        Ok(())
    }
}

impl Part {
    fn parse(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let (name, given) = match text.split_once(':') {
            Some((name, words)) => (name, Some(words)),
            None => (text, None),
        };
        let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
            let known: Vec<&str> = KINDS.iter().map(|kind| kind.usage).collect();
            return Err(SpecError(format!(
                "there is no load '{name}'; known: {}; several are joined by +",
                known.join(", ")
            )));
        };
        let name = kind.name;
        let words = match (kind.example, given) {
            (None, None) => Vec::new(),
            (None, Some(_)) => {
                return Err(SpecError(format!(
                    "the load '{name}' takes no words after a colon"
                )));
            }
            (Some(example), given) => {
                let given = given.unwrap_or_default();
                let bad = |word: &str, why: &str| {
                    SpecError(format!(
                        "the load '{name}' can't have the word '{word}': {why}"
                    ))
                };
                if given.chars().any(char::is_control) {
                    let shown = given.escape_debug().to_string();
                    return Err(bad(&shown, "it holds a control character"));
                }
                let words =
                    words::split(given).ok_or_else(|| bad(given, "a quote is not closed"))?;
                if words.is_empty() {
                    return Err(SpecError(format!(
                        "the load '{name}' needs words after a colon, such as {example}"
                    )));
                }
                for word in &words {
                    if let Some(why) = (kind.refuses)(word) {
                        return Err(bad(word, why));
                    }
                }
                words
            }
        };
        Ok(Self { kind, words })
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        self.kind.name == other.kind.name && self.words == other.words
    }
}

impl Eq for Part {}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name)?;
        if !self.words.is_empty() {
            write!(f, ":{}", words::join(&self.words))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_mean_the_same_become_the_same_text() {
        for (text, canonical) in [
            ("idle", "idle"),
            ("cpus=1:idle", "idle"),
            (" dd ", "dd"),
            ("cpus=all:dd", "dd"),
            ("dd+hackbench", "dd+hackbench"),
            ("cpus=2,0-1:dd + hackbench", "cpus=0-2:dd+hackbench"),
            ("cpus=others:ping", "cpus=others:ping"),
            ("stress-ng: --cpu  2", "stress-ng:--cpu 2"),
            ("stress-ng:--cpu 2+dd", "stress-ng:--cpu 2+dd"),
            ("dd+command:date +%s", "dd+command:date +%s"),
            ("command:sh -c \"sleep 1; :\"", "command:sh -c 'sleep 1; :'"),
        ] {
            let load = Load::parse(text).unwrap();
            assert_eq!(load.to_string(), canonical, "{text}");
            assert_eq!(Load::parse(canonical), Ok(load), "{text}");
        }
    }

    #[test]
    fn what_is_no_load_is_told_with_what_would_be_one() {
        for (text, message) in [
            (
                "",
                "there is no load ''; known: idle, dd, hackbench, du, tar, nc, ping, stress-ng:ARGS, \
                  command:WORDS; several are joined by +",
            ),
            (
                "dd+",
                "there is no load ''; known: idle, dd, hackbench, du, tar, nc, ping, stress-ng:ARGS, \
                     command:WORDS; several are joined by +",
            ),
            ("dd:bs=1", "the load 'dd' takes no words after a colon"),
            ("dd+dd", "the load 'dd' is given twice"),
            ("dd+idle", "'idle' is no load, so it can't be joined to one"),
            (
                "stress-ng",
                "the load 'stress-ng' needs words after a colon, such as stress-ng:--cpu 2",
            ),
            (
                "command: ",
                "the load 'command' needs words after a colon, such as command:find /usr -xdev",
            ),
            (
                "command:'a",
                "the load 'command' can't have the word ''a': a quote is not closed",
            ),
            (
                "stress-ng:--cpu 1 --yaml=f",
                "the load 'stress-ng' can't have the word '--yaml=f': tare \
                  itself says where figures and files go",
            ),
            (
                "cpus=x:dd",
                "'x' are no CPUs for a load: want all, others (all but the measured one) or \
                           a list such as 0-2,5",
            ),
            (
                "cpus=1",
                "'1' are no CPUs for a load: want all, others (all but the measured one) or a \
                        list such as 0-2,5",
            ),
        ] {
            assert_eq!(
                Load::parse(text).unwrap_err().to_string(),
                message,
                "{text}"
            );
        }
        assert!(Load::parse("command:a\nb").is_err());
    }

    #[test]
    fn tools_of_several_parts_are_listed_once() {
        let load = Load::parse("dd+nc+tar+command:true").unwrap();
        let programs: Vec<&str> = load.tools().iter().map(|tool| tool.program).collect();
        assert_eq!(programs, ["dd", "nc", "tar", "gzip", "/bin/sh"]);
        assert_eq!(load.command(), Some("true"));
        assert_eq!(Load::parse("ping").unwrap().needs_root().unwrap().0, "ping");
    }
}
