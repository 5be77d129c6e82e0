//! Wake-up latency: how late threads ran that slept until absolute times, and why.
//!
//! Two latencies stand side by side everywhere. The *service* latency is cyclictest's: of the wake-ups that
//! happened. The *response* latency counts every activation, each missed one with what it waited, so that a
//! stall of a hundred intervals counts a hundred times ("coordinated omission" is the name of not doing so).
//!
//! - `run`: one cell; `combine`: its repetitions; `latency`: what a distribution says;
//! - `late`: loads that began late in their phase, and tools that ran on;
//! - `worst`: the worst wake-ups one by one, with their parts and culprits (`tare-trace`);
//! - `picture`: what plots are drawn from;
//! - `collect`: the way from cells to all of that;
//! - `checks`: what bears on whether the figures may be believed;
//! - `verdict`: the sentences; `table`: rows for terminal and page.

pub(crate) mod checks;
mod collect;
mod combine;
pub mod csv;
mod late;
mod latency;
pub(crate) mod live;
mod picture;
mod run;
pub(crate) mod table;
mod threads;
pub(crate) mod verdict;
pub(crate) mod words;
mod worst;

pub(crate) use collect::{Collector, is_wakeup};
pub use combine::{ThreadPhases, WakeupCombination, WakeupPhase};
pub use latency::{Latencies, LatencyQuantile, LatencyQuantileSpread, LatencySpread};
pub use picture::{COLUMNS, LatencyColumn, RunPicture, WakeupPictures};
pub use run::{PhaseRun, ThreadRun, WakeupRun};
pub use worst::{WORST, WorstFigure};
