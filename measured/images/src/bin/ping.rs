//! The smallest image on the network: gets an address and answers pings.
//!
//! Words: those of all services (see `service`), and `compute=N`, which repeatedly computes for N
//! ms without answering; with `yield=yes` other tasks run in between. `resolve=NAME` queries a name
//! server for the addresses of a name.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

extern crate alloc;

#[path = "service/mod.rs"]
mod service;

use alloc::format;

#[cfg(feature = "resolver")]
use embassy_net::Stack;
#[cfg(feature = "resolver")]
use embassy_net::dns::DnsQueryType;
use embassy_time::{Duration, Instant, Timer};
use tare_heap::Heap;
use tare_runtime::executor;
use tare_unikernel::boot::Boot;
use tare_unikernel::console::Console;
use tare_unikernel::exit::Status;

use service::Service;

tare_unikernel::image!(main);

#[global_allocator]
static HEAP: Heap = Heap::new();

/// No connections are served.
const CONNECTIONS: usize = 0;

fn main(boot: &'static Boot) -> Status {
    let service = match Service::new("ping", 0, boot, &HEAP) {
        Ok(service) => service,
        Err(status) => return status,
    };
    if let Some(text) = service::word(boot, "compute=") {
        let Ok(ms) = text.parse() else {
            return service::misused("ping", "compute=", "a number of ms");
        };
        let yields = service::word(boot, "yield=") == Some("yes");
        service.spawn(compute(ms, yields));
    }
    let stack = service.stack();
    #[cfg(feature = "figures")]
    let figures = service.figures;
    service.spawn(async move {
        stack.wait_config_up().await;
        #[cfg(feature = "figures")]
        figures.up();
        if let Some(config) = stack.config_v4() {
            Console.texts(&[&format!("network: up {}\n", config.address)]);
        }
        // Only one task is notified when the network is up.
        #[cfg(feature = "resolver")]
        if let Some(name) = service::word(boot, "resolve=") {
            resolve(stack, name).await;
        }
    });
    service.run()
}

/// Computes for this many ms at a time.
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

/// Prints the addresses of a name.
#[cfg(feature = "resolver")]
async fn resolve(stack: Stack<'static>, name: &str) {
    let kinds = [
        DnsQueryType::A,
        #[cfg(feature = "ipv6")]
        DnsQueryType::Aaaa,
    ];
    for kind in kinds {
        let told = match stack.dns_query(name, kind).await {
            Ok(addresses) => format!("{name} has {addresses:?}\n"),
            Err(error) => format!("{name}: {error:?}\n"),
        };
        Console.texts(&[&told]);
    }
}
