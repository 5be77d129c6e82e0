//! Makes one mistake, named by the word `fault=`: tests boot it to check that each one is detected
//! and reported.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

use core::arch::asm;
use core::hint::black_box;

use tare_unikernel::boot::Boot;
use tare_unikernel::console::Console;
use tare_unikernel::exit::Status;
use tare_unikernel::smp;

tare_unikernel::image!(main);

/// The mistakes by name.
const MISTAKES: &[(&str, fn())] = &[
    ("panic", index_out_of_bounds),
    ("divide", divide),
    ("null", read_null),
    ("unmapped", read_unmapped),
    ("double", double_fault),
    ("overflow", overflow_stack),
    ("write-code", write_code),
    ("write-constant", write_constant),
    ("execute-data", execute_data),
    ("invalid", invalid_opcode),
    ("other-cpu", on_other_cpu),
];

fn main(boot: &'static Boot) -> Status {
    let words = boot.command_line.split_ascii_whitespace();
    let Some(name) = words.filter_map(|word| word.strip_prefix("fault=")).next() else {
        Console.texts(&["faults: no word fault=NAME\n"]);
        return Status::Misused;
    };
    match MISTAKES.iter().find(|(known, _)| *known == name) {
        Some((_, make)) => make(),
        None => {
            Console.texts(&["faults: no such fault '", name, "'\n"]);
            return Status::Misused;
        }
    }
    Console.texts(&["faults: nobody noticed\n"]);
    Status::Failed
}

#[inline(never)]
fn index_out_of_bounds() {
    let numbers = [1, 2, 3];
    let index = black_box(3);
    black_box(numbers[index]);
}

#[inline(never)]
fn divide() {
    // SAFETY: faults, on purpose.
    unsafe {
        asm!("div {0:e}", in(reg) 0, inout("eax") 1 => _, inout("edx") 0 => _, options(nostack));
    }
}

#[inline(never)]
fn read_null() {
    read(8);
}

#[inline(never)]
fn read_unmapped() {
    read(1 << 40);
}

#[inline(never)]
fn read(address: u64) {
    // SAFETY: faults, on purpose.
    unsafe { asm!("mov {0}, [{0}]", inout(reg) address => _, options(nostack)) };
}

/// Removes the page fault's entry from the interrupt table, so that delivering it faults.
#[inline(never)]
fn double_fault() {
    let mut pointer = [0_u8; 10];
    // SAFETY: the table is writable; nothing else uses it now.
    unsafe {
        asm!("sidt [{}]", in(reg) &raw mut pointer, options(nostack));
        let mut base = [0; 8];
        base.copy_from_slice(&pointer[2..]);
        let page_fault = (u64::from_le_bytes(base) + 14 * 16) as *mut u64;
        page_fault.write_volatile(0);
    }
    read(8);
}

#[inline(never)]
fn overflow_stack() {
    black_box(deeper(black_box(1)));
}

#[inline(never)]
fn deeper(depth: u64) -> u64 {
    let mut room = [depth; 32];
    black_box(&mut room);
    let below = match black_box(depth) {
        0 => 0,
        _ => deeper(depth + 1),
    };
    below + black_box(room[7])
}

#[inline(never)]
fn write_code() {
    // SAFETY: faults, on purpose.
    unsafe { write(divide as fn() as usize) };
}

#[inline(never)]
fn write_constant() {
    // SAFETY: faults, on purpose.
    unsafe { write(MISTAKES.as_ptr() as usize) };
}

/// # Safety
///
/// Writing to the address must fault.
#[inline(never)]
unsafe fn write(address: usize) {
    // SAFETY: passed on to the caller.
    unsafe { asm!("mov byte ptr [{}], 0xcc", in(reg) address, options(nostack)) };
}

#[inline(never)]
fn execute_data() {
    let code = black_box([0xc3_u8; 16]); // ret
    // SAFETY: faults, on purpose: the stack is not executable.
    unsafe { asm!("call {}", in(reg) code.as_ptr(), clobber_abi("C")) };
}

#[inline(never)]
fn invalid_opcode() {
    // SAFETY: faults, on purpose.
    unsafe { asm!("ud2", options(nostack)) };
}

#[inline(never)]
fn on_other_cpu() {
    smp::start(2).expect("the machine has two CPUs");
    smp::on_cpu(1, overflow_stack).expect("the CPU is there");
    tare_unikernel::cpu::stop()
}
