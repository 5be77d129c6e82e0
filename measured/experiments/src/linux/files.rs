//! `files`: reports the files in which a Linux shows what disturbs measurements.
//!
//! The checks of `tare doctor` read files only. For a system other than its own, the agent there
//! sends them as facts, and the checks read those.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use tare_wire::files::{CHANGING, LASTING, LATER, NAME, REFUSED};

use crate::output::{Output, cut};
use crate::platform::{Platform, WriteError};
use crate::session::{self, Stop, Wanted};
use crate::table::{Failure, Measurement, Threads};
use crate::words::{self, Slot, Word};

/// The time between two reads of what changes.
const INTERVAL: Duration = Duration::from_millis(200);

/// The most bytes of a fact, and of a file.
const PART: usize = 1_000;
const MOST_BYTES: usize = 1 << 20;

/// The CPU that every guest's plan has. Nothing is measured there.
const WORDS: [Word<Option<u32>>; 1] = [("cpu", |cpu| Slot::AnySmall(cpu))];

/// Returns the experiment on Linux.
pub fn on<P: Platform>() -> Measurement<P>
where
    P::Error: From<Stop>,
{
    Measurement {
        has: |id| id == NAME,
        threads: |_| Ok(Threads::one(None)),
        run: |words, platform| {
            words::read(&mut None, &WORDS, words, &["workload"]).map_err(Failure::Plan)?;
            let wanted = Wanted {
                plan: &"workload=files",
                allowed: Ok(()),
                cpu: None,
                bytes: 0,
            };
            session::run(wanted, platform, Ok, |output, _| Ok(told(output)?))
                .map_err(|stop: Stop| Failure::Measurement(stop.into()))
        },
    }
}

/// Writes all files, and some of them again.
fn told(output: &mut Output<'_, impl Platform>) -> Result<(), WriteError> {
    // The first process of a guest has the CPUs that are not isolated. The file shows its limit then.
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    let _ = sched_setaffinity(None, &all);
    // Nothing is written before the second read, which would show it.
    let before = contents(CHANGING.split_whitespace());
    thread::sleep(INTERVAL);
    let after = contents(CHANGING.split_whitespace().rev());
    let lasting = contents(LASTING.split_whitespace());
    for (time, files) in [("", before), (LATER, after), ("", lasting)] {
        for (path, content) in files {
            let (state, bytes) = match content {
                Ok(bytes) => (time, bytes),
                Err(error) if error.kind() == ErrorKind::PermissionDenied => (REFUSED, Vec::new()),
                Err(_) => continue,
            };
            let text = String::from_utf8_lossy(&bytes);
            in_parts(output, &format!("{state}{}", path.display()), &text)?;
        }
    }
    Ok(())
}

/// Writes a text as one fact or several.
fn in_parts(
    output: &mut Output<'_, impl Platform>,
    name: &str,
    text: &str,
) -> Result<(), WriteError> {
    let mut rest = cut(text, MOST_BYTES);
    loop {
        let part = cut(rest, PART);
        output.fact(name, "", part)?;
        rest = &rest[part.len()..];
        if rest.is_empty() {
            return Ok(());
        }
    }
}

/// Reads the files of patterns, of links their targets. A file may have the form of several patterns.
fn contents<'a>(patterns: impl Iterator<Item = &'a str>) -> BTreeMap<PathBuf, io::Result<Vec<u8>>> {
    let read = |path: PathBuf| {
        let link = fs::read_link(&path);
        let link = link.map(|target| target.into_os_string().into_encoded_bytes());
        let content = link.or_else(|_| fs::read(&path));
        (path, content)
    };
    patterns.flat_map(found).map(read).collect()
}

/// Returns the paths of a pattern: in each component, `*` stands for any text.
fn found(pattern: &str) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from("/")];
    for component in pattern.split('/').skip(1) {
        let Some((start, end)) = component.split_once('*') else {
            paths.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let names = paths.iter().flat_map(fs::read_dir).flatten().flatten();
        let fits = names.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(start) && name.ends_with(end))
        });
        paths = fits.collect();
    }
    paths
}
