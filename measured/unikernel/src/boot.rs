//! From the loader to the image's main function.
//!
//! The assembly in `entry.s` goes from the loader's 32-bit mode to [`start`] on the first CPU, and
//! from real mode to [`crate::smp`] on all others.

use core::arch::global_asm;
use core::cell::UnsafeCell;

use crate::boot_info::BootInfo;
use crate::console::Console;
use crate::exit::{Status, exit};
use crate::local::{Area, FIRST, GUARDS, PAGE, STACK_TOP};
use crate::{console, cpu, interrupts, local, memory, smp};

global_asm!(
    include_str!("entry.s"),
    start = sym start,
    start_other = sym smp::start_other,
    area = sym FIRST,
    area_size = const size_of::<Area>(),
    stack_top = const STACK_TOP,
    guard_0 = const GUARDS[0],
    guard_1 = const GUARDS[1],
    guard_2 = const GUARDS[2],
);

/// The arguments of the image's main function.
#[derive(Debug)]
pub struct Boot {
    /// The kernel command line.
    pub command_line: &'static str,
    /// TSC when the first 64-bit code ran.
    pub entry_tsc: u64,
}

unsafe extern "Rust" {
    /// The image's main function, made by [`crate::image!`].
    safe fn tare_image_main(boot: &'static Boot) -> !;
}

/// The maximum length of a command line in bytes, as on Linux for this architecture.
const COMMAND_LINE: usize = 2048;

/// A cell that the first CPU writes once, before the image's main function.
struct Once<T>(UnsafeCell<T>);

// SAFETY: written before there is a second CPU, then only read.
unsafe impl<T: Sync> Sync for Once<T> {}

static ROOM: Once<[u8; COMMAND_LINE]> = Once(UnsafeCell::new([0; COMMAND_LINE]));
static BOOT: Once<Boot> = Once(UnsafeCell::new(Boot {
    command_line: "",
    entry_tsc: 0,
}));
static INFO: Once<Option<BootInfo<'static>>> = Once(UnsafeCell::new(None));

/// Continues on the first CPU, in 64-bit mode, with SSE, on its stack. Interrupts are disabled.
extern "C" fn start(info: u32) -> ! {
    let entry_tsc = cpu::tsc();
    console::start();
    // SAFETY: the first CPU, once: only it uses the area, and interrupts are disabled until the
    // table is loaded.
    unsafe {
        local::install(FIRST.address(), 0);
        interrupts::start();
    }
    let Some(info) = BootInfo::read(&bytes, info.into()) else {
        refuse(
            "no PVH start information: QEMU overwrites it if the command line exceeds 4,096 bytes",
        );
    };
    // SAFETY: runs once, and nobody else has access yet.
    let (room, boot) = unsafe { (&mut *ROOM.0.get(), &mut *BOOT.0.get()) };
    let Some(line) = info.command_line(&bytes, room) else {
        refuse("the command line exceeds 2,048 bytes");
    };
    boot.command_line = line;
    boot.entry_tsc = entry_tsc;
    // SAFETY: the same.
    unsafe { *INFO.0.get() = Some(info) };
    tare_image_main(boot)
}

/// Ends the machine, since what the loader left can't be used.
fn refuse(why: &str) -> ! {
    Console.texts(&["unikernel: ", why, "\n"]);
    exit(Status::Misused)
}

/// Returns the loader's information.
fn info() -> Option<&'static BootInfo<'static>> {
    // SAFETY: written before the image's main function, then never again.
    unsafe { &*INFO.0.get() }.as_ref()
}

/// Returns the image's archive (QEMU's `-initrd`). Empty if there is none.
pub fn archive() -> &'static [u8] {
    let module = info().and_then(|info| info.module(&bytes));
    let archive = module.and_then(|(start, length)| bytes(start, length.try_into().ok()?));
    archive.unwrap_or_default()
}

/// Returns the bounds of the usable memory.
pub(crate) fn free_memory() -> (u64, u64) {
    let image_end = memory::image_end();
    info().map_or((image_end, image_end), |info| {
        info.free_memory(&bytes, image_end)
    })
}

unsafe extern "C" {
    /// The copy of the first two pages.
    static low_memory: [u8; 2 * PAGE];
}

/// Returns bytes in the loader's memory.
fn bytes(address: u64, count: usize) -> Option<&'static [u8]> {
    let end = address.checked_add(count as u64)?;
    if address < PAGE as u64 {
        // SAFETY: written before the switch to 64-bit mode, then never again.
        return unsafe { low_memory.get(address as usize..end as usize) };
    }
    let is_readable = memory::is_readable(address..end);
    // SAFETY: mapped memory, or memory according to the loader; nobody writes to the loader's data
    // until they have been read.
    is_readable.then(|| unsafe { core::slice::from_raw_parts(address as *const u8, count) })
}
