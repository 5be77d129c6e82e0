//! `tare kernel`: the kernels that guests boot.

mod fetch;
mod list;

use tare_guard::{Guard, default_state_dir};
use tare_kernels::{Store, debian_root, default_store_dir};

use super::clean_up;
use crate::cli::kernel::{AddArguments, KernelArguments, KernelCommand};
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Lists, fetches, adds or removes kernels.
pub fn run(arguments: &KernelArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    match &arguments.command {
        KernelCommand::List(arguments) => {
            clean_up(terminal);
            list::run(&store()?, arguments.json, terminal)
        }
        KernelCommand::Fetch(arguments) => fetch::run(&store()?, arguments, terminal),
        KernelCommand::Add(arguments) => {
            clean_up(terminal);
            add(&store()?, arguments, terminal)
        }
        KernelCommand::Remove(arguments) => {
            clean_up(terminal);
            remove(&store()?, &arguments.name, terminal)
        }
    }
}

fn store() -> Result<Store, CommandError> {
    Ok(Store::open(&default_store_dir()?)?)
}

fn add(store: &Store, arguments: &AddArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    let modules = arguments.modules.as_deref();
    let guard = Guard::open_with(&default_state_dir()?, store.guard_options()?)?;
    let kernel = store.add(&arguments.name, &arguments.vmlinuz, modules, &guard);
    for problem in guard.close().problems {
        terminal.warn(&problem.to_string());
    }
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
