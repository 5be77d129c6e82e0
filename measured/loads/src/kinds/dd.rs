//! `dd`: three writers of files, as in the study's DD phase.

use rustix::process::Pid;

use super::{DD_TOOL, Kind, PLAIN, Setup};
use crate::error::DriverError;
use crate::processes;
use crate::task::{Ended, Meter, Task};

/// The number of writers, on any CPU.
const WRITERS: u64 = 3;
/// The length of a block.
const BLOCK: u64 = 1 << 20;
/// The number of blocks of a file.
const BLOCKS: u64 = 1_024;

pub(super) const DD: Kind = Kind {
    name: "dd",
    usage: "dd",
    summary: "3 × dd of 1,024 blocks of 1 MiB from /dev/zero to a file, in a loop",
    tools: &[DD_TOOL],
    deviations: &[
        "each file is synced at its end (conv=fsync), else it would only fill the page cache",
    ],
    writes: |_| None,
    tasks,
    ..PLAIN
};

fn tasks(setup: &mut Setup, _words: &[String]) -> Result<Vec<Task>, DriverError> {
    let blocks = (setup.room / WRITERS / BLOCK).min(BLOCKS);
    if blocks == 0 {
        return Err(DriverError::no_room(
            &setup.dir,
            setup.room,
            WRITERS * BLOCK,
        ));
    }
    if blocks < BLOCKS {
        setup.notices.push(format!(
            "dd: each file has {blocks} MiB instead of {BLOCKS}, because the scratch folder has no room for more"
        ));
    }
    let task = |number| {
        let file = setup.dir.join(format!("dd-{number}"));
        Task::again("dd", setup.cpus, DdMeter::default()).args([
            "if=/dev/zero".to_owned(),
            format!("of={}", file.display()),
            format!("bs={BLOCK}"),
            format!("count={blocks}"),
            "conv=fsync".to_owned(),
        ])
    };
    Ok((1..=WRITERS).map(task).collect())
}

/// A meter that reads the summary of `dd`, which it also prints when it is interrupted.
#[derive(Debug, Default)]
struct DdMeter {
    bytes: u64,
}

impl Meter for DdMeter {
    fn works(&self, pid: Pid) -> bool {
        self.bytes > 0 || processes::io(pid).is_none_or(|io| io.written >= BLOCK)
    }

    fn ended(&mut self, ended: &Ended) -> Result<(), String> {
        match copied(&ended.said) {
            Some(bytes) => self.bytes += bytes,
            // Interrupted before it began.
            None if ended.by_driver => {}
            None => return Err(format!("did not say how much it copied: {}", ended.said)),
        }
        Ok(())
    }

    fn totals(&self) -> Vec<(String, u64)> {
        vec![("bytes written".to_owned(), self.bytes)]
    }
}

/// Finds the number in `1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.1 s, 10 MB/s`.
pub(super) fn copied(said: &str) -> Option<u64> {
    let line = said.lines().rev().find(|line| line.contains(" copied"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_of_dd_is_found() {
        let said = "1024+0 records in\n1024+0 records out\n\
                    1073741824 bytes (1.1 GB, 1.0 GiB) copied, 5.12346 s, 210 MB/s";
        assert_eq!(copied(said), Some(1 << 30));
        assert_eq!(copied("300 bytes copied, 0.1 s, 3.0 kB/s"), Some(300));
        assert_eq!(copied("dd: error"), None);
    }
}
