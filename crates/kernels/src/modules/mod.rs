//! Which modules a guest needs, in which order.
//!
//! A distribution's package holds modules but no `modules.dep`: that is made when it is installed.
//! So dependencies are read from the modules themselves, from their section `.modinfo`:
//!
//! * `depends=` names what must be loaded before;
//! * `softdep=pre: …` names what the module will ask for when it starts, often not a module but
//!   what several can provide: ext4 asks for `crc32c`. Without `modprobe` in the guest nobody would
//!   answer, so the provider is loaded before, too.
//!
//! Of several providers the one that runs on every CPU is taken: an accelerated one refuses to load
//! where its instructions are missing, and the guest would fail on some machines only.

mod modinfo;
mod tree;
mod unpack;

use std::collections::BTreeSet;
use std::path::Path;

use modinfo::ModInfo;
use tree::Tree;

use crate::error::KernelError;
use crate::kernel::Kernel;

pub(crate) use tree::{bytes, files_to_keep};

/// A module of the kernel, as the kernel takes it.
#[derive(Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name, with `_`.
    pub name: String,
    /// The ELF file, decompressed.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Module({}, {} bytes)", self.name, self.bytes.len())
    }
}

/// Returns the modules for `wanted` in load order, without those that are built in.
pub(crate) fn resolve(kernel: &Kernel, wanted: &[&str]) -> Result<Vec<Module>, KernelError> {
    let mut resolver = Resolver {
        kernel,
        tree: None,
        visited: BTreeSet::new(),
        order: Vec::new(),
    };
    for name in wanted {
        resolver.require(&normal(name), None)?;
    }
    Ok(resolver.order)
}

/// Writes a module's name as the kernel does: file names have `-` or `_` as it happened.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

struct Resolver<'a> {
    kernel: &'a Kernel,
    tree: Option<Tree>,
    visited: BTreeSet<String>,
    order: Vec<Module>,
}

impl Resolver<'_> {
    fn require(&mut self, name: &str, wanted_by: Option<&str>) -> Result<(), KernelError> {
        // Marked before its dependencies are followed, so that a circle ends.
        if !self.visited.insert(name.to_owned()) {
            return Ok(());
        }
        let kernel = self.kernel;
        let tree = self.tree(name)?;
        if let Some(file) = tree.file(name) {
            return self.load(name, &file);
        }
        if tree.is_built_in(name) {
            return Ok(());
        }
        // Perhaps the name of what a module provides, such as crc32c.
        if let Some(provider) = tree.provider(name)? {
            return self.require(&provider, wanted_by);
        }
        Err(KernelError::MissingModule {
            kernel: kernel.name.clone(),
            module: name.to_owned(),
            wanted_by: wanted_by.map(str::to_owned),
            folder: tree.folder().to_owned(),
        })
    }

    fn load(&mut self, name: &str, file: &Path) -> Result<(), KernelError> {
        let bytes = unpack::read(file)?;
        let info = ModInfo::parse(&bytes).map_err(|why| bad(file, why))?;
        info.check_release(&self.kernel.release)
            .map_err(|why| bad(file, why))?;
        for dependency in info.depends() {
            self.require(&normal(dependency), Some(name))?;
        }
        for soft in info.soft_before() {
            match self.require(&normal(soft), Some(name)) {
                // Soft: the module may find another way, and says so if not.
                Err(KernelError::MissingModule { module, .. }) if module == normal(soft) => {}
                other => other?,
            }
        }
        let name = name.to_owned();
        self.order.push(Module { name, bytes });
        Ok(())
    }

    fn tree(&mut self, wanted: &str) -> Result<&Tree, KernelError> {
        if self.tree.is_none() {
            let kernel = self.kernel;
            let folder = kernel.modules.as_deref();
            let folder = folder.ok_or_else(|| KernelError::NoModules {
                kernel: kernel.name.clone(),
                module: wanted.to_owned(),
                vmlinuz: kernel.vmlinuz.clone(),
            })?;
            self.tree = Some(Tree::read(folder)?);
        }
        Ok(self.tree.as_ref().expect("it was put there just now"))
    }
}

fn bad(file: &Path, why: String) -> KernelError {
    KernelError::Failed(format!(
        "the module {} can't be used: {why}",
        file.display()
    ))
}
