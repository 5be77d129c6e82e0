//! What the readers of all tools share.

use jiff::Timestamp;
use jiff::fmt::strtime;
use serde_json::{Map, Value};

use super::{Column, Foreign, Mean, TOOLS};
use crate::error::ExchangeError;

/// The longest latency that is believed, in µs: some 31 years. A file with more is no output of
/// these tools, and figures in ns would not fit.
pub(super) const LONGEST_US: u64 = 1_000_000_000_000_000;

/// The greatest number of histograms that is believed.
pub(super) const MOST_THREADS: usize = 1 << 16;

/// Reads a whole number.
pub(super) fn number(line: usize, text: &str) -> Result<u64, ExchangeError> {
    let read = text.trim().parse();
    read.map_err(|_| ExchangeError::line(line, format!("'{}' is no whole number", shown(text))))
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

    /// Reads whole numbers.
    pub(super) fn numbers(&self) -> Result<Vec<u64>, ExchangeError> {
        self.words().map(|word| number(self.line, word)).collect()
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
pub(super) struct Json {
    top: Map<String, Value>,
}

impl Json {
    /// Reads it, if the text is JSON.
    pub(super) fn read(text: &str, tool: &str) -> Result<Option<Self>, ExchangeError> {
        if !text.trim_start().starts_with('{') {
            return Ok(None);
        }
        let value: Value = serde_json::from_str(text)
            .map_err(|error| ExchangeError::line(error.line(), format!("not JSON: {error}")))?;
        let json = match value {
            Value::Object(top) if top.contains_key("thread") => Self { top },
            _ => {
                return Err(ExchangeError::NotOutput(format!(
                    "this JSON has no 'thread': it is not what {tool} --json writes"
                )));
            }
        };
        let program = json.text("cmdline").and_then(|line| {
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

    /// Returns a text of the top; keys of rt-tests may end with a colon.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        let with_colon = format!("{key}:");
        let value = self.top.get(key).or_else(|| self.top.get(&with_colon));
        value.and_then(Value::as_str)
    }

    /// Returns a number of the top.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.top.get(key).and_then(Value::as_u64)
    }

    /// Begins what the file says with its head.
    pub(super) fn head(&self, tool: &str) -> Foreign {
        let version = self.text("rt_test_version");
        let facts = self.top.get("sysinfo").and_then(Value::as_object);
        let facts = facts.into_iter().flatten().filter_map(|(name, value)| {
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return None,
            };
            Some((name.clone(), value))
        });
        Foreign {
            tool: match version {
                Some(version) => format!("{tool} {version}"),
                None => tool.to_owned(),
            },
            command: self.text("cmdline").map(str::to_owned),
            started: self.text("start_time").and_then(time),
            facts: facts.collect(),
            ..Foreign::default()
        }
    }

    /// Returns the threads in the order of their numbers.
    pub(super) fn threads(&self) -> Result<Vec<Thread<'_>>, ExchangeError> {
        let not = |what: &str| ExchangeError::NotOutput(format!("'thread' {what}"));
        let threads = self.top.get("thread").and_then(Value::as_object);
        let threads = threads.ok_or_else(|| not("is no object of threads"))?;
        if threads.len() > MOST_THREADS {
            return Err(not("has more threads than any machine"));
        }
        let mut list = Vec::new();
        for (name, value) in threads {
            let number: u32 = name
                .parse()
                .map_err(|_| not(&format!("has '{}' where a number is due", shown(name))))?;
            let values = value.as_object();
            let values = values.ok_or_else(|| not(&format!("{number} is no object")))?;
            list.push(Thread { number, values });
        }
        if list.is_empty() {
            return Err(not("holds no thread"));
        }
        list.sort_by_key(|thread| thread.number);
        if let Some(twice) = list.windows(2).find(|two| two[0].number == two[1].number) {
            return Err(not(&format!("has {} twice", twice[0].number)));
        }
        match self.number("num_threads") {
            Some(stated) if stated != list.len() as u64 => Err(ExchangeError::NotOutput(format!(
                "'num_threads' is {stated}, but there are {} threads in it",
                list.len()
            ))),
            _ => Ok(list),
        }
    }
}

/// One thread of such JSON.
pub(super) struct Thread<'a> {
    /// Its number.
    pub number: u32,
    values: &'a Map<String, Value>,
}

impl Thread<'_> {
    /// Returns a whole number.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.values.get(key).and_then(Value::as_u64)
    }

    /// Returns its histogram with the figures that go with it.
    pub(super) fn column(&self) -> Result<Column, ExchangeError> {
        let mean = self.fraction("avg").filter(|avg| avg.is_finite());
        Ok(Column {
            cpu: self.number("cpu").and_then(|cpu| u32::try_from(cpu).ok()),
            counts: self.histogram()?,
            min: Some(self.latency("min")?),
            max: Some(self.latency("max")?),
            mean: mean.map(Mean::Rounded),
            ..Column::default()
        })
    }

    /// Returns any number.
    pub(super) fn fraction(&self, key: &str) -> Option<f64> {
        self.values.get(key).and_then(Value::as_f64)
    }

    /// Returns a latency that must be there.
    fn latency(&self, key: &str) -> Result<u64, ExchangeError> {
        let us = self.number(key).filter(|us| *us <= LONGEST_US);
        us.ok_or_else(|| self.problem(&format!("has no '{key}' that could be one")))
    }

    /// Returns values and counts of the histogram, rising.
    fn histogram(&self) -> Result<Vec<(u64, u64)>, ExchangeError> {
        let histogram = self.values.get("histogram").and_then(Value::as_object);
        let histogram = histogram.ok_or_else(|| self.problem("has no histogram"))?;
        let mut counts = Vec::new();
        for (us, count) in histogram {
            let us = us.parse().ok().filter(|us| *us <= LONGEST_US);
            let pair = us.zip(count.as_u64());
            let pair = pair.ok_or_else(|| self.problem("has a histogram that is none"))?;
            counts.push(pair);
        }
        counts.sort_unstable();
        if let Some(twice) = counts.windows(2).find(|two| two[0].0 == two[1].0) {
            return Err(self.problem(&format!("counts latencies of {} µs twice", twice[0].0)));
        }
        counts.retain(|(_, count)| *count > 0);
        Ok(counts)
    }

    /// Says what is wrong with this thread.
    pub(super) fn problem(&self, what: &str) -> ExchangeError {
        ExchangeError::NotOutput(format!("thread {} {what}", self.number))
    }
}

/// Reads the time as rt-tests writes it: `Sat, 21 Nov 2026 22:05:22 +0000`.
fn time(text: &str) -> Option<Timestamp> {
    let read = strtime::parse("%a, %d %b %Y %H:%M:%S %z", text).ok()?;
    read.to_timestamp().ok()
}
