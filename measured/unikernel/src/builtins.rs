//! Functions that the compiler calls implicitly: memory functions, and the symbols for unwinding,
//! which never happens (`panic = "abort"`).

use core::arch::global_asm;

#[cfg(not(test))]
global_asm!(
    ".macro named name",
    ".global \\name",
    "\\name:",
    ".endm",
    include_str!("builtins.s"),
    "named _Unwind_Resume",
    "named rust_eh_personality",
    "ud2",
    ".text",
    ".purgem named",
);

// The host's tests have a C library, so these functions get other names there.
#[cfg(test)]
global_asm!(
    ".macro named name",
    ".global tested_\\name",
    "tested_\\name:",
    ".endm",
    include_str!("builtins.s"),
    ".text",
    ".purgem named",
);

#[cfg(test)]
mod tests {
    extern crate std;

    use core::ffi::c_int;
    use std::vec::Vec;

    unsafe extern "C" {
        fn tested_memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
        fn tested_memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
        fn tested_memset(to: *mut u8, byte: c_int, bytes: usize) -> *mut u8;
        fn tested_memcmp(a: *const u8, b: *const u8, bytes: usize) -> c_int;
        fn tested_bcmp(a: *const u8, b: *const u8, bytes: usize) -> c_int;
    }

    fn numbered() -> Vec<u8> {
        (0..64).collect()
    }

    #[test]
    fn copies_exactly_the_bytes_asked_for_at_any_alignment() {
        let from = numbered();
        for start in 0..9 {
            for bytes in 0..40 {
                let mut to = [0xff_u8; 64];
                // SAFETY: both are longer than start + bytes.
                let returned = unsafe {
                    tested_memcpy(
                        to.as_mut_ptr().add(start),
                        from.as_ptr().add(8 - start % 8),
                        bytes,
                    )
                };
                assert_eq!(returned, to[start..].as_mut_ptr());
                for (k, byte) in to.iter().enumerate() {
                    let copied = (start..start + bytes).contains(&k);
                    let wanted = if copied {
                        (k - start + 8 - start % 8) as u8
                    } else {
                        0xff
                    };
                    assert_eq!(*byte, wanted);
                }
            }
        }
    }

    #[test]
    fn moves_overlapping_ranges_in_both_directions() {
        for from in 0..20 {
            for to in 0..20 {
                for bytes in 0..20 {
                    let mut ours = numbered();
                    let mut std = numbered();
                    std.copy_within(from..from + bytes, to);
                    let start = ours.as_mut_ptr();
                    // SAFETY: both ranges are inside of the vector.
                    unsafe { tested_memmove(start.add(to), start.add(from), bytes) };
                    assert_eq!(ours, std, "{from} {to} {bytes}");
                }
            }
        }
    }

    #[test]
    fn sets_the_low_byte_of_what_it_is_given() {
        for bytes in 0..40 {
            let mut to = numbered();
            // SAFETY: the vector is longer than 3 + bytes.
            unsafe { tested_memset(to.as_mut_ptr().add(3), -86, bytes) };
            assert!(to[3..3 + bytes].iter().all(|byte| *byte == 0xaa));
            assert_eq!((to[2], to[3 + bytes]), (2, 3 + bytes as u8));
        }
    }

    #[test]
    fn compares_bytes_as_unsigned() {
        let compare = |a: &[u8], b: &[u8]| {
            // SAFETY: both are as long as the shorter one.
            unsafe { tested_memcmp(a.as_ptr(), b.as_ptr(), a.len().min(b.len())) }
        };
        assert_eq!(compare(b"", b""), 0);
        assert_eq!(compare(b"same", b"same"), 0);
        assert!(compare(b"\x80", b"\x7f") > 0);
        assert!(compare(b"ab\x00c", b"ab\x01a") < 0);
        // SAFETY: one byte each.
        assert_ne!(unsafe { tested_bcmp(b"a".as_ptr(), b"b".as_ptr(), 1) }, 0);
    }
}
