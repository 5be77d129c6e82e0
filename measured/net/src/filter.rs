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
//! * put in: that there is no router, at the beginning and when all three solicitations went out (RFC 4861, section 6.3.7): smoltcp 0.13 looks
//!   again and again whether the time for a fourth has come, and without any prefix it forgets all times for which it has to wait.
//!
//! Of what it sends, refusals of connections are held back ([`backlog`]).

mod rules;

#[cfg(feature = "slaac")]
use core::cell::Cell;
#[cfg(feature = "slaac")]
use core::future::Future;
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

use crate::backlog;
use crate::watch::{Dropped, Watch};

/// The header of Ethernet, in bytes.
const ETHERNET: usize = 14;
/// The header of IPv6, in bytes.
#[cfg(feature = "ipv6")]
const IPV6: usize = 40;
/// IPv6 among the kinds of Ethernet packets.
#[cfg(feature = "ipv6")]
const IS_IPV6: [u8; 2] = [0x86, 0xdd];
/// The number of ICMPv6 among the protocols of IP.
#[cfg(feature = "ipv6")]
const ICMPV6_NUMBER: u8 = 58;
/// Kinds of messages of ICMPv6 (RFC 4861, section 4).
#[cfg(feature = "slaac")]
const ROUTER_SOLICITATION: u8 = 133;
#[cfg(feature = "slaac")]
const ROUTER_ADVERTISEMENT: u8 = 134;
/// How many solicitations go out, and how many seconds apart (RFC 4861, section 10).
#[cfg(feature = "slaac")]
const SOLICITATIONS: u8 = 3;
#[cfg(feature = "slaac")]
const APART_SECONDS: u64 = 4;

/// The address of all nodes on a link.
#[cfg(feature = "slaac")]
const ALL_NODES: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// The longest packet that is put in, in bytes: IPv6 with a router's announcement and one prefix.
const LONGEST: usize = 102;

/// Has the stack use a router that announces itself, for ever: one, as long as it says that it is there. It is for stacks that make their
/// address of what a router announces.
#[cfg(feature = "slaac")]
pub async fn use_routers(stack: Stack<'_>, watch: &Watch) -> ! {
    let (mut is_ours, mut used) = (false, None);
    loop {
        let end = used.map_or(Instant::MAX, |(_, until)| until);
        match select(watch.routers.wait(), Timer::at(end)).await {
            // Another one may be forged. If the one in use has gone, the next one that speaks is taken.
            Either::First((router, _)) if used.is_some_and(|(known, _)| known != router) => {
                continue;
            }
            Either::First(told) => used = Some(told).filter(|(_, until)| *until > Instant::now()),
            Either::Second(()) => used = None,
        }
        let gateway = used.map(|(router, _)| router);
        for _ in 0..10 {
            // The stack makes its address in its next turn.
            Timer::after_millis(10).await;
            if let Some(config) = stack.config_v6() {
                is_ours |= gateway.is_some() && config.gateway.is_none();
                // Addresses that the stack has made meanwhile are lost by that.
                if is_ours && config.gateway != gateway {
                    stack.set_config_v6(ConfigV6::Static(StaticConfigV6 { gateway, ..config }));
                }
                break;
            }
        }
    }
}

/// Waits for ever: no address is made of what a router announces.
#[cfg(not(feature = "slaac"))]
pub async fn use_routers(_: Stack<'_>, _: &Watch) -> ! {
    core::future::pending().await
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
        let once = (sum & 0xffff) + (sum >> 16);
        let sum = !(once + (once >> 16)) as u16;
        packet.bytes[ETHERNET + IPV6 + 2..][..2].copy_from_slice(&sum.to_be_bytes());
        packet
    }
}

/// Says that there is no router, with a prefix of which no address is made, for eight years. It comes from an address that none has.
#[cfg(feature = "slaac")]
fn no_router(own: HardwareAddress) -> Packet {
    const FROM: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let hardware = match own {
        HardwareAddress::Ethernet(own) => own,
        _ => [0; 6],
    };
    // Its length of 0 bits, that addresses are to be made of it, and how long it is valid and preferred (RFC 4861, section 4.6.2).
    const PREFIX: [u8; 12] = [
        3, 4, 0, 0x40, 0x0f, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff,
    ];
    let mut announcement = [0; 16];
    announcement[0] = ROUTER_ADVERTISEMENT;
    Packet::icmpv6(
        hardware,
        &FROM,
        &ALL_NODES,
        [&announcement, &PREFIX, &[0; 20]],
    )
}

/// A device whose packets pass a filter.
pub struct Filter<D> {
    device: D,
    state: State,
    sent: Sent,
    /// How many turns the stack gets no packet: when it was told that there is no router, it forgets its neighbours at the end of the next one.
    #[cfg(feature = "slaac")]
    turns: u8,
}

impl<D> Filter<D> {
    /// Puts a filter between a device and the stack.
    pub const fn new(device: D, watch: &'static Watch) -> Self {
        Self {
            device,
            state: State::new(watch),
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

    fn receive(
        &mut self,
        context: &mut Context<'_>,
    ) -> Option<(Self::RxToken<'_>, Self::TxToken<'_>)> {
        let sent = &self.sent;
        #[cfg(feature = "slaac")]
        if sent.lacks_router.replace(false) {
            self.state.own = Some(no_router(self.device.hardware_address()));
            self.turns = 2;
        } else if self.state.own.is_none() && self.turns > 0 {
            self.turns -= 1;
            context.waker().wake_by_ref();
            return None;
        }
        #[cfg(feature = "slaac")]
        if let Some(router) = self.state.router.take() {
            sent.solicitations.set(SOLICITATIONS);
            sent.watch.routers.signal(router);
            // The stack looks at what it was told at the beginning of its next turn, whenever that is.
            context.waker().wake_by_ref();
        }
        if let Some(own) = self.state.own {
            let token = self.device.transmit(context)?;
            self.state.own = None;
            return Some((Received::Own(own), ToSend { token, sent }));
        }
        let device = self.device.receive(context);
        // The stack forgets when to ask again if it has to wait for nothing else.
        #[cfg(feature = "slaac")]
        if device.is_none() && (1..SOLICITATIONS).contains(&sent.solicitations.get()) {
            let _ = pin!(Timer::after_secs(APART_SECONDS)).poll(context);
        }
        let (received, token) = device?;
        let received = Received::Device(received, &mut self.state);
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

/// A packet for the stack.
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
                if state.passes(packet, Instant::now) {
                    return read(packet);
                }
                state.watch.lose(Dropped::Filter, 1);
                // An empty one is none to the stack.
                read(&mut [])
            }),
            Self::Own(mut packet) => read(&mut packet.bytes[..packet.length]),
        }
    }
}

/// What is looked for in what is sent.
struct Sent {
    watch: &'static Watch,
    #[cfg(feature = "slaac")]
    solicitations: Cell<u8>,
    /// The stack is to be told that there is no router.
    #[cfg(feature = "slaac")]
    lacks_router: Cell<bool>,
}

/// A packet to be sent, unless it refuses a client of the service.
pub struct ToSend<'a, T> {
    token: T,
    sent: &'a Sent,
}

impl<T: TxToken> TxToken for ToSend<'_, T> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
        let mut longest = [0; backlog::LONGEST];
        // What is longer is nothing that is looked for, and is filled where it is sent from.
        let Some(packet) = longest.get_mut(..bytes) else {
            return self.token.consume(bytes, fill);
        };
        let filled = fill(packet);
        let watch = self.sent.watch;
        if backlog::refuses(packet, watch.port) {
            watch.turned_away.signal(());
            watch.lose(Dropped::Connections, 1);
            return filled;
        }
        #[cfg(feature = "slaac")]
        if packet.get(ETHERNET + IPV6) == Some(&ROUTER_SOLICITATION)
            && packet[12..ETHERNET] == IS_IPV6
            && packet[ETHERNET + 6] == ICMPV6_NUMBER
        {
            let count = self.sent.solicitations.get().saturating_add(1);
            self.sent.solicitations.set(count);
            self.sent.lacks_router.set(count >= SOLICITATIONS);
        }
        self.token.consume(bytes, |to| to.copy_from_slice(packet));
        filled
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    use super::*;

    struct Wire<'a>(&'a mut Vec<u8>);

    impl TxToken for Wire<'_> {
        fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
            self.0.resize(bytes, 0);
            fill(self.0)
        }
    }

    #[test]
    fn all_is_sent_but_refusals_which_are_told() {
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
