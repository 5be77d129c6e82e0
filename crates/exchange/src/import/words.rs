//! What the readers of all tools share.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::fmt::strtime;
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Number;
use tare_host::visible_in_line;

use super::{Column, Foreign, Mean, TOOLS};
use crate::error::ExchangeError;

/// The longest latency that is believed, in µs: some 31 years. A file with more is no output of
/// these tools, and figures in ns would not fit.
pub(super) const LONGEST_US: u64 = 1_000_000_000_000_000;

/// The greatest number of histograms that is believed.
pub(super) const MOST_THREADS: usize = 1 << 14;

/// The greatest number of values, of all histograms together, whose counts are kept.
const MOST_COUNTS: usize = 1 << 21;

/// The greatest number of facts about the machine.
const MOST_FACTS: usize = 64;

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

/// The JSON that the tools of rt-tests write, reduced to the members that are used here.
///
/// The other members are skipped while it is read, and what is kept has bounds: a tree of all of it
/// would take fifty times the memory of the file.
#[derive(Deserialize)]
pub(super) struct Json {
    /// The command line. Keys of rt-tests may end with a colon.
    #[serde(default, alias = "cmdline:")]
    cmdline: Scalar,
    #[serde(default, alias = "rt_test_version:")]
    rt_test_version: Scalar,
    #[serde(default)]
    start_time: Scalar,
    #[serde(default)]
    num_threads: Scalar,
    #[serde(default)]
    resolution_in_ns: Scalar,
    #[serde(default, deserialize_with = "facts")]
    sysinfo: Vec<(String, Scalar)>,
    #[serde(default, deserialize_with = "threads")]
    thread: Option<Vec<(u32, Thread)>>,
}

impl Json {
    /// Reads it, if the text is JSON.
    pub(super) fn read(text: &str, tool: &str) -> Result<Option<Self>, ExchangeError> {
        if !text.trim_start().starts_with('{') {
            return Ok(None);
        }
        let json: Self = serde_json::from_str(text).map_err(|error| {
            let not = if error.is_data() { "" } else { "not JSON: " };
            ExchangeError::line(error.line(), format!("{not}{error}"))
        })?;
        if json.thread.is_none() {
            return Err(ExchangeError::NotOutput(format!(
                "this JSON has no 'thread': it is not what {tool} --json writes"
            )));
        }
        let program = json.command().and_then(|line| {
            let path = line.split_whitespace().next()?;
            path.rsplit('/').next()
        });
        match program {
            Some(other) if other != tool && TOOLS.contains(&other) => {
                Err(ExchangeError::NotOutput(format!(
                    "it was written by {other}, as its command line says: import it with `tare import {other}`"
                )))
            }
            _ => Ok(Some(json)),
        }
    }

    /// Returns the command line.
    pub(super) fn command(&self) -> Option<&str> {
        self.cmdline.text()
    }

    /// Returns whether latencies are ns instead of µs.
    pub(super) fn is_in_ns(&self) -> bool {
        self.resolution_in_ns.number().unwrap_or(0) != 0
    }

    /// Begins what the file says with its head.
    pub(super) fn head(&self, tool: &str) -> Foreign {
        let facts = self.sysinfo.iter().filter_map(|(name, value)| {
            let value = match value {
                Scalar::Text(text) => text.clone(),
                Scalar::Number(number) => number.to_string(),
                Scalar::Other => return None,
            };
            Some((name.clone(), value))
        });
        Foreign {
            tool: match self.rt_test_version.text() {
                Some(version) => format!("{tool} {version}"),
                None => tool.to_owned(),
            },
            command: self.command().map(str::to_owned),
            started: self.start_time.text().and_then(time),
            facts: facts.collect(),
            ..Foreign::default()
        }
    }

    /// Returns the threads in the order of their numbers.
    pub(super) fn threads(self) -> Result<Vec<Thread>, ExchangeError> {
        let not = |what: &str| ExchangeError::NotOutput(format!("'thread' {what}"));
        let threads = self.thread.into_iter().flatten();
        let threads = threads.map(|(number, thread)| Thread { number, ..thread });
        let mut list: Vec<Thread> = threads.collect();
        if list.is_empty() {
            return Err(not("holds no thread"));
        }
        list.sort_by_key(|thread| thread.number);
        if let Some(twice) = list.windows(2).find(|two| two[0].number == two[1].number) {
            return Err(not(&format!("has {} twice", twice[0].number)));
        }
        match self.num_threads.number() {
            Some(stated) if stated != list.len() as u64 => Err(ExchangeError::NotOutput(format!(
                "'num_threads' is {stated}, but there are {} threads in it",
                list.len()
            ))),
            _ => Ok(list),
        }
    }
}

/// One thread of such JSON.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Thread {
    /// Its number, which is its key.
    #[serde(skip)]
    pub number: u32,
    cpu: Scalar,
    cycles: Scalar,
    duration: Scalar,
    min: Scalar,
    max: Scalar,
    avg: Scalar,
    #[serde(deserialize_with = "histogram")]
    histogram: Option<Vec<(u64, u64)>>,
}

impl Thread {
    /// Returns its histogram with the figures that go with it.
    pub(super) fn column(&mut self) -> Result<Column, ExchangeError> {
        let mean = self.avg.fraction().filter(|avg| avg.is_finite());
        Ok(Column {
            cpu: self.cpu.number().and_then(|cpu| u32::try_from(cpu).ok()),
            counts: self.histogram()?,
            min: Some(self.latency("min", &self.min)?),
            max: Some(self.latency("max", &self.max)?),
            mean: mean.map(Mean::Rounded),
            ..Column::default()
        })
    }

    /// Returns how often it woke.
    pub(super) fn cycles(&self) -> Option<u64> {
        self.cycles.number()
    }

    /// Returns how long it ran, in seconds.
    pub(super) fn duration(&self) -> Option<f64> {
        self.duration.fraction()
    }

    /// Returns a latency that must be there.
    fn latency(&self, key: &str, figure: &Scalar) -> Result<u64, ExchangeError> {
        let us = figure.number().filter(|us| *us <= LONGEST_US);
        us.ok_or_else(|| self.problem(&format!("has no '{key}' that could be one")))
    }

    /// Takes values and counts of the histogram, rising.
    fn histogram(&mut self) -> Result<Vec<(u64, u64)>, ExchangeError> {
        let counts = self.histogram.take();
        let mut counts = counts.ok_or_else(|| self.problem("has no histogram"))?;
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
        ExchangeError::NotOutput(format!("thread {} {what}", self.number))
    }
}

/// A text or a number of such JSON. Whatever else stands in its place counts as missing.
#[derive(Default)]
enum Scalar {
    Text(String),
    Number(Number),
    #[default]
    Other,
}

impl Scalar {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => number.as_u64(),
            _ => None,
        }
    }

    fn fraction(&self) -> Option<f64> {
        match self {
            Self::Number(number) => number.as_f64(),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Scalar;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text or a number")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
                if text.len() > LONGEST_TEXT {
                    return Err(E::custom(format!(
                        "a text has more than {LONGEST_TEXT} bytes, as none has that these tools write"
                    )));
                }
                Ok(Scalar::Text(visible_in_line(text).into_owned()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number.into()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number.into()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
                Ok(Number::from_f64(number).map_or(Scalar::Other, Scalar::Number))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }

            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

fn facts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, Scalar)>, D::Error> {
    pairs(from, "facts", MOST_FACTS, |_| 1)
}

fn histogram<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<(u64, u64)>>, D::Error> {
    pairs(from, "values of a histogram", MOST_COUNTS, |_| 1).map(Some)
}

fn threads<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<(u32, Thread)>>, D::Error> {
    let size = |thread: &Thread| {
        let counts = thread.histogram.as_ref().map_or(0, Vec::len);
        counts.max(MOST_COUNTS / MOST_THREADS)
    };
    pairs(
        from,
        "values of histograms, or too many threads",
        MOST_COUNTS,
        size,
    )
    .map(Some)
}

/// Reads the members of an object as long as their sizes add up to no more than `most`.
fn pairs<'de, D, K, V>(
    from: D,
    what: &'static str,
    most: usize,
    size: fn(&V) -> usize,
) -> Result<Vec<(K, V)>, D::Error>
where
    D: Deserializer<'de>,
    K: FromStr,
    V: Deserialize<'de>,
{
    struct Reader<K, V> {
        what: &'static str,
        most: usize,
        size: fn(&V) -> usize,
        pairs: Vec<(K, V)>,
    }

    impl<'de, K: FromStr, V: Deserialize<'de>> Visitor<'de> for Reader<K, V> {
        type Value = Vec<(K, V)>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(formatter, "an object of {}", self.what)
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut sum = 0;
            while let Some((name, value)) = map.next_entry::<Scalar, V>()? {
                let name = name.text().unwrap_or_default();
                let key = name.parse().map_err(|_| {
                    de::Error::custom(format!("'{}' is not a whole number", shown(name)))
                })?;
                sum += (self.size)(&value);
                if sum > self.most {
                    return Err(de::Error::custom(too_many(self.what, self.most)));
                }
                self.pairs.push((key, value));
            }
            Ok(self.pairs)
        }
    }

    let pairs = Vec::new();
    from.deserialize_map(Reader {
        what,
        most,
        size,
        pairs,
    })
}

/// Refuses histograms that would fill the memory.
pub(super) fn check_size<'a>(
    line: usize,
    columns: impl IntoIterator<Item = &'a Column>,
) -> Result<(), ExchangeError> {
    let counts = columns.into_iter().map(|column| column.counts.len());
    match counts.sum::<usize>() > MOST_COUNTS {
        true => Err(ExchangeError::line(
            line,
            too_many("values of histograms", MOST_COUNTS),
        )),
        false => Ok(()),
    }
}

fn too_many(what: &str, most: usize) -> String {
    format!("more than {most} {what}, as no measurement has")
}

/// Reads the time as rt-tests writes it: `Sat, 21 Nov 2026 22:05:22 +0000`.
fn time(text: &str) -> Option<Timestamp> {
    let read = strtime::parse("%a, %d %b %Y %H:%M:%S %z", text).ok()?;
    read.to_timestamp().ok()
}
