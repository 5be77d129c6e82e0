//! The smallest image on the network: gets an address and answers pings.
//!
//! Words: those of the network (see `tare_runtime::network`), and `compute=N`, which computes for N ms again and again and answers nobody
//! meanwhile; with `yield=yes` it lets others run in between.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

extern crate alloc;

#[path = "service/mod.rs"]
mod service;

use alloc::format;

use embassy_time::{Duration, Instant, Timer};
use tare_heap::Heap;
use tare_runtime::executor;
use tare_unikernel::boot::Boot;
use tare_unikernel::console::Console;
use tare_unikernel::exit::Status;

tare_unikernel::image!(main);

#[global_allocator]
static HEAP: Heap = Heap::new();

fn main(boot: &'static Boot) -> Status {
    let network = match service::network("ping", 0, boot) {
        Ok(network) => network,
        Err(status) => return status,
    };
    let word = |key| {
        let mut words = boot.command_line.split_ascii_whitespace();
        words.find_map(|word| word.strip_prefix(key))
    };
    if let Some(text) = word("compute=") {
        let Ok(ms) = text.parse() else {
            Console.texts(&["ping: compute=: want a number of ms\n"]);
            return Status::Misused;
        };
        network.spawn(compute(ms, word("yield=") == Some("yes")));
    }
    let stack = network.stack;
    network.spawn(async move {
        stack.wait_config_up().await;
        if let Some(config) = stack.config_v4() {
            Console.texts(&[&format!("network: up {}\n", config.address)]);
        }
    });
    network.run()
}

/// Computes for so many ms at a time.
async fn compute(ms: u64, yields: bool) {
    loop {
        let end = Instant::now() + Duration::from_millis(ms);
        while Instant::now() < end {
            if yields {
                executor::yield_now().await;
            }
        }
        Timer::after_millis(10).await;
    }
}
