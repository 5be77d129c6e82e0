//! The choice of the physical memory that an image may use.

/// A piece of the physical address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
    /// Kind of memory.
    pub kind: Kind,
}

/// A kind of memory region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Free memory.
    Free,
    /// Anything else: firmware tables, devices, broken memory.
    Reserved,
}

/// The end of the mapped addresses.
const MAPPED_END: u64 = 0xe000_0000;

/// The size of a page.
const PAGE: u64 = 4096;

/// Returns the largest piece of free memory, in whole pages, that is after `image_end` and mapped.
/// The piece is empty if there is none.
///
/// If regions overlap, reserved ones take precedence.
pub fn usable(regions: impl Iterator<Item = Region> + Clone, image_end: u64) -> (u64, u64) {
    let mut best = (image_end, image_end);
    // A piece begins at the start of a free region or the end of a reserved one, and ends where
    // either one does.
    for region in regions.clone() {
        let start = match region.kind {
            Kind::Free => region.start,
            Kind::Reserved => region.end,
        };
        let start = start.max(image_end).min(MAPPED_END).next_multiple_of(PAGE);
        let (mut free_end, mut taken_start) = (start, MAPPED_END);
        for other in regions.clone() {
            match other.kind {
                Kind::Free if other.start <= start => free_end = free_end.max(other.end),
                Kind::Reserved if other.end > start => {
                    taken_start = taken_start.min(other.start.max(start));
                }
                _ => {}
            }
        }
        let end = free_end.min(taken_start) & !(PAGE - 1);
        if end - start > best.1 - best.0 {
            best = (start, end);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn free(start: u64, end: u64) -> Region {
        Region {
            start,
            end,
            kind: Kind::Free,
        }
    }

    fn taken(start: u64, end: u64) -> Region {
        Region {
            start,
            end,
            kind: Kind::Reserved,
        }
    }

    #[test]
    fn the_rest_behind_the_image_is_used() {
        let map = [free(0, 0x9_fc00), free(MIB, 128 * MIB - 100)];
        let image_end = MIB + 5_000;
        assert_eq!(
            usable(map.into_iter(), image_end),
            (MIB + 8_192, 128 * MIB - 4_096)
        );
    }

    #[test]
    fn the_largest_piece_below_the_device_registers_is_used() {
        let map = [
            free(MIB, 8 * MIB),
            free(16 * MIB, 32 * MIB),
            free(4_096 * MIB, 8_192 * MIB),
        ];
        assert_eq!(usable(map.into_iter(), 2 * MIB), (16 * MIB, 32 * MIB));
        let map = [free(MIB, 8_192 * MIB)];
        assert_eq!(usable(map.into_iter(), 2 * MIB).1, MAPPED_END);
    }

    #[test]
    fn what_is_taken_inside_of_what_is_free_wins() {
        let map = [
            free(MIB, 64 * MIB),
            taken(10 * MIB, 12 * MIB),
            taken(11 * MIB, 20 * MIB),
        ];
        assert_eq!(usable(map.into_iter(), 2 * MIB), (20 * MIB, 64 * MIB));
        let map = [free(MIB, 64 * MIB), taken(40 * MIB + 1, 80 * MIB)];
        assert_eq!(usable(map.into_iter(), 2 * MIB), (2 * MIB, 40 * MIB));
    }

    #[test]
    fn without_free_memory_the_piece_is_empty() {
        let (start, end) = usable([taken(0, 64 * MIB)].into_iter(), 2 * MIB);
        assert_eq!(start, end);
        let (start, end) = usable([free(MIB, 2 * MIB)].into_iter(), 2 * MIB);
        assert_eq!(start, end);
        let (start, end) = usable([free(u64::MAX, u64::MAX)].into_iter(), 2 * MIB);
        assert_eq!(start, end);
    }
}
