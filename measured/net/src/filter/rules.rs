//! The rules: which packets pass, and which neighbours are reported to the stack.

#[cfg(feature = "slaac")]
use core::net::Ipv6Addr;

use embassy_time::{Duration, Instant};

#[cfg(feature = "slaac")]
use super::{ALL_NODES, ROUTER_ADVERTISEMENT};
use super::{ETHERNET, Packet};
#[cfg(feature = "ipv6")]
use super::{ETHERTYPE_IPV6, ICMPV6_NUMBER, IPV6};
#[cfg(feature = "dhcp")]
use crate::settings::is_host_v4;
use crate::watch::Watch;

/// The header of IPv4 without options, in bytes.
const IPV4: usize = 20;
/// The header of UDP, in bytes, and the port of DHCP clients.
#[cfg(feature = "dhcp")]
const UDP: usize = 8;
#[cfg(feature = "dhcp")]
const DHCP_CLIENT: u16 = 68;
/// EtherTypes.
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];
/// The protocol numbers of ICMP and UDP.
const ICMP_NUMBER: u8 = 1;
const UDP_NUMBER: u8 = 17;
/// Types of ICMPv6 messages (RFC 4861, section 4; RFC 4443, section 4.1).
#[cfg(feature = "ipv6")]
const NEIGHBOR_ADVERTISEMENT: u8 = 136;
#[cfg(feature = "ipv6")]
const ECHO_REQUEST: u8 = 128;
/// The address of loopback.
#[cfg(feature = "ipv6")]
const LOOPBACK: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// Maximum number of routers at once: less than half of the stack's table, where an expired router
/// may remain for a moment.
#[cfg(feature = "slaac")]
const ROUTERS: usize = 4;

/// The number of neighbours that are not reported again, and for how many seconds.
const NEIGHBORS: usize = 16;
const REMEMBERED_SECONDS: u64 = 1;

/// A neighbour that was reported to the stack.
#[derive(Clone, Copy, Debug)]
struct Neighbor {
    /// Its address and that of the stack; of IPv4 in the first bytes. The stack ignores reports to
    /// other addresses.
    addresses: [[u8; 16]; 2],
    /// The hardware addresses, the stack's first.
    hardware: [u8; 12],
    until: Instant,
}

/// The state of the filter.
pub struct State {
    pub(super) watch: &'static Watch,
    /// A packet to inject.
    pub(super) pending: Option<Packet>,
    neighbors: [Neighbor; NEIGHBORS],
    /// Routers, and when they expire.
    #[cfg(feature = "slaac")]
    routers: heapless::Vec<([u8; 16], Instant), ROUTERS>,
    /// The last router that announced itself, until it is reported, and the end of its lifetime.
    #[cfg(feature = "slaac")]
    pub(super) router: Option<(Ipv6Addr, Instant)>,
}

impl State {
    pub(super) const fn new(watch: &'static Watch) -> Self {
        const NOBODY: Neighbor = Neighbor {
            addresses: [[0; 16]; 2],
            hardware: [0; 12],
            until: Instant::MIN,
        };
        Self {
            watch,
            pending: None,
            neighbors: [NOBODY; NEIGHBORS],
            #[cfg(feature = "slaac")]
            routers: heapless::Vec::new(),
            #[cfg(feature = "slaac")]
            router: None,
        }
    }

    /// Returns whether a packet may reach the stack.
    pub(super) fn passes(&mut self, packet: &[u8], now: impl Fn() -> Instant) -> bool {
        let Some((ethernet, ip)) = packet.split_first_chunk::<ETHERNET>() else {
            return true;
        };
        // No answer goes to a group address, and the stack would wait for another one.
        if ethernet[6] & 1 != 0 {
            return false;
        }
        // A truncated packet passes: the stack drops it.
        let passes = match [ethernet[12], ethernet[13]] {
            ETHERTYPE_IPV4 => self.passes_ipv4(ethernet, ip, now),
            #[cfg(feature = "ipv6")]
            ETHERTYPE_IPV6 => self.passes_ipv6(ethernet, ip, now),
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
        // Nobody can be answered there: this network, loopback, groups and all (RFC 1122, section
        // 3.2.1.3).
        if matches!(from[0], 0 | 127 | 224..) {
            return Some(false);
        }
        // A ping to all would be answered by all.
        if head[9] == ICMP_NUMBER && ethernet[0] & 1 != 0 {
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
        if port == self.watch.port {
            self.watch.offer();
            let mut addresses = [[0; 16]; 2];
            addresses[0][..4].copy_from_slice(&from);
            addresses[1][..4].copy_from_slice(&to);
            if let Some(hardware) = self.is_new(ethernet, addresses, from[3], now) {
                let own = &ethernet[..6];
                let head = [0, 1, 8, 0, 6, 4, 0, 2];
                self.pending = Some(Packet::new([
                    own,
                    &hardware,
                    &ETHERTYPE_ARP,
                    &head,
                    &hardware,
                    &from,
                    own,
                    &to,
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
            // Hop-by-hop options, which the stack skips.
            protocol = *payload.first()?;
            payload = payload.get(8 * (1 + usize::from(*payload.get(1)?))..)?;
        }
        // Groups and loopback; a ping to all.
        let is_ping = protocol == ICMPV6_NUMBER && payload.first() == Some(&ECHO_REQUEST);
        if from[0] == 0xff || from == LOOPBACK || is_ping && ethernet[0] & 1 != 0 {
            return Some(false);
        }
        match protocol {
            #[cfg(feature = "slaac")]
            ICMPV6_NUMBER if payload.first() == Some(&ROUTER_ADVERTISEMENT) => {
                let lifetime = u16::from_be_bytes(bytes(payload, 6)?);
                let is_good = is_accepted(head, payload) && makes_addresses(payload.get(16..)?);
                return Some(is_good && self.has_room(from, lifetime, now()));
            }
            UDP_NUMBER if bytes(payload, 2)? == self.watch.port.to_be_bytes() => {
                self.watch.offer();
                // Other senders are behind a router: nearly every prefix has 64 bits.
                let is_near = from[..8] == to[..8] || from[..2] == [0xfe, 0x80];
                if is_near && let Some(hardware) = self.is_new(ethernet, [from, to], from[15], now)
                {
                    /// With the override flag.
                    const OVERRIDES: [u8; 8] = [NEIGHBOR_ADVERTISEMENT, 0, 0, 0, 0x20, 0, 0, 0];
                    let [a, b, c, d, e, f] = hardware;
                    let its = [2, 1, a, b, c, d, e, f];
                    let own = bytes(ethernet, 0)?;
                    self.pending = Some(Packet::icmpv6(own, &from, &to, [&OVERRIDES, &from, &its]));
                }
            }
            _ => {}
        }
        Some(true)
    }

    /// Returns the hardware address of a neighbour that was not reported just now.
    fn is_new(
        &mut self,
        ethernet: &[u8; ETHERNET],
        addresses: [[u8; 16]; 2],
        last: u8,
        now: impl Fn() -> Instant,
    ) -> Option<[u8; 6]> {
        let hardware = bytes(ethernet, 0)?;
        let (known, now) = (&mut self.neighbors[usize::from(last) % NEIGHBORS], now());
        let is_known =
            (known.addresses, known.hardware) == (addresses, hardware) && now < known.until;
        if is_known {
            return None;
        }
        *known = Neighbor {
            addresses,
            hardware,
            until: now + Duration::from_secs(REMEMBERED_SECONDS),
        };
        bytes(ethernet, 6)
    }

    /// Returns whether the stack has room for a router, which announces itself for some seconds.
    #[cfg(feature = "slaac")]
    fn has_room(&mut self, router: [u8; 16], lifetime: u16, now: Instant) -> bool {
        let until = now + Duration::from_secs(lifetime.into());
        self.routers.retain(|(_, until)| *until > now);
        let has_room = match self.routers.iter_mut().find(|(known, _)| *known == router) {
            // Never earlier: the stack may ignore that it leaves.
            Some((_, known)) => {
                *known = until.max(*known);
                true
            }
            None => lifetime == 0 || self.routers.push((router, until)).is_ok(),
        };
        if has_room {
            self.router = Some((router.into(), until));
        }
        has_room
    }
}

/// Returns the bytes at an offset.
fn bytes<const N: usize>(of: &[u8], at: usize) -> Option<[u8; N]> {
    of.get(at..)?.first_chunk().copied()
}

/// Returns whether the routers in a DHCP message are hosts (RFC 2132, section 3.5).
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

/// Returns whether the stack accepts a router advertisement: from this link, and from a link-local
/// address (RFC 4861, section 6.1.2).
#[cfg(feature = "slaac")]
fn is_accepted(head: &[u8; IPV6], message: &[u8]) -> bool {
    const LINK: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];
    let is_for_us = head[24..32] == LINK || head[24..] == ALL_NODES;
    head[7] == 255 && message[1] == 0 && head[8..16] == LINK && is_for_us
}

/// Returns whether the prefixes of a router lead to valid addresses: neither those of groups nor
/// the injected one (RFC 4861, section 4.6).
#[cfg(feature = "slaac")]
fn makes_addresses(mut options: &[u8]) -> bool {
    const PREFIX: u8 = 3;
    while let [kind, length, ..] = *options {
        let Some((option, rest)) = options.split_at_checked(8 * usize::from(length)) else {
            return true;
        };
        let is_bad = |prefix: &[u8]| prefix.first() == Some(&0xff) || *prefix == [0; 16];
        if kind == PREFIX && option.get(16..).is_some_and(is_bad) {
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
