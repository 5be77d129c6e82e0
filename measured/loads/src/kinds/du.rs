//! `du`: an endless walk of the root file system on each CPU, as in the study's DU phase.

use rustix::process::Pid;
use tare_wire::cpus::Cpus;

use super::{Kind, PLAIN, Setup, Walk};
use crate::error::DriverError;
use crate::task::{Ended, Ends, Meter, Output, Task};
use crate::tools::Tool;

pub(super) const DU: Kind = Kind {
    name: "du",
    usage: "du",
    summary: "an endless du / on each CPU, pinned",
    tools: &[Tool::new("du", "coreutils")],
    deviations: &[
        "`du -x /`: it stays on the root file system, since /proc and /sys change under it",
    ],
    needs_tree: |walk| *walk == Walk::Tree,
    tasks,
    ..PLAIN
};

fn tasks(setup: &mut Setup, _words: &[String]) -> Result<Vec<Task>, DriverError> {
    let (root, files) = match setup.walk {
        Walk::Root => ("/".into(), None),
        Walk::Tree => {
            let (path, size) = setup.tree()?.clone();
            setup.notices.push(format!(
                "du: it walks a generated tree of {} files instead of a full root, because the root is a RAM \
                 disk here",
                size.files
            ));
            (path.into_os_string(), Some(size.files))
        }
    };
    let task = |cpu: u32| {
        let meter = DuMeter {
            files,
            ..DuMeter::default()
        };
        Task {
            output: Output::Meter,
            // Its status is 1 if a folder can't be read or vanished: both are normal.
            ends: Ends::Again(&[1]),
            ..Task::again("du", Cpus::one(cpu), meter).args(["-x".into(), root.clone()])
        }
    };
    Ok(setup.cpus.iter().map(task).collect())
}

/// A meter that counts the lines of `du`, one for each folder. It prints them to a pipe, 4 KiB at a
/// time: a terminal would show each at once, but then `du` and the driver would make system calls
/// for each folder that the study's load did not make.
#[derive(Debug, Default)]
struct DuMeter {
    folders: u64,
    walks: u64,
    /// Number of files in the tree, if known.
    files: Option<u64>,
}

impl Meter for DuMeter {
    fn works(&self, _pid: Pid) -> bool {
        self.folders > 0 || self.walks > 0
    }

    fn on_output(&mut self, bytes: &[u8]) {
        self.folders += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    }

    fn ended(&mut self, ended: &Ended) -> Result<(), String> {
        self.walks += u64::from(!ended.by_driver);
        Ok(())
    }

    fn totals(&self) -> Vec<(String, u64)> {
        let mut totals = vec![("folders".to_owned(), self.folders)];
        let files = self.files.map(|files| files * self.walks);
        totals.extend(files.map(|files| ("files".to_owned(), files)));
        totals
    }

    fn remark(&self) -> Option<String> {
        let text = match self.files {
            Some(_) => {
                "du: files are counted by whole walks, folders as they are printed, 4 KiB of lines at a time"
            }
            None => {
                "du: folders are counted as they are printed, 4 KiB of lines at a time; files between them are \
                 walked and not counted"
            }
        };
        Some(text.to_owned())
    }
}
