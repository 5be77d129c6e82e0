//! A heap for images that want one.
//!
//! ```text
//! #[global_allocator]
//! static HEAP: tare_heap::Heap = tare_heap::Heap::new();
//! ```
//!
//! It is a crate of its own and no module of the library OS: as soon as `alloc` is among the crates
//! of a program, that program must have an allocator, and the hello image shall have none.
//!
//! The heap takes memory from [`tare_unikernel::memory`] as it needs it, and never gives it back: an
//! image that measures takes its buffers before it uses the heap. All CPUs may use it; they take
//! turns by a spin lock, so measured code must not.
#![no_std]
#![cfg(target_arch = "x86_64")]

// The host's tests have no image's memory to link with.
#[cfg(not(test))]
mod heap;
mod lock;

#[cfg(not(test))]
pub use self::heap::Heap;
