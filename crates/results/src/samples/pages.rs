//! The sizes that the pages of a column declare.
//!
//! A page is decompressed into as much memory as its head says, and 2 GiB of zeros are 64 KiB in a
//! file. The size in the metadata of the column does not bind the heads, so these are added up
//! before anything is decompressed. They are structs in Thrift's compact protocol, each followed by
//! its page.

use tare_wire::trace::unzigzag;

/// Returns how many bytes the pages in the bytes of a column have, not compressed; `None` if they
/// are no pages.
pub(super) fn size(mut bytes: &[u8]) -> Option<u64> {
    let mut sum = 0_u64;
    while !bytes.is_empty() {
        let (size, stored) = head(&mut bytes)?;
        sum = sum.saturating_add(size);
        take(&mut bytes, stored)?;
    }
    Some(sum)
}

/// Reads the head of a page: its size, and as how many bytes it is stored.
fn head(bytes: &mut &[u8]) -> Option<(u64, u64)> {
    const SIZE: i64 = 2;
    const STORED: i64 = 3;
    let (mut size, mut stored) = (None, None);
    let mut field = 0;
    while let Some(kind) = next(bytes, &mut field)? {
        match field {
            SIZE => size = Some(u64::try_from(unzigzag(varint(bytes)?)).ok()?),
            STORED => stored = Some(u64::try_from(unzigzag(varint(bytes)?)).ok()?),
            _ => skip(bytes, kind, 8)?,
        }
    }
    size.zip(stored)
}

/// Reads the number and the kind of the next field of a struct; no kind at its end.
fn next(bytes: &mut &[u8], field: &mut i64) -> Option<Option<u8>> {
    let byte = *take(bytes, 1)?.first()?;
    if byte == 0 {
        return Some(None);
    }
    *field = match byte >> 4 {
        0 => unzigzag(varint(bytes)?),
        step => field.checked_add(step.into())?,
    };
    Some(Some(byte & 15))
}

fn skip(bytes: &mut &[u8], kind: u8, depth: u8) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    match kind {
        // A truth is in its kind.
        1 | 2 => {}
        3 => drop(take(bytes, 1)?),
        4..=6 => drop(varint(bytes)?),
        7 => drop(take(bytes, 8)?),
        8 => {
            let length = varint(bytes)?;
            take(bytes, length)?;
        }
        12 => {
            let mut field = 0;
            while let Some(kind) = next(bytes, &mut field)? {
                skip(bytes, kind, depth)?;
            }
        }
        // Heads of pages have no lists.
        _ => return None,
    }
    Some(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *take(bytes, 1)?.first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heads_decide() {
        // Type 0; 1 GiB stored in 2 bytes; a struct with a number and a text; the end. Then the
        // page.
        let page = [
            0x15, 0, 0x15, 0x80, 0x80, 0x80, 0x80, 0x08, 0x15, 4, 0x2c, 0x15, 2, 0x18, 1, b'x', 0,
            0, 7, 7,
        ];
        assert_eq!(size(&page), Some(1 << 30));
        assert_eq!(size(&page.repeat(3)), Some(3 << 30));
        assert_eq!(size(&[]), Some(0));
        for cut in 1..page.len() {
            assert_eq!(size(&page[..cut]), None, "{cut}");
        }
        assert_eq!(size(&[0xff; 40]), None);
    }
}
