//! A filter between the card and the stack, for packets that smoltcp 0.13 cannot handle safely.
//!
//! Some packets make the stack panic or wait forever, and it waits for packets that never come. The
//! filter works around seven of its defects:
//!
//! * An invalid address makes it panic. DHCP messages whose router or sender is not a host are
//!   dropped, and so are IPv6 router advertisements that lead to an invalid address, those of more
//!   routers than its table holds, and packets from 0.0.0.0.
//! * It sends no other datagram while it waits for a neighbour's hardware address, so a forged
//!   sender would block all others. The filter injects the answer to that question, from a datagram
//!   that the stack accepts, unless the address is known to be another's ([`neighbors`]).
//! * It ignores a DHCP renewal that says only what has changed. The filter completes it ([`lease`]).
//! * It believes each RST inside of a connection's window, and any maximum size of segments
//!   ([`segments`]).
//! * It skips hop-by-hop options of IPv6, which would hide a segment or a router from the filter.
//!   Packets with them are dropped, except MLD queries.
//! * It ignores IPv6 routers while there is a route of IPv4: [`use_routers`] sets them.
//! * Without an IPv6 router it keeps the CPU busy after its third solicitation, and without any
//!   prefix it forgets all its timers. The filter injects an advertisement of no router, at the
//!   start and after the third solicitation (RFC 4861, section 6.3.7).
//!
//! Of the packets that are sent, refusals of connections are dropped ([`backlog`]).
//!
//! A patched copy of smoltcp would take the place of this module at the price of some 60,000 lines
//! in this repository, and a patch at build time would break with each of its releases.

#[cfg(feature = "dhcp")]
mod lease;
mod neighbors;
mod rules;
#[cfg(feature = "tcp")]
mod segments;

#[cfg(feature = "slaac")]
use core::cell::Cell;
#[cfg(feature = "slaac")]
use core::future::Future;
#[cfg(any(feature = "ipv6", feature = "tcp"))]
use core::ops::Range;
#[cfg(feature = "slaac")]
use core::pin::pin;
use core::task::Context;

#[cfg(feature = "slaac")]
use embassy_futures::select::{Either, select};
use embassy_net::Stack;
use embassy_net::driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
#[cfg(feature = "slaac")]
use embassy_net::{ConfigV6, StaticConfigV6};
use embassy_time::Instant;
#[cfg(feature = "slaac")]
use embassy_time::Timer;

pub use rules::State;
#[cfg(feature = "tcp")]
pub(crate) use segments::{Established, Peer};

use crate::backlog;
use crate::settings::Settings;
use crate::watch::{Dropped, Watch};

/// The header of Ethernet, in bytes.
const ETHERNET: usize = 14;
/// The header of IPv6, in bytes.
#[cfg(feature = "ipv6")]
const IPV6: usize = 40;
/// The EtherType of ARP, and what its messages for IPv4 begin with, before the operation (RFC 826).
const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];
const ARP: [u8; 7] = [0, 1, 8, 0, 6, 4, 0];
/// The EtherType of IPv6.
#[cfg(feature = "ipv6")]
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
/// The protocol number of ICMPv6.
#[cfg(feature = "ipv6")]
const ICMPV6_NUMBER: u8 = 58;
/// Types of ICMPv6 messages (RFC 4861, section 4).
#[cfg(feature = "slaac")]
const ROUTER_SOLICITATION: u8 = 133;
#[cfg(feature = "ipv6")]
const ROUTER_ADVERTISEMENT: u8 = 134;
/// The number of solicitations, and the interval between them in seconds (RFC 4861, section 10).
#[cfg(feature = "slaac")]
const SOLICITATIONS: u8 = 3;
#[cfg(feature = "slaac")]
const SOLICITATION_SECONDS: u64 = 4;

/// The address of all nodes on a link.
#[cfg(feature = "slaac")]
const ALL_NODES: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// Whether an address of IPv6 may come from SLAAC.
pub const HAS_SLAAC: bool = cfg!(feature = "slaac");

/// Maximum size of an injected packet, in bytes: an IPv6 router advertisement with one prefix.
const LONGEST: usize = 102;

/// Keeps the default IPv6 router in step with its advertisements, for stacks that use SLAAC. Never
/// returns.
#[cfg(feature = "slaac")]
pub async fn use_routers(stack: Stack<'_>, watch: &Watch) -> ! {
    let (mut is_ours, mut used) = (false, None);
    loop {
        let end = used.map_or(Instant::MAX, |(_, until)| until);
        match select(watch.routers.wait(), Timer::at(end)).await {
            // Another router may be forged: it is used only once the present one has gone.
            Either::First((router, _)) if used.is_some_and(|(known, _)| known != router) => {
                continue;
            }
            Either::First(router) => {
                used = Some(router).filter(|(_, until)| *until > Instant::now())
            }
            Either::Second(()) => used = None,
        }
        let gateway = used.map(|(router, _)| router);
        for _ in 0..10 {
            // The stack sets its address in its next turn.
            Timer::after_millis(10).await;
            if let Some(config) = stack.config_v6() {
                is_ours |= gateway.is_some() && config.gateway.is_none();
                // This drops addresses that the stack has set at the same time.
                if is_ours && config.gateway != gateway {
                    stack.set_config_v6(ConfigV6::Static(StaticConfigV6 { gateway, ..config }));
                }
                break;
            }
        }
    }
}

/// Never returns: without SLAAC there is nothing to do.
#[cfg(not(feature = "slaac"))]
pub async fn use_routers(_: Stack<'_>, _: &Watch) -> ! {
    core::future::pending().await
}

/// An injected packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Packet {
    fn new(parts: &[&[u8]]) -> Self {
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

    /// Returns an ARP message on addresses, the sender's first. The hardware address in question is all ones.
    fn arp(hardware: [&[u8; 6]; 2], operation: u8, addresses: [&[u8; 4]; 2]) -> Self {
        let ([to, from], [sender, target]) = (hardware, addresses);
        let operation = [operation];
        Self::new(&[
            to,
            from,
            &ETHERTYPE_ARP,
            &ARP,
            &operation,
            from,
            sender,
            to,
            target,
        ])
    }

    /// Writes the checksum of some of its bytes; what the field holds counts as well.
    #[cfg(any(feature = "ipv6", feature = "tcp"))]
    fn complete(&mut self, covered: Range<usize>, field: usize) {
        let sum = !rules::folded(&self.bytes[covered]);
        rules::put(&mut self.bytes, field, sum);
    }

    /// Returns an ICMPv6 packet between hardware addresses, the receiver's first, with its checksum.
    #[cfg(feature = "ipv6")]
    fn icmpv6(hardware: [[u8; 6]; 2], from: &[u8; 16], to: &[u8; 16], message: &[u8]) -> Self {
        let length = message.len() as u8;
        // Of the header, the length and the protocol are covered (RFC 8200, section 8.1).
        let covered = [0x60, 0, 0, 0, 0, length, 0, ICMPV6_NUMBER];
        let [receiver, sender] = &hardware;
        let mut packet = Self::new(&[
            receiver,
            sender,
            &ETHERTYPE_IPV6,
            &covered,
            from,
            to,
            message,
        ]);
        packet.complete(ETHERNET + 4..packet.length, ETHERNET + IPV6 + 2);
        packet.bytes[ETHERNET + 6..][..2].copy_from_slice(&[ICMPV6_NUMBER, 255]);
        packet
    }
}

/// Returns the advertisement of no router, from an unused address, with a prefix that leads to no
/// address and is valid for eight years.
#[cfg(feature = "slaac")]
fn no_router(hardware: [u8; 6]) -> Packet {
    const FROM: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // A length of 0 bits, for SLAAC, with its lifetimes (RFC 4861, section 4.6.2).
    const PREFIX: [u8; 12] = [
        3, 4, 0, 0x40, 0x0f, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff,
    ];
    let mut message = [0; 16 + 32];
    message[0] = ROUTER_ADVERTISEMENT;
    message[16..][..PREFIX.len()].copy_from_slice(&PREFIX);
    Packet::icmpv6([hardware, [0; 6]], &FROM, &ALL_NODES, &message)
}

/// A device with the filter in front of it.
pub struct Filter<D> {
    device: D,
    state: State,
    sent: Sent,
    /// The number of turns without a packet for the stack. After the advertisement of no router, it
    /// forgets its neighbours at the end of the next turn.
    #[cfg(feature = "slaac")]
    turns: u8,
}

impl<D: Driver> Filter<D> {
    /// Puts a filter between a device and the stack with these settings. The device drops
    /// datagrams and segments with a wrong checksum.
    pub fn new(device: D, watch: &'static Watch, settings: &Settings) -> Self {
        #[cfg(feature = "ipv6")]
        if let Some((own, _)) = settings.v6.address {
            watch.learn(own.octets());
        }
        let hardware = match device.hardware_address() {
            HardwareAddress::Ethernet(own) => own,
            _ => [0; 6],
        };
        Self {
            device,
            state: State::new(watch, hardware, settings.v4.address),
            #[cfg(feature = "slaac")]
            turns: 0,
            sent: Sent {
                watch,
                #[cfg(feature = "slaac")]
                solicitations: Cell::new(0),
                #[cfg(feature = "slaac")]
                lacks_router: Cell::new(true),
            },
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

    #[inline(never)]
    fn receive(
        &mut self,
        context: &mut Context<'_>,
    ) -> Option<(Self::RxToken<'_>, Self::TxToken<'_>)> {
        let sent = &self.sent;
        if let Some(packet) = &self.state.question
            && let Some(token) = self.device.transmit(context)
        {
            let question = &packet.bytes[..packet.length];
            let token = ToSend { token, sent };
            token.send(question.len(), &mut |to| to.copy_from_slice(question));
            self.state.question = None;
        }
        #[cfg(feature = "tcp")]
        {
            sent.watch.stack.borrow_mut().register(context.waker());
            if self.state.pending.is_none() && sent.watch.is_ending() {
                self.state.pending = segments::ending(sent.watch, &self.state.hardware);
            }
        }
        // A pending packet comes first.
        #[cfg(feature = "slaac")]
        if self.state.pending.is_none() {
            if sent.lacks_router.replace(false) {
                self.state.pending = Some(no_router(self.state.hardware));
                self.turns = 2;
            } else if self.turns > 0 {
                self.turns -= 1;
                context.waker().wake_by_ref();
                return None;
            }
        }
        #[cfg(feature = "slaac")]
        if let Some(router) = self.state.router.take() {
            sent.solicitations.set(SOLICITATIONS);
            sent.watch.routers.signal(router);
            // The stack acts on it at the start of its next turn.
            context.waker().wake_by_ref();
        }
        let state = &mut self.state;
        if state.pending.is_some() {
            let token = self.device.transmit(context)?;
            let received = Received { token: None, state };
            return Some((received, ToSend { token, sent }));
        }
        let device = self.device.receive(context);
        // The stack forgets its next solicitation if it waits for nothing else.
        #[cfg(feature = "slaac")]
        if device.is_none() && (1..SOLICITATIONS).contains(&sent.solicitations.get()) {
            let _ = pin!(Timer::after_secs(SOLICITATION_SECONDS)).poll(context);
        }
        let (received, token) = device?;
        let received = Received {
            token: Some(received),
            state,
        };
        Some((received, ToSend { token, sent }))
    }

    fn transmit(&mut self, context: &mut Context<'_>) -> Option<Self::TxToken<'_>> {
        let token = self.device.transmit(context)?;
        let sent = &self.sent;
        Some(ToSend { token, sent })
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

/// A packet for the stack: from the device, or the one that is injected.
pub struct Received<'a, T> {
    token: Option<T>,
    state: &'a mut State,
}

impl<T: RxToken> RxToken for Received<'_, T> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        let Self { token, state } = self;
        let Some(token) = token else {
            let mut packet = state.pending.take();
            let packet = packet.as_mut();
            return read(packet.map_or(&mut [], |packet| &mut packet.bytes[..packet.length]));
        };
        // It reads in one place: the stack's whole way of a packet is compiled into each.
        token.consume(|packet| {
            #[cfg(feature = "dhcp")]
            let mut whole;
            let packet = match state.passes(packet, Instant::now) {
                #[cfg(feature = "dhcp")]
                true if state.is_thin => {
                    state.is_thin = false;
                    let agreed = state.agreed.as_ref();
                    whole = agreed.and_then(|agreed| lease::completed(packet, agreed));
                    whole.as_deref_mut().unwrap_or(packet)
                }
                true => {
                    #[cfg(feature = "tcp")]
                    segments::changes(packet, state.watch);
                    packet
                }
                false => {
                    state.watch.lose(Dropped::Filter, 1);
                    // The stack ignores an empty packet.
                    &mut []
                }
            };
            read(packet)
        })
    }
}

/// Findings in the packets that are sent.
struct Sent {
    watch: &'static Watch,
    #[cfg(feature = "slaac")]
    solicitations: Cell<u8>,
    /// Whether an advertisement of no router must be injected.
    #[cfg(feature = "slaac")]
    lacks_router: Cell<bool>,
}

impl Sent {
    /// Keeps what a packet says about the stack.
    fn sees(&self, packet: &[u8]) {
        #[cfg(feature = "dhcp")]
        lease::asks(packet, self.watch);
        #[cfg(feature = "tcp")]
        segments::sends(packet, self.watch);
        #[cfg(feature = "ipv6")]
        if packet.get(12..ETHERNET) == Some(&ETHERTYPE_IPV6)
            && let Some(from) = rules::bytes(packet, ETHERNET + 8)
        {
            self.watch.learn(from);
        }
        let _ = packet;
    }

    /// Keeps what a short packet says. Returns whether it must be dropped: it refuses a client of
    /// the service.
    fn refuses(&self, packet: &[u8]) -> bool {
        self.sees(packet);
        if backlog::refuses(packet, self.watch.port) {
            self.watch.turned_away.signal(());
            self.watch.lose(Dropped::Connections, 1);
            return true;
        }
        #[cfg(feature = "slaac")]
        if packet.get(ETHERNET + IPV6) == Some(&ROUTER_SOLICITATION)
            && packet[12..ETHERNET] == ETHERTYPE_IPV6
            && packet[ETHERNET + 6] == ICMPV6_NUMBER
        {
            let count = self.solicitations.get().saturating_add(1);
            self.solicitations.set(count);
            self.lacks_router.set(count >= SOLICITATIONS);
        }
        false
    }
}

/// A packet to send, which is dropped if it refuses a client of the service.
pub struct ToSend<'a, T> {
    token: T,
    sent: &'a Sent,
}

impl<T: TxToken> TxToken for ToSend<'_, T> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
        let (mut fill, mut filled) = (Some(fill), None);
        self.send(bytes, &mut |to| filled = fill.take().map(|fill| fill(to)));
        filled.expect("it was filled")
    }
}

impl<T: TxToken> ToSend<'_, T> {
    /// Has a packet filled, once, and sends it. Compiled once, not for each kind of packet.
    #[inline(never)]
    fn send(self, bytes: usize, fill: &mut dyn FnMut(&mut [u8])) {
        let Self { token, sent } = self;
        let mut longest = [0; backlog::LONGEST];
        // A longer packet is not of interest, and is written to the device directly.
        let mut short = longest.get_mut(..bytes);
        if let Some(packet) = &mut short {
            fill(packet);
            if sent.refuses(packet) {
                return;
            }
        }
        token.consume(bytes, |to| match short {
            Some(packet) => to.copy_from_slice(packet),
            None => {
                fill(to);
                sent.sees(to);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;

    use super::*;

    /// The time driver of these tests, in which no time passes.
    #[unsafe(no_mangle)]
    fn _embassy_time_now() -> u64 {
        0
    }

    #[unsafe(no_mangle)]
    fn _embassy_time_schedule_wake(_: u64, _: &core::task::Waker) {}

    struct Wire<'a>(&'a mut Vec<u8>);

    impl TxToken for Wire<'_> {
        fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
            self.0.resize(bytes, 0);
            fill(self.0)
        }
    }

    /// A packet on its way to the stack.
    struct Arrived(Vec<u8>);

    impl RxToken for Arrived {
        fn consume<R, F: FnOnce(&mut [u8]) -> R>(mut self, read: F) -> R {
            read(&mut self.0)
        }
    }

    /// A card on which packets have arrived.
    struct Card {
        arrived: Vec<Vec<u8>>,
        sent: Vec<u8>,
    }

    impl Driver for Card {
        type RxToken<'a> = Arrived;
        type TxToken<'a> = Wire<'a>;

        fn receive(&mut self, _: &mut Context<'_>) -> Option<(Arrived, Wire<'_>)> {
            Some((Arrived(self.arrived.pop()?), Wire(&mut self.sent)))
        }

        fn transmit(&mut self, _: &mut Context<'_>) -> Option<Wire<'_>> {
            Some(Wire(&mut self.sent))
        }

        fn link_state(&mut self, _: &mut Context<'_>) -> LinkState {
            LinkState::Up
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities::default()
        }

        fn hardware_address(&self) -> HardwareAddress {
            HardwareAddress::Ethernet([2; 6])
        }
    }

    #[test]
    fn a_pending_packet_is_not_overwritten() {
        let datagram = [
            &[2; 6][..],
            &[6; 6],
            &[0x08, 0x00],
            &[0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0x66, 0xcf],
            &[10, 0, 0, 1, 10, 0, 0, 2],
            &[0xff, 0xff, 0, 53, 0, 8, 0, 0],
        ];
        let mut solicitation = [0; ETHERNET + IPV6 + 8];
        solicitation[12..ETHERNET].copy_from_slice(&ETHERTYPE_IPV6);
        solicitation[ETHERNET + 6] = ICMPV6_NUMBER;
        solicitation[ETHERNET + IPV6] = ROUTER_SOLICITATION;

        let card = Card {
            arrived: alloc::vec![datagram.concat()],
            sent: Vec::new(),
        };
        let watch = Box::leak(Box::new(Watch::new(53)));
        let mut settings = Settings::default();
        settings.v4.address = Some((Ipv4Addr::new(10, 0, 0, 2), 24));
        let mut filter = Filter::new(card, watch, &settings);
        filter.sent.lacks_router.set(false);
        let context = &mut Context::from_waker(core::task::Waker::noop());
        let mut received = |filter: &mut Filter<Card>| {
            let (token, _) = filter.receive(context)?;
            Some(token.consume(|packet| [packet[12], packet[13]]))
        };
        assert_eq!(received(&mut filter), Some([0x08, 0x00]));
        for _ in 0..SOLICITATIONS {
            let context = &mut Context::from_waker(core::task::Waker::noop());
            let token = filter.transmit(context).unwrap();
            token.consume(solicitation.len(), |to| to.copy_from_slice(&solicitation));
        }
        // The sender of the datagram, by ARP, before the lack of a router.
        assert_eq!(received(&mut filter), Some([0x08, 0x06]));
        assert_eq!(received(&mut filter), Some(ETHERTYPE_IPV6));
    }

    #[test]
    fn own_addresses_are_those_from_which_packets_are_sent_and_the_static_one() {
        let watch: &'static Watch = Box::leak(Box::new(Watch::new(53)));
        let card = Card {
            arrived: Vec::new(),
            sent: Vec::new(),
        };
        let mut settings = Settings::default();
        settings.v6.address = Some(([9; 16].into(), 64));
        let mut filter = Filter::new(card, watch, &settings);
        assert!(watch.owns([9; 16]));
        let mut sends = |kind: [u8; 2], from: [u8; 16], bytes: usize| {
            let mut packet = alloc::vec![0; bytes];
            packet[12..ETHERNET].copy_from_slice(&kind);
            packet[22..38].copy_from_slice(&from);
            let context = &mut Context::from_waker(core::task::Waker::noop());
            let token = filter.transmit(context).unwrap();
            token.consume(bytes, |to| to.copy_from_slice(&packet));
        };
        sends(ETHERTYPE_ARP, [7; 16], 60);
        sends(ETHERTYPE_IPV6, [0; 16], 60);
        assert!(!watch.owns([7; 16]) && !watch.owns([0; 16]));
        for (last, bytes) in [(1, 54), (2, 60), (3, 1_000)] {
            sends(ETHERTYPE_IPV6, [last; 16], bytes);
            assert!((1..=last).all(|last| watch.owns([last; 16])));
        }
        // As many as the stack can have.
        (10..16).for_each(|last| sends(ETHERTYPE_IPV6, [last; 16], 54));
        assert!(!watch.owns([9; 16]) && !watch.owns([1; 16]));
        assert!((2..4).chain(10..16).all(|last| watch.owns([last; 16])));
    }

    #[test]
    fn all_packets_are_sent_except_refusals_which_are_reported() {
        let watch: &Watch = Box::leak(Box::new(Watch::new(80)));
        let sent = Sent {
            watch,
            #[cfg(feature = "slaac")]
            solicitations: Cell::new(0),
            #[cfg(feature = "slaac")]
            lacks_router: Cell::new(false),
        };
        let wire_behind = |packet: &[u8]| {
            let mut wire = Vec::new();
            let token = ToSend {
                token: Wire(&mut wire),
                sent: &sent,
            };
            token.consume(packet.len(), |to| to.copy_from_slice(packet));
            wire
        };
        for bytes in 0..200 {
            let packet = alloc::vec![7; bytes];
            assert_eq!(wire_behind(&packet), packet);
        }
        assert!(!watch.turned_away.signaled());
        assert!(wire_behind(&backlog::refusal(80)).is_empty() && watch.turned_away.signaled());
        assert_eq!(watch.dropped(Dropped::Connections), 1);
    }
}
