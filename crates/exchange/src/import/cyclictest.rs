//! cyclictest's histogram: the text of `-h` and `-H`, and `--json`.

use std::collections::BTreeMap;

use super::words::{
    Json, MOST_THREADS, Once, Row, check_size, check_threads, latency, number, option, shown,
};
use super::{Column, Foreign, Mean, Series};
use crate::error::ExchangeError;

/// The name of the tool.
const NAME: &str = "cyclictest";

/// Reads what cyclictest printed.
///
/// # Errors
///
/// As [`super::read`].
pub fn read(text: &str) -> Result<Foreign, ExchangeError> {
    match Json::read(text, NAME)? {
        Some(json) => from_json(json),
        None => from_text(text),
    }
}

fn from_json(json: Json<'_>) -> Result<Foreign, ExchangeError> {
    let mut foreign = json.head(NAME)?;
    // With -N the values are ns, and the key that is to say so is 1.
    if json.is_in_ns()? {
        return Err(in_ns());
    }
    let options = foreign.command.as_deref().map(options).unwrap_or_default();
    let mut threads = Vec::new();
    for thread in json.threads()? {
        let column = thread.column()?;
        let cycles = thread.cycles()?;
        let cycles = cycles.ok_or_else(|| thread.problem("has no 'cycles'"))?;
        let over = u128::from(cycles).checked_sub(column.counted());
        let over = over.and_then(|over| u64::try_from(over).ok());
        let over = over.ok_or_else(|| thread.problem("counts more latencies than cycles"))?;
        // All may lie beyond a histogram whose size the command line has.
        if cycles > 0 && column.counts.is_empty() && options.size.is_none() {
            return Err(no_histogram());
        }
        let limit = column.counts.last().map_or(0, |(us, _)| us + 1);
        let name = format!("thread {}", thread.number);
        let column = Column {
            priority: options.priority,
            policy: options.policy.clone(),
            // With a histogram every thread has the same one.
            interval_us: options.interval_us,
            over,
            limit: options.size.unwrap_or(limit).max(limit),
            min: column.min.filter(|_| cycles > 0),
            max: column.max.filter(|_| cycles > 0),
            ..column
        };
        column.check_ends(&name)?;
        threads.push(column);
        check_size(None, &threads)?;
    }
    let longest = threads.iter().filter_map(|thread| thread.max).max();
    if let Some((above, longest)) = options.above_us.zip(longest).filter(|(a, b)| b > a) {
        foreign.stopped = Some(format!("-b {above}, and {longest} µs is above that"));
    }
    foreign.series.push(series(threads));
    Ok(foreign)
}

fn from_text(text: &str) -> Result<Foreign, ExchangeError> {
    let mut read = Text::default();
    for (line, content) in (1..).zip(text.lines()) {
        // What moves the cursor stands before the status of the next round.
        let content = content.rsplit('\u{1b}').next().unwrap_or_default();
        read.line(line, content)?;
    }
    Ok(Foreign {
        tool: NAME.to_owned(),
        series: vec![series(read.finish()?)],
        ..Foreign::default()
    })
}

/// The text of `-h` while it is read.
#[derive(Default)]
struct Text {
    threads: Vec<Column>,
    status: BTreeMap<u32, Status>,
    /// The scheduling policy above the status.
    policy: Option<String>,
    /// Counts of each column, as the histogram's foot says.
    totals: Vec<u64>,
    /// The lines of the foot that were there.
    feet: Once,
    is_in_histogram: bool,
    is_complete: bool,
}

impl Text {
    fn line(&mut self, line: usize, content: &str) -> Result<(), ExchangeError> {
        if let Some((number, read)) = Status::read(content) {
            if self.is_complete {
                return Err(ExchangeError::second(line));
            }
            if self.status.len() < MOST_THREADS {
                self.status.insert(number, read);
            }
        } else if let Some(stated) = content.strip_prefix("policy: ") {
            let name = stated.split(':').next().unwrap_or_default().trim();
            self.policy = Some(shown(name));
        } else if content.trim_end().ends_with("# Histogram") {
            if self.is_complete {
                return Err(ExchangeError::second(line));
            }
            *self = Self {
                status: std::mem::take(&mut self.status),
                policy: self.policy.take(),
                is_in_histogram: true,
                ..Self::default()
            };
        } else if let Some(comment) = content.strip_prefix('#') {
            self.is_in_histogram = false;
            if let Some((name, text)) = comment.trim_start().split_once(':') {
                self.foot(&Row { line, name, text })?;
            }
        } else if self.is_in_histogram && !content.trim().is_empty() {
            self.row(line, content)?;
        }
        Ok(())
    }

    /// Takes a line of the histogram's foot.
    fn foot(&mut self, row: &Row<'_>) -> Result<(), ExchangeError> {
        let put: fn(&mut Column, u64) = match row.name {
            "Min Latencies" => |thread, us| thread.min = Some(us),
            "Avg Latencies" => |thread, us| thread.mean = Some(Mean::CutOff(us)),
            "Max Latencies" => |thread, us| thread.max = Some(us),
            "Histogram Overflows" => |thread, count| thread.over = count,
            "Total" => {
                self.totals = row.numbers()?;
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.feet.take(row.line, row.name)?;
        self.is_complete |= row.name == "Histogram Overflows";
        // The column of -H has no minimum and no mean.
        row.put(&mut self.threads, true, put)
    }

    /// Takes `000007 000001\t000004`.
    fn row(&mut self, line: usize, content: &str) -> Result<(), ExchangeError> {
        let wrong = |problem: String| Err(ExchangeError::line(line, problem));
        let mut words = content.split_whitespace();
        let us = latency(line, words.next().unwrap_or_default())?;
        // The column of -H is none of a thread.
        let counts = words.take(MOST_THREADS + 2).map(|word| number(line, word));
        let counts: Vec<u64> = counts.collect::<Result<_, _>>()?;
        check_threads(line, counts.len().saturating_sub(1))?;
        if counts.is_empty() {
            return wrong(format!("'{}' is not a row of a histogram", shown(content)));
        }
        if self.threads.is_empty() {
            self.threads.resize(counts.len(), Column::default());
        }
        let columns = self.threads.len();
        if counts.len() != columns {
            return wrong(format!("{} counts, but {columns} before", counts.len()));
        }
        // Values that no thread counts may be left out: the foot has the number of samples.
        let due = self.threads[0].limit;
        if us < due {
            return wrong(format!("the value {us} stands where {due} or more is due"));
        }
        for (thread, count) in self.threads.iter_mut().zip(counts) {
            thread.limit = us + 1;
            if count > 0 {
                thread.counts.push((us, count));
            }
        }
        check_size(Some(line), &self.threads)
    }

    /// Puts everything together, and checks that nothing is missing.
    fn finish(mut self) -> Result<Vec<Column>, ExchangeError> {
        if self.threads.is_empty() {
            return Err(no_histogram());
        }
        if !self.is_complete {
            return Err(ExchangeError::broken_off("# Histogram Overflows:"));
        }
        if self.totals.is_empty() {
            return Err(ExchangeError::broken_off("# Total:"));
        }
        if self.status.values().any(|status| status.is_in_ns) {
            return Err(in_ns());
        }
        if self.has_sum() {
            self.threads.pop();
        }
        let (stated, due) = (self.totals.len(), self.threads.len());
        if stated < due {
            return Err(ExchangeError::NotOutput(format!(
                "'# Total:' has {stated} figures for {due} columns"
            )));
        }
        for (number, (thread, stated)) in (0_u32..).zip(self.threads.iter_mut().zip(&self.totals)) {
            thread.check(0, *stated, &format!("thread {number}"), "# Total:")?;
            // A thread that never ran has placeholders instead of figures.
            if thread.counts.is_empty() && thread.over == 0 {
                (thread.min, thread.max, thread.mean) = (None, None, None);
            }
            thread.check_ends(&format!("thread {number}"))?;
            thread.policy.clone_from(&self.policy);
            if let Some(known) = self.status.get(&number) {
                thread.tid = known.tid;
                thread.priority = Some(known.priority);
                thread.interval_us = Some(known.interval_us);
            }
        }
        Ok(self.threads)
    }

    /// Returns whether the last column is the sum of the others, as `-H` adds it: '# Min
    /// Latencies:' has none of it.
    fn has_sum(&self) -> bool {
        let [others @ .., last] = &self.threads[..] else {
            return false;
        };
        let is_sum = |of: fn(&Column) -> u128| others.iter().map(of).sum::<u128>() == of(last);
        others.len() > 1
            && last.min.is_none()
            && is_sum(Column::counted)
            && is_sum(|column| column.over.into())
    }
}

fn series(threads: Vec<Column>) -> Series {
    Series {
        name: NAME.to_owned(),
        is_periodic: true,
        threads,
    }
}

fn in_ns() -> ExchangeError {
    ExchangeError::NotOutput(
        "its values are ns (-N), of which cyclictest keeps no more than a million: measure without -N"
            .to_owned(),
    )
}

fn no_histogram() -> ExchangeError {
    ExchangeError::NotOutput(
        "there is no histogram in it: measure with -h US (and -q), 1000 for example".to_owned(),
    )
}

/// A status line: `T: 0 (10666) P:80 I:1000 C: …`.
struct Status {
    tid: u32,
    priority: u32,
    interval_us: u64,
    /// Whether its latencies are ns, as with -N: the last one is written with eight places instead
    /// of five.
    is_in_ns: bool,
}

impl Status {
    /// Reads it; it begins with the number of its thread.
    fn read(content: &str) -> Option<(u32, Self)> {
        let at = content.find("T:")?;
        let (number, rest) = content[at + 2..].split_once('(')?;
        let (tid, rest) = rest.split_once(')')?;
        let (_, rest) = rest.split_once("P:")?;
        let (priority, rest) = rest.split_once("I:")?;
        let (interval, rest) = rest.split_once("C:")?;
        let last = rest.split_once("Act:").map_or("", |(_, last)| last);
        let last = last.split_once("Avg:").map_or("", |(last, _)| last);
        let status = Self {
            is_in_ns: last.starts_with(' ') && last.trim_end().len() == 8,
            tid: tid.trim().parse().ok()?,
            priority: priority.trim().parse().ok()?,
            interval_us: interval.trim().parse().ok().filter(|us| *us > 0)?,
        };
        Some((number.trim().parse().ok()?, status))
    }
}

/// The options of a command line that concern the threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Options {
    interval_us: Option<u64>,
    policy: Option<String>,
    priority: Option<u32>,
    size: Option<u64>,
    /// The latency above which it stops.
    above_us: Option<u64>,
}

/// Reads the options that matter here; those that are not given are cyclictest's defaults.
fn options(command: &str) -> Options {
    let value = |short, long| option(command, "mqnNrRsSuvxMt", short, long);
    let number = |short, long| value(short, long).and_then(|text: &str| text.parse().ok());
    Options {
        interval_us: Some(
            number('i', "interval")
                .filter(|us| *us > 0)
                .unwrap_or(1_000),
        ),
        // It has no letter.
        policy: value('\0', "policy").map(shown),
        priority: number('p', "priority").and_then(|priority| u32::try_from(priority).ok()),
        size: number('h', "histogram").or_else(|| number('H', "histofall")),
        above_us: number('b', "breaktrace").filter(|us| *us > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_as_people_write_them() {
        let interval = |command| options(command).interval_us;
        assert_eq!(interval("cyclictest -q -h 100"), Some(1_000));
        assert_eq!(interval("cyclictest -m -Sp90 -i200 -h400 -q"), Some(200));
        assert_eq!(
            interval("cyclictest --interval=250 --histogram 5"),
            Some(250)
        );
        let found = options("cyclictest -mSqp80 -i 100 -H 50");
        assert_eq!((found.priority, found.size), (Some(80), Some(50)));
        assert_eq!(interval("cyclictest -i 250 -q -i 500"), Some(500));
        assert_eq!(interval("cyclictest --interv 500 -h 5"), Some(500));
        assert_eq!(options("cyclictest -qb100 -h 5").above_us, Some(100));
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert!(error("").contains("-h US"));
        assert_eq!(
            error("# Histogram\n000000 x\n"),
            "line 2: 'x' is not a whole number"
        );
        let uneven = "# Histogram\n000000 000000\n000001 000001\t000002\n";
        assert_eq!(error(uneven), "line 3: 2 counts, but 1 before");
        assert!(error("# Histogram\n000000 000000\n").contains("broke off"));
        let short =
            "# Histogram\n000000 000001\n# Total: 000000002\n# Histogram Overflows: 00000\n";
        assert!(error(short).contains("lines are missing"));
    }
}
