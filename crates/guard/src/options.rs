//! Where a guard may act.

use std::path::PathBuf;

/// Says where scratch folders are made and which trees of files count as settings.
///
/// The default is what a run on a real host wants. Tests put a tree of ordinary files in place of
/// the kernel's.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder in which scratch folders are made. Default: `TMPDIR`, or else `/tmp`.
    pub scratch_root: PathBuf,
    /// The trees in which files may be changed as settings; all other paths are refused, also when
    /// a journal names them. Default: `/proc/sys`, `/proc/irq`, `/sys`.
    pub setting_roots: Vec<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            scratch_root: std::env::temp_dir(),
            setting_roots: ["/proc/sys", "/proc/irq", "/sys"].map(PathBuf::from).into(),
        }
    }
}
