//! What a command may have left on this machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::Result;

/// Processes with this check's mark, files of its folder, mounts, namespaces, control groups.
#[derive(Debug, Default)]
pub struct Picture(BTreeSet<String>);

impl Picture {
    /// Records the present state; `bench` is the folder of the check.
    pub fn take(bench: &Path) -> Result<Self> {
        let mut things = BTreeSet::new();
        // Of a killed `tare`, and of this program's own guard.
        let marks = [
            bench.display().to_string(),
            format!("-{}-", std::process::id()),
        ];
        for entry in fs::read_dir("/proc")?.flatten() {
            let is_ours = |environment: Vec<u8>| {
                let text = String::from_utf8_lossy(&environment).into_owned();
                text.contains("TARE_OWNER=") && marks.iter().any(|mark| text.contains(mark))
            };
            if fs::read(entry.path().join("environ")).is_ok_and(is_ours) {
                let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
                things.insert(format!(
                    "process {} {}",
                    entry.path().display(),
                    name.trim()
                ));
            }
        }
        for entry in fs::read_dir(bench)?.flatten() {
            // The guard's journals, which `tare clean` reports.
            if entry.file_name() != "state" {
                things.insert(format!("file {}", entry.path().display()));
            }
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        things.extend(mounts.lines().map(|line| format!("mount {line}")));
        for process in fs::read_dir("/proc")?.flatten() {
            let kinds = fs::read_dir(process.path().join("ns"));
            let links = kinds.into_iter().flatten().flatten();
            let names = links.filter_map(|kind| fs::read_link(kind.path()).ok());
            things.extend(names.map(|name| format!("namespace {}", name.display())));
        }
        let mut open = vec![Path::new("/sys/fs/cgroup").to_owned()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    if entry.file_name().to_string_lossy().contains("tare") {
                        things.insert(format!("control group {}", entry.path().display()));
                    }
                    open.push(entry.path());
                }
            }
        }
        Ok(Self(things))
    }

    /// Returns the things that were not in an earlier picture.
    pub fn beyond(&self, earlier: &Self) -> Vec<String> {
        self.0.difference(&earlier.0).cloned().collect()
    }
}
