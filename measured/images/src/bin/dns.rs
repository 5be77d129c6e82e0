//! An authoritative name server for a synthetic zone.
//!
//! Words: `records=N` hosts of the zone `example` (10000), and those of the network (see `tare_runtime::network`).
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
use tare_unikernel::console::Console;
use tare_unikernel::exit::Status;

tare_unikernel::image!(main);

#[global_allocator]
static HEAP: Heap = Heap::new();

/// The hosts unless said otherwise.
const HOSTS: u32 = 10_000;

fn main(boot: &'static Boot) -> Status {
    let mut words = boot.command_line.split_ascii_whitespace();
    let records = words.find_map(|word| word.strip_prefix("records="));
    let hosts = records.map_or(Some(HOSTS), |text| text.parse().ok());
    let Some(hosts) = hosts.filter(|hosts| *hosts <= MOST_HOSTS) else {
        Console.texts(&["dns: records=: want a number of at most 2^24\n"]);
        return Status::Misused;
    };
    let network = match service::network("dns", dns::PORT, boot) {
        Ok(network) => network,
        Err(status) => return status,
    };
    let zone: &'static Zone = Box::leak(Box::new(Zone::synthetic(hosts)));
    service::on_datagrams(&network, dns::PORT, |socket| dns::udp(socket, zone));
    #[cfg(feature = "tcp")]
    service::on_connections(&network, dns::PORT, |listener| {
        dns::tcp(listener, zone, tare_runtime::network::Timers)
    });
    network.run()
}
