//! `kernel.json`: what is known of a kernel in the store.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::bzimage;
use crate::error::KernelError;
use crate::kernel::{Kernel, Source};
use crate::name::{Flavour, Wanted};

pub(crate) const RECORD: &str = "kernel.json";
pub(crate) const VMLINUZ: &str = "vmlinuz";
pub(crate) const CONFIG: &str = "config";

const SCHEMA: u32 = 1;

/// Is what stands in the file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    schema: u32,
    pub(crate) release: String,
    /// Of vmlinuz.
    pub(crate) sha256: String,
    /// None if it was added by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) package: Option<Package>,
}

/// Is the package that a kernel came in.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Package {
    pub(crate) flavour: Flavour,
    /// Whether its series was the distribution's default.
    pub(crate) is_default: bool,
    pub(crate) name: String,
    pub(crate) version: String,
    /// Of the package's file, as apt's signed lists have it and as it was computed.
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
}

impl Record {
    pub(crate) fn new(release: String, sha256: String, package: Option<Package>) -> Self {
        Self {
            schema: SCHEMA,
            release,
            sha256,
            package,
        }
    }

    /// Writes the record into the folder of its kernel, which is still being prepared.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), KernelError> {
        let path = folder.join(RECORD);
        let failed = |source| KernelError::io("write", &path, source);
        let mut text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        text.push('\n');
        fs::write(&path, text).map_err(failed)
    }
}

/// Reads a kernel's folder; None if it holds no complete kernel that this program understands.
pub(crate) fn read(folder: &Path, name: &str) -> Option<Kernel> {
    if !is_name(name) {
        return None;
    }
    let text = fs::read_to_string(folder.join(RECORD)).ok()?;
    let record: Record = serde_json::from_str(&text).ok()?;
    // The release becomes part of a path.
    if record.schema != SCHEMA || !bzimage::is_release(&record.release) {
        return None;
    }
    let vmlinuz = folder.join(VMLINUZ);
    if !vmlinuz.is_file() {
        return None;
    }
    let modules = folder.join("lib/modules").join(&record.release);
    let config = folder.join(CONFIG);
    let source = match record.package {
        Some(_) => Source::Fetched,
        None => Source::Added,
    };
    let package = record.package;
    Some(Kernel {
        name: name.to_owned(),
        flavour: package.as_ref().map(|package| package.flavour),
        is_default: package.as_ref().is_some_and(|package| package.is_default),
        version: package.as_ref().map(|package| package.version.clone()),
        package: package.map(|package| package.name),
        release: record.release,
        vmlinuz,
        modules: modules.is_dir().then_some(modules),
        config: config.is_file().then_some(config),
        sha256: record.sha256,
        source,
    })
}

/// Says whether a text can be the name of a kernel in the store, and so of its folder.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 128
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._+~-".contains(c))
}

/// Says why a kernel can't be added under a name, if it can't.
pub(crate) fn refusal(name: &str) -> Option<&'static str> {
    if !is_name(name) {
        Some("want letters, digits and . _ + ~ -, beginning with a letter or digit")
    } else if name == "host" || Wanted::parse(name).is_some() {
        Some("this name has a meaning of its own")
    } else if name.starts_with("debian") {
        Some("names that begin with debian are the distribution's")
    } else {
        None
    }
}
