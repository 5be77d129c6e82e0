//! A heap for images that need one.
//!
//! ```text
//! #[global_allocator]
//! static HEAP: tare_heap::Heap = tare_heap::Heap::new();
//! ```
//!
//! It is a crate, not a module of the library OS: a program with `alloc` among its crates must have
//! an allocator, and the hello image has none.
//!
//! The heap takes memory from [`tare_unikernel::memory`] and never returns it: an image that
//! measures takes its buffers first. All CPUs may use it, behind a spin lock, so measured code must
//! not.
#![no_std]
#![cfg(target_arch = "x86_64")]

// Tests on the host have no memory of an image to link with.
#[cfg(not(test))]
mod heap;
mod lock;

#[cfg(not(test))]
pub use self::heap::Heap;
