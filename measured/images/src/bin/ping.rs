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

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use core::net::IpAddr;

use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{IpAddress, Stack};
use embassy_time::{Duration, Instant, Timer, with_timeout};
use tare_heap::Heap;
use tare_net::dns::{LONGEST, PORT};
use tare_net::resolver::{data, query};
use tare_net::zone::{A, AAAA};
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
            Console.texts(&[&format!("answering on {}\n", config.address)]);
        }
        // Only one task is notified when the network is up.
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

/// The number of times that a name server is asked for the same.
const ATTEMPTS: u16 = 3;

/// Prints the addresses of a name.
async fn resolve(stack: Stack<'static>, name: &str) {
    let config = stack.config_v4();
    let server = config.and_then(|config| config.dns_servers.first().copied());
    let Some(server) = server else {
        return Console.texts(&["no name server is known\n"]);
    };
    let packets = || Box::leak(Box::new([PacketMetadata::EMPTY; 1]));
    let buffer = || Box::leak(Box::new([0; LONGEST]));
    let mut socket = UdpSocket::new(stack, packets(), buffer(), packets(), buffer());
    // Port 0 is a free one.
    let _ = socket.bind(0);
    for kind in [A, AAAA] {
        let told = match addresses(&mut socket, server.into(), name, kind).await {
            Some(addresses) => format!("{name} has {addresses:?}\n"),
            None => format!("{name}: no answer without an error\n"),
        };
        Console.texts(&[&told]);
    }
}

/// Asks a name server for the addresses of a name of a kind.
async fn addresses(
    socket: &mut UdpSocket<'_>,
    server: IpAddress,
    name: &str,
    kind: u16,
) -> Option<Vec<IpAddr>> {
    let mut answer = [0; LONGEST];
    for number in 0..ATTEMPTS {
        let query = query(number, name, kind)?;
        socket.send_to(&query, (server, PORT)).await.ok()?;
        let received = socket.recv_from(&mut answer);
        if let Ok(Ok((bytes, _))) = with_timeout(Duration::from_secs(1), received).await
            && let Some(found) = data(&answer[..bytes], &query)
        {
            let address = |data: &[u8]| match kind {
                A => <[u8; 4]>::try_from(data).ok().map(IpAddr::from),
                _ => <[u8; 16]>::try_from(data).ok().map(IpAddr::from),
            };
            return Some(found.into_iter().filter_map(address).collect());
        }
    }
    None
}
