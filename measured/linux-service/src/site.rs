//! The content of the HTTP service: the files of a folder, and figures of the process.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use tare_net::http::metrics::{Kind, Metric, Value};
use tare_net::http::{INDEX, PAGE, Site};

/// The files of a folder by relative path, read once, like an image's.
pub struct Folder(BTreeMap<String, Vec<u8>>);

impl Folder {
    /// Reads all files of a folder; without one there is a page.
    pub fn read(folder: Option<&Path>) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        match folder {
            Some(folder) => read_into(&mut files, folder, "")?,
            None => drop(files.insert(INDEX.to_owned(), PAGE.into())),
        }
        Ok(Self(files))
    }
}

/// Reads files recursively. Links are not followed, since they might lead out of the folder or back
/// into it.
fn read_into(files: &mut BTreeMap<String, Vec<u8>>, folder: &Path, before: &str) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            read_into(files, &entry.path(), &format!("{name}/"))?;
        } else if kind.is_file() {
            files.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(())
}

impl Site for Folder {
    fn file(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(Vec::as_slice)
    }

    fn metric(&self, number: usize) -> Option<Metric<'_>> {
        let label = None;
        Some(match number {
            0 => Metric {
                name: "process_cpu_seconds_total",
                help: "Time on a CPU, in user and kernel mode.",
                kind: Kind::Counter,
                label,
                value: Value::Nanoseconds(cpu_ns()?),
            },
            1 => Metric {
                name: "http_files",
                help: "Files that can be asked for.",
                kind: Kind::Gauge,
                label,
                value: Value::Count(self.0.len() as u64),
            },
            _ => return None,
        })
    }

    fn now(&self) -> Option<u64> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.ok().map(|since| since.as_secs())
    }
}

/// Returns the CPU time of the process.
fn cpu_ns() -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one `timespec`.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    let ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    (read == 0).then_some(ns)
}
