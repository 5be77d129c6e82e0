//! Lists of small tuples, packed into bytes, so that a record can carry them without allocation.
//!
//! A list is a sequence of LEB128 integers. The record that carries it defines their meaning: how
//! many form a row, and which are differences from the row before.

use serde::{Deserialize, Serialize};

/// Maximum number of bytes in one record.
pub const CAPACITY: usize = 2_700;

/// Maximum number of bytes of one integer.
const LONGEST: usize = 10;

/// A packed list in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packed<'a>(#[serde(borrow)] pub &'a [u8]);

impl<'a> Packed<'a> {
    /// Iterates over rows of `N` integers.
    ///
    /// The iterator yields [`Malformed`] once and ends if the bytes are not whole rows.
    pub fn rows<const N: usize>(self) -> Rows<'a, N> {
        Rows { rest: self.0 }
    }
}

/// The error for bytes that are not whole rows of 64-bit integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// An iterator over the rows of a packed list.
#[derive(Clone, Debug)]
pub struct Rows<'a, const N: usize> {
    rest: &'a [u8],
}

impl<const N: usize> Iterator for Rows<'_, N> {
    type Item = Result<[u64; N], Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let mut row = [0; N];
        for value in &mut row {
            match take(&mut self.rest) {
                Some(taken) => *value = taken,
                None => {
                    self.rest = &[];
                    return Some(Err(Malformed));
                }
            }
        }
        Some(Ok(row))
    }
}

/// A buffer that collects rows until a record is full.
#[derive(Clone, Debug)]
pub struct Packer {
    bytes: [u8; CAPACITY],
    used: usize,
}

impl Default for Packer {
    fn default() -> Self {
        Self {
            bytes: [0; CAPACITY],
            used: 0,
        }
    }
}

impl Packer {
    /// Appends one row. Returns false if there is no room.
    pub fn push<const N: usize>(&mut self, row: [u64; N]) -> bool {
        if self.used + N * LONGEST > CAPACITY {
            return false;
        }
        for value in row {
            self.put(value);
        }
        true
    }

    /// Returns the collected rows.
    pub fn packed(&self) -> Packed<'_> {
        Packed(&self.bytes[..self.used])
    }

    /// Returns whether nothing was collected.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    fn put(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes[self.used] = (value as u8) | 0x80;
            self.used += 1;
            value >>= 7;
        }
        self.bytes[self.used] = value as u8;
        self.used += 1;
    }
}

/// Packs rows into as few lists as possible, and passes each to `put`. `pack` packs a row with the
/// one before it in the same list.
///
/// # Errors
///
/// Returns the first error of `put`.
pub fn in_lists<T: Copy, const N: usize, E>(
    rows: impl IntoIterator<Item = T>,
    pack: impl Fn(T, Option<T>) -> [u64; N],
    mut put: impl FnMut(Packed<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut packer = Packer::default();
    let mut before = None;
    for row in rows {
        if !packer.push(pack(row, before)) {
            put(packer.packed())?;
            packer.clear();
            let fits = packer.push(pack(row, None));
            debug_assert!(fits, "an empty list holds any row");
        }
        before = Some(row);
    }
    match packer.is_empty() {
        true => Ok(()),
        false => put(packer.packed()),
    }
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut value: u64 = 0;
    for place in 0..LONGEST {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        let bits = u64::from(byte & 0x7f);
        if place == LONGEST - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * place);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_come_back_as_they_went_in(rows in prop::collection::vec(any::<[u64; 3]>(), 0..90)) {
            let mut packer = Packer::default();
            for row in &rows {
                prop_assert!(packer.push(*row));
            }
            let back: Result<Vec<_>, _> = packer.packed().rows::<3>().collect();
            prop_assert_eq!(back, Ok(rows));
        }

        #[test]
        fn any_bytes_end_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Packed(&bytes).rows::<2>().count();
        }
    }

    #[test]
    fn a_full_packer_refuses_and_keeps_what_it_has() {
        let mut packer = Packer::default();
        let mut pushed = 0;
        while packer.push([u64::MAX, u64::MAX]) {
            pushed += 1;
        }
        assert_eq!(packer.packed().rows::<2>().count(), pushed);
        assert!(pushed * 20 > CAPACITY - 20);
    }

    #[test]
    fn half_a_row_is_malformed() {
        let rows: Vec<_> = Packed(&[1, 2, 3]).rows::<2>().collect();
        assert_eq!(rows, [Ok([1, 2]), Err(Malformed)]);
    }
}
