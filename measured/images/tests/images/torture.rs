//! Computes in floating-point and vector registers under a high rate of interrupts, and checks that
//! no result and no register changes.
//!
//! Words: `seconds=N` (1), `timer-hz=N` (20000). The first line of a success reports the work done.
//!
//! With `handler=deadline`, it calls the handler of the deadline mode instead, for which QEMU's
//! emulation has no timer; with `handler=nmi`, an NMI interrupts the handler of a double fault.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

use core::arch::{asm, global_asm};
use core::hint::black_box;

use tare_unikernel::boot::Boot;
use tare_unikernel::console::Console;
use tare_unikernel::exit::Status;
use tare_unikernel::{apic, clock, cpu, interrupts, timer};

tare_unikernel::image!(main);

fn main(boot: &'static Boot) -> Status {
    let has = |wanted| {
        let mut words = boot.command_line.split_ascii_whitespace();
        words.any(|word| word == wanted)
    };
    for (word, works) in [
        ("handler=deadline", deadline_handler_works as fn() -> bool),
        ("handler=nmi", nmi_spares_the_double_fault),
    ] {
        if has(word) {
            let works = works();
            Console.texts(&[
                "torture: ",
                word,
                if works { " works\n" } else { " fails\n" },
            ]);
            return if works { Status::Done } else { Status::Failed };
        }
    }
    let number = |key: &str, default: u32| {
        let words = boot.command_line.split_ascii_whitespace();
        let given = words.filter_map(|word| word.strip_prefix(key)).next();
        given.map_or(Some(default), |value| value.parse().ok())
    };
    let (Some(seconds), Some(hz)) = (number("seconds=", 1), number("timer-hz=", 20_000)) else {
        Console.texts(&["torture: want numbers\n"]);
        return Status::Misused;
    };
    let Some(frequency) = clock::tsc_frequency(None) else {
        Console.texts(&["torture: the TSC's frequency is unknown\n"]);
        return Status::Failed;
    };
    let expected = chaotic(black_box(0.1));
    if timer::start(hz, || Some(frequency.rate.hz)).is_err() {
        Console.texts(&["torture: the timer can't tick so\n"]);
        return Status::Failed;
    }
    let mut rounds = 0;
    let end = cpu::tsc() + (f64::from(seconds) * frequency.rate.hz) as u64;
    while cpu::tsc() < end {
        let same_result = chaotic(black_box(0.1)).to_bits() == expected.to_bits();
        let same_registers = (0..20).all(|_| sse_registers_keep());
        let same_wide_registers = !cpu::has_avx() || (0..20).all(|_| avx_registers_keep());
        if !(same_result && same_registers && same_wide_registers) {
            cpu::disable_interrupts();
            Console.texts(&["torture: an interrupt changed a register\n"]);
            return Status::Failed;
        }
        rounds += 1;
    }
    cpu::disable_interrupts();
    Console.texts(&["torture: rounds "]);
    Console.number(rounds);
    Console.texts(&[" ticks "]);
    Console.number(timer::ticks() as u32);
    Console.texts(&[if cpu::has_avx() { " avx\n" } else { " sse\n" }]);
    Status::Done
}

/// Iterates the logistic map, in which one wrong bit grows until all are wrong. A leaf function
/// with values in the red zone.
#[inline(never)]
fn chaotic(start: f64) -> f64 {
    let mut orbits = [start, start + 1e-3, start + 2e-3, start + 3e-3];
    for _ in 0..2_000 {
        for x in &mut orbits {
            *x = 3.99 * *x * (1.0 - *x);
        }
    }
    orbits.iter().sum()
}

/// Fills all sixteen registers, waits, and returns whether each is unchanged.
#[inline(never)]
fn sse_registers_keep() -> bool {
    let different: u64;
    // SAFETY: works in registers; all changed ones are declared.
    unsafe {
        asm!(
            "xor {different:e}, {different:e}",
            ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "mov {number:e}, 0x1000 + \\n",
            "movq xmm\\n, {number}",
            "punpcklqdq xmm\\n, xmm\\n",
            ".endr",
            "mov {number:e}, 2000",
            "2: dec {number:e}",
            "jnz 2b",
            ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "movq {number}, xmm\\n",
            "xor {number}, 0x1000 + \\n",
            "or {different}, {number}",
            "punpckhqdq xmm\\n, xmm\\n",
            "movq {number}, xmm\\n",
            "xor {number}, 0x1000 + \\n",
            "or {different}, {number}",
            ".endr",
            different = out(reg) different, number = out(reg) _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
            out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
            out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _,
            out("xmm15") _, options(nomem, nostack),
        );
    }
    different == 0
}

/// As [`sse_registers_keep`], with the registers' upper halves.
#[inline(never)]
fn avx_registers_keep() -> bool {
    let mut seen = [[0_u64; 4]; 16];
    let numbers: [[u64; 4]; 16] =
        core::array::from_fn(|n| core::array::from_fn(|part| (n * 7 + part + 1) as u64));
    // SAFETY: the CPU has AVX; reads and writes two arrays of sixteen times 32 bytes.
    unsafe {
        asm!(
            ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "vmovups ymm\\n, [{numbers} + 32 * \\n]",
            ".endr",
            "mov {count:e}, 2000",
            "2: dec {count:e}",
            "jnz 2b",
            ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "vmovups [{seen} + 32 * \\n], ymm\\n",
            ".endr",
            "vzeroupper",
            numbers = in(reg) numbers.as_ptr(), seen = in(reg) seen.as_mut_ptr(),
            count = out(reg) _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
            out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
            out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _,
            out("xmm15") _, options(nostack),
        );
    }
    seen == numbers
}

fn deadline_handler_works() -> bool {
    const PERIOD: u64 = 1 << 40;
    apic::enable();
    timer::start_by_deadline(PERIOD);
    let first = timer::deadline();
    // In time: the next one is a period after the last one, whenever the interrupt came.
    let in_time = call_deadline_handler()
        && timer::deadline() == first + PERIOD
        && (timer::ticks(), timer::missed()) == (1, 0);
    // Late: deadlines that have passed are skipped.
    timer::start_by_deadline(1);
    let now = cpu::tsc();
    let late = call_deadline_handler()
        && timer::deadline() > now
        && (timer::ticks(), timer::missed()) == (2, 1);
    in_time && late
}

/// Calls the handler as the timer would, and returns whether it preserved the registers that it
/// uses.
fn call_deadline_handler() -> bool {
    let (a, c, d): (u64, u64, u64);
    // SAFETY: the vector has a handler; it changes no register.
    unsafe {
        asm!("int {vector}", vector = const interrupts::DEADLINE,
             inout("rax") 0x1111_2222_3333_4444_u64 => a,
             inout("rcx") 0x5555_6666_7777_8888_u64 => c,
             inout("rdx") 0x9999_aaaa_bbbb_cccc_u64 => d);
    }
    (a, c, d)
        == (
            0x1111_2222_3333_4444,
            0x5555_6666_7777_8888,
            0x9999_aaaa_bbbb_cccc,
        )
}

// A handler that an NMI interrupts. If both used the same stack, the NMI's frame would overwrite
// its own, and it would return to a wrong place and fault.
global_asm!(
    "interrupted_handler:",
    "push rax",
    "mov rax, [rsp + 8]",
    "int 2",
    "cmp rax, [rsp + 8]",
    "jne 2f",
    "pop rax",
    "iretq",
    "2: ud2",
);

unsafe extern "C" {
    static interrupted_handler: u8;
}

/// Calls that handler as that of a double fault, on its stack.
fn nmi_spares_the_double_fault() -> bool {
    const DOUBLE_FAULT: u64 = 8;
    let handler = (&raw const interrupted_handler) as u64;
    let mut pointer = [0_u8; 10];
    // SAFETY: changes the address in one gate of the interrupt table, to code that changes no
    // register and returns.
    unsafe {
        asm!("sidt [{}]", in(reg) &raw mut pointer, options(nostack));
        let mut base = [0; 8];
        base.copy_from_slice(&pointer[2..]);
        let gate = (u64::from_le_bytes(base) + 16 * DOUBLE_FAULT) as *mut u64;
        let rest = gate.read_volatile() & 0x0000_ffff_ffff_0000;
        gate.write_volatile(rest | handler & 0xffff | (handler >> 16) << 48);
        asm!("int {}", const DOUBLE_FAULT);
    }
    interrupts::asked_to_end()
}
