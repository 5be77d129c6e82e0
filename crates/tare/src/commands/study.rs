//! `tare study`: checks and explains study files.

use std::path::{Path, PathBuf};

use tare_studies::explain::explain;
use tare_studies::{Study, StudyError, Variant, included};

use super::host::is_busy;
use super::run_study::variant;
use crate::cli::StudyCommand;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Does what is asked for with study files.
pub fn run(command: &StudyCommand, terminal: &Terminal) -> Result<u8, CommandError> {
    match command {
        StudyCommand::Check { files } => check(files, terminal),
        StudyCommand::Explain { study, quick } => {
            let study = find(study, variant(*quick))?;
            let text = explain(&study, is_busy(study.cpu)).map_err(StudyError::from)?;
            terminal.print_lines(&text)?;
            Ok(exit::DONE)
        }
    }
}

/// Reports whether each file is valid. The worst one decides the exit code.
fn check(files: &[PathBuf], terminal: &Terminal) -> Result<u8, CommandError> {
    let mut worst = exit::DONE;
    for path in files {
        match Study::read(path, Variant::Full) {
            Ok(_) => terminal.print_lines(&format!("{}: in order", path.display()))?,
            Err(error) => {
                let error = CommandError::from(error);
                terminal.error(&error.to_string());
                worst = worst.max(error.exit_code());
            }
        }
    }
    Ok(worst)
}

/// Reads a file, or a study that comes with tare if there is no such file.
fn find(name: &Path, variant: Variant) -> Result<Study, CommandError> {
    let known = name.to_str().and_then(included::find);
    Ok(match known {
        Some(known) if !name.exists() => known.study(variant)?,
        _ => Study::read(name, variant)?,
    })
}
