//! A measured CPU that is taken offline for a moment fails its cell: no figure of another CPU is
//! shown as its.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use std::{fs, thread};

use tare_results::model::Outcome;
use tare_results::{CellState, RunFolder};

use crate::hog::last_cpu;
use crate::verdict::Verdicts;
use crate::{Owned, Result, tare};

/// Takes the measured CPU offline while a batch of repetitions and while wake-ups are measured.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let cpu = last_cpu()?;
    let switch = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    let switch = Path::new(&switch);
    if !switch.exists() {
        println!("skip   CPU {cpu} can't be taken offline here");
        return Ok(());
    }
    let scratch = tempfile::tempdir()?;
    let mut noticed = 0.0;
    for (name, words) in [
        ("noise", "noise --workload gap --repetitions 600000000"),
        ("wakeup", "wakeup -D 6 -i 1000 --policy other"),
    ] {
        let folder = scratch.path().join(name);
        let mut command = tare(&format!("{words} --runs 1 --cpu {cpu}"))?;
        command.arg("--output").arg(&folder);
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut measuring = Owned(silent.stderr(Stdio::null()).spawn()?);
        // It measures from the first second to the sixth at least.
        thread::sleep(Duration::from_secs(3));
        let offline = Offline::take(switch)?;
        thread::sleep(Duration::from_millis(300));
        drop(offline);
        measuring.0.wait()?;
        let CellState::Failed(cell) = RunFolder::open(&folder)?.state(1).clone() else {
            continue;
        };
        let Outcome::Failed { reason } = &cell.outcome else {
            continue;
        };
        println!("       {reason}");
        noticed += f64::from(u8::from(reason.contains("was moved from CPU")));
    }
    let what = "cells of two that fail because their CPU was taken offline";
    verdicts.at_least(what, noticed, 2.0);
    Ok(())
}

/// A CPU that is offline until this is dropped.
struct Offline<'a> {
    switch: &'a Path,
}

impl<'a> Offline<'a> {
    fn take(switch: &'a Path) -> Result<Self> {
        fs::write(switch, "0")?;
        Ok(Self { switch })
    }
}

impl Drop for Offline<'_> {
    fn drop(&mut self) {
        if let Err(error) = fs::write(self.switch, "1") {
            println!(
                "       {} can't be set to 1 again: {error}",
                self.switch.display()
            );
        }
    }
}
