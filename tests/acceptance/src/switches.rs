//! Planted switches are found by `tare noise --screen`, and no others.
//!
//! Eight kernel settings that change nothing while nothing uses them. A thread of this process reads
//! two of them and takes the measured CPU accordingly: for a part of the time by default, for none
//! of it with the first one, and for as much again with the second one.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tare_experiments::catalogue;
use tare_pages::analyse;
use tare_results::RunFolder;

use crate::hog::{last_cpu, wait_for_quiet};
use crate::verdict::Verdicts;
use crate::{Result, pin, run as tare};

const SCREENINGS: usize = 3;
/// The time that the thread takes, by default and with the second switch in addition.
const BURST: Duration = Duration::from_millis(1);
const PERIOD: Duration = Duration::from_millis(20);
/// The settings with the values that they are given. The first helps, and the second hurts.
const PLANTED: [(&str, &str); 8] = [
    ("vm.extfrag_threshold", "501"),
    ("vm.page_lock_unfairness", "6"),
    ("fs.lease-break-time", "44"),
    ("kernel.print-fatal-signals", "1"),
    ("kernel.hung_task_warnings", "9"),
    ("kernel.printk_ratelimit_burst", "11"),
    ("vm.oom_dump_tasks", "0"),
    ("fs.dir-notify-enable", "0"),
];

/// Screens them several times.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let cpu = last_cpu()?;
    let scratch = tempfile::tempdir()?;
    let words = PLANTED.map(|(name, value)| format!("{name}={value}"));
    let words = format!(
        "noise --screen {} --repetitions 20000000 --cpu {cpu}",
        words.join(",")
    );
    let (mut right, mut sizes) = (0, Vec::new());
    for number in 1..=SCREENINGS {
        wait_for_quiet(cpu);
        let is_over = AtomicBool::new(false);
        let folder = thread::scope(|scope| {
            scope.spawn(|| burden(cpu, &is_over));
            let folder = tare(scratch.path(), &format!("screened-{number}"), &words, &[]);
            is_over.store(true, Ordering::Relaxed);
            folder
        })?;
        let shown = shown(&folder)?;
        println!("       screening {number}: {shown:.4?}");
        let found = [PLANTED[0].0, PLANTED[1].0];
        let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
        right += usize::from(names == found);
        let own = shown.iter().filter(|(name, _)| found.contains(&&**name));
        sizes.extend(own.map(|(_, effect)| effect.abs()));
    }
    verdicts.within(
        "screenings that find the two planted switches and nothing else",
        right as f64,
        SCREENINGS as f64,
        SCREENINGS as f64,
    );
    let planted = BURST.as_secs_f64() / PERIOD.as_secs_f64();
    verdicts.within(
        "median effect of a planted switch / its part of the CPU",
        crate::median(sizes) / planted,
        0.8,
        1.25,
    );
    Ok(())
}

/// Takes the CPU as the two settings say, until it is over.
fn burden(cpu: usize, is_over: &AtomicBool) {
    // On another CPU it would plant nothing, and the check fails.
    let _ = pin(cpu);
    let is_on = |(name, value): (&str, &str)| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
    };
    while !is_over.load(Ordering::Relaxed) {
        let parts = u32::from(!is_on(PLANTED[0])) + u32::from(is_on(PLANTED[1]));
        let begun = Instant::now();
        while begun.elapsed() < BURST * parts {}
        thread::sleep(PERIOD.saturating_sub(begun.elapsed()));
    }
}

/// Returns the switches of which an effect is shown, in the order of the design.
fn shown(folder: &RunFolder) -> Result<Vec<(String, f64)>> {
    let report = analyse(folder, catalogue())?;
    let story = report.stories().next().ok_or("there is no story")?.json();
    let switches = story["switched"][0]["switches"].as_array();
    let switches = switches.ok_or("nothing was screened")?;
    let shown = switches.iter().filter(|one| one["is_shown"] == true);
    shown
        .map(|one| {
            let (name, effect) = (one["name"].as_str(), one["effect"]["estimate"].as_f64());
            let both = name.map(str::to_owned).zip(effect);
            both.ok_or_else(|| format!("no effect: {}", Value::to_string(one)).into())
        })
        .collect()
}
