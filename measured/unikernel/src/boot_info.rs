//! The data from a PVH loader: the command line, the memory map, and the position of an archive.
//!
//! The layout is Xen's `hvm_start_info` (xen/include/public/arch-x86/hvm/start_info.h), as filled
//! in by QEMU, qboot and Firecracker. All of it is validated here: the structure is read byte by
//! byte through a function that may reject an address.

use crate::memory_map::{Kind, Region, usable};

/// The first field of every `hvm_start_info`.
const MAGIC: u32 = 0x336e_c578;
/// The length of the structure from version 1 on, in bytes.
const LENGTH: usize = 56;
/// The length of one entry of the memory map, in bytes.
const ENTRY: usize = 24;
/// The maximum number of entries of the memory map.
const ENTRIES: u32 = 128;
/// The length of the address and the size that begin an entry of the list of modules, in bytes.
const MODULE: usize = 16;

/// Access to the physical memory: `bytes(address, count)`, None if unreadable.
pub trait Physical<'a> {
    /// Returns `count` bytes at `address`.
    fn bytes(&self, address: u64, count: usize) -> Option<&'a [u8]>;
}

impl<'a, F: Fn(u64, usize) -> Option<&'a [u8]>> Physical<'a> for F {
    fn bytes(&self, address: u64, count: usize) -> Option<&'a [u8]> {
        self(address, count)
    }
}

/// The loader's information.
#[derive(Clone, Copy, Debug)]
pub struct BootInfo<'a> {
    address: u64,
    info: &'a [u8; LENGTH],
    map: &'a [u8],
}

impl<'a> BootInfo<'a> {
    /// Reads the structure at `address`. Returns None if there is none, or one of version 0, which
    /// has no memory map.
    pub fn read(physical: &impl Physical<'a>, address: u64) -> Option<Self> {
        let info = physical.bytes(address, LENGTH)?.first_chunk()?;
        let (map, entries) = (number64(info, 40), number32(info, 48));
        if number32(info, 0) != MAGIC || number32(info, 4) < 1 || map == 0 {
            return None;
        }
        Some(Self {
            address,
            info,
            map: physical.bytes(map, entries.min(ENTRIES) as usize * ENTRY)?,
        })
    }

    /// Copies the command line to `room`, truncated at the first byte that is not UTF-8. None if it
    /// does not fit.
    pub fn command_line<'r>(
        &self,
        physical: &impl Physical<'a>,
        room: &'r mut [u8],
    ) -> Option<&'r str> {
        let mut length = 0;
        let line = number64(self.info, 24);
        if line != 0 {
            for place in line.. {
                match physical.bytes(place, 1) {
                    Some([byte]) if *byte != 0 => *room.get_mut(length)? = *byte,
                    _ => break,
                }
                length += 1;
            }
        }
        let text = room.get(..length).unwrap_or_default();
        Some(text.utf8_chunks().next().map_or("", |chunk| chunk.valid()))
    }

    /// Returns the address of the first module, QEMU's `-initrd`, and its length in bytes. None if
    /// there is none.
    pub fn module(&self, physical: &impl Physical<'a>) -> Option<(u64, u64)> {
        let (count, list) = (number32(self.info, 12), number64(self.info, 16));
        let module = physical.bytes(list, MODULE).filter(|_| count > 0)?;
        Some((number64(module, 0), number64(module, 8)))
    }

    /// Returns the largest piece of free memory after `image_end` (see [`usable`]) that contains no
    /// data of the loader: neither these structures, which are read later, nor the first module.
    pub fn free_memory(&self, physical: &impl Physical<'a>, image_end: u64) -> (u64, u64) {
        let module = self.module(physical).unwrap_or_default();
        let taken = [
            (self.address, LENGTH as u64),
            (number64(self.info, 40), self.map.len() as u64),
            (number64(self.info, 16), MODULE as u64),
            module,
        ];
        let taken = taken.map(|(start, bytes)| Region {
            start,
            end: start.saturating_add(bytes),
            kind: Kind::Reserved,
        });
        usable(self.regions().chain(taken.iter().copied()), image_end)
    }

    /// Returns the entries of the memory map, unchanged.
    pub fn regions(&self) -> impl Iterator<Item = Region> + Clone + use<'a> {
        self.map.chunks_exact(ENTRY).map(|entry| {
            let start = number64(entry, 0);
            Region {
                start,
                end: start.saturating_add(number64(entry, 8)),
                // As in the E820 map: 1 is free memory.
                kind: match number32(entry, 16) {
                    1 => Kind::Free,
                    _ => Kind::Reserved,
                },
            }
        })
    }
}

/// Returns the number at an offset within bounds; out of bounds it is 0.
fn number32(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Like [`number32`], for 64 bits.
fn number64(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;
    use std::vec::Vec;

    use super::*;

    const INFO: u64 = 0x100;
    const LINE: u64 = 0x200;
    const MAP: u64 = 0x300;
    const MODULES: u64 = 0x400;

    /// A memory of 4 KiB with a start_info like QEMU's.
    fn memory(version: u32, line: &[u8]) -> Vec<u8> {
        let mut memory = vec![0; 0x1000];
        let mut put = |at: u64, bytes: &[u8]| {
            memory[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        };
        put(INFO, &MAGIC.to_le_bytes());
        put(INFO + 4, &version.to_le_bytes());
        put(INFO + 12, &1_u32.to_le_bytes());
        put(INFO + 16, &MODULES.to_le_bytes());
        put(MODULES, &0x800_u64.to_le_bytes());
        put(MODULES + 8, &0x10_u64.to_le_bytes());
        put(INFO + 24, &LINE.to_le_bytes());
        put(INFO + 40, &MAP.to_le_bytes());
        put(INFO + 48, &2_u32.to_le_bytes());
        put(LINE, line);
        put(MAP, &0_u64.to_le_bytes());
        put(MAP + 8, &0x9_fc00_u64.to_le_bytes());
        put(MAP + 16, &1_u32.to_le_bytes());
        put(MAP + 24, &0xf_0000_u64.to_le_bytes());
        put(MAP + 32, &u64::MAX.to_le_bytes());
        put(MAP + 40, &2_u32.to_le_bytes());
        memory
    }

    fn physical<'m>(memory: &'m [u8]) -> impl Fn(u64, usize) -> Option<&'m [u8]> {
        |address, count| memory.get(address as usize..(address as usize).checked_add(count)?)
    }

    #[test]
    fn command_line_and_map_are_read() {
        let memory = memory(1, b"workload=gap repetitions=5\0rubbish");
        let physical = physical(&memory);
        let info = BootInfo::read(&physical, INFO).unwrap();
        let mut room = [0; 64];
        assert_eq!(
            info.command_line(&physical, &mut room),
            Some("workload=gap repetitions=5")
        );
        let regions: Vec<_> = info.regions().collect();
        assert_eq!(
            regions,
            [
                Region {
                    start: 0,
                    end: 0x9_fc00,
                    kind: Kind::Free
                },
                Region {
                    start: 0xf_0000,
                    end: u64::MAX,
                    kind: Kind::Reserved
                },
            ]
        );
    }

    #[test]
    fn a_line_that_is_not_text_is_truncated_and_one_that_does_not_fit_is_rejected() {
        let memory = memory(1, b"workload\xff=gap\0");
        let physical = physical(&memory);
        let info = BootInfo::read(&physical, INFO).unwrap();
        for (room, line) in [(4, None), (12, None), (13, Some("workload"))] {
            assert_eq!(info.command_line(&physical, &mut vec![0; room]), line);
        }
    }

    #[test]
    fn a_module_is_where_the_list_says_if_there_is_one() {
        let mut memory = memory(1, b"\0");
        let module = |memory: &[u8]| {
            let physical = physical(memory);
            BootInfo::read(&physical, INFO).unwrap().module(&physical)
        };
        assert_eq!(module(&memory), Some((0x800, 0x10)));
        memory[INFO as usize + 12] = 0;
        assert_eq!(module(&memory), None);
        memory[INFO as usize + 12] = 1;
        memory[INFO as usize + 23] = 0x80;
        assert_eq!(module(&memory), None);
    }

    #[test]
    fn nothing_of_the_loader_lies_in_the_free_memory() {
        const MIB: u64 = 1 << 20;
        const HIGH: u64 = 40 * MIB;
        const IMAGE_END: u64 = 2 * MIB;
        // Structures moved after the image: the field with the address, and the new address.
        for (pointer, place) in [
            (None, INFO),
            (Some(INFO + 40), MAP),
            (Some(INFO + 16), MODULES),
            (Some(MODULES), 0x800),
        ] {
            let mut memory = memory(1, b"\0");
            memory[INFO as usize + 48] = 1;
            memory[MAP as usize + 8..][..8].copy_from_slice(&(64 * MIB).to_le_bytes());
            if let Some(pointer) = pointer {
                memory[pointer as usize..][..8].copy_from_slice(&(HIGH + place).to_le_bytes());
            }
            let physical =
                |address: u64, count| memory.get((address % HIGH) as usize..)?.get(..count);
            let info = if pointer.is_none() { HIGH + INFO } else { INFO };
            let info = BootInfo::read(&physical, info).unwrap();
            assert_eq!(
                info.free_memory(&physical, IMAGE_END),
                (IMAGE_END, HIGH),
                "{place:#x}"
            );
        }
    }

    #[test]
    fn other_structures_are_rejected() {
        let (good, old) = (memory(1, b"\0"), memory(0, b"\0"));
        assert!(BootInfo::read(&physical(&good), INFO + 4).is_none());
        assert!(BootInfo::read(&physical(&good), 0xff0).is_none());
        assert!(BootInfo::read(&physical(&old), INFO).is_none());
    }
}
