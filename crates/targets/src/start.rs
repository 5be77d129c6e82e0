//! Expected start times of targets, most of which are boot times.
//!
//! That differs by a factor of a hundred between a guest under KVM and a whole Debian under an
//! emulator. So what a run met is remembered in the state folder for the next plan, for each target
//! with its kernel and what executes it; until then a guess is in place. Neither starts anything.

use std::collections::BTreeMap;
use std::path::Path;

use tare_guard::default_state_dir;

use crate::{Target, remembered};

/// The file in the state folder.
const FILE: &str = "starts.json";

/// The longest time that is believed: what is in the file becomes the limit of a cell.
const MOST_SECONDS: f64 = 3_600.0;

/// The number of targets that are remembered.
const MOST_TARGETS: usize = 1_000;

/// Seconds by target and circumstances.
type Starts = BTreeMap<String, f64>;

/// Returns a typical start time in seconds, between a fast machine and an emulator.
pub fn guessed(target: &dyn Target) -> f64 {
    target.spec().capabilities().start_seconds
}

/// Returns the last start time of a target on this machine, in seconds; a guess if it never
/// started.
pub fn expected(target: &dyn Target) -> f64 {
    let folder = default_state_dir().ok();
    folder
        .and_then(|folder| expected_in(&folder, target))
        .unwrap_or_else(|| guessed(target))
}

/// Stores start times of targets, in seconds. Errors are ignored: they are measured again.
pub fn remember<'a>(met: impl Iterator<Item = (&'a dyn Target, f64)>) {
    if let Ok(folder) = default_state_dir() {
        remember_in(&folder, met);
    }
}

fn expected_in(folder: &Path, target: &dyn Target) -> Option<f64> {
    let starts: Starts = remembered::read(&folder.join(FILE))?;
    let seconds = *starts.get(&key(target))?;
    (0.0..=MOST_SECONDS).contains(&seconds).then_some(seconds)
}

fn remember_in<'a>(folder: &Path, met: impl Iterator<Item = (&'a dyn Target, f64)>) {
    let met = met.filter(|(target, _)| target.spec().capabilities().start_seconds > 0.0);
    let met: Starts = met
        .map(|(target, seconds)| (key(target), seconds.min(MOST_SECONDS)))
        .collect();
    if met.is_empty() {
        return;
    }
    let path = folder.join(FILE);
    let mut starts: Starts = remembered::read(&path).unwrap_or_default();
    if starts.len() + met.len() > MOST_TARGETS {
        starts.clear();
    }
    starts.extend(met);
    let _ = remembered::write(&path, &starts);
}

fn key(target: &dyn Target) -> String {
    format!("{}; {}", target.spec(), target.circumstances())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;

    #[test]
    fn what_a_target_took_replaces_the_guess_for_that_target_alone() {
        let state = tempfile::tempdir().unwrap();
        let folder = state.path();
        let [process, debian, other] = [
            "process",
            "linux,root=debian,accel=tcg",
            "linux,root=debian,accel=kvm",
        ]
        .map(|text| spec::parse(text).unwrap());
        let expected = |target: &dyn Target| expected_in(folder, target);
        assert_eq!(expected(debian.as_ref()), None);
        assert!(guessed(debian.as_ref()) > guessed(spec::parse("linux").unwrap().as_ref()));
        for seconds in [32.0, 31.5] {
            let met = [(debian.as_ref(), seconds), (process.as_ref(), 1.0)];
            remember_in(folder, met.into_iter());
            assert_eq!(expected(debian.as_ref()), Some(seconds));
        }
        assert_eq!(
            (expected(other.as_ref()), expected(process.as_ref())),
            (None, None)
        );
        // What somebody wrote there becomes no endless limit.
        let starts = BTreeMap::from([(key(debian.as_ref()), 1e300)]);
        remembered::write(&folder.join(FILE), &starts).unwrap();
        assert_eq!(expected(debian.as_ref()), None);
    }
}
