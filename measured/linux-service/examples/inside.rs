//! The name server, a client of it over the loopback device, or both in one process: what a request
//! costs inside of Linux, as the image `inside` measures it in the unikernel.
//!
//! Words: `serve`, and the number of requests.

use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use edge_nal::UdpBind;
use embassy_futures::select::{Either, select};
use tare_net::zone::Zone;
use tare_net::{asking, dns};

/// The number of hosts of the zone.
const HOSTS: u32 = 10_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let serves = words.iter().any(|word| word == "serve");
    let requests = words.iter().find_map(|word| word.parse().ok());
    let zone = Zone::synthetic(HOSTS);
    let (sockets, local) = (edge_nal_std::Stack::new(), Ipv4Addr::LOCALHOST.into());
    let server = SocketAddr::new(local, dns::PORT);
    // SAFETY: reads a counter.
    let tsc = || unsafe { core::arch::x86_64::_rdtsc() };
    let serving = async {
        if !serves {
            return pending().await;
        }
        let socket = UdpBind::bind(&sockets, server).await;
        dns::udp(socket.expect("port 53 is free"), &zone).await
    };
    let asked = async {
        let Some(requests) = requests else {
            return pending().await;
        };
        if !serves {
            wait_for(server);
        }
        let socket = UdpBind::bind(&sockets, SocketAddr::new(local, 0)).await;
        asking::measure(socket.expect("a port is free"), server, requests, tsc).await
    };
    match async_io::block_on(select(serving, asked)) {
        Either::Second(Some(ticks)) => println!("{ticks} ticks"),
        _ => println!("a wrong answer"),
    }
}

/// Waits until a server answers a header.
fn wait_for(server: SocketAddr) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let wait = socket.set_read_timeout(Some(Duration::from_millis(100)));
    wait.expect("a time above 0");
    while socket.send_to(&[0; 12], server).is_err() || socket.recv(&mut [0; 64]).is_err() {}
}
