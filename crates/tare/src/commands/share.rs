//! `tare share`: completions of shells and man pages, from the table of arguments.
//!
//! `make install` runs it, so that they are always of the program that is installed.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use super::write;
use crate::cli::{Cli, ShareArguments};
use crate::error::CommandError;
use crate::exit;

const NAME: &str = "tare";

/// The shells, with the file in which each looks for the completions of `tare`.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/tare"),
    (Shell::Zsh, "zsh/site-functions/_tare"),
    (Shell::Fish, "fish/vendor_completions.d/tare.fish"),
];

/// Writes all files.
pub fn run(arguments: &ShareArguments) -> Result<u8, CommandError> {
    let folder = &arguments.folder;
    for (shell, file) in COMPLETIONS {
        let path = folder.join(file);
        make(path.parent().unwrap_or(folder))?;
        let mut text = Vec::new();
        generate(shell, &mut Cli::command(), NAME, &mut text);
        write(&path, &String::from_utf8_lossy(&text))?;
    }
    let pages = folder.join("man/man1");
    make(&pages)?;
    clap_mangen::generate_to(Cli::command(), &pages).map_err(|source| CommandError::Write {
        path: pages,
        source,
    })?;
    Ok(exit::DONE)
}

fn make(folder: &Path) -> Result<(), CommandError> {
    fs::create_dir_all(folder).map_err(|source| CommandError::Write {
        path: folder.to_owned(),
        source,
    })
}
