//! cyclictest's options, output and file formats, over tare's measurement.
//!
//! `tare cyclictest` is a front end of `tare wakeup`, not a second implementation: [`Settings`]
//! translates the options to the same plan, and [`Screen`] and [`Summary`] print what users and
//! scripts of cyclictest read. Options that tare can't honour are rejected with the reason, never
//! accepted without effect.
//!
//! - [`Arguments`]: the command line;
//! - [`Latencies`]: the wake-ups of one thread, read from a cell of any run;
//! - [`mod@format`]: cyclictest's lines, histogram and JSON as pure functions.

#![forbid(unsafe_code)]

mod arguments;
pub mod format;
mod latencies;
mod screen;
mod settings;
mod summary;

pub use arguments::Arguments;
pub use latencies::{Latencies, Thread};
pub use screen::Screen;
pub use settings::Settings;
pub use summary::Summary;
