//! `tare import`: a result of another tool becomes a run.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use jiff::Timestamp;
use tare_exchange::ExchangeError;
use tare_exchange::import::{self, Tool};

use super::clean_up;
use super::run_folder::new_path;
use crate::cli::exchange::{ImportArguments, ToolName};
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// The longest file that is read: no histogram is longer.
const LONGEST: u64 = 1 << 30;

/// Reads the file and writes the run folder.
pub fn run(arguments: &ImportArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    let (tool, name) = match arguments.tool {
        ToolName::Cyclictest => (Tool::Cyclictest, "cyclictest"),
        ToolName::Oslat => (Tool::Oslat, "oslat"),
        ToolName::Rtla => (Tool::Rtla, "rtla"),
    };
    let text = read(&arguments.file).map_err(|source| ExchangeError::Read {
        path: arguments.file.clone(),
        source,
    })?;
    let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let imported = tool.read(&text).and_then(|foreign| {
        import::run(
            &foreign,
            arguments.interval,
            command.collect(),
            Timestamp::now(),
        )
    });
    let imported = imported.map_err(|source| CommandError::Import {
        file: arguments.file.clone(),
        source,
    })?;
    let path = arguments.output.clone().unwrap_or_else(|| new_path(name));
    let folder = imported.write(&path)?;
    for notice in imported
        .cells
        .first()
        .iter()
        .flat_map(|(cell, _)| &cell.notices)
    {
        terminal.note(notice);
    }
    let cells = match imported.cells.len() {
        1 => "1 cell".to_owned(),
        n => format!("{n} cells"),
    };
    let path = folder.path().display();
    terminal.print(&format!(
        "imported {cells}: `tare report {path}` shows them"
    ))?;
    Ok(exit::DONE)
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(LONGEST).read_to_end(&mut bytes)?;
    } else {
        fs::File::open(path)?
            .take(LONGEST)
            .read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
