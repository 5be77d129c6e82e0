//! Sends back what comes, by UDP and TCP.
//!
//! Words: those of the network (see `tare_runtime::network`).
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

extern crate alloc;

#[path = "service/mod.rs"]
mod service;

use tare_heap::Heap;
use tare_net::echo;
use tare_unikernel::boot::Boot;
use tare_unikernel::exit::Status;

tare_unikernel::image!(main);

#[global_allocator]
static HEAP: Heap = Heap::new();

fn main(boot: &'static Boot) -> Status {
    let network = match service::network("echo", echo::PORT, boot) {
        Ok(network) => network,
        Err(status) => return status,
    };
    service::on_datagrams(&network, echo::PORT, echo::udp);
    #[cfg(feature = "tcp")]
    service::on_connections(&network, echo::PORT, |listener| {
        echo::tcp(listener, tare_runtime::network::Timers)
    });
    network.run()
}
