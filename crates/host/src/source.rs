//! Where facts come from: the running system, a folder that pretends to be one, or files that another
//! system has sent.
//!
//! Everything in this crate reads through a [`Source`], so that its logic can be
//! tested for machines that nobody has at hand: a tuned telecom host, a container
//! with a CPU quota, a kernel whose files hold nonsense. Only three things are not
//! files and are therefore carried along: CPUID, the passing of time between two
//! samples, and whose process is "self".

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tare_wire::files::{LATER, REFUSED};

use crate::cpuid::Cpuid;
use crate::fact::Fact;

/// How long two samples of `/proc/stat` lie apart: 20 of the kernel's 10 ms units of
/// accounting, so one unit is 5 %. Longer would be finer, but a person waits for it.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// No file that is read here is longer; what follows is cut off.
const MAX_BYTES: u64 = 8 << 20;

/// The system's files.
#[derive(Clone, Debug)]
enum Root {
    /// Those below a folder.
    Folder(PathBuf),
    /// Those of another system by their paths, with the targets of links as their content; None for
    /// one that may not be read.
    Sent(Arc<BTreeMap<String, Option<Vec<u8>>>>),
}

/// A root folder to read the system's files from.
#[derive(Clone, Debug)]
pub struct Source {
    root: Root,
    /// The root that holds the files as they are one interval later.
    later: Root,
    interval: Duration,
    cpuid: Fact<Cpuid>,
}

impl Source {
    /// Reads the running system: files from `/`, CPUID from the processor, samples 200 ms apart.
    pub fn system() -> Self {
        Self {
            root: Root::Folder(PathBuf::from("/")),
            later: Root::Folder(PathBuf::from("/")),
            interval: SAMPLE_INTERVAL,
            cpuid: Cpuid::read(),
        }
    }

    /// Reads files below a folder instead of `/`. CPUID is unknown, and the two samples of a pair
    /// are taken at once and are equal.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root = Root::Folder(root.into());
        Self {
            later: root.clone(),
            root,
            interval: Duration::ZERO,
            cpuid: Fact::unknown("CPUID is not read when facts come from a folder"),
        }
    }

    /// Reads the files that the agent of another system has sent, as names and parts of their content
    /// ([`tare_wire::files`]).
    pub fn sent<'a>(parts: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let [mut now, mut later] = [const { BTreeMap::new() }; 2];
        for (name, part) in parts {
            if let Some(path) = name.strip_prefix(REFUSED) {
                now.insert(path.to_owned(), None);
                continue;
            }
            let (files, path) = match name.strip_prefix(LATER) {
                Some(path) => (&mut later, path),
                None => (&mut now, name),
            };
            let file = files
                .entry(path.to_owned())
                .or_insert_with(|| Some(Vec::new()));
            file.get_or_insert_default().extend(part.as_bytes());
        }
        Self {
            root: Root::Sent(Arc::new(now)),
            later: Root::Sent(Arc::new(later)),
            interval: Duration::ZERO,
            cpuid: Fact::unknown("CPUID is not read for another system"),
        }
    }

    /// Takes the second sample of a pair from another folder.
    #[cfg(test)]
    pub(crate) fn with_later(mut self, root: impl Into<PathBuf>) -> Self {
        self.later = Root::Folder(root.into());
        self
    }

    /// Uses these values of CPUID.
    #[cfg(test)]
    pub(crate) fn with_cpuid(mut self, cpuid: Cpuid) -> Self {
        self.cpuid = Fact::Known(cpuid);
        self
    }

    /// Returns what CPUID says.
    pub fn cpuid(&self) -> &Fact<Cpuid> {
        &self.cpuid
    }

    /// Returns how long to wait between the two samples of a pair.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the source that holds the system's files one interval later.
    pub fn later(&self) -> Self {
        Self {
            root: self.later.clone(),
            ..self.clone()
        }
    }

    /// Reads a file whole, as text. Bytes that are not UTF-8 are replaced; what lies beyond 8 MiB
    /// is dropped.
    pub fn text(&self, path: &str) -> Fact<String> {
        self.bytes(path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Reads a file whole, up to 8 MiB.
    pub fn bytes(&self, path: &str) -> Fact<Vec<u8>> {
        let read = self.root.file(path, |path| {
            let mut bytes = Vec::new();
            File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        known(path, read)
    }

    /// Reads a file that holds one line, without the white space around it.
    pub fn line(&self, path: &str) -> Fact<String> {
        self.text(path).map(|text| text.trim().to_owned())
    }

    /// Reads a file that holds a name or a sentence, which cannot be empty.
    pub fn words(&self, path: &str) -> Fact<String> {
        self.line(path).find(format!("{path} is empty"), |text| {
            (!text.is_empty()).then_some(text)
        })
    }

    /// Reads a file that holds one value and parse it.
    pub fn value<T: FromStr>(&self, path: &str) -> Fact<T> {
        self.line(path).and_then(|text| match text.parse() {
            Ok(value) => Fact::Known(value),
            Err(_) => Fact::unknown(format!("{path} holds {:?}", shorten(&text))),
        })
    }

    /// Returns whether there is such a file or folder (false also when it may not be looked up).
    pub fn exists(&self, path: &str) -> bool {
        match &self.root {
            Root::Folder(root) => real(root, path).exists(),
            Root::Sent(files) => files.contains_key(path) || self.names(path).known().is_some(),
        }
    }

    /// Lists the names in a folder, sorted.
    pub fn names(&self, folder: &str) -> Fact<Vec<String>> {
        let names: io::Result<BTreeSet<String>> = match &self.root {
            Root::Folder(root) => fs::read_dir(real(root, folder)).map(|entries| {
                let names = entries.map(|entry| entry.ok()?.file_name().into_string().ok());
                names.flatten().collect()
            }),
            Root::Sent(files) => {
                let within = |path: &String| {
                    let rest = path.strip_prefix(folder)?.strip_prefix('/')?;
                    rest.split('/').next().map(str::to_owned)
                };
                let names: BTreeSet<String> = files.keys().filter_map(within).collect();
                match names.is_empty() {
                    true => Err(io::ErrorKind::NotFound.into()),
                    false => Ok(names),
                }
            }
        };
        known(folder, names.map(|names| names.into_iter().collect()))
    }

    /// Lists the numbers N of the entries `<prefix>N` of a folder, ascending; none when the folder
    /// cannot be read.
    pub fn numbered(&self, folder: &str, prefix: &str) -> Vec<u32> {
        let names = self.names(folder).into_known().unwrap_or_default();
        let number = |name: &String| name.strip_prefix(prefix)?.parse().ok();
        BTreeSet::from_iter(names.iter().filter_map(number))
            .into_iter()
            .collect()
    }

    /// Reads where a symbolic link points, as text.
    pub fn link(&self, path: &str) -> Fact<String> {
        let read = self.root.file(path, |path| {
            let target = fs::read_link(path)?;
            Ok(target.into_os_string().into_encoded_bytes())
        });
        known(path, read).map(|target| String::from_utf8_lossy(&target).into_owned())
    }

    /// Returns whether this process can open a file for writing, by opening and closing it. Of another
    /// system, whether its agent can read it.
    pub fn opens_for_writing(&self, path: &str) -> Fact<()> {
        let opened = self.root.file(path, |path| {
            OpenOptions::new().write(true).open(path)?;
            Ok(Vec::new())
        });
        known(path, opened).map(drop)
    }
}

impl Root {
    /// Returns the content of a file by its path, or what `read` does with the file to open.
    fn file(
        &self,
        path: &str,
        read: impl FnOnce(PathBuf) -> io::Result<Vec<u8>>,
    ) -> io::Result<Vec<u8>> {
        match self {
            Self::Folder(root) => read(real(root, path)),
            Self::Sent(files) => match files.get(path) {
                Some(Some(bytes)) => Ok(bytes.clone()),
                Some(None) => Err(io::ErrorKind::PermissionDenied.into()),
                None => Err(io::ErrorKind::NotFound.into()),
            },
        }
    }
}

/// Translates a path of the system into the file to open.
fn real(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Makes a fact of what was read from a path.
fn known<T>(path: &str, read: io::Result<T>) -> Fact<T> {
    read.map_err(|error| excuse(path, &error)).into()
}

/// Cuts a text that is going to be quoted in a message.
pub(crate) fn shorten(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Says in words why a file could not be read.
fn excuse(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no {path}"),
        io::ErrorKind::PermissionDenied => format!("permission denied on {path}"),
        _ => format!("{path}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::Tree;

    #[test]
    fn a_missing_file_names_itself_by_its_system_path() {
        let tree = Tree::new();
        let fact = tree.source().line("/sys/devices/system/cpu/online");
        assert_eq!(
            fact.because(),
            Some("there is no /sys/devices/system/cpu/online")
        );
    }

    #[test]
    fn a_value_that_does_not_parse_is_quoted() {
        let tree = Tree::new().file("/proc/sys/vm/swappiness", "lots\n");
        let fact: Fact<u32> = tree.source().value("/proc/sys/vm/swappiness");
        assert_eq!(
            fact.because(),
            Some("/proc/sys/vm/swappiness holds \"lots\"")
        );
    }

    #[test]
    fn numbered_entries_are_sorted_as_numbers() {
        let tree = Tree::new()
            .file("/sys/x/cpu10/a", "")
            .file("/sys/x/cpu9/a", "")
            .file("/sys/x/cpufreq/a", "");
        assert_eq!(tree.source().numbered("/sys/x", "cpu"), [9, 10]);
    }
}
