//! The measured code: the functions whose duration `tare` reports.
//!
//! # Why these functions look as they do
//!
//! The same machine code must run as a Linux process and on the unikernel, byte for byte, or a
//! difference between two targets could be a difference between two compilations. A function keeps
//! its bytes from binary to binary only if nothing in it depends on its context, so:
//!
//! * raw pointers instead of slices: a bounds check would call the panic machinery;
//! * no calls out of a measured symbol, and no relocations in it;
//! * every measured symbol is `#[inline(never)]`, `#[unsafe(no_mangle)]` and `extern "C"`;
//! * this crate is compiled at `opt-level = 3`, in one codegen unit and without debug assertions in
//!   every profile, and nothing is optimised across it at link time (`measured/Cargo.toml`).
//!
//! A test checks this without a disassembler: it reads the symbols of [`symbols`] from the linked
//! agent, and checks that they contain no call and no relocation.
//!
//! Measured code is independent of its environment. It does not allocate, makes no system call and
//! writes only to memory that its caller has mapped, touched and, if permitted, locked.
//!
//! # Tour
//!
//! * [`timing`]: time stamps, and the loop that puts two of them around a body;
//! * [`noise`]: the workloads of `noise`, each a file listed in [`noise::WORKLOADS`];
//! * [`call`], [`chase`], [`stream`]: primitives of the processor, likewise;
//! * [`calibration`]: the cost of the stamps and of the loop.
#![no_std]
#![cfg(target_arch = "x86_64")]

pub mod calibration;
pub mod call;
pub mod chase;
pub mod copy;
pub mod gap;
pub mod noise;
pub mod prime;
pub mod stream;
pub mod timing;

/// Returns the name of every measured symbol.
///
/// Tests compare the bytes of these symbols between binaries, and check their content.
pub fn symbols() -> impl Iterator<Item = &'static str> {
    let of_noise = noise::workloads().flat_map(|workload| workload.symbols);
    of_noise.chain(OTHER_SYMBOLS).copied()
}

/// The measured symbols of calibration and primitives.
const OTHER_SYMBOLS: &[&str] = &[
    calibration::EMPTY_FENCED_SYMBOL,
    calibration::EMPTY_PUBLISHED_SYMBOL,
    calibration::UNROLLED_TIMER_SYMBOL,
    calibration::LOOP_SYMBOL,
    calibration::ADDITIONS_SYMBOL,
    call::SYMBOLS[0],
    call::SYMBOLS[1],
    call::SYMBOLS[2],
    call::SYMBOLS[3],
    call::SYMBOLS[4],
    call::SYMBOLS[5],
    call::SYMBOLS[6],
    call::SYMBOLS[7],
    chase::SYMBOL,
    stream::READ_SYMBOL,
    stream::WRITE_SYMBOL,
    stream::COPY_SYMBOL,
    stream::SCALE_SYMBOL,
    stream::ADD_SYMBOL,
    stream::TRIAD_SYMBOL,
];
