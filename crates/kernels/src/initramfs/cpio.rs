//! The format `newc`: for each entry a header of hexadecimal numbers, the path, the content, each
//! padded to four bytes (`Documentation/driver-api/early-userspace/buffer-format.rst`).

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Entry;

const MAGIC: &[u8] = b"070701";
const TRAILER: &str = "TRAILER!!!";
/// Tools read and write whole blocks.
const BLOCK: usize = 512;

const S_IFDIR: u32 = 0o040_000;
const S_IFREG: u32 = 0o100_000;
const S_IFLNK: u32 = 0o120_000;
const S_IFCHR: u32 = 0o020_000;
const PERMISSIONS: u32 = 0o7777;

/// Writes entries, in the order of their paths, as an archive.
pub(super) fn archive(entries: &BTreeMap<PathBuf, Entry>) -> Vec<u8> {
    let mut archive = Vec::new();
    let mut inode = 0;
    for (path, entry) in entries {
        inode += 1;
        push(&mut archive, inode, path, entry);
    }
    // Inode 0, no mode: not an entry.
    push_raw(&mut archive, &Header::default(), TRAILER.as_bytes(), &[]);
    pad(&mut archive, BLOCK);
    archive
}

#[derive(Default)]
struct Header {
    inode: u32,
    mode: u32,
    links: u32,
    device: (u32, u32),
}

fn push(archive: &mut Vec<u8>, inode: u32, path: &Path, entry: &Entry) {
    let (kind, mode, content) = match entry {
        Entry::Dir { mode } => (S_IFDIR, *mode, &[][..]),
        Entry::File { mode, bytes } => (S_IFREG, *mode, &**bytes),
        Entry::Link { target } => (S_IFLNK, 0o777, target.as_os_str().as_bytes()),
        Entry::CharDevice { mode, .. } => (S_IFCHR, *mode, &[][..]),
    };
    let device = match entry {
        Entry::CharDevice { major, minor, .. } => (*major, *minor),
        _ => (0, 0),
    };
    let header = Header {
        inode,
        mode: kind | (mode & PERMISSIONS),
        links: 1 + u32::from(kind == S_IFDIR),
        device,
    };
    push_raw(archive, &header, path.as_os_str().as_bytes(), content);
}

fn push_raw(archive: &mut Vec<u8>, header: &Header, path: &[u8], content: &[u8]) {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("larger ones were refused");
    archive.extend_from_slice(MAGIC);
    let (owner, group, time, device, checksum) = (0, 0, 0, 0, 0);
    for number in [
        header.inode,
        header.mode,
        owner,
        group,
        header.links,
        time,
        length(content),
        device,
        device,
        header.device.0,
        header.device.1,
        // With its end.
        length(path) + 1,
        checksum,
    ] {
        archive.extend_from_slice(format!("{number:08x}").as_bytes());
    }
    archive.extend_from_slice(path);
    archive.push(0);
    pad(archive, 4);
    archive.extend_from_slice(content);
    pad(archive, 4);
}

fn pad(archive: &mut Vec<u8>, to: usize) {
    archive.resize(archive.len().next_multiple_of(to), 0);
}
