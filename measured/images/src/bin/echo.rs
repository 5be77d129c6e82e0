//! Echoes UDP datagrams and TCP streams.
//!
//! Words: those of all services (see `service`).
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

#[cfg(any(feature = "figures", feature = "tcp"))]
extern crate alloc;

#[path = "service/mod.rs"]
mod service;

use tare_heap::Heap;
use tare_net::echo;
use tare_unikernel::boot::Boot;
use tare_unikernel::exit::Status;

use service::Service;

tare_unikernel::image!(main);

#[global_allocator]
static HEAP: Heap = Heap::new();

/// The greatest number of connections at a time.
const CONNECTIONS: usize = 16;

fn main(boot: &'static Boot) -> Status {
    let service = match Service::new("echo", echo::PORT, boot, &HEAP) {
        Ok(service) => service,
        Err(status) => return status,
    };
    service.on_datagrams(|socket| echo::udp(socket, echo::PORT));
    #[cfg(feature = "tcp")]
    service.on_connections(|listener| echo::tcp(listener, tare_runtime::network::Timers));
    service.run()
}
