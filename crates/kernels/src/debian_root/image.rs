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
use crate::error::KernelError;
use crate::fetch::{Tool, require};

const WRITE_LIMIT: Duration = Duration::from_secs(60);

/// Copies a file with its holes: most of an image is room.
pub(super) fn copy_sparse(from: &Path, to: &Path) -> Result<(), KernelError> {
    let reading = |source| KernelError::io("read", from, source);
    let writing = |source| KernelError::io("write", to, source);
    let mut input = File::open(from).map_err(reading)?;
    let length = input.metadata().map_err(reading)?.len();
    let mut output = File::create(to).map_err(writing)?;
    output.set_len(length).map_err(writing)?;
    let mut at = 0;
    // Where the file system knows no holes, all of it is data.
    while let Some(begin) = next(&input, SeekFrom::Data(at)).map_err(reading)? {
        let end = next(&input, SeekFrom::Hole(begin)).map_err(reading)?;
        let end = end.unwrap_or(length);
        input.seek(io::SeekFrom::Start(begin)).map_err(reading)?;
        output.seek(io::SeekFrom::Start(begin)).map_err(writing)?;
        io::copy(&mut (&input).take(end - begin), &mut output).map_err(writing)?;
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
    tool: &Tool<'_>,
    guard: &Guard,
) -> Result<(), KernelError> {
    require(
        "debugfs",
        "files are put into a disk image by it",
        "install e2fsprogs",
    )?;
    let scratch = guard.scratch("root-files")?;
    let mut script = String::new();
    for (number, file) in files.iter().enumerate() {
        let path = &file.path;
        // Its commands are words of a line.
        let plain = path.starts_with('/')
            && path
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"\"'\\<>".contains(&byte));
        if !plain {
            return Err(KernelError::BadFileName { name: path.clone() });
        }
        let source = scratch.path().join(number.to_string());
        std::fs::write(&source, &file.bytes)
            .map_err(|error| KernelError::io("write", &source, error))?;
        let mode = 0o100_000 | (file.mode & 0o7777);
        script.push_str(&format!(
            "rm {path}\nwrite {number} {path}\nset_inode_field {path} mode 0{mode:o}\n\
             set_inode_field {path} uid 0\nset_inode_field {path} gid 0\n"
        ));
    }
    let commands = scratch.path().join("commands");
    std::fs::write(&commands, script).map_err(|e| KernelError::io("write", &commands, e))?;
    let mut command = Command::new("debugfs");
    command
        .args(["-w", "-f"])
        .arg(&commands)
        .arg(image)
        .current_dir(scratch.path())
        .env("PATH", crate::fetch::path_for_root());
    tool.run(
        "writing into a disk image with debugfs",
        &mut command,
        scratch.path(),
        WRITE_LIMIT,
    )?;
    // It ends with success whatever its commands did.
    for (number, file) in files.iter().enumerate() {
        let back = scratch.path().join(format!("{number}.back"));
        let mut command = Command::new("debugfs");
        command
            .arg("-R")
            .arg(format!("dump {} {number}.back", file.path))
            .arg(image)
            .current_dir(scratch.path())
            .env("PATH", crate::fetch::path_for_root());
        let what = "reading a disk image with debugfs";
        tool.run(what, &mut command, scratch.path(), WRITE_LIMIT)?;
        if std::fs::read(&back).ok().as_deref() != Some(&file.bytes) {
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
