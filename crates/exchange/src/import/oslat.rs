//! oslat's histogram: its text and `--json`.
//!
//! oslat reads the time stamp counter in a loop, on each CPU, and counts how long each turn took. These are no
//! wake-ups: nothing is due at an interval, so nothing can be missed. The turns are imported as latencies, since
//! both are µs that something took too long; each of the first bucket is a turn that nothing interrupted. They can't
//! be a run of `gap`, which is the same measurement: that keeps the time of every gap, and oslat has none.

use super::words::{Json, latency, number, shown};
use super::{Column, Foreign, Mean, Series};
use crate::error::ExchangeError;

/// The name of the tool.
const NAME: &str = "oslat";

/// Reads what oslat printed.
///
/// # Errors
///
/// As [`super::read`].
pub fn read(text: &str) -> Result<Foreign, ExchangeError> {
    let mut foreign = match Json::read(text, NAME)? {
        Some(json) => from_json(&json)?,
        None => from_text(text)?,
    };
    foreign.notices.push(
        "oslat spins: these are durations of the turns of its loop, not latencies of wake-ups. Nothing is due at an \
         interval, so service and response are the same and nothing is missed. Most turns last far less than 1 µs and \
         stand at its first value, 1 µs"
            .to_owned(),
    );
    Ok(foreign)
}

fn from_json(json: &Json) -> Result<Foreign, ExchangeError> {
    let mut foreign = json.head(NAME);
    let mut threads = Vec::new();
    for thread in json.threads()? {
        let counts = thread.histogram()?;
        let max = thread.latency("max")?;
        let seconds = thread.fraction("duration").unwrap_or(0.0);
        note_duration(&mut foreign, seconds);
        let column = Column {
            cpu: thread.number("cpu").and_then(|cpu| u32::try_from(cpu).ok()),
            counts,
            min: Some(thread.latency("min")?),
            max: Some(max),
            mean: thread
                .fraction("avg")
                .filter(|avg| avg.is_finite())
                .map(Mean::Rounded),
            ..Column::default()
        };
        threads.push(column);
    }
    foreign.series.push(series(threads));
    Ok(foreign)
}

fn from_text(text: &str) -> Result<Foreign, ExchangeError> {
    let mut foreign = Foreign {
        tool: NAME.to_owned(),
        ..Foreign::default()
    };
    let mut threads: Vec<Column> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        if let Some(version) = content.strip_prefix("oslat V ") {
            foreign.tool = format!("{NAME} {}", version.trim());
        }
        let Some((name, values)) = content.split_once(':') else {
            continue;
        };
        let name = name.trim();
        if name == "Core" {
            let cpus = values.split_whitespace().map(|word| number(line, word));
            let cpus: Vec<u64> = cpus.collect::<Result<_, _>>()?;
            let cpus = cpus.into_iter().map(|cpu| Column {
                cpu: u32::try_from(cpu).ok(),
                ..Column::default()
            });
            threads = cpus.take(super::words::MOST_THREADS).collect();
            continue;
        }
        if threads.is_empty() {
            continue;
        }
        let row = Row { line, values };
        match name.strip_suffix("(us)") {
            Some(us) => {
                let us = latency(line, us)?;
                let counts = row.numbers(threads.len())?;
                for (thread, count) in threads.iter_mut().zip(counts) {
                    let rises = thread.counts.last().is_none_or(|(last, _)| *last < us);
                    if !rises {
                        let problem = format!("the value {us} does not rise above the one before");
                        return Err(ExchangeError::line(line, problem));
                    }
                    thread.counts.push((us, count));
                }
            }
            None => {
                let threads = &mut threads[..];
                match name {
                    "Minimum" => row.put(threads, |thread, us| thread.min = Some(us))?,
                    "Maximum" => row.put(threads, |thread, us| thread.max = Some(us))?,
                    "Average" => row.means(threads)?,
                    "Duration" => {
                        let seconds = row.words().next().and_then(|word| word.parse().ok());
                        note_duration(&mut foreign, seconds.unwrap_or(0.0));
                    }
                    _ => {}
                }
            }
        }
    }
    if threads.iter().all(|thread| thread.counts.is_empty()) {
        return Err(ExchangeError::NotOutput(
            "there is no line 'Core:' followed by a histogram in it: it is not what oslat prints at its end".to_owned(),
        ));
    }
    if threads.iter().any(|thread| thread.max.is_none()) {
        return Err(ExchangeError::NotOutput(
            "the line 'Maximum:' is missing: the output broke off".to_owned(),
        ));
    }
    foreign.series.push(series(threads));
    Ok(foreign)
}

/// Puts the threads together. What the last value counts may be anything from there on: with overflows.
fn series(mut threads: Vec<Column>) -> Series {
    for thread in &mut threads {
        let last = thread.counts.last().copied();
        if let (Some((us, count)), Some(max)) = (last, thread.max)
            && max > us
        {
            thread.counts.pop();
            (thread.over, thread.limit) = (count, us);
        }
        thread.counts.retain(|(_, count)| *count > 0);
    }
    Series {
        name: NAME.to_owned(),
        is_periodic: false,
        threads,
    }
}

fn note_duration(foreign: &mut Foreign, seconds: f64) {
    if (0.0..1e9).contains(&seconds) && seconds > 0.0 {
        let ns = (seconds * 1e9) as u64;
        foreign.duration_ns = Some(foreign.duration_ns.map_or(ns, |known| known.max(ns)));
    }
}

/// One line of figures, one for each CPU, then the unit.
struct Row<'a> {
    line: usize,
    values: &'a str,
}

impl<'a> Row<'a> {
    fn words(&self) -> impl Iterator<Item = &'a str> {
        let values = self.values.split('(').next().unwrap_or_default();
        values.split_whitespace()
    }

    fn numbers(&self, due: usize) -> Result<Vec<u64>, ExchangeError> {
        let numbers: Vec<u64> = self
            .words()
            .map(|word| number(self.line, word))
            .collect::<Result<_, _>>()?;
        if numbers.len() == due {
            return Ok(numbers);
        }
        let problem = format!(
            "'{}' is not one figure for each of {due} CPUs",
            shown(self.values)
        );
        Err(ExchangeError::line(self.line, problem))
    }

    fn put(
        &self,
        threads: &mut [Column],
        put: impl Fn(&mut Column, u64),
    ) -> Result<(), ExchangeError> {
        let numbers = self.numbers(threads.len())?;
        for (thread, us) in threads.iter_mut().zip(numbers) {
            put(thread, latency(self.line, &us.to_string())?);
        }
        Ok(())
    }

    fn means(&self, threads: &mut [Column]) -> Result<(), ExchangeError> {
        for (thread, word) in threads.iter_mut().zip(self.words()) {
            let mean: Option<f64> = word.parse().ok().filter(|mean: &f64| mean.is_finite());
            let problem =
                || ExchangeError::line(self.line, format!("'{}' is no number", shown(word)));
            thread.mean = Some(Mean::Rounded(mean.ok_or_else(problem)?));
        }
        Ok(())
    }
}
