//! What is wrong with an ELF file that is to be booted, as far as its headers show it.

use object::Endianness;
use object::elf::{FileHeader32, FileHeader64, PF_W, PF_X, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};

/// A part of a file that is loaded into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// Where it ends in the file, in bytes.
    file_end: u64,
    /// Its physical address, and its size there, in bytes.
    address: u64,
    size: u64,
    flags: u32,
}

/// Returns the part of a file whose headers `bytes` begin with that the file lacks; None if it has
/// all, or is not an ELF file.
pub(crate) fn cut(bytes: &[u8], file_bytes: u64) -> Option<String> {
    let segments = segments(bytes)?;
    let end = segments.iter().map(|segment| segment.file_end).max()?;
    (end > file_bytes).then(|| {
        format!("is cut short: it has {file_bytes} bytes, and its segments end at byte {end}")
    })
}

/// Returns why the unikernel's start-up code would refuse an image that begins at a physical
/// address, or would never run; None if neither.
pub(crate) fn fault(bytes: &[u8], entry: u64) -> Option<String> {
    if let Some(cut) = cut(bytes, bytes.len() as u64) {
        return Some(cut);
    }
    let segments = segments(bytes)?;
    let is_both = |segment: &Segment| segment.flags & PF_W.0 != 0 && segment.flags & PF_X.0 != 0;
    if let Some(both) = segments.iter().find(|segment| is_both(segment)) {
        let address = both.address;
        return Some(format!(
            "has a segment that is writable and executable, at {address:#x}"
        ));
    }
    let holds = |segment: &&Segment| {
        segment.flags & PF_X.0 != 0 && entry.wrapping_sub(segment.address) < segment.size
    };
    let is_within = segments.iter().any(|segment| holds(&segment));
    (!is_within).then(|| format!("begins at {entry:#x}, where it has no code"))
}

fn segments(bytes: &[u8]) -> Option<Vec<Segment>> {
    of::<FileHeader64<Endianness>>(bytes).or_else(|| of::<FileHeader32<Endianness>>(bytes))
}

fn of<E: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<Vec<Segment>> {
    let header = E::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let all = header.program_headers(endian, bytes).ok()?;
    let loaded = all.iter().filter(|one| one.p_type(endian) == PT_LOAD);
    let segments = loaded.map(|one| {
        let (at, bytes): (u64, u64) = (one.p_offset(endian).into(), one.p_filesz(endian).into());
        Segment {
            file_end: at.saturating_add(bytes),
            address: one.p_paddr(endian).into(),
            size: one.p_memsz(endian).into(),
            flags: one.p_flags(endian).0,
        }
    });
    Some(segments.collect())
}
