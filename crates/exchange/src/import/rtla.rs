//! The histograms of `rtla timerlat hist` and `rtla osnoise hist`, as the kernel's documentation
//! shows them (Documentation/tools/rtla).
//!
//! timerlat has up to three columns for each CPU: `IRQ`, how late the timer's interrupt came;
//! `Thr`, how late the thread ran; `Usr`, how late one returned to user space. Each kind becomes a
//! cell. osnoise counts how long single noises lasted, which is nothing that comes at an interval.

use std::collections::BTreeSet;
use std::mem;

use super::words::{
    LONGEST_US, Once, check_size, check_threads, check_width, latency, number, shown,
};
use super::{Column, Foreign, Mean, Series};
use crate::error::ExchangeError;

/// Reads what rtla printed.
///
/// # Errors
///
/// As [`super::read`].
pub fn read(text: &str) -> Result<Foreign, ExchangeError> {
    let mut foreign = Foreign {
        tool: "rtla".to_owned(),
        ..Foreign::default()
    };
    let mut table: Option<Table> = None;
    let mut tool = None;
    for (line, content) in (1..).zip(text.lines()) {
        // An rtla action may print before the heading, on the same line.
        let heading = content.find("# RTLA ").map(|at| &content[at..]);
        if let Some(comment) = heading.unwrap_or(content).strip_prefix('#') {
            match comment.trim() {
                "RTLA timerlat histogram" => tool = Some("timerlat"),
                "RTLA osnoise histogram" => tool = Some("osnoise"),
                other => read_comment(&mut foreign, line, other)?,
            }
            continue;
        }
        let mut words = content.split_whitespace();
        let Some(first) = words.next() else {
            continue;
        };
        if first == "Index" {
            table = Some(Table::read(line, words)?);
            continue;
        }
        let Some(table) = &mut table else {
            continue;
        };
        table.row(line, first, words)?;
        // Below stand a summary of all CPUs in newer versions, and what stopped the trace.
        if first == "max:" {
            let mut below = (1..).zip(text.lines()).skip(line);
            if let Some((line, _)) = below.find(|(_, content)| content.contains("# RTLA ")) {
                return Err(ExchangeError::second(line));
            }
            break;
        }
    }
    let tool = tool.ok_or_else(|| {
        ExchangeError::NotOutput(
            "there is no line '# RTLA timerlat histogram' or '# RTLA osnoise histogram': it is not what `rtla timerlat \
             hist` or `rtla osnoise hist` print (without --no-header)"
                .to_owned(),
        )
    })?;
    let table = table.ok_or_else(|| {
        ExchangeError::NotOutput(
            "there is no line 'Index …': it has no histogram (measure without --no-index)"
                .to_owned(),
        )
    })?;
    foreign.tool = format!("rtla {tool}");
    foreign.series = table.series(tool)?;
    if tool == "osnoise" {
        foreign.notices.push(
            "rtla osnoise counts how long single noises lasted; these are no latencies of wake-ups, and nothing is due at \
             an interval"
                .to_owned(),
        );
    } else {
        foreign.notices.push(
            "the timerlat tracer's thread is woken by its own timer in the kernel: compare it with tare's figures for the \
             tail rather than for the minimum"
                .to_owned(),
        );
    }
    Ok(foreign)
}

/// Reads the unit and the duration: `Duration:   0 00:10:00`.
fn read_comment(foreign: &mut Foreign, line: usize, comment: &str) -> Result<(), ExchangeError> {
    if let Some(unit) = comment.strip_prefix("Time unit is ")
        && !unit.starts_with("microseconds")
    {
        let problem = format!("the unit is {}: measure without --nano", shown(unit));
        return Err(ExchangeError::line(line, problem));
    }
    if let Some(duration) = comment.strip_prefix("Duration:") {
        foreign.duration_ns = duration_ns(duration);
    }
    Ok(())
}

fn duration_ns(text: &str) -> Option<u64> {
    let (days, clock) = text.trim().split_once(char::is_whitespace)?;
    let mut seconds: u64 = days.parse::<u32>().ok()?.into();
    for (part, length) in clock.trim().splitn(3, ':').zip([24, 60, 60]) {
        seconds = seconds * length + u64::from(part.parse::<u16>().ok()?);
    }
    seconds.checked_mul(1_000_000_000)
}

/// The table while it is read.
struct Table {
    columns: Vec<(Kind, Column)>,
    /// Counts of each column, as the table's foot says.
    stated: Vec<u64>,
    /// The lines that were there.
    rows: Once,
    /// Whether the line after the last value was there.
    is_complete: bool,
    /// Whether the last line of the summary was there.
    has_maximum: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Interrupt,
    Thread,
    User,
    Noise,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Thread, Self::Interrupt, Self::User, Self::Noise];

    fn heading(self) -> &'static str {
        match self {
            Self::Interrupt => "IRQ",
            Self::Thread => "Thr",
            Self::User => "Usr",
            Self::Noise => "CPU",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "rtla-timerlat-irq",
            Self::Thread => "rtla-timerlat-thread",
            Self::User => "rtla-timerlat-user",
            Self::Noise => "rtla-osnoise",
        }
    }
}

impl Table {
    /// Reads `IRQ-000 Thr-000 …`.
    fn read<'a>(line: usize, words: impl Iterator<Item = &'a str>) -> Result<Self, ExchangeError> {
        let mut columns = Vec::new();
        let mut known = BTreeSet::new();
        for word in words {
            let problem = || {
                let problem = format!("'{}' is not a column such as Thr-000", shown(word));
                ExchangeError::line(line, problem)
            };
            let (heading, cpu) = word.split_once('-').ok_or_else(problem)?;
            let kind = Kind::ALL.into_iter().find(|kind| kind.heading() == heading);
            let column = Column {
                cpu: Some(cpu.parse().map_err(|_| problem())?),
                ..Column::default()
            };
            let kind = kind.ok_or_else(problem)?;
            if !known.insert((kind, column.cpu)) {
                let problem = format!("the column '{}' is given twice", shown(word));
                return Err(ExchangeError::line(line, problem));
            }
            columns.push((kind, column));
            check_threads(line, columns.len())?;
        }
        if columns.is_empty() {
            let problem =
                "the table has no columns: nothing was counted on any CPU. Measure longer";
            return Err(ExchangeError::line(line, problem));
        }
        Ok(Self {
            columns,
            stated: Vec::new(),
            rows: Once::default(),
            is_complete: false,
            has_maximum: false,
        })
    }

    fn row<'a>(
        &mut self,
        line: usize,
        first: &str,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<(), ExchangeError> {
        let due = self.columns.len();
        let words: Vec<&str> = words.take(due + 1).collect();
        if words.len() != due {
            let problem = format!("{} figures for {due} columns", words.len());
            return Err(ExchangeError::line(line, problem));
        }
        if first.ends_with(':') {
            self.rows.take(line, first)?;
        }
        self.is_complete |= first == "over:";
        self.has_maximum |= first == "max:";
        if first == "count:" {
            let stated = words.iter().map(|word| number(line, word));
            self.stated = stated.collect::<Result<_, _>>()?;
            return Ok(());
        }
        let us = match first {
            "over:" | "min:" | "avg:" | "max:" => None,
            value => Some(latency(line, value)?),
        };
        for ((_, column), word) in self.columns.iter_mut().zip(words) {
            // A CPU that measured nothing has a dash in place of its least, mean and greatest.
            if word == "-" {
                continue;
            }
            // osnoise writes the mean with its fraction.
            if first == "avg:" && word.contains('.') {
                let mean = word.parse().ok();
                let mean = mean.filter(|mean: &f64| (0.0..LONGEST_US as f64).contains(mean));
                let problem = || format!("'{}' is not a mean", shown(word));
                let mean = mean.ok_or_else(|| ExchangeError::line(line, problem()))?;
                column.mean = Some(Mean::Rounded(mean));
                continue;
            }
            let figure = match first {
                "over:" => number(line, word)?,
                _ if us.is_some() => number(line, word)?,
                _ => latency(line, word)?,
            };
            match (first, us) {
                (_, Some(us)) => {
                    if column.limit > us {
                        let problem = format!("the value {us} does not rise above the one before");
                        return Err(ExchangeError::line(line, problem));
                    }
                    column.limit = us + 1;
                    if figure > 0 {
                        column.counts.push((us, figure));
                    }
                }
                ("over:", _) => column.over = figure,
                ("min:", _) => column.min = Some(figure),
                ("max:", _) => column.max = Some(figure),
                _ => column.mean = Some(Mean::CutOff(figure)),
            }
        }
        check_size(Some(line), self.columns.iter().map(|(_, column)| column))
    }

    /// Puts the columns of each kind together.
    fn series(mut self, tool: &str) -> Result<Vec<Series>, ExchangeError> {
        if !self.is_complete {
            return Err(ExchangeError::broken_off("over:"));
        }
        // Without a summary (--no-summary) it has neither.
        if !self.stated.is_empty() && !self.has_maximum {
            return Err(ExchangeError::broken_off("max:"));
        }
        let columns = self.columns.iter().map(|(_, column)| column);
        check_width(columns, |us| (format!("-b {us}"), "with -b 1"))?;
        for ((kind, column), stated) in self.columns.iter().zip(&self.stated) {
            let name = format!("{}-{:03}", kind.heading(), column.cpu.unwrap_or(0));
            column.check(column.over, *stated, &name, "count:")?;
        }
        for (kind, column) in &self.columns {
            let name = format!("{}-{:03}", kind.heading(), column.cpu.unwrap_or(0));
            column.check_ends(&name)?;
        }
        let series = Kind::ALL.into_iter().filter_map(|kind| {
            let columns = self.columns.iter_mut();
            let own = columns.filter(|(of, _)| *of == kind);
            let threads: Vec<Column> = own.map(|(_, column)| mem::take(column)).collect();
            (!threads.is_empty()).then(|| Series {
                name: kind.name().to_owned(),
                is_periodic: tool == "timerlat",
                threads,
            })
        });
        Ok(series.collect())
    }
}
