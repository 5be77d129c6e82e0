//! The measured code: the functions whose duration `tare` reports.
//!
//! # Why these functions look as they do
//!
//! The same machine code must run as a Linux process and on the unikernel, byte for byte, or a
//! difference between two targets could be a difference between two compilations. A function
//! keeps its bytes from binary to binary only if nothing in it depends on its surroundings, so:
//!
//! * raw pointers instead of slices: a bounds check would call the panic machinery;
//! * no calls and no relocations inside a measured symbol;
//! * every measured symbol is `#[inline(never)]`, `#[unsafe(no_mangle)]` and `extern "C"`;
//! * this crate is compiled at `opt-level = 3`, in one codegen unit and without debug assertions
//!   in every profile, and nothing is optimised across it at link time (`measured/Cargo.toml`).
//!
//! A test disassembles nothing and trusts nothing: it reads the symbols named in
//! [`SYMBOLS`] from the linked agent, and checks that they hold no call and no relocation.
//!
//! Measured code knows nothing of where it runs. It does not allocate, makes no system call and
//! writes only to memory that its caller has mapped, touched and, where allowed, locked.
//!
//! # Tour
//!
//! * [`timing`]: how a time stamp is taken, and the loop that puts two of them around a body;
//! * [`prime`], [`copy`], [`gap`]: one workload a file;
//! * [`calibration`]: what the stamps and the loop themselves cost.
#![no_std]
#![cfg(target_arch = "x86_64")]

pub mod calibration;
pub mod copy;
pub mod gap;
pub mod prime;
pub mod timing;

/// Lists the name of every measured symbol.
///
/// Tests compare the bytes of these symbols between binaries, and check what they contain.
pub const SYMBOLS: &[&str] = &[
    prime::FENCED_SYMBOL,
    prime::PUBLISHED_SYMBOL,
    copy::FENCED_SYMBOL,
    copy::PUBLISHED_SYMBOL,
    gap::SYMBOL,
    calibration::EMPTY_FENCED_SYMBOL,
    calibration::EMPTY_PUBLISHED_SYMBOL,
    calibration::UNROLLED_TIMER_SYMBOL,
    calibration::LOOP_SYMBOL,
];
