//! The name server, a client of it over the loopback device, or both in one process: what a request
//! costs inside of Linux, as the image `inside` measures it in the unikernel.
//!
//! Words: `serve`, and the number of requests.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use edge_nal::{UdpReceive, UdpSend};
use embassy_futures::block_on;
use embedded_io_async::ErrorType;
use tare_net::zone::Zone;
use tare_net::{asking, dns};

#[path = "../src/udp.rs"]
mod udp;

/// The number of hosts of the zone.
const HOSTS: u32 = 10_000;
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), dns::PORT);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let serves = words.iter().any(|word| word == "serve");
    let Some(requests) = words.iter().find_map(|word| word.parse().ok()) else {
        return serve();
    };
    if serves {
        thread::spawn(serve);
    }
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    wait_for_server(&client);
    // SAFETY: reads a counter.
    let tsc = || unsafe { core::arch::x86_64::_rdtsc() };
    match block_on(asking::measure(Blocking(client), SERVER, requests, tsc)) {
        Some(ticks) => println!("{ticks} ticks"),
        None => println!("a wrong answer"),
    }
}

/// Serves as the service does, without end.
fn serve() {
    let socket = UdpSocket::bind(SERVER).expect("port 53 is free");
    let zone = Zone::synthetic(HOSTS);
    block_on(dns::udp(udp::Batched::new(socket), &zone));
}

/// Waits until the server answers a header.
fn wait_for_server(client: &UdpSocket) {
    let wait = |time| client.set_read_timeout(time).expect("a time above 0");
    wait(Some(Duration::from_millis(100)));
    while client.send_to(&[0; 12], SERVER).is_err() || client.recv(&mut [0; 64]).is_err() {}
    wait(None);
}

/// A socket that blocks its thread, with two system calls per request.
struct Blocking(UdpSocket);

impl ErrorType for Blocking {
    type Error = io::Error;
}

impl UdpReceive for Blocking {
    async fn receive(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.recv_from(buffer)
    }
}

impl UdpSend for Blocking {
    async fn send(&mut self, to: SocketAddr, data: &[u8]) -> io::Result<()> {
        self.0.send_to(data, to).map(drop)
    }
}
