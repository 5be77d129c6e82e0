//! What a program of the host needs to run elsewhere: its interpreter, its shared libraries.
//!
//! Found as the dynamic loader finds them (ld.so(8)), by reading the files: running `ldd` executes
//! the program. Places that the host's configuration adds to the usual ones are unknown in the
//! guest, so libraries from there are put next to the C library.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::elf::{self, Dynamic};
use super::refused;
use crate::error::{Doing, KernelError};
use crate::files::entries;

/// Where loaders look without any configuration: Debian's, then others'.
const USUAL: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];
const CONFIGURATION: &str = "/etc/ld.so.conf";

/// Returns each file that the program needs, itself included, with the path that it must have.
pub(super) fn closure(program: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, KernelError> {
    let mut found = BTreeMap::new();
    let mut open = VecDeque::from([Wanted {
        at: program.to_owned(),
        from: program.to_owned(),
        rpath: Vec::new(),
    }]);
    let configured = configured_folders(Path::new(CONFIGURATION), 0);
    while let Some(wanted) = open.pop_front() {
        if found.contains_key(&wanted.at) {
            continue;
        }
        let bytes = fs::read(&wanted.from).doing("read the program", &wanted.from)?;
        if let Some(interpreter) = script_interpreter(&bytes) {
            open.push_back(Wanted::same(PathBuf::from(interpreter)));
            found.insert(wanted.at, bytes);
            continue;
        }
        let dynamic = elf::dynamic(&bytes).map_err(|why| refused(&wanted.from, &why))?;
        if let Some(interpreter) = &dynamic.interpreter {
            open.push_back(Wanted::same(PathBuf::from(interpreter)));
        }
        // DT_RPATH is searched for what its libraries need, too; DT_RUNPATH is not.
        let mut rpath = wanted.rpath;
        if dynamic.runpath.is_empty() {
            rpath.extend(origin_replaced(&dynamic.rpath, &wanted.from));
        }
        for library in &dynamic.needed {
            let place = find(library, &dynamic, &rpath, &wanted.from, &configured);
            let (at, from) = place.ok_or_else(|| {
                KernelError::Failed(format!(
                    "the program {} needs {library}, which is in no folder that the dynamic \
                     loader searches",
                    wanted.from.display()
                ))
            })?;
            let rpath = rpath.clone();
            open.push_back(Wanted { at, from, rpath });
        }
        found.insert(wanted.at, bytes);
    }
    Ok(found)
}

/// A file that is to be looked at.
struct Wanted {
    /// Its path in the guest.
    at: PathBuf,
    /// Its path here.
    from: PathBuf,
    /// Where those that need it had to look.
    rpath: Vec<PathBuf>,
}

impl Wanted {
    fn same(path: PathBuf) -> Self {
        Self {
            at: path.clone(),
            from: path,
            rpath: Vec::new(),
        }
    }
}

/// Finds a library: its path in the guest and its path here.
fn find(
    library: &str,
    dynamic: &Dynamic,
    rpath: &[PathBuf],
    needed_by: &Path,
    configured: &[PathBuf],
) -> Option<(PathBuf, PathBuf)> {
    if library.contains('/') {
        let path = PathBuf::from(library);
        return fits(&path).then(|| (path.clone(), path));
    }
    let found = |folders: &[PathBuf], library: &str| {
        let mut paths = folders.iter().map(|folder| folder.join(library));
        paths.find(|path| fits(path))
    };
    let usual = USUAL.map(PathBuf::from);
    let searched = match dynamic.runpath.is_empty() {
        true => rpath.to_vec(),
        false => origin_replaced(&dynamic.runpath, needed_by).collect(),
    };
    if let Some(path) = found(&searched, library).or_else(|| found(&usual, library)) {
        return Some((path.clone(), path));
    }
    let from = found(configured, library)?;
    let c_library = found(&usual, "libc.so.6")?;
    Some((c_library.with_file_name(library), from))
}

/// Returns whether a file is a library for x86-64: folders of 32-bit libraries are searched, too.
fn fits(path: &Path) -> bool {
    let mut head = [0; 20];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    // Class 64-bit; machine 62, EM_X86_64.
    read.is_ok() && head.starts_with(b"\x7fELF\x02") && head[18..20] == [62, 0]
}

fn origin_replaced<'a>(
    folders: &'a [String],
    program: &Path,
) -> impl Iterator<Item = PathBuf> + use<'a> {
    let origin = fs::canonicalize(program)
        .ok()
        .and_then(|path| path.parent().map(Path::to_owned))
        .unwrap_or_default();
    let origin = origin.display().to_string();
    folders.iter().map(move |folder| {
        PathBuf::from(
            folder
                .replace("${ORIGIN}", &origin)
                .replace("$ORIGIN", &origin),
        )
    })
}

/// Reads the folders that the host adds, from ld.so.conf and what it includes.
fn configured_folders(file: &Path, depth: usize) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let Ok(text) = fs::read_to_string(file) else {
        return folders;
    };
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        match line.strip_prefix("include ") {
            // More would be a circle.
            Some(pattern) if depth < 8 => {
                let base = file.parent().unwrap_or(Path::new("/"));
                for included in matching(&base.join(pattern.trim())) {
                    folders.extend(configured_folders(&included, depth + 1));
                }
            }
            Some(_) => {}
            None if line.starts_with('/') => folders.push(PathBuf::from(line)),
            None => {}
        }
    }
    folders
}

/// Lists the files that a pattern means whose last part holds at most one `*`.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (pattern.parent(), pattern.file_name()) else {
        return Vec::new();
    };
    let name = name.as_bytes();
    let Some(star) = name.iter().position(|byte| *byte == b'*') else {
        return vec![pattern.to_owned()];
    };
    let (begin, end) = (&name[..star], &name[star + 1..]);
    let mut files: Vec<PathBuf> = entries(folder)
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.as_bytes().strip_prefix(begin);
            name.is_some_and(|rest| rest.ends_with(end))
        })
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

/// Returns the interpreter of a script: the first word after `#!`.
fn script_interpreter(bytes: &[u8]) -> Option<&OsStr> {
    let mut lines = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n');
    let line = lines.next()?;
    line.split(|byte| *byte == b' ' || *byte == b'\t')
        .find(|word| !word.is_empty())
        .map(OsStr::from_bytes)
}
