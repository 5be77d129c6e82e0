//! No two runs measure on one CPU unawares: each would tell the other's turns as what the system
//! costs.

use std::collections::BTreeSet;
use std::path::{self, Path};
use std::time::Duration;

use tare_guard::{Claim, CpuClaim, Guard, GuardError, claims};
use tare_host::{Finding, Severity};
use tare_lab::units::human;
use tare_results::model::CellPlan;
use tare_wire::cpus::{Cpus, MOST};

use crate::error::CommandError;
use crate::terminal::Terminal;

/// An estimate from which on a run is one that somebody will end.
const ENDLESS: Duration = Duration::from_secs(300 * 24 * 3_600);

/// Returns the CPUs that other runs measure on.
pub fn taken() -> Cpus {
    let claims = claims();
    let cpus = claims.iter().flat_map(|claim| &claim.cpus).copied();
    cpus.filter(|cpu| *cpu < MOST).collect()
}

/// Returns the runs that measure on this machine now; with `cpu`, on that CPU.
pub fn findings(cpu: Option<u32>) -> Vec<Finding> {
    let claims = claims().into_iter();
    let claims = claims.filter(|claim| cpu.is_none_or(|cpu| claim.cpus.contains(&cpu)));
    let finding = |claim: Claim| {
        let cpus: Cpus = claim
            .cpus
            .iter()
            .copied()
            .filter(|cpu| *cpu < MOST)
            .collect();
        Finding {
            id: "measured-now".into(),
            title: "other runs".into(),
            state: format!(
                "the run {} measures on CPU {cpus}: {}",
                claim.name(),
                left(&claim)
            ),
            severity: Severity::Warning,
            why: "Two runs on one CPU compete for it, and each reports the other's CPU time as noise."
                .to_owned(),
            remedy: Some("wait until it has ended, or measure on another CPU".to_owned()),
        }
    };
    claims.map(finding).collect()
}

/// Claims the CPUs of this machine on which cells are going to be measured.
///
/// # Errors
///
/// As [`claim_cpus`].
pub fn claim<'c>(
    cells: impl Iterator<Item = &'c CellPlan>,
    run: &Path,
    share: bool,
    guard: &Guard,
    terminal: &Terminal,
) -> Result<Option<CpuClaim>, CommandError> {
    let mut cpus = BTreeSet::new();
    let mut seconds = 0.0;
    for cell in cells {
        seconds += cell.estimate_seconds;
        if !cell.target.kernel().is_remote() {
            cpus.extend(cell.claimed_cpus().iter());
        }
    }
    let cpus: Vec<u32> = cpus.into_iter().collect();
    let run = path::absolute(run).unwrap_or_else(|_| run.to_owned());
    let left = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    claim_cpus(&cpus, &run.to_string_lossy(), left, share, guard, terminal)
}

/// Claims CPUs, if any. Measures even if other runs cannot be informed.
///
/// # Errors
///
/// Returns [`CommandError::Unavailable`] if another run measures on one of them and they are not to
/// be shared.
pub fn claim_cpus(
    cpus: &[u32],
    run: &str,
    left: Duration,
    share: bool,
    guard: &Guard,
    terminal: &Terminal,
) -> Result<Option<CpuClaim>, CommandError> {
    if cpus.is_empty() {
        return Ok(None);
    }
    for other in guard.claims().iter().filter(|_| share) {
        if let Some((cpu, who)) = measures_on(other, cpus) {
            terminal.warn(&format!("CPU {cpu} is shared with {who}"));
        }
    }
    match guard.claim_cpus(cpus, run, left, share) {
        Ok(claim) => Ok(Some(claim)),
        Err(GuardError::CpuInUse(other)) => {
            let (cpu, who) = measures_on(&other, cpus).unwrap_or_default();
            Err(CommandError::Unavailable {
                what: format!("CPU {cpu}"),
                why: who,
                remedy: "wait until that run has ended, measure on another CPU, or add --share-cpu: the two then \
                         compete for it, and both reports say so"
                    .to_owned(),
            })
        }
        Err(error) => {
            terminal.warn(&error.to_string());
            Ok(None)
        }
    }
}

/// Says which run measures on the first of these CPUs that it claims, and for how long.
fn measures_on(other: &Claim, cpus: &[u32]) -> Option<(u32, String)> {
    let cpu = cpus.iter().find(|cpu| other.cpus.contains(cpu))?;
    let (run, left) = (other.name(), left(other));
    Some((*cpu, format!("the run {run}, which measures there: {left}")))
}

fn left(of: &Claim) -> String {
    match of.left {
        Duration::ZERO => "it has taken longer than estimated".to_owned(),
        left if left >= ENDLESS => "it runs until somebody ends it".to_owned(),
        left => format!("about {} left", human(left)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_run_is_named_with_what_is_left_of_it() {
        let on = |left, cpus: &[u32]| {
            let other = Claim {
                uid: rustix::process::geteuid().as_raw(),
                pid: 7,
                cpus: vec![1, 2],
                run: "/runs/a".to_owned(),
                left,
            };
            measures_on(&other, cpus)
        };
        assert_eq!(on(ENDLESS, &[3]), None);
        for (left, words) in [
            (Duration::from_secs(90), "about 1 min 30 s left"),
            (Duration::ZERO, "longer than estimated"),
            (Duration::MAX, "until somebody ends it"),
        ] {
            let (cpu, who) = on(left, &[0, 2]).unwrap();
            assert_eq!(cpu, 2);
            assert!(who.starts_with("the run /runs/a (process 7)"), "{who}");
            assert!(who.ends_with(words), "{who}");
        }
    }
}
