//! A small kit for plots: scales, axes, paths.
//!
//! It is our own because the plots must follow the page from light to dark (all colours are CSS
//! custom properties), stay crisp in print, be read without a script, and hold every maximum of ten
//! million samples in some kilobytes. The classes that it uses are defined in the page's style
//! sheet.

pub mod band;
mod path;
mod plot;
mod scale;
mod scatter;

pub use path::Path;
pub use plot::{Axis, Plot, Side, cut, width_of};
pub use scale::Scale;
pub use scatter::scatter;

/// The number of colours; further series take them again.
pub const COLOURS: usize = 6;

/// Returns the class that gives a series its colour.
pub fn colour(series: usize) -> String {
    format!("s{}", series % COLOURS)
}
