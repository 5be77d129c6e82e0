//! An authoritative name server.
//!
//! Words: `zone=NAME` is a zone file among the image's files (see `tare_runtime::files`); without
//! it there is a synthetic zone `example` of `records=N` hosts (10000). In addition the words of
//! all services (see `service`).
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

extern crate alloc;

#[path = "service/mod.rs"]
mod service;

use alloc::boxed::Box;

use tare_heap::Heap;
use tare_net::dns;
use tare_net::settings::number;
use tare_net::zone::{MOST_HOSTS, Zone};
#[cfg(feature = "files")]
use tare_runtime::files::Files;
use tare_unikernel::boot::Boot;
use tare_unikernel::exit::Status;

use service::Service;

tare_unikernel::image!(main);

#[global_allocator]
static HEAP: Heap = Heap::new();

/// The greatest number of connections at a time.
const CONNECTIONS: usize = 16;

/// The default number of hosts.
const HOSTS: u32 = 10_000;

fn main(boot: &'static Boot) -> Status {
    let service = match Service::new("dns", dns::PORT, boot, &HEAP) {
        Ok(service) => service,
        Err(status) => return status,
    };
    let zone: &'static Zone = match zone(boot) {
        Ok(zone) => Box::leak(Box::new(zone)),
        Err(status) => return status,
    };
    service.on_datagrams(|socket| dns::udp(socket, zone));
    #[cfg(feature = "tcp")]
    service.on_connections(|listener| dns::tcp(listener, zone, tare_runtime::network::Timers));
    service.run()
}

/// Reads or generates the zone. On failure, reports the reason.
fn zone(boot: &'static Boot) -> Result<Zone, Status> {
    #[cfg(feature = "files")]
    if let Some(name) = service::word(boot, "zone=") {
        let failed = |why: &dyn core::fmt::Display| service::end("dns", &why, Status::Failed);
        let files = Files::read(boot.command_line).map_err(|error| failed(&error))?;
        let text = files.get(name).ok_or_else(|| {
            failed(&format_args!(
                "zone={name}: there is no such file in the archive or on the disk"
            ))
        })?;
        let text =
            str::from_utf8(text).map_err(|error| failed(&format_args!("{name}: {error}")))?;
        return Zone::read(text).map_err(|bad| failed(&format_args!("{name}: {bad}")));
    }
    let hosts = service::word(boot, "records=").map_or(Some(HOSTS), number);
    let hosts = hosts.filter(|hosts| *hosts <= MOST_HOSTS);
    let hosts =
        hosts.ok_or_else(|| service::misused("dns", "records=", "a number of at most 2^24"))?;
    Ok(Zone::synthetic(hosts))
}
