//! `tare kernel list`: what is here, and what could be fetched.

use serde::Serialize;
use tare_kernels::debian_root::{self, DebianRoot};
use tare_kernels::name::Wanted;
use tare_kernels::{Kernel, Store};
use tare_pages::Table;

use super::megabytes;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// The content of the list.
#[derive(Serialize)]
struct List {
    folder: String,
    kernels: Vec<Row>,
    root: Option<DebianRoot>,
    /// Kernels that could be fetched.
    fetchable: Vec<Fetchable>,
}

/// A kernel in the list.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    kernel: Kernel,
    series: Option<String>,
    preemption: Option<String>,
    bytes: u64,
}

/// A kernel that is not here.
#[derive(Serialize)]
struct Fetchable {
    name: String,
    command: String,
}

/// Lists kernels.
pub fn run(store: &Store, json: bool, terminal: &Terminal) -> Result<u8, CommandError> {
    let list = List {
        folder: store.dir().display().to_string(),
        kernels: store.list().into_iter().map(row).collect(),
        root: debian_root::find(store).ok(),
        fetchable: fetchable(store),
    };
    if json {
        terminal.print_json(&list)?;
    } else {
        terminal.print(&render(&list, terminal.width()))?;
    }
    Ok(exit::DONE)
}

fn row(kernel: Kernel) -> Row {
    Row {
        series: kernel.series().map(|series| series.to_string()),
        preemption: kernel.preemption(),
        bytes: kernel.bytes(),
        kernel,
    }
}

fn fetchable(store: &Store) -> Vec<Fetchable> {
    let kernels = Wanted::all().into_iter().map(|wanted| wanted.to_string());
    let mut missing: Vec<String> = kernels.filter(|name| !store.has(name)).collect();
    if debian_root::find(store).is_err() {
        missing.push(debian_root::NAME.to_owned());
    }
    missing
        .into_iter()
        .map(|name| Fetchable {
            command: format!("tare kernel fetch {name}"),
            name,
        })
        .collect()
}

fn render(list: &List, width: usize) -> String {
    let mut lines = Vec::new();
    if list.kernels.is_empty() {
        lines.push(format!(
            "no kernels are here, neither in {} nor in /boot",
            list.folder
        ));
    } else {
        lines.push(table(&list.kernels, width));
    }
    if let Some(root) = &list.root {
        let record = &root.record;
        lines.push(String::new());
        lines.push(format!(
            "{}  Debian {}, {} packages, {}",
            debian_root::NAME,
            record.suite,
            record.packages.len(),
            megabytes(record.bytes)
        ));
    }
    if !list.fetchable.is_empty() {
        lines.push(String::new());
        lines.push("not here; to fetch one:".to_owned());
        let commands = list.fetchable.iter();
        lines.extend(commands.map(|fetchable| format!("    {}", fetchable.command)));
    }
    lines.join("\n")
}

/// Formats kernels as a table, the last column right-aligned. Columns that repeat the name are
/// dropped where the table is too wide.
fn table(rows: &[Row], width: usize) -> String {
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".to_owned());
    let head = [
        "NAME",
        "FLAVOUR",
        "SERIES",
        "VERSION",
        "RELEASE",
        "PREEMPTION",
        "SHA-256",
        "SIZE",
    ];
    let mut table = Table::new(head)
        .left(&[1, 2, 3, 4, 5, 6])
        .sparing(&[6, 3, 1, 2]);
    for row in rows {
        let kernel = &row.kernel;
        table.row([
            kernel.name.clone(),
            known(&kernel.flavour.map(|flavour| flavour.word().to_owned())),
            known(&row.series),
            known(&kernel.version),
            kernel.release.clone(),
            known(&row.preemption),
            kernel.sha256.chars().take(12).collect(),
            megabytes(row.bytes),
        ]);
    }
    table.text(width)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tare_kernels::Source;
    use tare_kernels::debian_root::RootRecord;
    use tare_kernels::name::Flavour;

    use super::*;

    fn kernel(name: &str, flavour: Option<Flavour>, version: Option<&str>, release: &str) -> Row {
        Row {
            kernel: Kernel {
                name: name.to_owned(),
                flavour,
                is_default: flavour.is_some(),
                package: version.map(|_| format!("linux-image-{release}")),
                version: version.map(str::to_owned),
                release: release.to_owned(),
                vmlinuz: PathBuf::from("/kernels/vmlinuz"),
                modules: None,
                config: None,
                sha256: "0123456789abcdef".repeat(4),
                source: flavour.map_or(Source::Added, |_| Source::Fetched),
            },
            series: Some("6.1".to_owned()),
            preemption: version.map(|_| "dynamic, voluntary".to_owned()),
            bytes: 37_123_456,
        }
    }

    #[test]
    fn kernels_are_a_table_and_what_is_missing_are_commands() {
        let list = List {
            folder: "/kernels".to_owned(),
            kernels: vec![
                kernel(
                    "debian-cloud-6.1.192-2",
                    Some(Flavour::Cloud),
                    Some("6.1.192-2"),
                    "6.1.0-56-cloud-amd64",
                ),
                kernel("mine", None, None, "6.1.7"),
            ],
            root: Some(DebianRoot {
                image: PathBuf::from("/kernels/root.ext4"),
                record: RootRecord {
                    suite: "bookworm".to_owned(),
                    variant: "standard".to_owned(),
                    packages: vec!["bash=5.2".to_owned()],
                    sha256: "0".repeat(64),
                    bytes: 800_000_000,
                },
            }),
            fetchable: vec![Fetchable {
                name: "debian-rt-6.12".to_owned(),
                command: "tare kernel fetch debian-rt-6.12".to_owned(),
            }],
        };
        insta::assert_snapshot!(render(&list, 80));
        insta::assert_snapshot!(render(&list, 120));
    }

    #[test]
    fn an_empty_store_says_so() {
        let list = List {
            folder: "/kernels".to_owned(),
            kernels: Vec::new(),
            root: None,
            fetchable: Vec::new(),
        };
        insta::assert_snapshot!(render(&list, 80));
    }
}
