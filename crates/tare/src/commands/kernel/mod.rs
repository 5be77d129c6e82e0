//! `tare kernel`: the kernels that guests boot.

mod fetch;
mod list;

use tare_guard::{Guard, default_state_dir};
use tare_kernels::{Store, debian_root, default_store_dir};

use super::{clean_up, close};
use crate::cli::kernel::{AddArguments, KernelCommand};
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Lists, fetches, adds or removes kernels.
pub fn run(command: &KernelCommand, terminal: &Terminal) -> Result<u8, CommandError> {
    clean_up(terminal);
    let store = Store::open(&default_store_dir()?)?;
    match command {
        KernelCommand::List(arguments) => list::run(&store, arguments.json, terminal),
        KernelCommand::Fetch(arguments) => fetch::run(&store, arguments, terminal),
        KernelCommand::Add(arguments) => add(&store, arguments, terminal),
        KernelCommand::Remove { name } => remove(&store, name, terminal),
    }
}

fn add(store: &Store, arguments: &AddArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    let modules = arguments.modules.as_deref();
    let guard = Guard::open_with(&default_state_dir()?, store.guard_options()?)?;
    let kernel = store.add(&arguments.name, &arguments.vmlinuz, modules, &guard);
    close(guard, terminal);
    let kernel = kernel?;
    terminal.print(&format!("added {}: Linux {}", kernel.name, kernel.release))?;
    if kernel.modules.is_none() {
        terminal.warn(
            "no modules were found for it; a guest can use it only if the drivers for virtio are \
             built in. --modules DIR gives them",
        );
    }
    Ok(exit::DONE)
}

fn remove(store: &Store, name: &str, terminal: &Terminal) -> Result<u8, CommandError> {
    if name == debian_root::NAME {
        debian_root::remove(store)?;
    } else {
        store.remove(name)?;
    }
    terminal.print(&format!("removed {name}"))?;
    Ok(exit::DONE)
}

/// Writes a size as packages have it, in decimal units.
fn megabytes(bytes: u64) -> String {
    match bytes as f64 / 1e6 {
        few if few < 10.0 => format!("{few:.1} MB"),
        many => format!("{many:.0} MB"),
    }
}
