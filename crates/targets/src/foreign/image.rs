//! What kind of file an image is, told by its first bytes and never by its name.

use std::io::{self, Read};
use std::path::Path;

use tare_host::open_ordinary;

use crate::elf;
use crate::error::TargetError;

/// A kind of image that QEMU boots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// QEMU loads it and jumps into it: an ELF file (PVH, multiboot), a Linux bzImage, or whatever
    /// has a multiboot header.
    Kernel,
    /// A CD: ISO 9660.
    Cd,
    /// A disk in QEMU's format.
    Qcow2,
    /// A disk as it is, with a boot sector.
    Raw,
}

/// How much of a file is looked at: the volume descriptor of a CD is in its 17th sector of 2 KiB.
const LOOKED_AT: u64 = 16 * 2048 + 6;

/// Where a multiboot header may be, and its alignment.
const MULTIBOOT: (usize, usize) = (8192, 4);

impl Kind {
    /// Looks at a file.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Unusable`] if it can't be read or is none of the kinds.
    pub(super) fn of(path: &Path) -> Result<Self, TargetError> {
        let (bytes, length) =
            beginning(path).map_err(|error| refused(path, &format!("can't be read: {error}")))?;
        if let Some(cut) = elf::cut(&bytes, length) {
            return Err(refused(path, &cut));
        }
        if let Some(other) = named_by_qcow2(&bytes) {
            let why = format!(
                "names a {other}, which its hash would not cover and which may be any file of this machine: make one file of \
                 both (qemu-img convert -O qcow2 IMAGE NEW)"
            );
            return Err(refused(path, &why));
        }
        Self::of_bytes(&bytes).ok_or_else(|| {
            let why = "is nothing that QEMU boots: neither an ELF file, a bzImage, a multiboot \
                       kernel, a qcow2 or raw disk with a boot sector, nor an ISO 9660 CD";
            refused(path, why)
        })
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let has = |at: usize, magic: &[u8]| bytes.get(at..at + magic.len()) == Some(magic);
        let multiboot = || {
            let header = &bytes[..bytes.len().min(MULTIBOOT.0)];
            let mut words = header.chunks_exact(MULTIBOOT.1);
            words.any(|word| word == 0x1bad_b002_u32.to_le_bytes())
        };
        // A bzImage and a CD may have the mark of a boot sector, too.
        if has(0, b"\x7fELF") || has(0x202, b"HdrS") {
            Some(Self::Kernel)
        } else if has(0, b"QFI\xfb") {
            Some(Self::Qcow2)
        } else if has(16 * 2048 + 1, b"CD001") {
            Some(Self::Cd)
        } else if has(510, &[0x55, 0xaa]) {
            Some(Self::Raw)
        } else if multiboot() {
            Some(Self::Kernel)
        } else {
            None
        }
    }
}

/// Returns which other file a disk in QEMU's format names (QEMU, docs/interop/qcow2.txt, section
/// Header).
fn named_by_qcow2(bytes: &[u8]) -> Option<&'static str> {
    const EXTERNAL_DATA_FILE: u64 = 1 << 2;
    let number = |at: usize| Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let is_qcow2 = bytes.starts_with(b"QFI\xfb");
    let version = number(0).filter(|_| is_qcow2)? as u32;
    if number(8) != Some(0) {
        return Some("backing file");
    }
    let has_data_file = version >= 3 && number(72)? & EXTERNAL_DATA_FILE != 0;
    has_data_file.then_some("data file")
}

/// Makes the error of an image that can't be booted.
pub(super) fn refused(path: &Path, why: &str) -> TargetError {
    let why = format!("the image {} {why}", path.display());
    TargetError::unusable(why, "name another file with image=")
}

/// Returns the beginning of a file, and the length of all of it.
fn beginning(path: &Path) -> io::Result<(Vec<u8>, u64)> {
    let file = open_ordinary(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(LOOKED_AT).read_to_end(&mut bytes)?;
    Ok((bytes, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(marks: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 40_000];
        for (at, mark) in marks {
            bytes[*at..at + mark.len()].copy_from_slice(mark);
        }
        bytes
    }

    #[test]
    fn each_kind_is_known_by_its_mark() {
        const BOOT: (usize, &[u8]) = (510, &[0x55, 0xaa]);
        const CD: (usize, &[u8]) = (32_769, b"CD001");
        for (marks, kind) in [
            (&[(0, &b"\x7fELF"[..])][..], Some(Kind::Kernel)),
            (&[BOOT, (0x202, b"HdrS")], Some(Kind::Kernel)),
            (&[(4096, &[0x02, 0xb0, 0xad, 0x1b])], Some(Kind::Kernel)),
            (&[(8192, &[0x02, 0xb0, 0xad, 0x1b])], None),
            (&[(0, b"QFI\xfb")], Some(Kind::Qcow2)),
            (&[BOOT], Some(Kind::Raw)),
            (&[BOOT, CD], Some(Kind::Cd)),
            (&[CD], Some(Kind::Cd)),
            (&[], None),
        ] {
            assert_eq!(Kind::of_bytes(&with(marks)), kind, "{marks:?}");
        }
        assert_eq!(Kind::of_bytes(b""), None);
        assert_eq!(Kind::of_bytes(b"\x7fEL"), None);
    }

    #[test]
    fn a_disk_that_names_another_file_is_refused() {
        let head = |version: u8| [(0, b"QFI\xfb".to_vec()), (7, vec![version])];
        let named = |version: u8, more: (usize, &[u8])| {
            let head = head(version);
            let mut marks: Vec<(usize, &[u8])> = Vec::new();
            marks.extend(head.iter().map(|(at, mark)| (*at, &mark[..])));
            marks.push(more);
            named_by_qcow2(&with(&marks))
        };
        assert_eq!(named(2, (15, &[104])), Some("backing file"));
        assert_eq!(named(3, (15, &[104])), Some("backing file"));
        assert_eq!(named(3, (79, &[4])), Some("data file"));
        // Version 2 has no features, and these are other ones.
        assert_eq!(named(2, (79, &[4])), None);
        assert_eq!(named(3, (79, &[3])), None);
        let disk = tempfile::NamedTempFile::new().unwrap();
        let head = head(3);
        let marks = head.iter().map(|(at, mark)| (*at, &mark[..]));
        let marks: Vec<(usize, &[u8])> = marks.chain([(15, &[104][..])]).collect();
        std::fs::write(disk.path(), with(&marks)).unwrap();
        let error = Kind::of(disk.path()).unwrap_err().to_string();
        assert!(error.contains("names a backing file"), "{error}");
    }

    #[test]
    fn a_kernel_that_lacks_its_end_is_told() {
        let own = std::env::current_exe().unwrap();
        assert!(Kind::of(&own).is_ok());
        let cut = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = std::fs::read(own).unwrap();
        bytes.truncate(40_000);
        std::fs::write(cut.path(), bytes).unwrap();
        let error = Kind::of(cut.path()).unwrap_err().to_string();
        assert!(
            error.contains("is cut short: it has 40000 bytes"),
            "{error}"
        );
    }

    #[test]
    fn what_can_not_be_read_is_told() {
        for (path, said) in [
            ("/nowhere/x", "No such file"),
            ("/dev/zero", "regular file"),
        ] {
            let error = Kind::of(Path::new(path)).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
