//! An authoritative name server for a synthetic zone.
//!
//! Words: `records=N` hosts of the zone `example` (10000), and those of all services (see `service`).
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

extern crate alloc;

#[path = "service/mod.rs"]
mod service;

use alloc::boxed::Box;

use tare_heap::Heap;
use tare_net::dns;
use tare_net::zone::{MOST_HOSTS, Zone};
use tare_unikernel::boot::Boot;
use tare_unikernel::exit::Status;

use service::Service;

tare_unikernel::image!(main);

#[global_allocator]
static HEAP: Heap = Heap::new();

/// The hosts unless said otherwise.
const HOSTS: u32 = 10_000;

fn main(boot: &'static Boot) -> Status {
    let hosts = service::word(boot, "records=").map_or(Some(HOSTS), |text| text.parse().ok());
    let Some(hosts) = hosts.filter(|hosts| *hosts <= MOST_HOSTS) else {
        return service::misused("dns", "records=", "a number of at most 2^24");
    };
    let service = match Service::new("dns", dns::PORT, boot, &HEAP) {
        Ok(service) => service,
        Err(status) => return status,
    };
    let zone: &'static Zone = Box::leak(Box::new(Zone::synthetic(hosts)));
    service.on_datagrams(|socket| dns::udp(socket, zone));
    #[cfg(feature = "tcp")]
    service.on_connections(|listener| dns::tcp(listener, zone, tare_runtime::network::Timers));
    service.run()
}
