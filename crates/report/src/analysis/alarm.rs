//! What a reader must know before believing a figure: all such texts, in one place.
//!
//! Each says what was seen, what it does to the figures, and what to do.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::LeftTool;

use crate::format::Numbers;
use crate::words;

/// Is something that bears on whether the figures may be believed.
#[derive(Clone, Debug, PartialEq)]
pub enum Alarm {
    /// Cells of one size did different work.
    WorkDiffers {
        /// The workload with its size, such as `prime 22`.
        what: String,
        /// What each did: targets, result and steps.
        done: Vec<(String, u64, u64)>,
    },
    /// Second stamps were before first ones.
    Backwards {
        /// In which cells.
        cells: Vec<u32>,
        /// How often.
        samples: u64,
    },
    /// An emulator executed the measured code.
    Emulated {
        /// On which targets.
        targets: Vec<String>,
    },
    /// The list of delays was full.
    ListFull {
        /// In which cells.
        cells: Vec<u32>,
        /// How many delays are listed there.
        kept: u64,
        /// How many there were.
        seen: u64,
        /// Whether they are cells of `gap`, which has no counts besides.
        gaps: bool,
    },
    /// Nothing tells the TSC's frequency.
    NoFrequency {
        /// In which cells.
        cells: Vec<u32>,
    },
    /// Two sources of the TSC's frequency contradict each other.
    Frequency {
        /// In which cells.
        cells: Vec<u32>,
        /// What was found.
        note: String,
    },
    /// The timer is too coarse for some figures.
    CoarseTimer {
        /// The combinations, the one with the shortest durations first.
        labels: Vec<String>,
        /// The timer's step, with its unit.
        step: String,
        /// What the step is coarse for.
        against: Coarse,
    },
    /// The buffers of compared targets lie on pages of different sizes.
    PageSizes {
        /// Targets with pages of 2 MiB.
        large: Vec<String>,
        /// Targets with the pages that a Linux kernel gives.
        small: Vec<String>,
        /// Which of them this machine's kernel gives, if it is known.
        transparent: Option<String>,
    },
    /// Buffers could be paged out.
    NotLocked {
        /// In which cells.
        cells: Vec<u32>,
    },
    /// Idle states were not forbidden.
    LatencyNotHeld {
        /// In which cells.
        cells: Vec<u32>,
    },
    /// Wake-ups are given in instructions that an emulator counted.
    InstructionTime {
        /// On which targets.
        targets: Vec<String>,
    },
    /// Latencies of wake-ups are in no distribution.
    Uncounted {
        /// The combinations.
        labels: Vec<String>,
        /// How many there are.
        uncounted: u64,
        /// Of so many.
        woken: u64,
    },
    /// Recording took much of the time between wake-ups.
    RecordingCost {
        /// The combinations.
        labels: Vec<String>,
        /// The greatest share of an interval.
        share: f64,
        /// How long recording one wake-up took there.
        recording_ns: u64,
    },
    /// The kernel's limit for real-time threads held up the threads that were woken.
    Throttled {
        /// The combinations.
        labels: Vec<String>,
        /// Worst wake-ups of which it was the culprit.
        wakeups: usize,
    },
    /// The threads that were woken had no real-time priority.
    OrdinaryTask {
        /// The combinations.
        labels: Vec<String>,
    },
    /// A wake-up missed activations that lie behind the measurement's end.
    BeyondTheEnd {
        /// How many.
        activations: u64,
    },
    /// The CPU could enter deep idle states between wake-ups.
    IdleStates {
        /// In which cells.
        cells: Vec<u32>,
    },
    /// Loads began late in their phases, because the one before had to end.
    LateLoad {
        /// Phases, the latest first.
        phases: Vec<LatePhase>,
        /// Wake-ups that came before the loads began.
        woken: u64,
    },
    /// Loads were not started, since most of their phases had passed.
    SkippedLoad {
        /// Phases, the latest first.
        phases: Vec<LatePhase>,
    },
    /// Tools could not be killed in their time, and ran on.
    LeftTool {
        /// Each with its cell.
        tools: Vec<(u32, LeftTool)>,
    },
}

/// A phase whose load began late, or never.
#[derive(Clone, Debug, PartialEq)]
pub struct LatePhase {
    /// The cell.
    pub cell: u32,
    /// Number of the phase, from 0.
    pub number: u32,
    /// Its load.
    pub load: String,
    /// How late.
    pub late_ns: u64,
    /// Why, as the rest of a sentence.
    pub because: String,
}

/// Says what a timer's step is coarse for.
#[derive(Clone, Debug, PartialEq)]
pub enum Coarse {
    /// The shortest gaps, whose length is given.
    Gaps(String),
    /// The spread of the durations, of which the shortest median is given.
    Spread(String),
}

/// Says how much an alarm matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Some figures are worse than they could be, or incomplete.
    Warning,
    /// Some figures are wrong or mean something else.
    Error,
}

/// Is an alarm as `summary.json` holds it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AlarmFigure {
    /// Short name that stays the same between versions.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen, what it does to the figures, what to do.
    pub text: String,
}

impl Alarm {
    /// Returns a short name that stays the same between versions.
    #[must_use]
    pub fn id(&self) -> &'static str {
        match self {
            Self::WorkDiffers { .. } => "work-differs",
            Self::Backwards { .. } => "tsc-backwards",
            Self::Emulated { .. } => "emulated",
            Self::ListFull { .. } => "list-full",
            Self::NoFrequency { .. } => "tsc-frequency-unknown",
            Self::Frequency { .. } => "tsc-frequency-contradicted",
            Self::CoarseTimer { .. } => "coarse-timer",
            Self::PageSizes { .. } => "page-sizes",
            Self::NotLocked { .. } => "not-locked",
            Self::LatencyNotHeld { .. } => "idle-states-allowed",
            Self::InstructionTime { .. } => "instruction-time",
            Self::Uncounted { .. } => "wakeups-uncounted",
            Self::RecordingCost { .. } => "recording-cost",
            Self::Throttled { .. } => "rt-throttled",
            Self::OrdinaryTask { .. } => "ordinary-task",
            Self::BeyondTheEnd { .. } => "missed-beyond-end",
            Self::IdleStates { .. } => "woken-from-idle",
            Self::LateLoad { .. } => "load-late",
            Self::SkippedLoad { .. } => "load-skipped",
            Self::LeftTool { .. } => "load-left-running",
        }
    }

    /// Says how much it matters.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Self::WorkDiffers { .. } | Self::Backwards { .. } | Self::Emulated { .. } => {
                Severity::Error
            }
            Self::ListFull { .. }
            | Self::NoFrequency { .. }
            | Self::Frequency { .. }
            | Self::CoarseTimer { .. }
            | Self::PageSizes { .. }
            | Self::InstructionTime { .. }
            | Self::Uncounted { .. }
            | Self::RecordingCost { .. }
            | Self::Throttled { .. }
            | Self::IdleStates { .. }
            | Self::LateLoad { .. }
            | Self::SkippedLoad { .. }
            | Self::LeftTool { .. } => Severity::Warning,
            Self::NotLocked { .. }
            | Self::LatencyNotHeld { .. }
            | Self::OrdinaryTask { .. }
            | Self::BeyondTheEnd { .. } => Severity::Note,
        }
    }

    /// Returns the alarm as `summary.json` holds it.
    #[must_use]
    pub fn figure(&self) -> AlarmFigure {
        AlarmFigure {
            id: self.id(),
            severity: self.severity(),
            text: self.to_string(),
        }
    }
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |n: u64| Numbers::PLAIN.count(n);
        match self {
            Self::WorkDiffers { what, done } => {
                let said: Vec<String> = done
                    .iter()
                    .map(|(who, result, work)| {
                        format!("{who}: result {}, {} steps", count(*result), count(*work))
                    })
                    .collect();
                write!(
                    f,
                    "The cells of {what} did not do the same work ({}). Their figures cannot be \
                     compared; one of the programs is broken or of another version: build all of \
                     them anew and measure again.",
                    said.join("; ")
                )
            }
            Self::Backwards { cells, samples } => write!(
                f,
                "In {} the TSC ran backwards in {} samples, which are in no figure: the counters \
                 of the CPUs differ, or a hypervisor changed the offset. Check that the kernel's \
                 clock source is tsc, and do not rely on durations across CPUs.",
                name_cells(cells),
                count(*samples)
            ),
            Self::Emulated { targets } => write!(
                f,
                "An emulator (QEMU's TCG) executed the measured code of {}: these figures say \
                 nothing of a machine's speed. Measure where KVM works.",
                targets.join(" and ")
            ),
            Self::ListFull {
                cells,
                kept,
                seen,
                gaps,
            } => {
                let lost = if *gaps {
                    "Time lost, rate and longest gap include the others; percentiles, classes, \
                     period and pictures do not."
                } else {
                    "All figures include the others, since they come from exact counts; over \
                     time only the longest of each bin is drawn."
                };
                write!(
                    f,
                    "In {} the list of delays was full: {} of {} are listed. {lost} Raise \
                     --threshold or lower --repetitions to have all of them listed.",
                    name_cells(cells),
                    count(*kept),
                    count(*seen)
                )
            }
            Self::NoFrequency { cells } => write!(
                f,
                "Nothing told the TSC's frequency in {}: durations are given in cycles only.",
                name_cells(cells)
            ),
            Self::Frequency { cells, note } => {
                write!(f, "TSC frequency in {}: {note}.", name_cells(cells))
            }
            Self::CoarseTimer {
                labels,
                step,
                against: Coarse::Gaps(threshold),
            } => write!(
                f,
                "The timer advances in steps of {step}, and gaps count from {threshold} on ({}): near \
                 that length one step decides whether there is a gap at all. Do not rely on how many \
                 are so short; raise --threshold.",
                name_some(labels)
            ),
            Self::CoarseTimer {
                labels,
                step,
                against: Coarse::Spread(median),
            } => write!(
                f,
                "The timer advances in steps of {step}, and {} takes only {median} in the median: how \
                 common durations spread is mostly the timer's doing. Means, shares of time and delays \
                 of many steps are not affected.",
                name_some(labels)
            ),
            Self::PageSizes {
                large,
                small,
                transparent,
            } => {
                let transparent = transparent.as_ref().map_or_else(String::new, |setting| {
                    format!("; transparent huge pages on this machine: {setting}")
                });
                write!(
                    f,
                    "The buffers of {} lie on pages of 2 MiB, those of {} on pages of 4 KiB unless \
                     their kernel gave huge ones{transparent}: copy compares them under that \
                     difference, since more pages are more misses of the TLB. Compare prime, or \
                     sizes that need few pages.",
                    name_some(large),
                    name_some(small)
                )
            }
            Self::NotLocked { cells } => write!(
                f,
                "The buffers of {} were not locked in memory; the kernel could have taken pages \
                 away and delayed their next use. Raise RLIMIT_MEMLOCK (`ulimit -l`) or run as \
                 root.",
                name_cells(cells)
            ),
            Self::InstructionTime { targets } => write!(
                f,
                "Latencies on {} are instructions that an emulator counted, as if each took the same time: \
                 they repeat exactly and compare kernels by their code, and say nothing of how long a processor \
                 takes. For that, measure with the machine's clock where KVM works.",
                words::list(targets)
            ),
            Self::Uncounted {
                labels,
                uncounted,
                woken,
            } => write!(
                f,
                "There was no room for the latencies of {} of {} wake-ups of {}: they are in no mean and no \
                 quantile, only in the maximum over all phases and in the number of missed activations. \
                 Measure for a shorter time, or in fewer phases.",
                count(*uncounted),
                count(*woken),
                name_some(labels)
            ),
            Self::RecordingCost {
                labels,
                share,
                recording_ns,
            } => write!(
                f,
                "Recording a wake-up takes {} of the interval ({}) on {}: the measured CPU is busier than the \
                 measurement claims. Choose a longer interval.",
                Numbers::PLAIN.percent(*share),
                Numbers::PLAIN.ns(*recording_ns as f64, None),
                name_some(labels)
            ),
            Self::Throttled { labels, wakeups } => write!(
                f,
                "RT throttling, the kernel's limit for all real-time threads together, made {} of the worst wake-ups of {} \
                 late: somebody had used the limit up. Find out who, or turn it off: `sysctl -w \
                 kernel.sched_rt_runtime_us=-1`.",
                count(*wakeups as u64),
                name_some(labels)
            ),
            Self::OrdinaryTask { labels } => write!(
                f,
                "The threads of {} were ordinary tasks (SCHED_OTHER): their latencies hold the turns of other \
                 tasks as well as what the kernel takes. Use --policy fifo to leave those out.",
                name_some(labels)
            ),
            Self::BeyondTheEnd { activations } => write!(
                f,
                "{} activations that the last wake-ups missed lie behind the end of the measurement. They \
                 are among the response latencies, since the stall was as long as that.",
                count(*activations)
            ),
            Self::IdleStates { cells } => write!(
                f,
                "/dev/cpu_dma_latency was not held in {}: the measured CPU could enter deep idle states between \
                 wake-ups, and leaving one lengthens each. Run as root, or give access to that file.",
                name_cells(cells)
            ),
            Self::LateLoad { phases, woken } => write!(
                f,
                "Loads began late in their phases: {}. {} wake-ups from before that are counted apart \
                 (between phases) and are in no figure of a phase. Make the phases longer.",
                name_late(phases),
                count(*woken)
            ),
            Self::SkippedLoad { phases } => write!(
                f,
                "Loads were skipped, since more than half of their phase had passed before they could begin: \
                 {}. These phases are absent. Make the phases longer.",
                name_late(phases)
            ),
            Self::LeftTool { tools } => {
                let tools: Vec<String> = tools.iter().map(name_left).collect();
                write!(
                    f,
                    "The kernel did not let tools of loads be killed (a device or a frozen control group holds \
                     them): {}. Figures of those phases hold what it did there.",
                    tools.join("; ")
                )
            }
            Self::LatencyNotHeld { cells } => write!(
                f,
                "/dev/cpu_dma_latency was not held in {}, so cores next to the measured one could \
                 enter deep idle states and change its turbo frequency. Run as root, or give access \
                 to that file.",
                name_cells(cells)
            ),
        }
    }
}

/// Writes cell numbers in short: `cells 1–4, 7`.
pub(crate) fn name_cells(cells: &[u32]) -> String {
    words::numbered("cell", cells)
}

/// Names the latest of several phases.
fn name_late(phases: &[LatePhase]) -> String {
    let Some((first, rest)) = phases.split_first() else {
        return String::new();
    };
    let mut text = format!(
        "phase {} ({}) of cell {} by {}, because {}",
        first.number,
        first.load,
        first.cell,
        Numbers::PLAIN.ns(first.late_ns as f64, None),
        first.because
    );
    if !rest.is_empty() {
        let mut cells: Vec<u32> = rest.iter().map(|phase| phase.cell).collect();
        cells.sort_unstable();
        cells.dedup();
        text.push_str(&format!(
            ", and {} more in {}",
            rest.len(),
            name_cells(&cells)
        ));
    }
    text
}

/// Says beside what a tool ran on.
fn name_left((cell, left): &(u32, LeftTool)) -> String {
    let beside = match left.until.saturating_sub(left.phase) {
        0 => "beside no other phase".to_owned(),
        1 => format!("beside phase {}", left.until),
        _ => format!("beside phases {} to {}", left.phase + 1, left.until),
    };
    let end = match left.ended {
        true => "ended before the cell did",
        false => {
            "was still there after the cell: it ends as soon as its kernel lets it, and `tare clean` removes what is left"
        }
    };
    format!(
        "{} (process {}) of phase {} in cell {cell} ran on {beside} and {end}",
        left.tool, left.pid, left.phase
    )
}

/// Names the first of several.
fn name_some(labels: &[String]) -> String {
    match labels {
        [] => String::new(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_numbers_are_written_in_short() {
        assert_eq!(name_cells(&[3]), "cell 3");
        assert_eq!(name_cells(&[2, 1]), "cells 1, 2");
        assert_eq!(name_cells(&[1, 2, 3, 4, 7]), "cells 1–4, 7");
    }
}
