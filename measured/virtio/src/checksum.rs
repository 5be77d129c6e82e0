//! Checksums of UDP and TCP that a card leaves to the driver (Virtio 1.2, 5.1.6).
//!
//! In a packet that the card completes, the field holds the sum over the addresses, the protocol
//! and the length; the card adds the rest from [`Place::start`].

use core::ops::Range;

/// The header of Ethernet, in bytes.
const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The place of a checksum in a frame, and the bytes that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The first covered byte.
    pub start: u16,
    /// The offset of the field from there.
    pub offset: u16,
    /// The beginning and end of the addresses.
    addresses: (usize, usize),
    end: usize,
    protocol: u8,
}

impl Place {
    /// Finds the checksum of a frame. None if it contains no whole UDP or TCP packet.
    pub fn find(frame: &[u8]) -> Option<Self> {
        const LEAST: usize = 20;
        let packet = frame.get(ETHERNET..).filter(|rest| rest.len() >= LEAST)?;
        let number = |at: usize| -> Option<usize> {
            let bytes = packet.get(at..)?.first_chunk()?;
            Some(u16::from_be_bytes(*bytes).into())
        };
        let (protocol, start, end, addresses) = match frame[12..ETHERNET] {
            // Not a fragment: the sum covers all of them.
            [0x08, 0x00] if number(6)? & 0x3fff == 0 => {
                let header = usize::from(packet[0] & 0xf) * 4;
                (packet[9], header, number(2)?, (12, 20))
            }
            [0x86, 0xdd] => {
                let (protocol, start) = behind_options(packet)?;
                (protocol, start, 40 + number(4)?, (8, 40))
            }
            _ => return None,
        };
        let (offset, least) = match protocol {
            TCP => (16, 20),
            UDP => (6, 8),
            _ => return None,
        };
        let is_whole = start + least <= end && end <= packet.len() && addresses.1 <= start;
        is_whole.then_some(Self {
            start: (ETHERNET + start) as u16,
            offset,
            addresses: (ETHERNET + addresses.0, ETHERNET + addresses.1),
            end: ETHERNET + end,
            protocol,
        })
    }

    /// Writes the part of the sum that the card completes.
    ///
    /// # Panics
    ///
    /// Panics for another frame.
    pub fn prepare(&self, frame: &mut [u8]) {
        let sum = self.of_addresses(frame).to_be_bytes();
        frame[self.field()].copy_from_slice(&sum);
    }

    /// Returns whether the checksum is right. A datagram over IPv4 may have none.
    ///
    /// # Panics
    ///
    /// Panics for another frame.
    pub fn is_right(&self, frame: &[u8]) -> bool {
        let has_none = self.protocol == UDP && frame[self.field()] == [0, 0];
        let is_ipv4 = self.addresses.1 - self.addresses.0 == 8;
        let all = u64::from(self.of_addresses(frame)) + sum(&frame[self.start.into()..self.end]);
        has_none && is_ipv4 || fold(all) == u16::MAX
    }

    fn field(&self) -> Range<usize> {
        let at = usize::from(self.start + self.offset);
        at..at + 2
    }

    /// Returns the sum over the addresses, the protocol and the length.
    fn of_addresses(&self, frame: &[u8]) -> u16 {
        let addresses = sum(&frame[self.addresses.0..self.addresses.1]);
        let length = self.end - usize::from(self.start);
        fold(addresses + u64::from(self.protocol) + length as u64)
    }
}

/// Returns the protocol of an IPv6 packet and its offset, behind options and routes.
fn behind_options(packet: &[u8]) -> Option<(u8, usize)> {
    const OPTIONS: [u8; 3] = [0, 43, 60];
    let (mut protocol, mut start) = (*packet.get(6)?, 40);
    while OPTIONS.contains(&protocol) {
        let [next, length] = *packet.get(start..)?.first_chunk()?;
        protocol = next;
        start += 8 + 8 * usize::from(length);
    }
    Some((protocol, start))
}

/// Adds big-endian words of 16 bits, the last of which may be half.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    // Two at a time: folding adds the upper words to the lower ones.
    let whole: u64 = words
        .iter()
        .map(|word| u64::from(u32::from_be_bytes(*word)))
        .sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    whole + u64::from(u32::from_be_bytes(last))
}

fn fold(mut sum: u64) -> u16 {
    while sum > u16::MAX.into() {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    /// Returns a frame with `data` bytes behind the headers, and its checksum by the definition.
    fn frame(is_ipv6: bool, protocol: u8, options: bool, data: usize) -> Vec<u8> {
        let header = if protocol == TCP { 20 } else { 8 };
        let mut body: Vec<u8> = (0..header + data).map(|byte| (byte * 37) as u8).collect();
        let at = if protocol == TCP { 16 } else { 6 };
        body[at..at + 2].fill(0);
        let mut ip = Vec::new();
        let addresses: Vec<u8> = (1..=if is_ipv6 { 32 } else { 8 }).collect();
        if is_ipv6 {
            let more = usize::from(options) * 8;
            ip.extend([0x60, 0, 0, 0]);
            ip.extend(((body.len() + more) as u16).to_be_bytes());
            ip.extend([if options { 0 } else { protocol }, 64]);
            ip.extend(&addresses);
            if options {
                ip.extend([protocol, 0, 1, 4, 0, 0, 0, 0]);
            }
        } else {
            let words = if options { 6 } else { 5 };
            ip.extend([0x40 | words, 0]);
            ip.extend((u16::from(words) * 4 + body.len() as u16).to_be_bytes());
            ip.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
            ip.extend(&addresses);
            ip.resize(usize::from(words) * 4, 1);
        }
        let mut all = addresses;
        all.extend((protocol as u16).to_be_bytes());
        all.extend((body.len() as u16).to_be_bytes());
        all.extend(&body);
        let words = all.chunks(2).map(|pair| {
            let low = pair.get(1).copied().unwrap_or(0);
            u32::from(u16::from_be_bytes([pair[0], low]))
        });
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        body[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        let kind = if is_ipv6 { [0x86, 0xdd] } else { [8, 0] };
        [&[0; 12][..], &kind, &ip, &body].concat()
    }

    fn all() -> impl Iterator<Item = Vec<u8>> {
        let forms = [(false, TCP), (false, UDP), (true, TCP), (true, UDP)];
        forms.into_iter().flat_map(|(is_ipv6, protocol)| {
            (0..64).map(move |data| frame(is_ipv6, protocol, data % 2 == 1, data * 23))
        })
    }

    #[test]
    fn a_right_checksum_is_right_and_any_changed_byte_makes_it_wrong() {
        for mut frame in all() {
            let place = Place::find(&frame).unwrap();
            assert!(place.is_right(&frame));
            // Padding does not count.
            frame.extend([7; 9]);
            assert!(Place::find(&frame).unwrap().is_right(&frame));
            let at = usize::from(place.start) + 1;
            frame[at] ^= 0x10;
            assert!(!place.is_right(&frame));
        }
    }

    #[test]
    fn a_prepared_checksum_is_right_when_the_card_has_added_the_rest() {
        for mut frame in all() {
            let place = Place::find(&frame).unwrap();
            let before = frame.clone();
            frame[place.field()].fill(0);
            place.prepare(&mut frame);
            // As the card does.
            let sum = !fold(sum(&frame[place.start.into()..]));
            frame[place.field()].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(frame, before);
        }
    }

    #[test]
    fn a_datagram_without_a_checksum_is_right_by_ipv4_alone() {
        for (is_ipv6, is_right) in [(false, true), (true, false)] {
            let mut frame = frame(is_ipv6, UDP, false, 10);
            let place = Place::find(&frame).unwrap();
            frame[place.field()].fill(0);
            assert_eq!(place.is_right(&frame), is_right);
        }
    }

    #[test]
    fn truncated_packets_fragments_and_other_protocols_have_none() {
        for frame in all() {
            for bytes in 0..frame.len() {
                assert_eq!(Place::find(&frame[..bytes]), None);
            }
        }
        let mut fragment = frame(false, UDP, false, 10);
        fragment[ETHERNET + 6] = 0x20;
        assert_eq!(Place::find(&fragment), None);
        let other = frame(true, 58, false, 10);
        assert_eq!(Place::find(&other), None);
        // A header shorter than the minimum.
        let mut short = frame(false, TCP, false, 10);
        short[ETHERNET] = 0x44;
        assert_eq!(Place::find(&short), None);
    }
}
