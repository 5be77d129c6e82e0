//! Disk images: copies with their holes, and files written into them without mounting.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::fs::SeekFrom;
use rustix::io::Errno;
use tare_guard::Guard;

use super::RootFile;
use crate::error::{Doing, KernelError};
use crate::fetch::{Tool, path_for_root, require};
use crate::files::write;

const WRITE_LIMIT: Duration = Duration::from_secs(60);

/// Copies a file with its holes: most of an image is room.
pub(super) fn copy_sparse(from: &Path, to: &Path) -> Result<(), KernelError> {
    let mut input = File::open(from).doing("read", from)?;
    let length = input.metadata().doing("read", from)?.len();
    let mut output = File::create(to).doing("write", to)?;
    output.set_len(length).doing("write", to)?;
    let mut at = 0;
    // Where the file system knows no holes, all of it is data.
    while let Some(begin) = next(&input, SeekFrom::Data(at)).doing("read", from)? {
        let end = next(&input, SeekFrom::Hole(begin)).doing("read", from)?;
        let end = end.unwrap_or(length);
        input.seek(io::SeekFrom::Start(begin)).doing("read", from)?;
        output.seek(io::SeekFrom::Start(begin)).doing("write", to)?;
        io::copy(&mut (&input).take(end - begin), &mut output).doing("write", to)?;
        at = end;
    }
    Ok(())
}

/// Finds where data or a hole begins; None if there is no more.
fn next(file: &File, what: SeekFrom) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, what) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Writes files into an ext4 image by `debugfs`, as root's, without mounting it.
pub(super) fn write_files(
    image: &Path,
    files: &[RootFile],
    guard: &Guard,
) -> Result<(), KernelError> {
    let why = "files are put into a disk image by it";
    require("debugfs", why, "install e2fsprogs")?;
    let scratch = guard.scratch("root-files")?;
    let inside = |name: String| scratch.path().join(name);
    let tool = Tool::new(guard, None, scratch.path());
    let debugfs = |what: &str, arguments: &[&str]| {
        let mut command = Command::new("debugfs");
        command
            .args(arguments)
            .arg(image)
            .current_dir(scratch.path())
            .env("PATH", path_for_root());
        tool.run(
            &format!("{what} a disk image with debugfs"),
            &mut command,
            WRITE_LIMIT,
        )
    };
    let mut script = String::new();
    for (number, file) in files.iter().enumerate() {
        let path = &file.path;
        // Its commands are words of a line.
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\<>".contains(&byte);
        if !path.starts_with('/') || !path.bytes().all(is_plain) {
            return Err(KernelError::BadFileName { name: path.clone() });
        }
        write(&inside(number.to_string()), &file.bytes)?;
        let mode = 0o100_000 | (file.mode & 0o7777);
        script.push_str(&format!(
            "rm {path}\nwrite {number} {path}\nset_inode_field {path} mode 0{mode:o}\n\
             set_inode_field {path} uid 0\nset_inode_field {path} gid 0\n"
        ));
    }
    write(&inside("commands".to_owned()), script)?;
    debugfs("writing into", &["-w", "-f", "commands"])?;
    // It ends with success whatever its commands did.
    for (number, file) in files.iter().enumerate() {
        let dump = format!("dump {} {number}.back", file.path);
        debugfs("reading", &["-R", &dump])?;
        let back = std::fs::read(inside(format!("{number}.back")));
        if back.ok().as_deref() != Some(&file.bytes) {
            return Err(KernelError::Tool {
                what: format!("writing {} into a disk image with debugfs", file.path),
                said: "the file is not there afterwards; is its folder?".to_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_copy_has_the_same_bytes_and_holes() {
        const MIB: u64 = 1 << 20;
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a"), folder.path().join("b"));
        let mut file = File::create(&from).unwrap();
        for at in [3, 5 * MIB, 9 * MIB - 1] {
            file.seek(io::SeekFrom::Start(at)).unwrap();
            file.write_all(b"x").unwrap();
        }
        file.set_len(12 * MIB).unwrap();
        copy_sparse(&from, &to).unwrap();
        let copy = std::fs::read(&to).unwrap();
        assert!(copy == std::fs::read(&from).unwrap());
        let blocks = |path| std::fs::metadata(path).unwrap().blocks();
        assert!(blocks(&to) <= blocks(&from), "{} blocks", blocks(&to));
        // Nothing but a hole.
        File::create(&from).unwrap().set_len(MIB).unwrap();
        copy_sparse(&from, &to).unwrap();
        assert_eq!(std::fs::metadata(&to).unwrap().len(), MIB);
    }
}
