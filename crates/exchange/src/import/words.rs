//! What the readers of all tools share.

use std::collections::BTreeSet;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::fmt::strtime;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Deserializer, Number};
use tare_host::visible_in_line;
use tare_results::bounded;

use super::{Column, Foreign, Mean, TOOLS};
use crate::error::ExchangeError;

/// The longest latency that is believed, in µs: some 31 years. A file with more is no output of
/// these tools, and figures in ns would not fit.
pub(super) const LONGEST_US: u64 = 1_000_000_000_000_000;

/// Maximum number of histograms; the report keeps some 100 KB for each. Machines have up to 2,048
/// CPUs.
pub(super) const MOST_THREADS: usize = 1 << 11;

/// The greatest number of values, of all histograms together, whose counts are kept.
const MOST_COUNTS: usize = 1 << 21;

/// Maximum number of members of an object other than threads and histograms.
const MOST_MEMBERS: usize = 64;

/// The greatest length of a text in JSON, in bytes.
const LONGEST_TEXT: usize = 1 << 16;

/// Reads a whole number.
pub(super) fn number(line: usize, text: &str) -> Result<u64, ExchangeError> {
    let read = text.trim().parse();
    read.map_err(|_| ExchangeError::line(line, format!("'{}' is not a whole number", shown(text))))
}

/// Reads a latency in µs.
pub(super) fn latency(line: usize, text: &str) -> Result<u64, ExchangeError> {
    believed(line, number(line, text)?)
}

/// Refuses a latency that can't be one.
fn believed(line: usize, us: u64) -> Result<u64, ExchangeError> {
    if us > LONGEST_US {
        let problem = format!("a latency of {us} µs is more than any measurement lasts");
        return Err(ExchangeError::line(line, problem));
    }
    Ok(us)
}

/// Shortens what is quoted in a message.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 40;
    let text = text.trim();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the value of an option of a command line, by its letter or its name; `flags` are the
/// letters of options without a value.
pub(super) fn option<'a>(
    command: &'a str,
    flags: &str,
    short: char,
    long: &str,
) -> Option<&'a str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    // Of several the last one holds.
    words.iter().enumerate().rev().find_map(|(place, word)| {
        let next = || words.get(place + 1).copied();
        if let Some(rest) = word.strip_prefix("--") {
            let (name, value) = rest
                .split_once('=')
                .map_or((rest, None), |(n, v)| (n, Some(v)));
            // As in getopt_long, the beginning of a name is enough.
            let is_it = name.len() > 2 && long.starts_with(name);
            return is_it.then(|| value.or_else(next)).flatten();
        }
        let letters = word.strip_prefix('-')?;
        let at = letters.find(short)?;
        // Letters before it are options without a value, as in -qh100.
        let are_flags = letters[..at].chars().all(|c| flags.contains(c));
        let value = &letters[at + short.len_utf8()..];
        are_flags.then(|| match value.is_empty() {
            true => next(),
            false => Some(value),
        })?
    })
}

/// The names of lines that stand once in a file, as far as they came.
#[derive(Default)]
pub(super) struct Once(Vec<String>);

impl Once {
    /// Takes a line; of two lines with one name, it is unknown which is right.
    pub(super) fn take(&mut self, line: usize, name: &str) -> Result<(), ExchangeError> {
        if self.0.iter().any(|known| known == name) {
            let problem = format!("there is a line '{name}' above, too: which one holds?");
            return Err(ExchangeError::line(line, problem));
        }
        self.0.push(name.to_owned());
        Ok(())
    }
}

/// One line of figures, one for each thread or CPU.
pub(super) struct Row<'a> {
    /// Number of the line.
    pub line: usize,
    /// What stands before the colon.
    pub name: &'a str,
    /// What stands behind it; in parentheses may be the unit.
    pub text: &'a str,
}

impl<'a> Row<'a> {
    pub(super) fn words(&self) -> impl Iterator<Item = &'a str> {
        let figures = self.text.split('(').next().unwrap_or_default();
        figures.split_whitespace()
    }

    /// Reads whole numbers; of too many, only as many as show that.
    pub(super) fn numbers(&self) -> Result<Vec<u64>, ExchangeError> {
        let words = self.words().take(MOST_THREADS + 1);
        words.map(|word| number(self.line, word)).collect()
    }

    /// Gives each thread its number, which is a latency or a count. A sum of all threads may have
    /// none.
    pub(super) fn put(
        &self,
        threads: &mut [Column],
        has_sum: bool,
        put: impl Fn(&mut Column, u64),
    ) -> Result<(), ExchangeError> {
        let numbers = self.numbers()?;
        let (found, due) = (numbers.len(), threads.len());
        if found != due && !(has_sum && found + 1 == due) {
            let problem = format!("'{}:' has {found} figures for {due} columns", self.name);
            return Err(ExchangeError::line(self.line, problem));
        }
        for (thread, number) in threads.iter_mut().zip(numbers) {
            put(thread, believed(self.line, number)?);
        }
        Ok(())
    }
}

/// The JSON that the tools of rt-tests write.
///
/// A value is read when it is used, and each object has a bound: a tree of all of it would take
/// fifty times the memory of the file.
pub(super) struct Json<'a> {
    head: Object<'a>,
    /// The threads in the order of their numbers.
    threads: Vec<(u32, &'a RawValue)>,
}

/// An object of such JSON, by what it is called in messages.
struct Object<'a> {
    name: String,
    members: Vec<(String, &'a RawValue)>,
}

impl<'a> Object<'a> {
    fn read(name: String, json: &'a RawValue) -> Result<Self, ExchangeError> {
        let mut members: Vec<(String, _)> = members(&name, json, "members", MOST_MEMBERS)?;
        // Keys of rt-tests may end with a colon.
        for (key, _) in &mut members {
            key.truncate(key.trim_end_matches(':').len());
        }
        Ok(Self { name, members })
    }

    /// Returns the JSON of a member.
    fn get(&self, key: &str) -> Result<Option<&'a RawValue>, ExchangeError> {
        let mut found = self.members.iter().filter(|(name, _)| name == key);
        let first = found.next().map(|(_, json)| *json);
        match found.next() {
            Some(_) => Err(self.problem(&format!("has '{key}' twice"))),
            None => Ok(first),
        }
    }

    /// Reads a member, if it is there.
    fn read_as<T: Deserialize<'a>>(
        &self,
        key: &str,
        kind: &str,
    ) -> Result<Option<T>, ExchangeError> {
        let Some(json) = self.get(key)?.map(RawValue::get) else {
            return Ok(None);
        };
        if json.len() > LONGEST_TEXT {
            let most = format!("has more than {LONGEST_TEXT} bytes in '{key}'");
            return Err(self.problem(&most));
        }
        let read = serde_json::from_str(json).map(Some);
        read.map_err(|_| self.problem(&format!("has {} as '{key}', no {kind}", shown(json))))
    }

    fn text(&self, key: &str) -> Result<Option<String>, ExchangeError> {
        let text = self.read_as::<String>(key, "text")?;
        Ok(text.map(|text| visible_in_line(&text).into_owned()))
    }

    fn number(&self, key: &str) -> Result<Option<u64>, ExchangeError> {
        self.read_as(key, "whole number")
    }

    fn fraction(&self, key: &str) -> Result<Option<f64>, ExchangeError> {
        self.read_as(key, "number")
    }

    fn problem(&self, what: &str) -> ExchangeError {
        ExchangeError::NotOutput(format!("{} {what}", self.name))
    }
}

/// Reads the members of an object that is called `name` in messages.
fn members<'a, K: FromStr, V: Deserialize<'a>>(
    name: &str,
    json: &'a RawValue,
    what: &'static str,
    most: usize,
) -> Result<Vec<(K, V)>, ExchangeError> {
    let read = bounded::members(&mut Deserializer::from_str(json.get()), what, most);
    read.map_err(|error| ExchangeError::NotOutput(format!("{name}: {}", without_place(&error))))
}

/// Writes an error without the place, which is named before it.
fn without_place(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    error.to_string().replace(&place, "")
}

impl<'a> Json<'a> {
    /// Reads it, if the text is JSON.
    pub(super) fn read(text: &'a str, tool: &str) -> Result<Option<Self>, ExchangeError> {
        if !text.trim_start().starts_with('{') {
            return Ok(None);
        }
        let json = serde_json::from_str(text).map_err(|error| {
            let problem = format!("not JSON: {}", without_place(&error));
            ExchangeError::line(error.line(), problem)
        })?;
        let head = Object::read("the file".to_owned(), json)?;
        let Some(threads) = head.get("thread")? else {
            return Err(ExchangeError::NotOutput(format!(
                "this JSON has no 'thread': it is not what {tool} --json writes"
            )));
        };
        let threads = members("'thread'", threads, "threads", MOST_THREADS)?;
        let command = head.text("cmdline")?;
        let path = command
            .as_deref()
            .and_then(|line| line.split_whitespace().next());
        match path.and_then(|path| path.rsplit('/').next()) {
            Some(other) if other != tool && TOOLS.contains(&other) => {
                Err(ExchangeError::NotOutput(format!(
                    "it was written by {other}, as its command line says: import it with `tare import {other}`"
                )))
            }
            _ => Ok(Some(Self { head, threads })),
        }
    }

    /// Returns whether latencies are ns instead of µs.
    pub(super) fn is_in_ns(&self) -> Result<bool, ExchangeError> {
        Ok(self.head.number("resolution_in_ns")?.unwrap_or(0) != 0)
    }

    /// Begins what the file says with its head.
    pub(super) fn head(&self, tool: &str) -> Result<Foreign, ExchangeError> {
        let mut facts = Vec::new();
        if let Some(json) = self.head.get("sysinfo")? {
            let of = Object::read("'sysinfo'".to_owned(), json)?;
            for (name, json) in &of.members {
                let number = serde_json::from_str::<Number>(json.get());
                let value = match number {
                    Ok(number) => Some(number.to_string()),
                    Err(_) if json.get().starts_with('"') => of.text(name)?,
                    Err(_) => None,
                };
                facts.extend(value.map(|value| (visible_in_line(name).into_owned(), value)));
            }
        }
        Ok(Foreign {
            tool: match self.head.text("rt_test_version")? {
                Some(version) => format!("{tool} {version}"),
                None => tool.to_owned(),
            },
            command: self.head.text("cmdline")?,
            started: self.head.text("start_time")?.and_then(|text| time(&text)),
            facts,
            ..Foreign::default()
        })
    }

    /// Returns the threads in the order of their numbers.
    pub(super) fn threads(mut self) -> Result<Vec<Thread<'a>>, ExchangeError> {
        let not = |what: &str| ExchangeError::NotOutput(format!("'thread' {what}"));
        if self.threads.is_empty() {
            return Err(not("holds no thread"));
        }
        self.threads.sort_by_key(|(number, _)| *number);
        if let Some(twice) = self.threads.windows(2).find(|two| two[0].0 == two[1].0) {
            return Err(not(&format!("has {} twice", twice[0].0)));
        }
        match self.head.number("num_threads")? {
            Some(stated) if stated != self.threads.len() as u64 => {
                Err(ExchangeError::NotOutput(format!(
                    "'num_threads' is {stated}, but there are {} threads in it",
                    self.threads.len()
                )))
            }
            _ => self.threads.into_iter().map(Thread::read).collect(),
        }
    }
}

/// One thread of such JSON.
pub(super) struct Thread<'a> {
    /// Its number, which is its key.
    pub number: u32,
    object: Object<'a>,
}

impl<'a> Thread<'a> {
    fn read((number, json): (u32, &'a RawValue)) -> Result<Self, ExchangeError> {
        let object = Object::read(format!("thread {number}"), json)?;
        Ok(Self { number, object })
    }

    /// Returns its histogram with the figures that go with it.
    pub(super) fn column(&self) -> Result<Column, ExchangeError> {
        let mean = self.object.fraction("avg")?;
        let cpu = self.object.number("cpu")?;
        Ok(Column {
            cpu: cpu.and_then(|cpu| u32::try_from(cpu).ok()),
            counts: self.histogram()?,
            min: Some(self.latency("min")?),
            max: Some(self.latency("max")?),
            mean: mean.map(Mean::Rounded),
            ..Column::default()
        })
    }

    /// Returns how often it woke.
    pub(super) fn cycles(&self) -> Result<Option<u64>, ExchangeError> {
        self.object.number("cycles")
    }

    /// Returns how long it ran, in seconds.
    pub(super) fn duration(&self) -> Result<Option<f64>, ExchangeError> {
        self.object.fraction("duration")
    }

    /// Returns a latency that must be there.
    fn latency(&self, key: &str) -> Result<u64, ExchangeError> {
        let us = self.object.number(key)?.filter(|us| *us <= LONGEST_US);
        us.ok_or_else(|| self.problem(&format!("has no '{key}' that could be one")))
    }

    /// Returns values and counts of the histogram, rising.
    fn histogram(&self) -> Result<Vec<(u64, u64)>, ExchangeError> {
        let json = self.object.get("histogram")?;
        let json = json.ok_or_else(|| self.problem("has no histogram"))?;
        let name = &self.object.name;
        let mut counts: Vec<(u64, u64)> =
            members(name, json, "values of a histogram", MOST_COUNTS)?;
        counts.sort_unstable();
        if let Some(twice) = counts.windows(2).find(|two| two[0].0 == two[1].0) {
            return Err(self.problem(&format!("counts latencies of {} µs twice", twice[0].0)));
        }
        if counts.last().is_some_and(|(us, _)| *us > LONGEST_US) {
            return Err(self.problem("has an invalid histogram"));
        }
        counts.retain(|(_, count)| *count > 0);
        Ok(counts)
    }

    /// Says what is wrong with this thread.
    pub(super) fn problem(&self, what: &str) -> ExchangeError {
        self.object.problem(what)
    }
}

/// Refuses histograms that would fill the memory; of text, in which line.
pub(super) fn check_size<'a>(
    line: Option<usize>,
    columns: impl IntoIterator<Item = &'a Column>,
) -> Result<(), ExchangeError> {
    let counts = columns.into_iter().map(|column| column.counts.len());
    if counts.sum::<usize>() <= MOST_COUNTS {
        return Ok(());
    }
    let problem = format!("more than {MOST_COUNTS} values of histograms");
    Err(match line {
        Some(line) => ExchangeError::line(line, problem),
        None => ExchangeError::NotOutput(problem),
    })
}

/// Refuses histograms whose rows seem to be wider than 1 µs, which no file states. `option` is the
/// option that makes rows of a width, in µs, and how to measure instead.
pub(super) fn check_width<'a>(
    columns: impl IntoIterator<Item = &'a Column>,
    option: impl Fn(u64) -> (String, &'static str),
) -> Result<(), ExchangeError> {
    /// A few samples may be multiples of a number by chance.
    const FEWEST_SAMPLES: u128 = 100;
    let fewest_values = |common: u64| if common < 5 { 3 } else { 2 };
    let (mut common, mut samples) = (0, 0);
    let mut values = BTreeSet::new();
    for (us, count) in columns.into_iter().flat_map(|column| &column.counts) {
        common = divisor(common, *us);
        samples += u128::from(*count);
        if values.len() < 3 {
            values.insert(*us);
        }
    }
    if common <= 1 || values.len() < fewest_values(common) || samples < FEWEST_SAMPLES {
        return Ok(());
    }
    let (option, instead) = option(common);
    Err(ExchangeError::NotOutput(format!(
        "all its values are multiples of {common} µs, as with {option}, and latencies between them are unknown: measure \
         {instead}"
    )))
}

/// Returns the greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => divisor(b, a % b),
    }
}

/// Refuses a line with more columns than there can be histograms.
pub(super) fn check_threads(line: usize, columns: usize) -> Result<(), ExchangeError> {
    match columns > MOST_THREADS {
        true => Err(ExchangeError::line(
            line,
            format!("more than {MOST_THREADS} histograms"),
        )),
        false => Ok(()),
    }
}

/// Reads the time as rt-tests writes it: `Sat, 21 Nov 2026 22:05:22 +0000`.
fn time(text: &str) -> Option<Timestamp> {
    let read = strtime::parse("%a, %d %b %Y %H:%M:%S %z", text).ok()?;
    read.to_timestamp().ok()
}
