//! Helpers for the tests of several crates.
#![forbid(unsafe_code)]

#[cfg(feature = "browser")]
pub mod browser;
pub mod figures;
pub mod records;
pub mod sshd;

use std::fs;
use std::io::Write;
use std::path::Path;

use sha2::{Digest, Sha256};

/// The environment variable that forbids skipping. CI sets it.
pub const SKIP_NOTHING: &str = "TARE_SKIP_NOTHING";

/// Reports a skipped test by name, with the reason. The caller returns.
///
/// The line is visible even if the test passes: it does not go through `print!`, which the test
/// harness captures.
///
/// # Panics
///
/// Panics if [`SKIP_NOTHING`] is set: then the machine must support all tests.
#[track_caller]
pub fn skip(component: &str, why: &str) {
    let text = format!("skipped: {component}: {why}");
    assert!(std::env::var_os(SKIP_NOTHING).is_none(), "{text}");
    let mut stderr = std::io::stderr();
    let _ = writeln!(stderr, "{text}");
}

/// Asserts that a text contains each of these parts.
///
/// # Panics
///
/// Panics with the text and the first part that it lacks.
#[track_caller]
pub fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no '{part}' in: {text}");
    }
}

/// Corrects the checksums of regular files up to 64 MiB in a folder, as far as they are listed in
/// its `SHA256SUMS`. A folder without that list is unchanged.
pub fn repair_sums(folder: &Path) {
    let sums = folder.join("SHA256SUMS");
    if !is_small(&sums) {
        return;
    }
    let Ok(text) = fs::read_to_string(&sums) else {
        return;
    };
    let line = |line: &str| {
        let (_, name) = line.split_once("  ")?;
        let path = folder.join(name);
        let content = is_small(&path).then(|| fs::read(path).ok())??;
        let sum = Sha256::digest(content);
        let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(format!("{sum}  {name}\n"))
    };
    let repaired = text
        .lines()
        .map(|old| line(old).unwrap_or(format!("{old}\n")));
    let _ = fs::write(sums, repaired.collect::<String>());
}

fn is_small(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_file() && about.len() <= 1 << 26)
}
