//! What an image says of itself before it boots: that it can be booted, and which protocol its
//! records are of.

use std::path::Path;

use object::Endianness;
use object::elf::{EM_X86_64, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use tare_wire::PROTOCOL;
use tare_wire::image::{NOTE_NAME, NOTE_TYPE};

use crate::elf;
use crate::error::TargetError;

/// The name and the type of the note by which QEMU finds where a kernel begins (PVH).
const PVH: (&[u8], u32) = (b"Xen", 18);

/// Refuses what is no image that speaks this protocol.
///
/// # Errors
///
/// Returns [`TargetError::Unusable`] with what is missing.
pub(super) fn check(path: &Path, bytes: &[u8]) -> Result<(), TargetError> {
    let refused = |why: &str| {
        let why = format!("the image {} {why}", path.display());
        let remedy = "build an image of the service `bench`, with its note, from the sources of this \
                      tare (docs/unikernel.md), or name another one with image=";
        Err(TargetError::unusable(why, remedy))
    };
    let Some(notes) = Notes::of(bytes) else {
        return refused("is not an ELF file for x86-64");
    };
    let Some(entry) = notes.entry else {
        return refused("can't be booted: it has no PVH note that says where it begins");
    };
    if let Some(fault) = elf::fault(bytes, entry) {
        return refused(&fault);
    }
    match notes.protocol {
        None => refused("does not say that it prints records: it has no note of tare"),
        Some(theirs) if theirs != u32::from(PROTOCOL) => refused(&format!(
            "speaks protocol {theirs}, and this tare {PROTOCOL}"
        )),
        Some(_) => Ok(()),
    }
}

/// The notes of an image.
#[derive(Debug, Default, PartialEq, Eq)]
struct Notes {
    /// The physical address at which it begins.
    entry: Option<u64>,
    protocol: Option<u32>,
}

impl Notes {
    /// Reads an ELF file for x86-64; None if it is none.
    fn of(bytes: &[u8]) -> Option<Self> {
        let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        if header.e_machine(endian) != EM_X86_64 {
            return None;
        }
        let mut found = Self::default();
        for segment in header.program_headers(endian, bytes).ok()? {
            let Ok(Some(mut notes)) = segment.notes(endian, bytes) else {
                continue;
            };
            while let Ok(Some(note)) = notes.next() {
                let kind = (note.name(), note.n_type(endian).0);
                if kind == PVH {
                    // QEMU takes an address of 32 bits, in 4 bytes or in 8.
                    let entry = note.desc().first_chunk().copied().map(u32::from_le_bytes);
                    found.entry = entry.map(u64::from);
                }
                if kind == (&NOTE_NAME[..], NOTE_TYPE) {
                    let protocol = note.desc().try_into().map(u32::from_le_bytes);
                    found.protocol = protocol.ok();
                }
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use tare_wire::image::NOTE;

    use super::*;
    use crate::measured::MeasuredFile;

    #[track_caller]
    fn is_refused(bytes: &[u8], why: &str) {
        let error = check(Path::new("/my/image"), bytes).unwrap_err();
        assert_eq!(error.to_string(), format!("the image /my/image {why}"));
    }

    #[test]
    fn an_image_is_told_from_other_files_by_its_notes() {
        is_refused(b"", "is not an ELF file for x86-64");
        is_refused(b"\x7fELF and nothing else", "is not an ELF file for x86-64");
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        is_refused(
            &own,
            "can't be booted: it has no PVH note that says where it begins",
        );
        let Ok(hello) = MeasuredFile::image("hello").read() else {
            return tare_testkit::skip("images", "they are not built");
        };
        is_refused(
            &hello,
            "does not say that it prints records: it has no note of tare",
        );
        let mut bench = MeasuredFile::image("bench").read().unwrap();
        check(Path::new("bench"), &bench).unwrap();
        let note = NOTE.map(u32::to_le_bytes).concat();
        let at = bench.windows(note.len()).position(|bytes| bytes == note);
        let protocol = at.unwrap() + note.len() - 4;
        bench[protocol..][..4].fill(0xff);
        let why = format!("speaks protocol {}, and this tare {PROTOCOL}", u32::MAX);
        is_refused(&bench, &why);
    }
}
