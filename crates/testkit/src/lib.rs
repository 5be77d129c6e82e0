//! What the tests of several crates share.
#![forbid(unsafe_code)]

pub mod browser;
pub mod records;
pub mod sshd;

use std::io::Write;

/// The environment variable that forbids skipping. CI sets it.
pub const SKIP_NOTHING: &str = "TARE_SKIP_NOTHING";

/// Says by name what can't be tested here, and why. The caller returns.
///
/// The line is seen also when the test passes: it does not go through `print!`, whose output the
/// test harness keeps to itself.
///
/// # Panics
///
/// Panics if [`SKIP_NOTHING`] is set: a machine on which nothing may be skipped lacks something.
#[track_caller]
pub fn skip(component: &str, why: &str) {
    let text = format!("skipped: {component}: {why}");
    assert!(std::env::var_os(SKIP_NOTHING).is_none(), "{text}");
    #[expect(
        clippy::disallowed_methods,
        reason = "the harness keeps what is printed"
    )]
    let mut stderr = std::io::stderr();
    let _ = writeln!(stderr, "{text}");
}
