//! The laboratory with targets that play records, in milliseconds.

mod cells;
mod scripted;
