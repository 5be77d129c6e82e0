//! What the stack gets to see of the network.
//!
//! The stack ends on what some senders may say, or waits for what they never say. So packets that it does not outlast are dropped on
//! their way to it, and packets that it lacks are put among the others:
//!
//! * dropped: offers of DHCP with a router or a sender that is no host, announcements of IPv6 that make no address of a host or come from
//!   more routers than have room, and packets from 0.0.0.0;
//! * put in: who sent a datagram to the service, as an answer to the question that the stack would have to ask before it replies. The stack
//!   sends no other datagram meanwhile, so one who has forged his address would keep all others waiting;
//! * told: routers, which smoltcp 0.13 passes over as long as there is a route of IPv4 ([`use_routers`]);
//! * put in: that there is no router, when all three solicitations went out (RFC 4861, section 6.3.7). smoltcp 0.13 looks again and again
//!   whether the time for a fourth has come.

use core::cell::Cell;
use core::net::Ipv6Addr;
use core::task::Context;

use embassy_net::Stack;
use embassy_net::driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
#[cfg(feature = "slaac")]
use embassy_net::{ConfigV6, StaticConfigV6};
use embassy_sync::blocking_mutex::raw::NoopRawMutex;
use embassy_sync::signal::Signal;
#[cfg(feature = "slaac")]
use embassy_time::Timer;
use embassy_time::{Duration, Instant};

#[cfg(feature = "dhcp")]
use crate::settings::is_host_v4;

/// The header of Ethernet, in bytes.
const ETHERNET: usize = 14;
/// The header of IPv4 without options, and that of IPv6, in bytes.
const IPV4: usize = 20;
#[cfg(feature = "ipv6")]
const IPV6: usize = 40;
/// The header of UDP, in bytes, and the port of clients of DHCP.
#[cfg(feature = "dhcp")]
const UDP: usize = 8;
#[cfg(feature = "dhcp")]
const DHCP_CLIENT: u16 = 68;
/// Kinds of Ethernet packets.
const IS_IPV4: [u8; 2] = [0x08, 0x00];
const IS_ARP: [u8; 2] = [0x08, 0x06];
#[cfg(feature = "ipv6")]
const IS_IPV6: [u8; 2] = [0x86, 0xdd];
/// Numbers of protocols of IP.
const UDP_NUMBER: u8 = 17;
#[cfg(feature = "ipv6")]
const ICMPV6_NUMBER: u8 = 58;
/// Kinds of messages of ICMPv6 (RFC 4861, section 4).
#[cfg(feature = "slaac")]
const ROUTER_SOLICITATION: u8 = 133;
#[cfg(feature = "slaac")]
const ROUTER_ADVERTISEMENT: u8 = 134;
#[cfg(feature = "ipv6")]
const NEIGHBOR_ADVERTISEMENT: u8 = 136;
/// How many solicitations go out (RFC 4861, section 10).
#[cfg(feature = "slaac")]
const SOLICITATIONS: u8 = 3;

/// How many routers there may be at once: less than half of what the stack's table holds, since one that is forgotten here may be in there
/// for a moment.
#[cfg(feature = "slaac")]
const ROUTERS: usize = 4;

/// How many neighbours are remembered, and for how many seconds: so long they are not told again.
const NEIGHBORS: usize = 16;
const REMEMBERED_SECONDS: u64 = 1;

/// The longest packet that is put in, in bytes: IPv6 with a neighbour's announcement.
const LONGEST: usize = 86;

/// Tells of a router of IPv6 that was not there before.
pub type Routers = Signal<NoopRawMutex, Ipv6Addr>;

/// Has the stack use each router that announces itself, for ever. It is for stacks that make their address of what a router announces.
pub async fn use_routers(stack: Stack<'_>, routers: &Routers) -> ! {
    #[cfg(feature = "slaac")]
    let mut is_ours = false;
    loop {
        let router = routers.wait().await;
        #[cfg(not(feature = "slaac"))]
        let _ = (stack, router);
        #[cfg(feature = "slaac")]
        for _ in 0..10 {
            // The stack makes its address in its next turn.
            Timer::after_millis(10).await;
            if let Some(config) = stack.config_v6() {
                is_ours |= config.gateway.is_none();
                if is_ours {
                    stack.set_config_v6(ConfigV6::Static(StaticConfigV6 {
                        gateway: Some(router),
                        ..config
                    }));
                }
                break;
            }
        }
    }
}

/// A device whose packets pass a filter.
pub struct Filter<D> {
    device: D,
    state: State,
    solicitations: Cell<u8>,
    #[cfg_attr(
        not(feature = "slaac"),
        expect(dead_code, reason = "there are none of IPv4")
    )]
    routers: &'static Routers,
}

impl<D> Filter<D> {
    /// Puts a filter between a device and the stack, for a service on a port.
    pub const fn new(device: D, port: u16, routers: &'static Routers) -> Self {
        Self {
            device,
            state: State::new(port),
            solicitations: Cell::new(0),
            routers,
        }
    }
}

impl<D: Driver> Driver for Filter<D> {
    type RxToken<'a>
        = Received<'a, D::RxToken<'a>>
    where
        Self: 'a;
    type TxToken<'a>
        = ToSend<'a, D::TxToken<'a>>
    where
        Self: 'a;

    fn receive(
        &mut self,
        context: &mut Context<'_>,
    ) -> Option<(Self::RxToken<'_>, Self::TxToken<'_>)> {
        let solicitations = &self.solicitations;
        #[cfg(feature = "slaac")]
        if solicitations.get() == SOLICITATIONS {
            solicitations.set(SOLICITATIONS + 1);
            self.state.own = Some(no_router(self.device.hardware_address()));
        }
        #[cfg(feature = "slaac")]
        if let Some(router) = self.state.router.take() {
            self.routers.signal(router.into());
            // The stack looks at what it was told at the beginning of its next turn, whenever that is.
            context.waker().wake_by_ref();
        }
        if let Some(own) = self.state.own {
            let token = self.device.transmit(context)?;
            self.state.own = None;
            let token = ToSend {
                token,
                solicitations,
            };
            return Some((Received::Own(own), token));
        }
        let (received, token) = self.device.receive(context)?;
        let token = ToSend {
            token,
            solicitations,
        };
        Some((Received::Device(received, &mut self.state), token))
    }

    fn transmit(&mut self, context: &mut Context<'_>) -> Option<Self::TxToken<'_>> {
        let token = self.device.transmit(context)?;
        let solicitations = &self.solicitations;
        Some(ToSend {
            token,
            solicitations,
        })
    }

    fn link_state(&mut self, context: &mut Context<'_>) -> LinkState {
        self.device.link_state(context)
    }

    fn capabilities(&self) -> Capabilities {
        self.device.capabilities()
    }

    fn hardware_address(&self) -> HardwareAddress {
        self.device.hardware_address()
    }
}

/// A packet for the stack.
#[derive(Debug)]
pub enum Received<'a, T> {
    /// One that has come.
    Device(T, &'a mut State),
    /// One that is put in.
    Own(Packet),
}

impl<T: RxToken> RxToken for Received<'_, T> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        match self {
            Self::Device(token, state) => token.consume(|packet| {
                let passes = state.passes(packet, Instant::now);
                // An empty one is none to the stack.
                read(if passes { packet } else { &mut [] })
            }),
            Self::Own(mut packet) => read(&mut packet.bytes[..packet.length]),
        }
    }
}

/// A packet to be sent.
#[derive(Debug)]
pub struct ToSend<'a, T> {
    token: T,
    #[cfg_attr(
        not(feature = "slaac"),
        expect(dead_code, reason = "no router is asked for")
    )]
    solicitations: &'a Cell<u8>,
}

impl<T: TxToken> TxToken for ToSend<'_, T> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
        self.token.consume(bytes, |packet| {
            let filled = fill(packet);
            #[cfg(feature = "slaac")]
            if packet.get(ETHERNET + IPV6) == Some(&ROUTER_SOLICITATION)
                && packet[12..ETHERNET] == IS_IPV6
                && packet[ETHERNET + 6] == ICMPV6_NUMBER
            {
                let count = self.solicitations.get().saturating_add(1);
                self.solicitations.set(count);
            }
            filled
        })
    }
}

/// A packet that is put in.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Packet {
    fn new<const N: usize>(parts: [&[u8]; N]) -> Self {
        let mut packet = Self {
            bytes: [0; LONGEST],
            length: 0,
        };
        for part in parts {
            packet.bytes[packet.length..][..part.len()].copy_from_slice(part);
            packet.length += part.len();
        }
        packet
    }

    /// Makes a packet of ICMPv6, with its checksum.
    #[cfg(feature = "ipv6")]
    fn icmpv6(hardware: [u8; 6], from: &[u8; 16], to: &[u8; 16], message: [&[u8]; 3]) -> Self {
        let length = message.iter().map(|part| part.len()).sum::<usize>() as u8;
        let [one, two, three] = message;
        let head = [0x60, 0, 0, 0, 0, length, ICMPV6_NUMBER, 255];
        let mut packet = Self::new([
            &hardware, &[0; 6], &IS_IPV6, &head, from, to, one, two, three,
        ]);
        // Addresses and message, with length and protocol (RFC 8200, section 8.1).
        let mut sum = u32::from(length) + u32::from(ICMPV6_NUMBER);
        for pair in packet.bytes[ETHERNET + 8..packet.length].chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], pair[1]]));
        }
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet.bytes[ETHERNET + IPV6 + 2..][..2].copy_from_slice(&sum.to_be_bytes());
        packet
    }
}

/// Says that there is no router. It comes from an address that none has.
#[cfg(feature = "slaac")]
fn no_router(own: HardwareAddress) -> Packet {
    const FROM: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const ALL: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let hardware = match own {
        HardwareAddress::Ethernet(own) => own,
        _ => [0; 6],
    };
    let message = [&[ROUTER_ADVERTISEMENT, 0, 0, 0][..], &[0; 12], &[]];
    Packet::icmpv6(hardware, &FROM, &ALL, message)
}

/// A neighbour of whom the stack was told.
#[derive(Clone, Copy, Debug)]
struct Neighbor {
    /// That of IPv4 in the first bytes.
    address: [u8; 16],
    hardware: [u8; 6],
    until: Instant,
}

/// What the filter remembers.
#[derive(Debug)]
pub struct State {
    port: u16,
    own: Option<Packet>,
    neighbors: [Neighbor; NEIGHBORS],
    /// Routers, and when they are forgotten.
    #[cfg(feature = "slaac")]
    routers: heapless::Vec<([u8; 16], Instant), ROUTERS>,
    /// The last new one, of which nobody was told.
    #[cfg(feature = "slaac")]
    router: Option<[u8; 16]>,
}

impl State {
    const fn new(port: u16) -> Self {
        const NOBODY: Neighbor = Neighbor {
            address: [0; 16],
            hardware: [0; 6],
            until: Instant::MIN,
        };
        Self {
            port,
            own: None,
            neighbors: [NOBODY; NEIGHBORS],
            #[cfg(feature = "slaac")]
            routers: heapless::Vec::new(),
            #[cfg(feature = "slaac")]
            router: None,
        }
    }

    /// Says whether the stack may see a packet.
    fn passes(&mut self, packet: &[u8], now: impl Fn() -> Instant) -> bool {
        let Some((ethernet, ip)) = packet.split_first_chunk() else {
            return true;
        };
        // What is cut short passes: the stack drops it.
        let passes = match [ethernet[12], ethernet[13]] {
            IS_IPV4 => self.passes_ipv4(ethernet, ip, now),
            #[cfg(feature = "ipv6")]
            IS_IPV6 => self.passes_ipv6(ethernet, ip, now),
            _ => None,
        };
        passes.unwrap_or(true)
    }

    fn passes_ipv4(
        &mut self,
        ethernet: &[u8; ETHERNET],
        ip: &[u8],
        now: impl Fn() -> Instant,
    ) -> Option<bool> {
        let head = ip.first_chunk::<IPV4>()?;
        let (from, to) = (bytes::<4>(head, 12)?, bytes::<4>(head, 16)?);
        if from == [0; 4] {
            return Some(false);
        }
        if head[9] != UDP_NUMBER {
            return None;
        }
        let udp = ip.get(usize::from(head[0] & 15) * 4..)?;
        let port = u16::from_be_bytes(bytes(udp, 2)?);
        #[cfg(feature = "dhcp")]
        if port == DHCP_CLIENT {
            return Some(is_host_v4(&from.into()) && leads_to_hosts(udp.get(UDP..)?));
        }
        if port == self.port {
            let mut address = [0; 16];
            address[..4].copy_from_slice(&from);
            if let Some(hardware) = self.is_new(ethernet, address, from[3], now) {
                let own = &ethernet[..6];
                let head = [0, 1, 8, 0, 6, 4, 0, 2];
                self.own = Some(Packet::new([
                    own, &hardware, &IS_ARP, &head, &hardware, &from, own, &to,
                ]));
            }
        }
        Some(true)
    }

    #[cfg(feature = "ipv6")]
    fn passes_ipv6(
        &mut self,
        ethernet: &[u8; ETHERNET],
        ip: &[u8],
        now: impl Fn() -> Instant,
    ) -> Option<bool> {
        let (head, mut payload) = ip.split_first_chunk::<IPV6>()?;
        let (from, to) = (bytes::<16>(head, 8)?, bytes::<16>(head, 24)?);
        let mut protocol = head[6];
        if protocol == 0 {
            // Options for all hops, which the stack passes over.
            protocol = *payload.first()?;
            payload = payload.get(8 * (1 + usize::from(*payload.get(1)?))..)?;
        }
        match protocol {
            #[cfg(feature = "slaac")]
            ICMPV6_NUMBER if payload.first() == Some(&ROUTER_ADVERTISEMENT) => {
                let lifetime = u16::from_be_bytes(bytes(payload, 6)?);
                let is_good = makes_addresses(payload.get(16..)?);
                return Some(is_good && self.has_room(from, lifetime, now()));
            }
            UDP_NUMBER if bytes(payload, 2)? == self.port.to_be_bytes() => {
                // Others are behind a router: nearly every network has 64 bits.
                let is_near = from[..8] == to[..8] || from[..2] == [0xfe, 0x80];
                if is_near && let Some(hardware) = self.is_new(ethernet, from, from[15], now) {
                    /// It counts more than what is known.
                    const OVERRIDES: [u8; 8] = [NEIGHBOR_ADVERTISEMENT, 0, 0, 0, 0x20, 0, 0, 0];
                    let [a, b, c, d, e, f] = hardware;
                    let its = [2, 1, a, b, c, d, e, f];
                    let own = bytes(ethernet, 0)?;
                    self.own = Some(Packet::icmpv6(own, &from, &to, [&OVERRIDES, &from, &its]));
                }
            }
            _ => {}
        }
        Some(true)
    }

    /// Returns the hardware address of a neighbour if the stack was not told of it just now.
    fn is_new(
        &mut self,
        ethernet: &[u8; ETHERNET],
        address: [u8; 16],
        last: u8,
        now: impl Fn() -> Instant,
    ) -> Option<[u8; 6]> {
        let hardware = bytes::<6>(ethernet, 6)?;
        let (known, now) = (&mut self.neighbors[usize::from(last) % NEIGHBORS], now());
        let is_known = (known.address, known.hardware) == (address, hardware) && now < known.until;
        // A group has no address of its own.
        if is_known || hardware[0] & 1 != 0 {
            return None;
        }
        *known = Neighbor {
            address,
            hardware,
            until: now + Duration::from_secs(REMEMBERED_SECONDS),
        };
        Some(hardware)
    }

    /// Tells whether the stack has room for a router, which announces itself for so many seconds.
    #[cfg(feature = "slaac")]
    fn has_room(&mut self, router: [u8; 16], lifetime: u16, now: Instant) -> bool {
        let until = now + Duration::from_secs(lifetime.into());
        self.routers.retain(|(_, until)| *until > now);
        match self.routers.iter_mut().find(|(known, _)| *known == router) {
            // Never earlier: the stack may not believe that it leaves.
            Some((_, known)) => {
                *known = until.max(*known);
                true
            }
            None if lifetime == 0 => true,
            None => {
                let has_room = self.routers.push((router, until)).is_ok();
                self.router = has_room.then_some(router);
                has_room
            }
        }
    }
}

/// Returns some bytes from a place on.
fn bytes<const N: usize>(of: &[u8], at: usize) -> Option<[u8; N]> {
    of.get(at..)?.first_chunk().copied()
}

/// Whether the routers in a message of DHCP are hosts (RFC 2132, section 3.5).
#[cfg(feature = "dhcp")]
fn leads_to_hosts(message: &[u8]) -> bool {
    const OPTIONS: usize = 240;
    const ROUTER: u8 = 3;
    let mut options = message.get(OPTIONS..).unwrap_or_default();
    loop {
        match *options {
            [0, ref rest @ ..] => options = rest,
            [255, ..] | [] | [_] => return true,
            [kind, length, ref rest @ ..] => {
                let Some((value, rest)) = rest.split_at_checked(length.into()) else {
                    return true;
                };
                if kind == ROUTER
                    && !value
                        .first_chunk::<4>()
                        .is_some_and(|first| is_host_v4(&(*first).into()))
                {
                    return false;
                }
                options = rest;
            }
        }
    }
}

/// Whether the prefixes among a router's options are no groups' (RFC 4861, section 4.6).
#[cfg(feature = "slaac")]
fn makes_addresses(mut options: &[u8]) -> bool {
    const PREFIX: u8 = 3;
    while let [kind, length, ..] = *options {
        let Some((option, rest)) = options.split_at_checked(8 * usize::from(length)) else {
            return true;
        };
        if kind == PREFIX && option.get(16) == Some(&0xff) {
            return false;
        }
        if length == 0 {
            return true;
        }
        options = rest;
    }
    true
}

#[cfg(test)]
mod tests;
