//! Allocates and frees on all CPUs at once, and checks that no values change.
//!
//! Words: `cpus=N` (1), `rounds=N` (200); with `keep` nothing is freed, until no memory is left.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::hint::spin_loop;
use core::mem;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tare_heap::Heap;
use tare_unikernel::boot::Boot;
use tare_unikernel::console::Console;
use tare_unikernel::exit::Status;
use tare_unikernel::local::local;
use tare_unikernel::{memory, smp};

tare_unikernel::image!(main);

#[global_allocator]
static HEAP: Heap = Heap::new();

static ROUNDS: AtomicU32 = AtomicU32::new(200);
static KEEPS: AtomicBool = AtomicBool::new(false);
static DONE: AtomicU32 = AtomicU32::new(0);

fn main(boot: &'static Boot) -> Status {
    let number = |key| {
        let mut words = boot.command_line.split_ascii_whitespace();
        words.find_map(|word| word.strip_prefix(key)?.parse().ok())
    };
    let cpus = number("cpus=").unwrap_or(1);
    ROUNDS.store(number("rounds=").unwrap_or(200), Ordering::Relaxed);
    let keeps = boot.command_line.contains("keep");
    KEEPS.store(keeps, Ordering::Relaxed);
    let before = memory::left();
    if smp::start(cpus).is_err() {
        Console.texts(&["heap: there are too few CPUs\n"]);
        return Status::Failed;
    }
    for other in 1..cpus {
        smp::on_cpu(other, work).expect("it was just started");
    }
    work();
    while DONE.load(Ordering::Acquire) < cpus {
        spin_loop();
    }
    let used = format!("heap: used {} KiB\n", (before - memory::left()) / 1024);
    Console.texts(&[&used]);
    Status::Done
}

/// Fills maps and texts of many sizes with the CPU's number, and checks that they stay unchanged.
fn work() {
    let number = local().number();
    for round in 0..ROUNDS.load(Ordering::Relaxed) {
        let mut map: BTreeMap<u32, String> = BTreeMap::new();
        for key in 0..100 {
            map.insert(key * 7 % 101, format!("cpu {number} key {key}"));
        }
        let large: Vec<u64> = (0..u64::from(round % 50) * 100)
            .map(|k| k * u64::from(number + 1))
            .collect();
        assert!(
            map.iter()
                .all(|(_, text)| text.starts_with(&format!("cpu {number} ")))
        );
        assert!(
            (0..)
                .zip(&large)
                .all(|(k, v)| *v == k * u64::from(number + 1))
        );
        if KEEPS.load(Ordering::Relaxed) {
            mem::forget(large);
        }
    }
    DONE.fetch_add(1, Ordering::Release);
}
