//! Packets as on the wire.

/// The hardware address of the host in the frames of a test.
pub const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const HOST_IP: [u8; 4] = [192, 0, 2, 1];
pub const GUEST: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
pub const GUEST_IP: [u8; 4] = [192, 0, 2, 2];
pub const GUEST_IP6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
pub const HOST_IP6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// All hosts of a link.
pub const ALL_IP6: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

pub const ETHERNET: usize = 14;
pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const ICMP6: u8 = 58;

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RESET: u8 = 4;
pub const ACK: u8 = 16;

pub fn frame(to: [u8; 6], kind: u16) -> Vec<u8> {
    let kind = kind.to_be_bytes();
    to.into_iter().chain(HOST).chain(kind).collect()
}

/// Returns an ARP packet of the host, which claims this address.
pub fn arp(to: [u8; 6], operation: u8, address: [u8; 4]) -> Vec<u8> {
    let mut frame = frame(to, 0x0806);
    frame.extend([0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend(HOST.iter().chain(&address));
    frame.extend(to.iter().chain(&GUEST_IP));
    frame
}

/// Returns an IPv4 packet to the guest, with all its checksums.
pub fn ipv4(from: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4_to(GUEST, (from, GUEST_IP), protocol, payload)
}

/// Returns an IPv4 packet, with all its checksums.
pub fn ipv4_to(
    hardware: [u8; 6],
    (from, to): ([u8; 4], [u8; 4]),
    protocol: u8,
    payload: &[u8],
) -> Vec<u8> {
    let mut packet = frame(hardware, 0x0800);
    packet.extend([0x45, 0]);
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend(from.iter().chain(&to).chain(payload));
    repair(&mut packet);
    packet
}

/// Returns an IPv6 packet from the host to an address, with its checksum.
pub fn ipv6(to: [u8; 16], protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv6_from((HOST_IP6, to), protocol, payload)
}

/// Returns an IPv6 packet in a frame of the host, with its checksum.
pub fn ipv6_from((from, to): ([u8; 16], [u8; 16]), protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = frame(GUEST, 0x86dd);
    packet.extend([0x60, 0, 0, 0]);
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([protocol, 255]);
    packet.extend(from.iter().chain(&to).chain(payload));
    repair(&mut packet);
    packet
}

/// Returns a neighbour advertisement of the host for an IPv6 address.
pub fn neighbor(address: [u8; 16]) -> Vec<u8> {
    let mut icmp = vec![136, 0, 0, 0, 0x20, 0, 0, 0];
    icmp.extend(address);
    icmp.extend([2, 1]);
    icmp.extend(HOST);
    ipv6_from((address, ALL_IP6), ICMP6, &icmp)
}

/// Returns a router advertisement with this lifetime in seconds, and a prefix of 64 bits that is
/// valid for an hour.
pub fn router(address: [u8; 16], lifetime: u16, prefix: [u8; 8]) -> Vec<u8> {
    let mut icmp = vec![134, 0, 0, 0, 64, 0];
    icmp.extend(lifetime.to_be_bytes());
    icmp.extend([0; 8]);
    icmp.extend([3, 4, 64, 0xc0, 0, 0, 14, 16, 0, 0, 14, 16, 0, 0, 0, 0]);
    icmp.extend(prefix);
    icmp.extend([0; 8]);
    ipv6_from((address, ALL_IP6), ICMP6, &icmp)
}

pub fn echo_request(kind: u8, sequence: u16, bytes: usize) -> Vec<u8> {
    let mut icmp = vec![kind, 0, 0, 0, 0x12, 0x34];
    icmp.extend(sequence.to_be_bytes());
    icmp.extend((0..bytes).map(|byte| byte as u8));
    icmp
}

pub fn udp((from, to): (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut all: Vec<u8> = [from, to, 8 + payload.len() as u16, 0]
        .into_iter()
        .flat_map(u16::to_be_bytes)
        .collect();
    all.extend(payload);
    all
}

pub fn tcp((from, to): (u16, u16), (sent, got): (u32, u32), flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut all: Vec<u8> = [from, to].into_iter().flat_map(u16::to_be_bytes).collect();
    all.extend([sent, got].into_iter().flat_map(u32::to_be_bytes));
    all.extend([5 << 4, flags, 0x20, 0, 0, 0, 0, 0]);
    all.extend(payload);
    all
}

/// Returns a query for the addresses of a host in the zone `example`.
pub fn query(id: u16, host: &str) -> Vec<u8> {
    let mut query = id.to_be_bytes().to_vec();
    query.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in [host, "example"] {
        query.push(label.len() as u8);
        query.extend(label.as_bytes());
    }
    query.extend([0, 0, 1, 0, 1]);
    query
}

/// Returns the internet checksum; 0 if the data contain their own.
pub fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from_be_bytes([0, 0, pair[0], pair.get(1).copied().unwrap_or(0)]);
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Corrects the checksums of an IP packet, as far as it is readable.
pub fn repair(frame: &mut [u8]) {
    let is_6 = frame.get(12..14) == Some(&[0x86, 0xdd]);
    let least = if is_6 { 40 } else { 20 };
    let Some(ip) = frame.get_mut(ETHERNET..).filter(|ip| ip.len() >= least) else {
        return;
    };
    let (header, protocol, addresses) = match is_6 {
        true => (40, ip[6], 8..40),
        false => (usize::from(ip[0] & 15) * 4, ip[9], 12..20),
    };
    if !is_6 && (20..=ip.len()).contains(&header) {
        put_checksum(&mut ip[..header], 10, &[]);
    }
    let mut pseudo = ip[addresses].to_vec();
    let Some(payload) = ip.get_mut(header..) else {
        return;
    };
    pseudo.extend((payload.len() as u32).to_be_bytes());
    pseudo.extend([0, 0, 0, protocol]);
    match protocol {
        ICMP => put_checksum(payload, 2, &[]),
        ICMP6 => put_checksum(payload, 2, &pseudo),
        TCP => put_checksum(payload, 16, &pseudo),
        UDP => put_checksum(payload, 6, &pseudo),
        _ => {}
    }
}

fn put_checksum(bytes: &mut [u8], at: usize, before: &[u8]) {
    if bytes.len() >= at + 2 {
        bytes[at..at + 2].fill(0);
        let sum = checksum(&[before, bytes].concat());
        bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// A reproducible random number generator (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// Generates a packet: random, or a valid one with changes.
    pub fn frame(&mut self) -> Vec<u8> {
        // The kernel sends none without an Ethernet header, and QEMU accepts none that is longer
        // than any packet may be.
        let length = ETHERNET + self.below(1515 - ETHERNET);
        let mut frame = match self.below(16) {
            0 => return self.bytes(length),
            1 => {
                let kind = [0x0806, 0x0800, 0x86dd, 0x8100][self.below(4)];
                let mut frame = frame(GUEST, kind);
                frame.extend(self.bytes(length - ETHERNET));
                return frame;
            }
            2 => arp([0xff; 6], 1 + self.below(2) as u8, HOST_IP),
            number => self.packet(number),
        };
        for _ in 0..self.below(4) {
            let place = self.below(frame.len());
            frame[place] = self.next() as u8;
        }
        match self.below(8) {
            0 => frame.truncate(ETHERNET + self.below(frame.len() - ETHERNET + 1)),
            1 => {
                let more = self.below(200);
                frame.extend(self.bytes(more));
                frame.truncate(1514);
            }
            _ => {}
        }
        // Otherwise few would be examined.
        if self.below(4) > 0 {
            repair(&mut frame);
        }
        frame
    }

    /// Generates an IP packet.
    fn packet(&mut self, number: usize) -> Vec<u8> {
        let id = self.next() as u16;
        let ports = (id | 1, [53, 53, 53, 9100, id][self.below(5)]);
        let numbers = (self.next() as u32, self.next() as u32);
        let query = query(id, &format!("host{}", id % 12_000));
        let framed = [&(query.len() as u16).to_be_bytes()[..], &query].concat();
        let (protocol, payload) = match number {
            3..=4 => (ICMP, echo_request(8, id, usize::from(id % 1400))),
            5..=6 => (ICMP6, echo_request(128, id, usize::from(id % 1400))),
            7 => {
                // Routers and neighbours, and their advertisements; groups.
                let kind = 130 + self.below(8) as u8;
                let mut icmp = vec![kind, 0, 0, 0];
                icmp.extend(self.bytes(4 + 16));
                icmp.extend([1 + self.below(5) as u8, 1 + self.below(4) as u8]);
                icmp.extend(self.bytes(30));
                (ICMP6, icmp)
            }
            8..=11 => (UDP, udp(ports, &query)),
            _ => {
                let flags = [SYN, ACK, SYN | ACK, ACK | FIN, RESET, self.next() as u8];
                (TCP, tcp(ports, numbers, flags[self.below(6)], &framed))
            }
        };
        if protocol == ICMP6 || protocol != ICMP && self.below(2) == 0 {
            let to = match self.below(3) {
                0 => ALL_IP6,
                _ => GUEST_IP6,
            };
            return ipv6(to, protocol, &payload);
        }
        // Existing and missing neighbours, and senders behind a router.
        let from = match self.below(4) {
            0 => [192, 0, 2, self.next() as u8],
            1 => (self.next() as u32).to_be_bytes(),
            _ => HOST_IP,
        };
        ipv4(from, protocol, &payload)
    }
}
