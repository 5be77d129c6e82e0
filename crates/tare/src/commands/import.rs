//! `tare import`: a result of another tool becomes a run.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use tare_exchange::ExchangeError;
use tare_exchange::import;
use tare_lab::units::counted;

use super::run_folder::new_path;
use super::{clean_up, command_line};
use crate::cli::exchange::ImportArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// The longest file that is read: no histogram is longer.
const LONGEST: u64 = 64 << 20;

/// Reads the file and writes the run folder.
pub fn run(arguments: &ImportArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    let bytes = read(&arguments.file).map_err(|source| ExchangeError::Read {
        path: arguments.file.clone(),
        source,
    })?;
    let now = tare_results::now()?;
    let imported = import::text(bytes)
        .and_then(|text| import::read(&arguments.tool, &text))
        .and_then(|foreign| import::run(&foreign, arguments.interval, command_line(), now));
    let imported = imported.map_err(|source| CommandError::Import {
        file: arguments.file.clone(),
        source,
    })?;
    let path = arguments.output.clone();
    let path = path.map_or_else(|| new_path(&arguments.tool), Ok)?;
    let folder = imported.write(&path)?;
    for notice in imported
        .cells
        .first()
        .iter()
        .flat_map(|(cell, _)| &cell.notices)
    {
        terminal.note(notice);
    }
    let cells = counted(imported.cells.len(), "cell", "cells");
    let path = folder.path().display();
    terminal.print(&format!(
        "imported {cells}: `tare report {path}` shows them"
    ))?;
    Ok(exit::DONE)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin()
            .lock()
            .take(LONGEST + 1)
            .read_to_end(&mut bytes)?;
    } else {
        fs::File::open(path)?
            .take(LONGEST + 1)
            .read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > LONGEST {
        return Err(io::Error::other(
            "it has more than 64 MiB, as no histogram has",
        ));
    }
    Ok(bytes)
}
