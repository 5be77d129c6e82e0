//! Kernel modules: those that the laboratory has put into the initramfs, in its order.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::io::Errno;
use rustix::system::finit_module;
use tare_wire::guest::MODULES;

use super::error::InitError;

/// Loads them.
pub fn load() -> Result<(), InitError> {
    // Without a list there is nothing to load.
    let list = fs::read_to_string(MODULES).unwrap_or_default();
    let folder = Path::new(MODULES).parent().unwrap_or(Path::new("/"));
    for name in list.lines() {
        insert(&folder.join(name)).map_err(|source| InitError::Module {
            name: name.to_owned(),
            source,
        })?;
    }
    Ok(())
}

fn insert(path: &Path) -> io::Result<()> {
    match finit_module(File::open(path)?, c"", 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
