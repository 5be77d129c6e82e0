//! oslat's histogram: its text and `--json`.
//!
//! oslat reads the time stamp counter in a loop, on each CPU, and counts how long each turn took.
//! These are no wake-ups: nothing is due at an interval, so nothing can be missed. The turns are
//! imported as latencies, since both are µs that something took too long; each of the first bucket
//! is a turn that nothing interrupted. They can't be a run of `gap`, which is the same measurement:
//! that keeps the time of every gap, and oslat has none.

use super::words::{
    Json, Once, Row, check_size, check_threads, check_width, latency, option, shown,
};
use super::{Column, Foreign, Mean, Series};
use crate::error::ExchangeError;

/// The name of the tool.
const NAME: &str = "oslat";

/// The number of buckets without -b.
const BUCKETS: u64 = 32;

/// Reads what oslat printed.
///
/// # Errors
///
/// As [`super::read`].
pub fn read(text: &str) -> Result<Foreign, ExchangeError> {
    let mut foreign = match Json::read(text, NAME)? {
        Some(json) => from_json(json)?,
        None => from_text(text)?,
    };
    foreign.notices.push(
        "oslat spins: these are durations of the turns of its loop, not latencies of wake-ups, and nothing is due at an \
         interval. Most turns last far less than 1 µs and stand at its first value"
            .to_owned(),
    );
    Ok(foreign)
}

fn from_json(json: Json<'_>) -> Result<Foreign, ExchangeError> {
    let mut foreign = json.head(NAME)?;
    let mut threads = Vec::new();
    for thread in json.threads()? {
        let seconds = thread.duration()?.unwrap_or(0.0);
        note_duration(&mut foreign, seconds);
        threads.push(thread.column()?);
        check_size(None, &threads)?;
    }
    // Buckets that count nothing are left out: the last one is there only if it counts something.
    let command = foreign.command.as_deref().unwrap_or_default();
    let buckets = match option(command, "Bqszvh", 'b', "bucket-size") {
        _ if command.is_empty() => 0,
        Some(number) => number.parse().unwrap_or(0),
        None => BUCKETS,
    };
    foreign.series.push(series(threads, buckets)?);
    Ok(foreign)
}

fn from_text(text: &str) -> Result<Foreign, ExchangeError> {
    let mut foreign = Foreign {
        tool: NAME.to_owned(),
        ..Foreign::default()
    };
    let mut threads: Vec<Column> = Vec::new();
    let mut rows = Once::default();
    let mut is_last = false;
    for (line, content) in (1..).zip(text.lines()) {
        if let Some(version) = content.strip_prefix("oslat V ") {
            foreign.tool = format!("{NAME} {}", shown(version));
        }
        let Some((name, text)) = content.split_once(':') else {
            continue;
        };
        let name = name.trim();
        let row = Row { line, name, text };
        if name == "Core" {
            if threads.iter().any(|thread| thread.max.is_some()) {
                return Err(ExchangeError::second(line));
            }
            let cpus = row.numbers()?.into_iter().map(|cpu| Column {
                cpu: u32::try_from(cpu).ok(),
                ..Column::default()
            });
            threads = cpus.collect();
            check_threads(line, threads.len())?;
            let mut cpus: Vec<_> = threads.iter().map(|thread| thread.cpu).collect();
            cpus.sort_unstable();
            if cpus.windows(2).any(|two| two[0] == two[1]) {
                return Err(ExchangeError::line(line, "a CPU is given twice"));
            }
            rows = Once::default();
            continue;
        }
        let Some(first) = threads.first() else {
            continue;
        };
        if let Some(us) = name.strip_suffix("(us)") {
            let us = latency(line, us)?;
            if first.counts.last().is_some_and(|(last, _)| *last >= us) {
                let problem = format!("the value {us} does not rise above the one before");
                return Err(ExchangeError::line(line, problem));
            }
            row.put(&mut threads, false, |thread, count| {
                thread.counts.push((us, count));
            })?;
            check_size(Some(line), &threads)?;
            is_last = text.contains("(including overflows)");
            continue;
        }
        if matches!(name, "Minimum" | "Maximum" | "Average" | "Duration") {
            rows.take(line, name)?;
        }
        match name {
            "Minimum" => row.put(&mut threads, false, |thread, us| thread.min = Some(us))?,
            "Maximum" => row.put(&mut threads, false, |thread, us| thread.max = Some(us))?,
            "Average" => {
                let (found, due) = (row.words().count(), threads.len());
                if found != due {
                    let problem = format!("'Average:' has {found} figures for {due} columns");
                    return Err(ExchangeError::line(line, problem));
                }
                for (thread, word) in threads.iter_mut().zip(row.words()) {
                    let mean = word.parse().ok().filter(|mean: &f64| mean.is_finite());
                    let problem = || format!("'{}' is not a number", shown(word));
                    let mean = mean.ok_or_else(|| ExchangeError::line(line, problem()))?;
                    thread.mean = Some(Mean::Rounded(mean));
                }
            }
            "Duration" => {
                let seconds = row.words().next().and_then(|word| word.parse().ok());
                note_duration(&mut foreign, seconds.unwrap_or(0.0));
            }
            _ => {}
        }
    }
    if threads.iter().all(|thread| thread.counts.is_empty()) {
        return Err(ExchangeError::NotOutput(
            "there is no line 'Core:' followed by a histogram in it: it is not what oslat prints at its end, which it does \
             not reach when -T stops it"
                .to_owned(),
        ));
    }
    if threads.iter().any(|thread| thread.max.is_none()) {
        return Err(ExchangeError::broken_off("Maximum:"));
    }
    if !is_last {
        return Err(ExchangeError::NotOutput(
            "the last row of its histogram is not marked '(including overflows)': rows are missing"
                .to_owned(),
        ));
    }
    foreign.series.push(series(threads, 0)?);
    Ok(foreign)
}

/// Puts the threads together. The last value counts everything from there on, with overflows,
/// unless it is less than `least`.
fn series(mut threads: Vec<Column>, least: u64) -> Result<Series, ExchangeError> {
    check_width(&threads, |us| (format!("-W {}", us * 1_000), "without -W"))?;
    for (number, thread) in (0..).zip(&mut threads) {
        let last = thread.counts.last().copied();
        if let (Some((us, count)), Some(max)) = (last, thread.max)
            && max > us
            && us >= least
            && count > 0
        {
            thread.counts.pop();
            (thread.over, thread.limit) = (count, us);
        }
        thread.counts.retain(|(_, count)| *count > 0);
        // Its first value is that of all turns that are shorter, too.
        let min = thread.min.take();
        thread.check_ends(&format!("column {number}"))?;
        thread.min = min;
    }
    Ok(Series {
        name: NAME.to_owned(),
        is_periodic: false,
        threads,
    })
}

fn note_duration(foreign: &mut Foreign, seconds: f64) {
    if (0.0..1e9).contains(&seconds) && seconds > 0.0 {
        let ns = (seconds * 1e9) as u64;
        foreign.duration_ns = Some(foreign.duration_ns.map_or(ns, |known| known.max(ns)));
    }
}
