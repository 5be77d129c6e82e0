//! The exit codes, which scripts rely on. They are documented in `tare --help`.

/// Everything asked for was done.
pub const DONE: u8 = 0;
/// Something failed: a cell, a file, the machine. Results are kept.
pub const FAILED: u8 = 1;
/// The arguments are invalid.
pub const USAGE: u8 = 2;
/// A limit was exceeded.
pub const THRESHOLD: u8 = 3;
/// The user ended the run early; `--resume` continues it.
pub const INTERRUPTED: u8 = 4;
/// A target can't be used here.
pub const UNAVAILABLE: u8 = 5;
