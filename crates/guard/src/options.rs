//! Where a guard may act.

use std::path::PathBuf;
use std::{env, path};

/// Says where scratch folders are made and which trees of files count as settings.
///
/// The default is what a run on a real host wants. Tests put a tree of regular files in place of
/// the kernel's.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder in which scratch folders are made. Default: `TMPDIR`, or else `/tmp`.
    pub scratch_root: PathBuf,
    /// The trees in which files may be changed as settings; all other paths are refused, also when
    /// a journal names them. Default: `/proc/sys`, `/proc/irq`, `/sys`.
    pub setting_roots: Vec<PathBuf>,
    /// The folder in which runs say on which CPUs they measure. Default: `cpus` in `TARE_STATE_DIR`
    /// if that is set, or else `/dev/shm`, which all users share and which does not outlive the
    /// kernel.
    pub claims_root: PathBuf,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            scratch_root: env::temp_dir(),
            setting_roots: ["/proc/sys", "/proc/irq", "/sys"].map(PathBuf::from).into(),
            claims_root: claims_root(),
        }
    }
}

fn claims_root() -> PathBuf {
    let chosen = env::var_os("TARE_STATE_DIR").filter(|path| !path.is_empty());
    if let Some(state) = chosen.and_then(|path| path::absolute(path).ok()) {
        return state.join("cpus");
    }
    let shared = PathBuf::from("/dev/shm");
    match shared.is_dir() {
        true => shared,
        false => env::temp_dir(),
    }
}
