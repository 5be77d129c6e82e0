//! The library OS: everything that an image needs to run the measured code without a kernel.
//!
//! # Principles
//!
//! * **Quiet.** Nothing happens without the image's request: no tick unless [`timer`] is started,
//!   and interrupt handlers only count and acknowledge. Idle is `hlt`.
//! * **A mistake is a message.** No page is writable and executable, page 0 is not mapped, every
//!   stack ends at a guard page, every vector runs on its own stack. A fault or panic reports what
//!   happened and where, and ends the machine with a failure status.
//! * **Small.** No allocator unless the image links one; uncalled code is not linked.
//! * **Logic apart from hardware.** Computations are in modules without `unsafe`, which are
//!   tested on the host; the modules that touch hardware do little else, and are absent from the
//!   host's tests.
//!
//! # Tour
//!
//! An image is a binary that names its main function by [`image!`] and is linked by `image.ld`.
//!
//! Booted manually like this, it ends with status 33 on success (see [`exit`]):
//!
//! ```text
//! qemu-system-x86_64 -M microvm -bios qboot.rom -nodefaults -no-user-config -display none \
//!     -no-reboot -serial stdio -device isa-debug-exit,iobase=0xf4,iosize=0x04 \
//!     -kernel target/x86_64-unknown-linux-gnu/release/hello -append 'some words'
//! ```
//!
//! * [`boot`]: from the loader (PVH) to the image's main function; [`boot_info`] reads what the
//!   loader tells, [`memory_map`] chooses the memory to use;
//! * [`console`], [`exit`]: the way out for text and for the status;
//! * [`fault`], [`backtrace`]: reports of faults and panics;
//! * [`cpu`]: instructions and features, [`local`]: the data of each CPU;
//! * [`interrupts`], [`apic`], [`timer`]: vectors, the interrupt controller, the tick;
//! * [`io_apic`], [`pci`]: routing of device interrupts, and addresses of device registers;
//! * [`alarm`]: halts until a time;
//! * [`clock`]: the frequency of the TSC and the time of day, [`rate`] and [`wall_clock`] the
//!   arithmetic behind them;
//! * [`memory`], [`paging`]: memory for buffers, guard pages;
//! * [`smp`]: all other CPUs, one task each.
//!
//! # Not implemented
//!
//! No scheduler, no processes, no memory above 4 GiB, no x2APIC, at most 255 CPUs.
#![no_std]
#![cfg(target_arch = "x86_64")]

pub mod backtrace;
pub mod boot_info;
pub mod memory_map;
pub mod page_fault;
pub mod rate;
pub mod wall_clock;

#[cfg(not(test))]
pub mod alarm;
#[cfg(not(test))]
pub mod apic;
#[cfg(not(test))]
pub mod boot;
#[cfg(not(test))]
pub mod clock;
#[cfg(not(test))]
pub mod console;
#[cfg(not(test))]
pub mod cpu;
#[cfg(not(test))]
pub mod demand;
#[cfg(not(test))]
pub mod exit;
#[cfg(not(test))]
pub mod fault;
#[cfg(not(test))]
pub mod interrupts;
#[cfg(not(test))]
pub mod io_apic;
#[cfg(not(test))]
pub mod local;
#[cfg(not(test))]
pub mod memory;
#[cfg(not(test))]
pub mod paging;
#[cfg(not(test))]
pub mod pci;
#[cfg(not(test))]
pub mod smp;
#[cfg(not(test))]
pub mod timer;

mod builtins;

/// Makes a binary an image: names its main function, and says what a panic does.
///
/// The function is `fn(&'static tare_unikernel::boot::Boot) -> tare_unikernel::exit::Status`.
#[macro_export]
macro_rules! image {
    ($main:path) => {
        #[unsafe(no_mangle)]
        fn tare_image_main(boot: &'static $crate::boot::Boot) -> ! {
            let main: fn(&'static $crate::boot::Boot) -> $crate::exit::Status = $main;
            $crate::exit::exit(main(boot))
        }

        // `cargo clippy --all-targets` checks an image as a test program, too: with std, which has
        // a panic handler.
        #[cfg(not(test))]
        #[panic_handler]
        fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
            $crate::fault::panicked(info)
        }
    };
}
