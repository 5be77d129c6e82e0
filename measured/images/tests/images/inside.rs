//! The name server and a client of it, over a loopback device: what a request costs inside of a
//! guest, its stack and its executor included, and no card.
//!
//! Word: `requests=N`.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(test), no_main)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt::Write;
use core::future::Future;
use core::net::{Ipv4Addr, SocketAddr};
use core::task::{Context, Waker};

use embassy_executor::raw::{Executor, TaskStorage};
use embassy_net::StackResources;
use embassy_net::driver::{
    Capabilities, Checksum, Driver, HardwareAddress, LinkState, RxToken, TxToken,
};
use tare_heap::Heap;
use tare_net::filter::Filter;
use tare_net::settings::{Settings, number};
use tare_net::sockets::Datagrams;
use tare_net::watch::Watch;
use tare_net::zone::Zone;
use tare_net::{asking, dns};
use tare_runtime::{executor, time};
use tare_unikernel::boot::Boot;
use tare_unikernel::console::Console;
use tare_unikernel::cpu;
use tare_unikernel::exit::{Status, exit};

tare_unikernel::image!(main);

#[global_allocator]
static HEAP: Heap = Heap::new();

/// The address of this machine, and its MTU.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const WORD: &str = "ip=192.0.2.2/24";
const MTU: usize = 1514;
/// Hardware addresses of the card, and of its peer. The filter rejects packets from the card's own.
const CARD: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// The protocol in Ethernet's header, and ARP's; sender and target in a message of ARP.
const KIND: core::ops::Range<usize> = 12..14;
const ARP: [u8; 2] = [8, 6];
const SENDER: usize = 22;
const TARGET: usize = 32;
/// The port of the client.
const CLIENT: u16 = 50_000;
/// The number of hosts of the zone.
const HOSTS: u32 = 10_000;
/// The number of queued datagrams in each direction, and their bytes, as of the services.
const DATAGRAMS: usize = 128;
const BYTES: usize = 16 << 10;

/// A device whose packets come back, as from its peer.
#[derive(Default)]
struct Loopback {
    packets: VecDeque<Packet>,
    /// Buffers that are not in use.
    free: Vec<Packet>,
    waker: Option<Waker>,
}

/// A buffer, and the bytes of a packet in it.
struct Packet {
    buffer: Box<[u8; MTU]>,
    bytes: usize,
}

type Shared = &'static RefCell<Loopback>;

struct Device(Shared);

struct Received(Packet, Shared);

struct ToSend(Shared);

impl Driver for Device {
    type RxToken<'a> = Received;
    type TxToken<'a> = ToSend;

    fn receive(&mut self, context: &mut Context<'_>) -> Option<(Received, ToSend)> {
        let mut own = self.0.borrow_mut();
        let packet = own.packets.pop_front();
        if packet.is_none() {
            own.waker = Some(context.waker().clone());
        }
        Some((Received(packet?, self.0), ToSend(self.0)))
    }

    fn transmit(&mut self, _: &mut Context<'_>) -> Option<ToSend> {
        Some(ToSend(self.0))
    }

    fn link_state(&mut self, _: &mut Context<'_>) -> LinkState {
        LinkState::Up
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = MTU;
        // As on a card that computes them, and on Linux's loopback device.
        capabilities.checksum.udp = Checksum::None;
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(CARD)
    }
}

impl RxToken for Received {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        let Self(mut packet, device) = self;
        let result = read(&mut packet.buffer[..packet.bytes]);
        device.borrow_mut().free.push(packet);
        result
    }
}

impl TxToken for ToSend {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, write: F) -> R {
        let free = self.0.borrow_mut().free.pop();
        let mut packet = free.unwrap_or_else(|| Packet {
            buffer: Box::new([0; MTU]),
            bytes,
        });
        packet.bytes = bytes;
        let written = write(&mut packet.buffer[..bytes]);
        mirror(&mut packet.buffer, 6, 0);
        if packet.buffer[KIND] == ARP {
            mirror(&mut packet.buffer, SENDER, TARGET);
        }
        let mut own = self.0.borrow_mut();
        own.packets.push_back(packet);
        if let Some(waker) = own.waker.take() {
            waker.wake();
        }
        written
    }
}

/// Makes a packet to the peer one from the peer.
fn mirror(packet: &mut [u8; MTU], sender: usize, target: usize) {
    packet[sender..][..6].copy_from_slice(&PEER);
    let target = &mut packet[target..][..6];
    if *target == PEER {
        target.copy_from_slice(&CARD);
    }
}

fn main(boot: &'static Boot) -> Status {
    let mut words = boot.command_line.split_ascii_whitespace();
    let requests = words.find_map(|word| word.strip_prefix("requests="));
    let Some(requests) = requests.and_then(number) else {
        return Status::Misused;
    };
    time::start(None);
    let mut settings = Settings::default();
    if settings.read(WORD).is_err() {
        return Status::Failed;
    }
    let watch: &'static Watch = Box::leak(Box::new(Watch::new(dns::PORT)));
    let device = Device(Box::leak(Box::default()));
    let (stack, mut runner) = embassy_net::new(
        Filter::new(device, watch, &settings),
        settings.config(),
        Box::leak(Box::new(StackResources::<4>::new())),
        1,
    );
    let tasks: &'static Executor = Box::leak(Box::new(Executor::new(core::ptr::null_mut())));
    spawn(tasks, async move { runner.run().await });
    let socket = move |port| Datagrams::new(stack, port, DATAGRAMS, BYTES, watch);
    let zone: &'static Zone = Box::leak(Box::new(Zone::synthetic(HOSTS)));
    spawn(tasks, async move {
        let socket = socket(dns::PORT).expect("its own port");
        dns::udp(socket, zone).await
    });
    spawn(tasks, async move {
        stack.wait_config_up().await;
        let socket = socket(CLIENT).expect("another port");
        let server = SocketAddr::new(ADDRESS.into(), dns::PORT);
        let ticks = asking::measure(socket, server, requests, cpu::tsc).await;
        // Writing does not fail.
        let _ = match ticks {
            Some(ticks) => writeln!(Console, "{ticks} ticks"),
            None => writeln!(Console, "a wrong answer"),
        };
        exit(Status::Done)
    });
    executor::run(tasks, false, || false)
}

/// Adds a task.
fn spawn<T: 'static>(tasks: &'static Executor, task: impl Future<Output = T> + 'static) {
    let storage = Box::leak(Box::new(TaskStorage::new()));
    // New storage is always free.
    if let Ok(token) = storage.spawn(|| task) {
        tasks.spawner().spawn(token);
    }
}
