//! `tar`: an endless `tar czf` of a tree of files on each CPU, as in the study's IO phase.

use rustix::process::Pid;
use tare_wire::cpus::Cpus;

use super::{Kind, PLAIN, Setup};
use crate::error::DriverError;
use crate::processes;
use crate::task::{Ended, Meter, Task};
use crate::tools::Tool;
use crate::tree;

pub(super) const TAR: Kind = Kind {
    name: "tar",
    usage: "tar",
    summary: "an endless tar czf of a tree of files on each CPU, pinned",
    tools: &[
        Tool::new("tar", "tar"),
        Tool::new("gzip", "gzip"),
        // The shell with which tar executes gzip.
        Tool::new("/bin/sh", "dash"),
    ],
    deviations: &[
        "a generated tree of about 4,000 files (55 MB) instead of a kernel's source: it fits into the page \
         cache, so that little is read from the disk after the first time",
    ],
    needs_tree: |_| true,
    // Compressed, it is smaller than the tree.
    writes: |setup| {
        let bytes = setup.tree.as_ref().map_or(0, |(_, size)| size.bytes);
        Some(bytes * u64::from(setup.cpus.count()))
    },
    tasks,
    ..PLAIN
};

fn tasks(setup: &mut Setup, _words: &[String]) -> Result<Vec<Task>, DriverError> {
    let (path, size) = setup.tree()?;
    let task = |cpu: u32| {
        let archive = setup.dir.join(format!("tar-{cpu}.tgz"));
        let meter = TarMeter {
            tree: *size,
            ..TarMeter::default()
        };
        Task::again("tar", Cpus::one(cpu), meter).args([
            "czf".into(),
            archive.into_os_string(),
            "-C".into(),
            path.clone().into_os_string(),
            ".".into(),
        ])
    };
    Ok(setup.cpus.iter().map(task).collect())
}

/// A meter that counts complete archives, and the bytes that `tar` has read for the last one.
#[derive(Debug, Default)]
struct TarMeter {
    tree: tree::Size,
    archives: u64,
    /// Bytes of the archive that is about to be interrupted.
    begun: u64,
}

impl Meter for TarMeter {
    fn works(&self, pid: Pid) -> bool {
        // It only writes the archive, to gzip.
        self.archives > 0 || processes::io(pid).is_none_or(|io| io.written > 0)
    }

    fn last_look(&mut self, pid: Pid) {
        let read = processes::io(pid).unwrap_or_default().read;
        self.begun = read.min(self.tree.bytes);
    }

    fn ended(&mut self, ended: &Ended) -> Result<(), String> {
        if ended.status.success() {
            self.archives += 1;
            self.begun = 0;
        }
        Ok(())
    }

    fn totals(&self) -> Vec<(String, u64)> {
        let bytes = self.archives * self.tree.bytes + self.begun;
        let mut totals = vec![("bytes archived".to_owned(), bytes)];
        if self.archives > 0 {
            totals.push(("files archived".to_owned(), self.archives * self.tree.files));
        }
        totals
    }

    fn remark(&self) -> Option<String> {
        let text = "tar: files are counted by whole archives, bytes as they are read";
        Some(text.to_owned())
    }
}
