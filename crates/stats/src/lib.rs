//! The arithmetic of tare: pure functions from samples to the figures that a report prints.
//!
//! Nothing here reads a file, a clock or a random device: the same input gives the same output, and
//! what draws at random takes its seed as an argument. Everything is in cycles of the time stamp
//! counter unless a name says otherwise.
//!
//! # Tour
//!
//! **Samples** arrive as [`Counts`], the exact number of times that each duration occurred. Sums
//! are integers; mean and standard deviation are rounded once, at the end ([`Moments`]). Where a
//! workload keeps only sums of its undisturbed iterations, [`PowerSums`] does the same.
//!
//! **Quantiles** are exact fractions by nearest rank ([`Quantile`]). One that fewer than ten
//! samples lie beyond is refused, with the number of samples that it needs ([`QuantileEstimate`]).
//!
//! **Delays** are what samples last beyond their run's mean ([`Delays`]); they are counted in the
//! classes of kot-2019 ([`DelayClasses`]). A class that a recording threshold hides has no count,
//! not even 0 ([`ClassRow`]).
//!
//! **Interruptions** of a spin are a [`Trace`]: the times from one to the next, and whether a clock
//! is behind them ([`period`]).
//!
//! **Wake-ups** have a service latency each; what the missed activations between them waited
//! follows from it ([`Response`]).
//!
//! **At scale**, a step of many nodes takes as long as the slowest of them ([`at_scale`]).
//!
//! **Over runs**, the kind of a figure decides how runs are put together and which interval that
//! has, or how many runs one needs ([`over_runs()`], [`share_over_runs`], [`rate_over_runs`]).
//!
//! **Comparisons** are of groups of invocations, by all figures at once ([`compare_groups`]).
//! [`false_alarms`] says how far to believe them on a machine.
//!
//! **Screening** finds which of several switches change a figure, each with its own effect
//! ([`design`], [`effects`]).
//!
//! **Curves** of latencies by working set show the levels of a memory hierarchy
//! ([`memory_levels`]).
//!
//! **Pictures** get axis numbers ([`nice_ticks`], [`log_ticks`]).
//!
//! # Why the unit of replication is the run
//!
//! A million samples taken within a second are not a million measurements. They share the memory
//! layout of one process, the temperature of one second, the neighbours of one moment, and each
//! follows from the one before. An interval over single samples, mean ± z·sd/√n, says how well
//! *this* run's mean is known, shrinks with every sample, and calls the next run's difference
//! significant, whatever caused it. Readers want to know whether they would find the
//! same; only repetitions tell. So intervals take one value per run, or per long block of a single
//! run where there is only one, and fewer than two give none at all.
//!
//! # What these methods cannot tell
//!
//! - What is shorter than the timer's step, or below a recording threshold, is not in any figure.
//! - A maximum is the largest of what was seen, never a bound. No distribution is fitted to tails.
//! - Runs in a row share slow influences too; interleaving them with what they are compared to is
//!   the experiment's task.
//! - A clock among interruptions is reported only beyond chance; "none found" does not mean that
//!   there is none ([`period`] says when).
//! - The mean of a class of delays hides its spread; the counts are there to look.

#![forbid(unsafe_code)]

mod classes;
mod counts;
mod delays;
mod error;
mod factorial;
mod groups;
mod interval;
mod levels;
mod modes;
mod moments;
mod ordered;
mod over_runs;
pub mod period;
mod quantile;
mod rank_sum;
mod response;
mod scale;
mod shift;
mod tally;
mod ticks;
mod trace;
mod welch;

pub use classes::{ClassRow, DelayClass, DelayClasses};
pub use counts::Counts;
pub use delays::{DelayShare, DelayTally, Delays, Recording};
pub use error::StatsError;
pub use factorial::{Effect, MOST_SWITCHES, design, effects, linearised};
pub use groups::{Difference, FalseAlarms, MOST_DIVISIONS, Shift, compare_groups, false_alarms};
pub use interval::{Interval, Level, Method, Scale};
pub use levels::{MemoryLevel, memory_levels};
pub use modes::Modes;
pub use moments::{Moments, PowerSums};
pub use over_runs::{
    Kind, NoInterval, OverRuns, STUDENT_RUNS, differences_over_runs, over_runs, rate_over_runs,
    share_over_runs,
};
pub use period::Period;
pub use quantile::{Quantile, QuantileEstimate};
pub use response::{Response, missed_by};
pub use scale::{AtScale, NoiseRun, Program, Scaled, at_scale};
pub use shift::{invocations_needed, least_p_value};
pub use tally::Tally;
pub use ticks::{log_ticks, nice_ticks};
pub use trace::{Gap, Spin, Trace};
pub use welch::welch;
