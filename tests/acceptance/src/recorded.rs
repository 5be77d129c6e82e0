//! More delays than a list can hold: none is lost, and a list that overflows says so.

use std::fs;
use std::time::Instant;

use crate::verdict::Verdicts;
use crate::{Measurement, Result, output, run as run_into, tare};

/// Timer reads and delays of each run at least. Nearly each read is a delay here.
const READS: f64 = 1e9;
const DELAYS: f64 = 1e7;

/// Records a run by time, which counts all delays, and one by reads, whose list overflows.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let ways = [
        ("by-time", "--duration 90s --every 90s"),
        (
            "by-reads",
            "--workload gap --repetitions 1000000000 --runs 1",
        ),
    ];
    for (name, words) in ways {
        let words = format!("noise {words} --explain 0 --threshold 2cycles");
        let folder = run_into(scratch.path(), name, &words, &[])?;
        let head = Measurement::of(&folder, 1).ok_or("the cell failed")?.head;
        let what = |what: &str| format!("{what}, {name}");
        verdicts.at_least(&what("reads"), head.n as f64, READS);
        verdicts.at_least(&what("delays"), head.seen as f64, DELAYS);
        let begun = Instant::now();
        output(tare("report")?.arg(folder.path()))?;
        let took = begun.elapsed().as_secs_f64();
        verdicts.at_most(&what("seconds of the report"), took, 20.0);
        let not_counted = (head.seen - head.kept) as f64;
        match name {
            "by-time" => verdicts.at_most(&what("delays without their length"), not_counted, 0.0),
            _ => {
                let page = fs::read_to_string(folder.path().join("report.html"))?;
                let said = page.matches("the list of delays was full").count();
                verdicts.at_least(&what("delays without their length"), not_counted, 1.0);
                verdicts.at_least(&what("notices of it"), said as f64, 1.0);
            }
        }
    }
    Ok(())
}
