//! The rules: which packets pass, and which neighbours are reported to the stack.

use core::net::Ipv4Addr;
#[cfg(feature = "slaac")]
use core::net::Ipv6Addr;

#[cfg(feature = "slaac")]
use embassy_time::Duration;
use embassy_time::Instant;

#[cfg(feature = "slaac")]
use super::ALL_NODES;
#[cfg(feature = "dhcp")]
use super::lease;
use super::neighbors::Neighbors;
use super::{ARP, ETHERNET, ETHERTYPE_ARP, Packet};
#[cfg(feature = "ipv6")]
use super::{ETHERTYPE_IPV6, ICMPV6_NUMBER, IPV6, ROUTER_ADVERTISEMENT};
use crate::settings::is_host_v4;
#[cfg(feature = "ipv6")]
use crate::watch::LOOPBACK;
use crate::watch::Watch;

/// The header of IPv4 without options, in bytes.
pub(super) const IPV4: usize = 20;
/// The header of UDP, in bytes.
pub(super) const UDP: usize = 8;
/// EtherTypes.
pub(super) const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
/// The protocol numbers of UDP and TCP.
pub(super) const UDP_NUMBER: u8 = 17;
#[cfg(feature = "tcp")]
pub(super) const TCP_NUMBER: u8 = 6;
/// A source port that cannot be answered (RFC 768).
const NO_PORT: [u8; 2] = [0, 0];
const ARP_REQUEST: u8 = 1;
const ARP_REPLY: u8 = 2;
/// Types of ICMPv6 messages (RFC 4861, section 4; RFC 4443, section 4.1).
#[cfg(feature = "ipv6")]
const NEIGHBOR_SOLICITATION: u8 = 135;
#[cfg(feature = "ipv6")]
const NEIGHBOR_ADVERTISEMENT: u8 = 136;
#[cfg(feature = "ipv6")]
const ECHO_REQUEST: u8 = 128;
/// The type of MLD queries (RFC 3810, section 5.1).
#[cfg(feature = "slaac")]
const GROUP_QUERY: u8 = 130;
/// The protocol number of hop-by-hop options.
#[cfg(feature = "ipv6")]
const HOP_BY_HOP: u8 = 0;
/// The sum over a valid NDP packet from the length field of its header on. Its checksum covers the
/// protocol as its own word; in the header it shares a word with the hop limit of 255.
#[cfg(feature = "ipv6")]
const NDP_SUM: u16 = u16::from_be_bytes([ICMPV6_NUMBER, 255]) - ICMPV6_NUMBER as u16;

/// Maximum number of routers at once: less than half of the stack's table, where an expired router
/// may remain for a moment.
#[cfg(feature = "slaac")]
const ROUTERS: usize = 4;

/// The state of the filter.
pub struct State {
    pub(super) watch: &'static Watch,
    /// A packet to inject, and one to send.
    pub(super) pending: Option<Packet>,
    pub(super) question: Option<Packet>,
    /// The hardware address of the card, and the static address with its mask.
    pub(super) hardware: [u8; 6],
    address: Option<[[u8; 4]; 2]>,
    neighbors: Neighbors,
    /// What DHCP agreed on, and whether the packet that passed last must be completed with that.
    #[cfg(feature = "dhcp")]
    pub(super) agreed: Option<lease::Agreed>,
    #[cfg(feature = "dhcp")]
    pub(super) is_thin: bool,
    /// Routers, and when they expire.
    #[cfg(feature = "slaac")]
    routers: heapless::Vec<([u8; 16], Instant), ROUTERS>,
    /// The last router that announced itself, until it is reported, and the end of its lifetime.
    #[cfg(feature = "slaac")]
    pub(super) router: Option<(Ipv6Addr, Instant)>,
}

impl State {
    pub(super) fn new(
        watch: &'static Watch,
        hardware: [u8; 6],
        address: Option<(Ipv4Addr, u8)>,
    ) -> Self {
        let mask = |prefix: u8| u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        Self {
            watch,
            pending: None,
            question: None,
            hardware,
            address: address.map(|(own, prefix)| [own.octets(), mask(prefix).to_be_bytes()]),
            neighbors: Neighbors::new(),
            #[cfg(feature = "dhcp")]
            agreed: None,
            #[cfg(feature = "dhcp")]
            is_thin: false,
            #[cfg(feature = "slaac")]
            routers: heapless::Vec::new(),
            #[cfg(feature = "slaac")]
            router: None,
        }
    }

    /// Returns the stack's address of IPv4 and its mask.
    #[inline(never)]
    fn own(&self) -> Option<[[u8; 4]; 2]> {
        #[cfg(feature = "dhcp")]
        let agreed = self.agreed.as_ref();
        #[cfg(feature = "dhcp")]
        let agreed = agreed.map(|agreed| [agreed.address, agreed.mask]);
        #[cfg(not(feature = "dhcp"))]
        let agreed = None;
        self.address.or(agreed)
    }

    /// Returns the stack's address of IPv4, if a sender can be its neighbour.
    fn own_beside(&self, sender: [u8; 4]) -> Option<[u8; 4]> {
        let [own, mask] = self.own()?;
        let bits = u32::from_ne_bytes;
        let is_near = (bits(own) ^ bits(sender)) & bits(mask) == 0;
        let is_near = is_near && own != sender && !is_all(sender, mask);
        (is_near && is_host_v4(&sender.into())).then_some(own)
    }

    /// Returns whether a packet may reach the stack.
    pub(super) fn passes(&mut self, packet: &[u8], now: impl Fn() -> Instant) -> bool {
        let Some((ethernet, ip)) = packet.split_first_chunk::<ETHERNET>() else {
            return true;
        };
        // No answer goes to such an address, and the stack would wait for another one.
        let Some(sender) = bytes(ethernet, 6).filter(|sender| self.is_other(*sender)) else {
            return false;
        };
        // Frames to other machines and truncated packets pass unread: the stack drops them.
        let is_to_group = ethernet[0] & 1 != 0;
        if !is_to_group && ethernet[..6] != self.hardware {
            return true;
        }
        // A frame to a group says nothing about its sender.
        let sender = (!is_to_group).then_some(sender);
        let passes = match [ethernet[12], ethernet[13]] {
            ETHERTYPE_IPV4 => self.passes_ipv4(sender, ip, now),
            ETHERTYPE_ARP => self.hears(ip, now),
            #[cfg(feature = "ipv6")]
            ETHERTYPE_IPV6 => self.passes_ipv6(sender, ip, now),
            _ => None,
        };
        passes.unwrap_or(true)
    }

    fn passes_ipv4(
        &mut self,
        sender: Option<[u8; 6]>,
        ip: &[u8],
        now: impl Fn() -> Instant,
    ) -> Option<bool> {
        let head = ip.first_chunk::<IPV4>()?;
        let (from, to) = (bytes::<4>(head, 12)?, bytes::<4>(head, 16)?);
        // Nobody can be answered there.
        if !is_host_v4(&from.into()) {
            return Some(false);
        }
        // The stack drops fragments: data would be read as ports.
        if head[6] & 0x3f != 0 || head[7] != 0 {
            return Some(false);
        }
        // A ping to all would be answered by all, a segment in the name of all (RFC 1122, section
        // 4.2.3.10).
        if head[9] != UDP_NUMBER {
            let [_, mask] = self.own().unwrap_or_default();
            return Some(sender.is_some() && !is_all(to, mask));
        }
        let start = usize::from(head[0] & 15) * 4;
        let total = usize::from(u16::from_be_bytes(bytes(head, 2)?));
        #[cfg_attr(not(feature = "dhcp"), allow(unused_variables))]
        let (ports, message) = datagram(ip.get(start..total)?)?;
        if !(0x45..0x50).contains(&head[0]) || folded(&ip[..start]) != u16::MAX {
            return None;
        }
        if ports[..2] == NO_PORT {
            return Some(false);
        }
        #[cfg(feature = "dhcp")]
        if ports == lease::PORTS {
            let is_good = lease::names_hosts(message);
            self.is_thin =
                is_good && lease::hears(&mut self.agreed, message, self.watch).unwrap_or(false);
            return Some(is_good);
        }
        if self.is_request(ports)
            && let Some(hardware) = sender
            && self.own_beside(from) == Some(to)
        {
            let finding = self.neighbors.sends(padded(from), hardware, now());
            let own = &self.hardware;
            if finding.tells {
                self.pending = Some(Packet::arp([own, &hardware], ARP_REPLY, [&from, &to]));
            }
            if finding.asks {
                self.question = Some(Packet::arp([&[0xff; 6], own], ARP_REQUEST, [&to, &from]));
            }
        }
        Some(true)
    }

    /// Keeps what a host says in ARP to the stack, which would believe in a host without hardware
    /// address, or with its own.
    fn hears(&mut self, message: &[u8], now: impl Fn() -> Instant) -> Option<bool> {
        let (hardware, sender) = (bytes::<6>(message, 8)?, bytes(message, 14)?);
        let to: [u8; 4] = bytes(message, 24)?;
        let is_arp = message[..7] == ARP && matches!(message[7], ARP_REQUEST | ARP_REPLY);
        let is_other = self.is_other(hardware);
        if is_arp && is_other && self.own_beside(sender) == Some(to) {
            self.neighbors.is_at(padded(sender), hardware, now());
        }
        Some(is_other)
    }

    /// Returns whether a hardware address can be another host's.
    #[inline(never)]
    fn is_other(&self, hardware: [u8; 6]) -> bool {
        hardware[0] & 1 == 0 && hardware != [0; 6] && hardware != self.hardware
    }

    /// Returns whether a datagram is for the service, and counts it.
    fn is_request(&self, ports: [u8; 4]) -> bool {
        let is_request = ports[2..] == self.watch.port.to_be_bytes();
        if is_request {
            self.watch.offer();
        }
        is_request
    }

    #[cfg(feature = "ipv6")]
    fn passes_ipv6(
        &mut self,
        sender: Option<[u8; 6]>,
        ip: &[u8],
        now: impl Fn() -> Instant,
    ) -> Option<bool> {
        let (head, rest) = ip.split_first_chunk::<IPV6>()?;
        let (from, to) = (bytes::<16>(head, 8)?, bytes::<16>(head, 24)?);
        let payload = rest.get(..usize::from(u16::from_be_bytes(bytes(head, 4)?)))?;
        if head[0] >> 4 != 6 {
            return None;
        }
        // Groups and loopback; a ping to all.
        let protocol = head[6];
        if from[0] == 0xff || from == LOOPBACK || to == LOOPBACK {
            return Some(false);
        }
        match (protocol, payload) {
            (ICMPV6_NUMBER, [ECHO_REQUEST, ..]) => return Some(sender.is_some()),
            // Only MLD needs these options, in messages to groups.
            (HOP_BY_HOP, _) => {
                #[cfg(feature = "slaac")]
                if to[0] == 0xff && payload.starts_with(&[ICMPV6_NUMBER, 0]) {
                    return Some(payload.get(8) == Some(&GROUP_QUERY));
                }
                return Some(false);
            }
            (
                ICMPV6_NUMBER,
                [
                    kind @ ROUTER_ADVERTISEMENT..=NEIGHBOR_ADVERTISEMENT,
                    code,
                    ..,
                ],
            ) => {
                let covered = &ip[4..IPV6 + payload.len()];
                if head[7] != 255 || *code != 0 || folded(covered) != NDP_SUM {
                    return Some(false);
                }
                #[cfg(feature = "slaac")]
                if *kind == ROUTER_ADVERTISEMENT {
                    let lifetime = u16::from_be_bytes(bytes(payload, 6)?);
                    let is_good = is_from_link(head) && makes_addresses(payload.get(16..)?);
                    return Some(is_good && self.has_room(from, lifetime, now()));
                }
                let (message, options) = payload.split_first_chunk::<24>()?;
                if self.misleads(options) {
                    return Some(false);
                }
                if *kind == NEIGHBOR_ADVERTISEMENT
                    && let [2, 1, its @ ..] = options
                    // The answer to a question of the filter.
                    && message[4] & 0x20 != 0
                    && message[8..] == from
                    && let Ok(hardware) = its.try_into()
                    && sender.is_some()
                    && self.is_near(from, to)
                {
                    self.neighbors.is_at(from, hardware, now());
                }
            }
            (UDP_NUMBER, _) => {
                let (ports, _) = datagram(payload)?;
                if ports[..2] == NO_PORT {
                    return Some(false);
                }
                if self.is_request(ports)
                    && let Some(hardware) = sender
                    && self.is_near(from, to)
                {
                    let finding = self.neighbors.sends(from, hardware, now());
                    let own = self.hardware;
                    if finding.tells {
                        // Without any flag: it never replaces what the stack knows.
                        let answer = neighbor(NEIGHBOR_ADVERTISEMENT, from, 2, hardware);
                        self.pending = Some(Packet::icmpv6([own, hardware], &from, &to, &answer));
                    }
                    if finding.asks {
                        // The group of hosts whose addresses end so (RFC 4291, section 2.7.1).
                        let mut group = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 0];
                        group[13..].copy_from_slice(&from[13..]);
                        let all = [0x33, 0x33, 0xff, from[13], from[14], from[15]];
                        let question = neighbor(NEIGHBOR_SOLICITATION, from, 1, own);
                        self.question = Some(Packet::icmpv6([all, own], &to, &group, &question));
                    }
                }
            }
            _ => {}
        }
        Some(true)
    }

    /// Returns whether an option makes the stack believe in a host without hardware address, or with
    /// its own.
    #[cfg(feature = "ipv6")]
    fn misleads(&self, options: &[u8]) -> bool {
        let (options, _) = options.as_chunks::<8>();
        options
            .iter()
            .any(|[kind, _, hardware @ ..]| matches!(kind, 1 | 2) && !self.is_other(*hardware))
    }

    /// Returns whether an IPv6 packet is to the stack, from a possible neighbour. Other senders are
    /// behind a router: nearly every prefix has 64 bits.
    #[cfg(feature = "ipv6")]
    fn is_near(&self, from: [u8; 16], to: [u8; 16]) -> bool {
        let is_near = from[..8] == to[..8] || from[..2] == [0xfe, 0x80];
        is_near && self.watch.owns(to) && !self.watch.owns(from)
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

/// Returns whether an address is that of all hosts of a network.
#[inline(never)]
fn is_all(address: [u8; 4], mask: [u8; 4]) -> bool {
    let (address, mask) = (u32::from_be_bytes(address), u32::from_be_bytes(mask));
    address | mask == u32::MAX && !mask > 1
}

/// Returns an IPv4 address as those of IPv6 are kept.
fn padded(address: [u8; 4]) -> [u8; 16] {
    u128::from(u32::from_le_bytes(address)).to_le_bytes()
}

/// Returns the ports of a datagram, and its payload, if the stack accepts its length.
#[inline(never)]
fn datagram(udp: &[u8]) -> Option<([u8; 4], &[u8])> {
    let payload = udp.get(UDP..usize::from(u16::from_be_bytes(bytes(udp, 4)?)))?;
    Some((bytes(udp, 0)?, payload))
}

/// Returns the bytes at an offset.
pub(super) fn bytes<const N: usize>(of: &[u8], at: usize) -> Option<[u8; N]> {
    of.get(at..)?.first_chunk().copied()
}

/// Writes a word at an offset.
#[cfg(any(feature = "dhcp", feature = "ipv6", feature = "tcp"))]
#[inline(never)]
pub(super) fn put(to: &mut [u8], at: usize, word: u16) {
    to[at..][..2].copy_from_slice(&word.to_be_bytes());
}

/// Returns the sum of words in ones' complement (RFC 1071).
pub(super) fn folded(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks();
    let words = words
        .iter()
        .map(|word| u32::from(u16::from_be_bytes(*word)));
    let last = rest.first().map_or(0, |last| u32::from(*last) << 8);
    let sum = words.sum::<u32>() + last;
    let once = (sum & 0xffff) + (sum >> 16);
    (once + (once >> 16)) as u16
}

/// Returns a message on a neighbour without flags, with an option that says who has the other address
/// (RFC 4861, sections 4.3, 4.4 and 4.6.1).
#[cfg(feature = "ipv6")]
fn neighbor(kind: u8, address: [u8; 16], option: u8, hardware: [u8; 6]) -> [u8; 32] {
    let mut message = [0; 32];
    message[0] = kind;
    message[8..24].copy_from_slice(&address);
    message[24..26].copy_from_slice(&[option, 1]);
    message[26..].copy_from_slice(&hardware);
    message
}

/// Returns whether the stack accepts an advertisement of a router: to this link, and from a
/// link-local address (RFC 4861, section 6.1.2).
#[cfg(feature = "slaac")]
fn is_from_link(head: &[u8; IPV6]) -> bool {
    const LINK: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];
    head[8..16] == LINK && (head[24..32] == LINK || head[24..] == ALL_NODES)
}

/// Returns whether the prefixes of a router lead to valid addresses: neither those of groups nor
/// the injected one, nor longer than an address, of which the stack panics (RFC 4861, section 4.6).
#[cfg(feature = "slaac")]
fn makes_addresses(mut options: &[u8]) -> bool {
    const PREFIX: u8 = 3;
    while let [kind, length, ..] = *options {
        let length = 8 * usize::from(length);
        // The stack drops a message with an option that is cut off, or empty.
        let Some((option, rest)) = options.split_at_checked(length).filter(|_| length > 0) else {
            return false;
        };
        let is_bad = |prefix: &[u8]| prefix.first() == Some(&0xff) || *prefix == [0; 16];
        if kind == PREFIX && (option[2] > 128 || option.get(16..).is_some_and(is_bad)) {
            return false;
        }
        options = rest;
    }
    true
}

#[cfg(test)]
mod tests;
