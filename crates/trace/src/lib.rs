//! What the kernel did around a moment: its time line, the parts of a latency, and who took the
//! CPU.
//!
//! - [`parts`] divides a latency into late interrupt, non-preemptible sections, scheduling, and the
//!   way back;
//! - [`blame`] names the culprit;
//! - [`takers`] says who took the CPU from a thread that never sleeps;
//! - `timeline`: what a CPU did, stretch by stretch.
#![forbid(unsafe_code)]

pub mod blame;
pub mod parts;
pub mod takers;
mod timeline;

#[cfg(test)]
mod tests;
