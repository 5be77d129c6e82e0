//! Descriptions of page faults.

use core::ops::Range;

/// The memory layout, as far as it explains an address.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The image's code: may be read and executed.
    pub code: Range<u64>,
    /// The image's constants: may be read.
    pub constants: Range<u64>,
    /// The guard pages of the CPU that faulted: not mapped.
    pub guards: [Range<u64>; 3],
}

/// Describes the access: error code and address are those from the CPU (Intel SDM, volume 3,
/// "Interrupt 14").
pub fn describe(error: u64, address: u64, layout: &Layout) -> &'static str {
    const PRESENT: u64 = 1;
    const WRITE: u64 = 1 << 1;
    const RESERVED: u64 = 1 << 3;
    const FETCH: u64 = 1 << 4;
    if error & RESERVED != 0 {
        return "a page table is damaged";
    }
    if error & FETCH != 0 {
        return match error & PRESENT {
            0 => "a jump to where nothing is mapped",
            _ => "execution of data",
        };
    }
    if error & PRESENT != 0 {
        return if layout.code.contains(&address) {
            "a write to code"
        } else if layout.constants.contains(&address) {
            "a write to a constant"
        } else {
            "an access that the page does not allow"
        };
    }
    if address < 4096 {
        "an access through a null pointer"
    } else if layout.guards.iter().any(|guard| guard.contains(&address)) {
        "a stack overflow"
    } else if error & WRITE != 0 {
        "a write to where nothing is mapped"
    } else {
        "a read from where nothing is mapped"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_fault_has_its_words() {
        let layout = Layout {
            code: 0x10_0000..0x10_3000,
            constants: 0x10_3000..0x10_4000,
            guards: [
                0x20_0000..0x20_1000,
                0x21_0000..0x21_1000,
                0x22_0000..0x22_1000,
            ],
        };
        for (error, address, words) in [
            (0, 0, "an access through a null pointer"),
            (2, 4_095, "an access through a null pointer"),
            (2, 0x20_0ff8, "a stack overflow"),
            (0, 0x22_0000, "a stack overflow"),
            (3, 0x10_0000, "a write to code"),
            (3, 0x10_3000, "a write to a constant"),
            (0x11, 0x15_0000, "execution of data"),
            (0x10, 0, "a jump to where nothing is mapped"),
            (2, 0x1_0000_0000, "a write to where nothing is mapped"),
            (0, 0x1_0000_0000, "a read from where nothing is mapped"),
            (9, 0x15_0000, "a page table is damaged"),
        ] {
            assert_eq!(describe(error, address, &layout), words);
        }
    }
}
