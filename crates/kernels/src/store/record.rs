//! `kernel.json`: what is known of a kernel in the store.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::bzimage;
use crate::error::KernelError;
use crate::files::{is_plain, write_json};
use crate::kernel::{Kernel, Source};
use crate::name::{Flavour, Wanted};

pub(crate) const RECORD: &str = "kernel.json";
pub(crate) const VMLINUZ: &str = "vmlinuz";
pub(crate) const CONFIG: &str = "config";

const SCHEMA: u32 = 1;

/// What stands in the file.
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

/// The package that a kernel came in.
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
        write_json(&folder.join(RECORD), self)
    }
}

/// Reads a kernel's folder; None if it holds no complete kernel that this program understands.
pub(crate) fn read(folder: &Path, name: &str) -> Option<Kernel> {
    let text = fs::read(folder.join(RECORD)).ok()?;
    let record: Record = serde_json::from_slice(&text).ok()?;
    let vmlinuz = folder.join(VMLINUZ);
    // The release becomes part of a path.
    let is_sound = record.schema == SCHEMA && bzimage::is_release(&record.release);
    if !is_name(name) || !is_sound || !vmlinuz.is_file() {
        return None;
    }
    let modules = folder.join("lib/modules").join(&record.release);
    let config = folder.join(CONFIG);
    let kernel = Kernel {
        name: name.to_owned(),
        flavour: None,
        is_default: false,
        version: None,
        package: None,
        release: record.release,
        vmlinuz,
        modules: modules.is_dir().then_some(modules),
        config: config.is_file().then_some(config),
        sha256: record.sha256,
        source: Source::Added,
    };
    Some(match record.package {
        None => kernel,
        Some(package) => Kernel {
            flavour: Some(package.flavour),
            is_default: package.is_default,
            version: Some(package.version),
            package: Some(package.name),
            source: Source::Fetched,
            ..kernel
        },
    })
}

/// Returns whether a text can be the name of a kernel in the store, and so of its folder.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && is_plain(text, 128)
}

/// Says why a kernel can't be added under a name, if it can't.
pub(crate) fn refusal(name: &str) -> Option<&'static str> {
    if !is_name(name) {
        Some("want letters, digits and . _ + ~ -, beginning with a letter or digit")
    } else if name == "host" || Wanted::parse(name).is_some() {
        Some("this name has another meaning")
    } else if name.starts_with("debian") {
        Some("names that begin with debian are the distribution's")
    } else {
        None
    }
}
