//! `call`: calls a procedure with none to seven integer arguments.
//!
//! One pass is [`CALLS`] calls, unrolled. The caller passes every argument according to the System
//! V calling convention, the first six in registers and the seventh on the stack; the procedure
//! sets up a frame, adds its arguments, and returns. It is part of the symbol, so that no outside
//! code is called.
//!
//! # When the method lies
//!
//! On a superscalar CPU a predicted call costs hardly more than its instructions: return addresses
//! come from the return stack. A mispredicted call costs tens of cycles more.

use core::arch::asm;

use crate::timing::bare_rdtsc;

/// The number of calls in one pass.
pub const CALLS: u64 = 16;
/// The greatest number of arguments.
pub const MOST_ARGUMENTS: usize = 7;

/// The measured symbols, by the number of arguments.
pub const SYMBOLS: [&str; MOST_ARGUMENTS + 1] = [
    "tare_call_0",
    "tare_call_1",
    "tare_call_2",
    "tare_call_3",
    "tare_call_4",
    "tare_call_5",
    "tare_call_6",
    "tare_call_7",
];

/// The measured functions, by the number of arguments: each takes the number of passes, and returns
/// their TSC ticks.
pub const FUNCTIONS: [extern "C" fn(u64) -> u64; MOST_ARGUMENTS + 1] = [
    tare_call_0,
    tare_call_1,
    tare_call_2,
    tare_call_3,
    tare_call_4,
    tare_call_5,
    tare_call_6,
    tare_call_7,
];

macro_rules! calls {
    ($name:ident, $count:literal, [$($put:literal),*], [$($take:literal),*], [$($drop:literal),*]) => {
        #[doc = concat!("Calls a procedure with ", $count, " arguments ", "`passes` × [`CALLS`] times.")]
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub extern "C" fn $name(passes: u64) -> u64 {
            let start = bare_rdtsc();
            // SAFETY: the stack is left as it was found. Zero passes are skipped.
            unsafe {
                asm!(
                    "test {left}, {left}",
                    "jz 4f",
                    "2:",
                    ".rept 16",
                    $($put,)*
                    "call 3f",
                    $($drop,)*
                    ".endr",
                    "dec {left}",
                    "jnz 2b",
                    "jmp 4f",
                    "3:",
                    "push rbp",
                    "mov rbp, rsp",
                    "xor eax, eax",
                    $($take,)*
                    "pop rbp",
                    "ret",
                    "4:",
                    left = inout(reg) passes => _,
                    out("rax") _, out("rdi") _, out("rsi") _, out("rdx") _, out("rcx") _, out("r8") _, out("r9") _,
                );
            }
            bare_rdtsc().wrapping_sub(start)
        }
    };
}

calls!(tare_call_0, "no", [], [], []);
calls!(tare_call_1, "1", ["mov edi, 1"], ["add eax, edi"], []);
calls!(
    tare_call_2,
    "2",
    ["mov edi, 1", "mov esi, 2"],
    ["add eax, edi", "add eax, esi"],
    []
);
calls!(
    tare_call_3,
    "3",
    ["mov edi, 1", "mov esi, 2", "mov edx, 3"],
    ["add eax, edi", "add eax, esi", "add eax, edx"],
    []
);
calls!(
    tare_call_4,
    "4",
    ["mov edi, 1", "mov esi, 2", "mov edx, 3", "mov ecx, 4"],
    [
        "add eax, edi",
        "add eax, esi",
        "add eax, edx",
        "add eax, ecx"
    ],
    []
);
calls!(
    tare_call_5,
    "5",
    [
        "mov edi, 1",
        "mov esi, 2",
        "mov edx, 3",
        "mov ecx, 4",
        "mov r8d, 5"
    ],
    [
        "add eax, edi",
        "add eax, esi",
        "add eax, edx",
        "add eax, ecx",
        "add eax, r8d"
    ],
    []
);
calls!(
    tare_call_6,
    "6",
    [
        "mov edi, 1",
        "mov esi, 2",
        "mov edx, 3",
        "mov ecx, 4",
        "mov r8d, 5",
        "mov r9d, 6"
    ],
    [
        "add eax, edi",
        "add eax, esi",
        "add eax, edx",
        "add eax, ecx",
        "add eax, r8d",
        "add eax, r9d"
    ],
    []
);
calls!(
    tare_call_7,
    "7",
    [
        "mov edi, 1",
        "mov esi, 2",
        "mov edx, 3",
        "mov ecx, 4",
        "mov r8d, 5",
        "mov r9d, 6",
        "push 7"
    ],
    [
        "add eax, edi",
        "add eax, esi",
        "add eax, edx",
        "add eax, ecx",
        "add eax, r8d",
        "add eax, r9d",
        "add eax, [rbp + 16]"
    ],
    ["add rsp, 8"]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_returns_and_leaves_the_stack_as_it_was() {
        for call in FUNCTIONS {
            for passes in [0, 1, 1_000] {
                let least = passes * CALLS / 4;
                assert!(call(passes) >= least, "{passes} passes");
            }
        }
    }
}
