//! Wake-up latency: why a thread ran late.
//!
//! - [`parts`] divides a latency into late interrupt, non-preemptible sections, scheduling, and the way back;
//! - [`blame`] names the culprit.

pub mod blame;
#[cfg(test)]
mod known_answers;
pub mod parts;
mod timeline;
