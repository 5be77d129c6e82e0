//! The floor under every start: a guest that writes one byte to its serial line, and ends.
//!
//! It has no page tables, no stack and no library. The time from QEMU's start to that byte is
//! QEMU's and the firmware's; whatever `hello` takes longer is ours. `tare-acceptance boot`
//! measures the two in alternation.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

core::arch::global_asm!(
    // The PVH boot protocol: note 18 of Xen names the 32-bit entry point.
    ".section .note.pvh, \"a\", @note",
    ".balign 4",
    ".long 4, 8, 18",
    ".asciz \"Xen\"",
    ".quad pvh_entry",
    ".section .text.entry, \"ax\"",
    ".code32",
    ".global pvh_entry",
    "pvh_entry:",
    // The byte, a newline, to COM1: the host's line is complete.
    "mov dx, 0x3f8",
    "mov al, 10",
    "out dx, al",
    // The value that an image writes to isa-debug-exit when it is done.
    "mov eax, 16",
    "out 0xf4, eax",
    "2: hlt",
    "jmp 2b",
    ".code64",
);

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
