//! Every kind of target, in one run and one report.
//!
//! Every kernel in every flavour, every preemption model, an isolated CPU without tick, a whole
//! Debian, every container, the unikernel: each cell must be done, which implies that the
//! environment matched the request as seen from inside.

use std::fs;

use tare_results::CellState;
use tare_results::model::Outcome;

use crate::verdict::Verdicts;
use crate::{Result, run as tare};

const TARGETS: [&str; 21] = [
    "process",
    "docker",
    "podman",
    "runc",
    "crun",
    "linux,kernel=debian-6.1",
    "linux,kernel=debian-6.1,preempt=none",
    "linux,kernel=debian-6.1,preempt=voluntary",
    "linux,kernel=debian-6.1,preempt=full",
    "linux,kernel=debian-cloud-6.1",
    "linux,kernel=debian-rt-6.1",
    "linux,kernel=debian-6.12",
    "linux,kernel=debian-6.12,preempt=none",
    "linux,kernel=debian-6.12,preempt=voluntary",
    "linux,kernel=debian-6.12,preempt=full",
    "linux,kernel=debian-cloud-6.12",
    "linux,kernel=debian-rt-6.12",
    "linux,kernel=debian-6.12,cpus=2,isolate=1,nohz_full=1",
    "linux,root=debian",
    "unikernel",
    "unikernel,irq=off",
];

/// Runs all of them.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let words = "noise --workload prime --repetitions 20000 --runs 1 --start-engine";
    let targets = TARGETS.map(|target| ["--target", target]);
    let folder = tare(scratch.path(), "places", words, targets.as_flattened())?;
    let mut done = 0;
    for plan in &folder.plan().cells {
        let (state, facts) = match folder.state(plan.id) {
            CellState::Done(cell) => match cell.outcome {
                Outcome::Done { record, .. } => {
                    done += 1;
                    let fact = |name: &str| record.program()?.fact(name);
                    let told = ["kernel release", "preemption model"].map(fact);
                    ("done", told.map(Option::unwrap_or_default).join(" "))
                }
                Outcome::LeftOut { reason } => ("left out", reason),
                Outcome::Failed { reason } => ("failed", reason),
                Outcome::NotTried { reason } => ("not tried", reason),
            },
            _ => ("missing", String::new()),
        };
        println!("       {:<55} {state:<7} {}", plan.target, facts.trim());
    }
    verdicts.within(
        "targets that were measured",
        f64::from(done),
        TARGETS.len() as f64,
        TARGETS.len() as f64,
    );
    let page = fs::read_to_string(folder.path().join("report.html"))?;
    let groups = ["Containers", "Linux guests", "Unikernel"];
    let found = groups.iter().filter(|group| page.contains(**group)).count();
    verdicts.within("groups in the report", found as f64, 3.0, 3.0);
    Ok(())
}
