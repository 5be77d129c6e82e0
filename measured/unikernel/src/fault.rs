//! The report of a panic or fault. The machine then ends with [`Status::Crashed`].
//!
//! ```text
//! unikernel: fault: #PF page fault: a stack overflow
//! unikernel: cpu 0x… rip 0x… rsp 0x… rflags 0x… error 0x… address 0x…
//! unikernel: at 0x0000000000101234
//! unikernel: backtrace 0x0000000000100abc
//! ```
//!
//! or `unikernel: panic at file:line:column: message` and the backtrace. `at` gives the address of
//! the faulting instruction; each `backtrace` a return address, innermost first (see
//! [`crate::backtrace`]): the call is the instruction that ends there, so symbols are looked up for
//! the address minus one, with the unstripped image.

use core::arch::asm;
use core::fmt::Write;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::backtrace::{Source, scan};
use crate::console::Console;
use crate::cpu;
use crate::exit::{Status, exit};
use crate::local::{Local, local};
use crate::memory;
use crate::page_fault::{Layout, describe};

/// The stack frame made by the stub of an exception.
#[repr(C)]
pub(crate) struct Frame {
    registers: [u64; 15],
    vector: u64,
    error: u64,
    rip: u64,
    cs: u64,
    rflags: u64,
    rsp: u64,
    ss: u64,
}

/// The names of the exceptions (Intel SDM, volume 3, table 7-1).
const NAMES: [&str; 22] = [
    "#DE divide error",
    "#DB debug",
    "NMI",
    "#BP breakpoint",
    "#OF overflow",
    "#BR bound range",
    "#UD invalid opcode",
    "#NM no floating-point unit",
    "#DF double fault",
    "coprocessor overrun",
    "#TS invalid task state segment",
    "#NP segment not present",
    "#SS stack segment",
    "#GP general protection",
    "#PF page fault",
    "15",
    "#MF floating point",
    "#AC alignment check",
    "#MC machine check",
    "#XM vector floating point",
    "#VE virtualisation",
    "#CP control protection",
];
const PAGE_FAULT: u64 = 14;

/// Reports an exception. Called by its stub, on a separate stack.
pub(crate) extern "C" fn faulted(frame: &Frame) -> ! {
    let local = begin();
    let name = NAMES.get(frame.vector as usize).unwrap_or(&"reserved");
    Console.texts(&["unikernel: fault: ", name]);
    let address = faulting_address();
    if frame.vector == PAGE_FAULT {
        let layout = Layout {
            code: memory::image_code(),
            constants: memory::image_constants(),
            guards: local.guards(),
        };
        Console.texts(&[": ", describe(frame.error, address, &layout)]);
    }
    Console.texts(&["\nunikernel:"]);
    for (name, value) in [
        (" cpu ", local.number().into()),
        (" rip ", frame.rip),
        (" rsp ", frame.rsp),
        (" rflags ", frame.rflags),
        (" error ", frame.error),
        (" address ", address),
    ] {
        Console.texts(&[name]);
        Console.address(value);
    }
    Console.texts(&["\n"]);
    line("at", frame.rip);
    trace(local, frame.rsp);
    exit(Status::Crashed)
}

/// Reports a panic. [`crate::image!`] makes it the image's panic handler.
pub fn panicked(info: &PanicInfo<'_>) -> ! {
    let local = begin();
    Console.texts(&["unikernel: panic"]);
    if let Some(location) = info.location() {
        Console.texts(&[" at ", location.file(), ":"]);
        Console.number(location.line());
        Console.texts(&[":"]);
        Console.number(location.column());
    }
    Console.texts(&[": "]);
    // Formatting is linked only if some panic of the image needs it. Writing does not fail.
    let _ = match info.message().as_str() {
        Some(text) => Console.write_str(text),
        None => write!(Console, "{}", info.message()),
    };
    Console.texts(&["\n"]);
    let rsp: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) rsp, options(nomem, nostack, preserves_flags)) };
    trace(local, rsp);
    exit(Status::Crashed)
}

/// The number of the reporting CPU, plus one; 0 if there is none.
static REPORTING: AtomicU32 = AtomicU32::new(0);

/// Lets one CPU report: a second one stops, and a failure while reporting ends the machine.
fn begin() -> &'static Local {
    cpu::disable_interrupts();
    let local = local();
    let me = local.number() + 1;
    match REPORTING.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => local,
        Err(first) if first == me => {
            Console.texts(&["\nunikernel: fault: another one while this one was reported\n"]);
            exit(Status::Crashed)
        }
        Err(_) => cpu::stop(),
    }
}

fn faulting_address() -> u64 {
    let address;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nomem, nostack, preserves_flags)) };
    address
}

fn line(what: &str, address: u64) {
    Console.texts(&["unikernel: ", what, " "]);
    Console.address(address);
    Console.texts(&["\n"]);
}

fn trace(local: &Local, rsp: u64) {
    let code = memory::image_code();
    scan(&Image, local.stack_above(rsp), &code, |address| {
        line("backtrace", address);
    });
}

/// The running image, for the scan, which only reads stack and code addresses.
struct Image;

impl Source for Image {
    fn word(&self, address: u64) -> Option<u64> {
        // SAFETY: an aligned word on a stack of this CPU, which is mapped.
        Some(unsafe { core::ptr::read_volatile(address as *const u64) })
    }

    fn code(&self, address: u64) -> Option<u8> {
        let is_code = memory::image_code().contains(&address);
        // SAFETY: a byte of the image's code, which is readable.
        is_code.then(|| unsafe { core::ptr::read_volatile(address as *const u8) })
    }
}
