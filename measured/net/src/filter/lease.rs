//! What the stack and a DHCP server agree on, as their messages say it.
//!
//! It is counted, and a renewal is completed if it lacks what the first agreement said: RFC 2131
//! lets a server leave that out (section 4.3.1), but the stack ignores an acknowledgement without
//! the mask of the network, and loses its address.

use core::net::Ipv4Addr;

use alloc::vec::Vec;

use super::ETHERNET;
use super::rules::{ETHERTYPE_IPV4, IPV4, UDP, UDP_NUMBER, bytes, folded, put};
use crate::settings::is_host_v4;
use crate::watch::{Lease, Watch};

/// The port of clients, and the ports of messages to them, the server's first.
pub(super) const CLIENT: u16 = 68;
pub(super) const PORTS: [u8; 4] = [0, 67, 0, 68];
/// The place of the options in a message (RFC 2131, section 2), and options (RFC 2132).
const OPTIONS: usize = 240;
const MASK: u8 = 1;
const ROUTER: u8 = 3;
const NAME_SERVERS: u8 = 6;
const KIND: u8 = 53;
/// Kinds of messages (RFC 2132, section 9.6).
const DISCOVER: u8 = 1;
const ACKNOWLEDGED: u8 = 5;
const REFUSED: u8 = 6;
/// The bytes of name servers that the stack keeps.
const SERVERS: usize = 12;

/// An agreement.
#[derive(Clone, Debug)]
pub struct Agreed {
    pub address: [u8; 4],
    pub mask: [u8; 4],
    /// Router and name servers, as options.
    options: heapless::Vec<u8, { 6 + 2 + SERVERS }>,
}

/// Counts a message of the client. The stack discovers servers again when it has lost its address.
pub fn asks(packet: &[u8], watch: &Watch) -> Option<()> {
    let message = packet.get(ETHERNET + IPV4 + UDP..)?;
    // As the stack builds it.
    if packet[12..ETHERNET] != ETHERTYPE_IPV4
        || packet[ETHERNET + 9] != UDP_NUMBER
        || packet[ETHERNET + IPV4..][..2] != CLIENT.to_be_bytes()
    {
        return None;
    }
    watch.transaction.set(bytes(message, 4)?);
    if *option(message, KIND)? == [DISCOVER] && watch.has_lease.replace(false) {
        watch.count(Lease::Lost);
    }
    Some(())
}

/// Counts a message to the client, and keeps what it agrees on. Returns whether it must be
/// completed.
pub fn hears(agreed: &mut Option<Agreed>, message: &[u8], watch: &Watch) -> Option<bool> {
    // Of another transaction, or forged.
    if bytes(message, 4)? != watch.transaction.get() {
        return Some(false);
    }
    let address = bytes(message, 16)?;
    match *option(message, KIND)? {
        [ACKNOWLEDGED] => {
            // The stack ignores others.
            let mask: Option<[u8; 4]> = option(message, MASK).and_then(|mask| mask.try_into().ok());
            let mask = mask.filter(|mask| {
                let hosts = !u32::from_be_bytes(*mask);
                hosts & hosts.wrapping_add(1) == 0
            });
            let had_one = watch.has_lease.get();
            let is_thin = mask.is_none()
                && had_one
                && agreed
                    .as_ref()
                    .is_some_and(|agreed| agreed.address == address);
            if let Some(mask) = mask {
                let mut options = heapless::Vec::new();
                // There is room for one of each.
                let _ = each(message).try_for_each(|(kind, value)| {
                    let value = match kind {
                        ROUTER if value.len() == 4 => value,
                        NAME_SERVERS => &value[..value.len().min(SERVERS)],
                        _ => return Ok(()),
                    };
                    options.extend_from_slice(&[kind, value.len() as u8])?;
                    options.extend_from_slice(value)
                });
                *agreed = Some(Agreed {
                    address,
                    mask,
                    options,
                });
            } else if !is_thin {
                return Some(false);
            }
            watch.has_lease.set(true);
            if had_one {
                watch.count(Lease::Renewed);
            }
            Some(is_thin)
        }
        [REFUSED] => {
            watch.count(Lease::Refused);
            Some(false)
        }
        _ => Some(false),
    }
}

/// Returns a renewal with what the first agreement said and it does not.
pub fn completed(packet: &[u8], agreed: &Agreed) -> Option<Vec<u8>> {
    let ip = packet.get(ETHERNET..)?;
    let before = ETHERNET + usize::from(ip.first()? & 15) * 4;
    let message = packet.get(before + UDP..)?;
    let end = each(message)
        .map(|(_, value)| value.as_ptr_range().end)
        .last();
    let end = end.map_or(OPTIONS, |end| end as usize - message.as_ptr() as usize);
    let mut whole = packet.get(..before + UDP + end)?.to_vec();
    // The stack takes the last valid mask.
    whole.extend_from_slice(&[MASK, 4]);
    whole.extend_from_slice(&agreed.mask);
    let mut more = &agreed.options[..];
    while let [kind, length, ..] = *more
        && let Some((this, rest)) = more.split_at_checked(2 + usize::from(length))
    {
        if option(message, kind).is_none() {
            whole.extend_from_slice(this);
        }
        more = rest;
    }
    whole.push(255);
    let length = whole.len();
    put(&mut whole, ETHERNET + 2, (length - ETHERNET) as u16);
    put(&mut whole, before + 4, (length - before) as u16);
    // The card has checked the datagram; 0 is none (RFC 768).
    put(&mut whole, before + 6, 0);
    put(&mut whole, ETHERNET + 10, 0);
    let sum = !folded(&whole[ETHERNET..before]);
    put(&mut whole, ETHERNET + 10, sum);
    Some(whole)
}

/// Returns whether the client's address in a message, if there is one, and the routers (RFC 2132,
/// section 3.5) are different hosts.
pub fn names_hosts(message: &[u8]) -> bool {
    let own = bytes(message, 16).unwrap_or_default();
    let is_host = |address: [u8; 4]| is_host_v4(&Ipv4Addr::from(address));
    (own == [0; 4] || is_host(own))
        && each(message)
            .filter(|(kind, _)| *kind == ROUTER)
            .all(|(_, value)| {
                let first = value.first_chunk();
                first.is_some_and(|first| is_host(*first) && *first != own)
            })
}

/// Returns the value of an option.
fn option(message: &[u8], kind: u8) -> Option<&[u8]> {
    each(message).find_map(|(this, value)| (this == kind).then_some(value))
}

/// Iterates over the options of a message, up to the end or to one that is cut off.
fn each(message: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut left = message.get(OPTIONS..).unwrap_or_default();
    core::iter::from_fn(move || {
        while let [0, rest @ ..] = left {
            left = rest;
        }
        let [kind, length, rest @ ..] = left else {
            return None;
        };
        if *kind == 255 {
            return None;
        }
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        left = rest;
        Some((*kind, value))
    })
}
