//! A backtrace from the stack alone.
//!
//! There are no frame pointers: a flag that adds them to the measured code on one side only would
//! change that code. Unwind tables would have to be in the image, with a program to read them. So
//! the stack is scanned: a word is reported if it is the address after a call instruction of the
//! image. No active call is missed. The trace may also contain calls that have returned, whose
//! addresses are still in a part of the stack that a later function reserved and did not write to;
//! readers who know the program recognise them.

use core::ops::Range;

/// The maximum number of addresses: of endless recursion, the innermost.
pub const LIMIT: usize = 24;

/// The length of the longest recognised call instruction, without prefixes.
const LONGEST_CALL: usize = 7;

/// Memory for the scan.
pub trait Source {
    /// Returns the word at an address of the stack.
    fn word(&self, address: u64) -> Option<u64>;
    /// Returns the byte at an address of the code.
    fn code(&self, address: u64) -> Option<u8>;
}

/// Calls `found` with up to [`LIMIT`] return addresses on `stack`, innermost first.
pub fn scan(
    source: &impl Source,
    stack: Range<u64>,
    code: &Range<u64>,
    mut found: impl FnMut(u64),
) {
    stack
        .step_by(size_of::<u64>())
        .map_while(|place| source.word(place))
        .filter(|word| is_behind_call(source, *word, code))
        .take(LIMIT)
        .for_each(&mut found);
}

/// Returns whether the instruction before `address` can be a call.
fn is_behind_call(source: &impl Source, address: u64, code: &Range<u64>) -> bool {
    let Some(start) = address.checked_sub(LONGEST_CALL as u64) else {
        return false;
    };
    if !code.contains(&start) || address > code.end {
        return false;
    }
    let mut before = [0; LONGEST_CALL];
    for (place, byte) in (start..).zip(&mut before) {
        match source.code(place) {
            Some(read) => *byte = read,
            None => return false,
        }
    }
    is_direct(&before, address, code) || is_indirect(&before)
}

/// Returns whether `before` ends with `E8` and a distance to an address in the code.
fn is_direct(before: &[u8; LONGEST_CALL], address: u64, code: &Range<u64>) -> bool {
    let [_, _, 0xe8, a, b, c, d] = *before else {
        return false;
    };
    let distance = i32::from_le_bytes([a, b, c, d]);
    code.contains(&address.wrapping_add_signed(distance.into()))
}

/// Returns whether `before` ends with `FF /2`: a call through a register or memory.
fn is_indirect(before: &[u8; LONGEST_CALL]) -> bool {
    (0..LONGEST_CALL).any(|start| match before.get(start..) {
        Some(call @ [0xff, modrm, ..]) => {
            modrm >> 3 & 7 == 2 && indirect_length(call) == call.len()
        }
        _ => false,
    })
}

/// Returns the length of `FF` with the ModRM byte that follows (Intel SDM, volume 2, table 2-2), or
/// 0 if it is truncated.
fn indirect_length(call: &[u8]) -> usize {
    let [_, modrm, rest @ ..] = call else {
        return 0;
    };
    match (modrm >> 6, modrm & 7, rest.first()) {
        (0, 5, _) => 6,
        (0, 4, Some(scale)) if scale & 7 == 5 => 7,
        (0, 4, _) => 3,
        (0, ..) | (3, ..) => 2,
        (1, register, _) => 3 + usize::from(register == 4),
        (_, register, _) => 6 + usize::from(register == 4),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    const CODE: u64 = 0x10_0000;
    const STACK: u64 = 0x20_0000;

    struct Fake {
        code: Vec<u8>,
        stack: Vec<u64>,
    }

    impl Source for Fake {
        fn word(&self, address: u64) -> Option<u64> {
            self.stack.get((address - STACK) as usize / 8).copied()
        }
        fn code(&self, address: u64) -> Option<u8> {
            self.code.get((address - CODE) as usize).copied()
        }
    }

    impl Fake {
        fn found(&self) -> Vec<u64> {
            let mut found = Vec::new();
            let code = CODE..CODE + self.code.len() as u64;
            let stack = STACK..STACK + 8 * self.stack.len() as u64 + 64;
            scan(self, stack, &code, |address| found.push(address));
            found
        }
    }

    /// Returns whether the address after `call`, at the end of some code, is recognised as a
    /// call's.
    fn is_found(call: &[u8]) -> bool {
        let mut code = std::vec![0x90; 64 - call.len()];
        code.extend(call);
        let address = CODE + code.len() as u64;
        let fake = Fake {
            code,
            stack: std::vec![address],
        };
        fake.found() == [address]
    }

    #[test]
    fn every_form_of_a_call_is_recognised() {
        for call in [
            &[0xe8, 0xf0, 0xff, 0xff, 0xff][..],         // call back
            &[0xff, 0xd0],                               // call rax
            &[0x41, 0xff, 0xd7],                         // call r15
            &[0xff, 0x10],                               // call [rax]
            &[0xff, 0x50, 0x18],                         // call [rax + 24]
            &[0xff, 0x54, 0x24, 0x08],                   // call [rsp + 8]
            &[0xff, 0x14, 0x24],                         // call [rsp]
            &[0xff, 0x15, 0x00, 0x10, 0x00, 0x00],       // call [rip + 0x1000]
            &[0xff, 0x90, 0x00, 0x01, 0x00, 0x00],       // call [rax + 256]
            &[0xff, 0x94, 0x24, 0x00, 0x01, 0x00, 0x00], // call [rsp + 256]
            &[0xff, 0x14, 0xc5, 0x00, 0x01, 0x10, 0x00], // call [8 * rax + 0x100100]
        ] {
            assert!(is_found(call), "{call:x?}");
        }
    }

    #[test]
    fn what_follows_no_call_is_not_reported() {
        for code in [
            &[0x90, 0x90][..],
            &[0xe8, 0x00, 0x00, 0x00, 0x7f], // leads out of the code
            &[0xff, 0xe0],                   // jmp rax
            &[0xff, 0x50],                   // cut short
        ] {
            assert!(!is_found(code), "{code:x?}");
        }
    }

    #[test]
    fn data_and_addresses_elsewhere_are_skipped_and_order_is_kept() {
        let mut code = std::vec![0x90; 64];
        code[20..22].copy_from_slice(&[0xff, 0xd0]);
        code[40..42].copy_from_slice(&[0xff, 0xd0]);
        let fake = Fake {
            code,
            stack: std::vec![0, CODE + 42, u64::MAX, 7, STACK, CODE, CODE + 22, CODE + 65],
        };
        assert_eq!(fake.found(), [CODE + 42, CODE + 22]);
    }

    #[test]
    fn endless_recursion_is_cut() {
        let mut code = std::vec![0x90; 64];
        code[20..22].copy_from_slice(&[0xff, 0xd0]);
        let fake = Fake {
            code,
            stack: std::vec![CODE + 22; 1_000],
        };
        assert_eq!(fake.found().len(), LIMIT);
    }
}
