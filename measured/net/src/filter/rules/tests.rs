//! Packets that pass, and packets that are injected.

use alloc::boxed::Box;
use alloc::vec::Vec;
#[cfg(feature = "slaac")]
use core::cell::Cell;

use super::*;
#[cfg(feature = "ipv6")]
use crate::filter::ICMPV6_NUMBER;

const HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const OWN: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OWN_IP: [u8; 4] = [192, 0, 2, 2];
#[cfg(feature = "ipv6")]
const LINK_LOCAL: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
#[cfg(feature = "ipv6")]
const NEAR: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8];

fn watch() -> &'static Watch {
    Box::leak(Box::new(Watch::new(53)))
}

/// A filter of a stack with a static address.
fn state() -> State {
    State::new(watch(), OWN, Some((Ipv4Addr::from(OWN_IP), 24)))
}

fn at(seconds: u64) -> impl Fn() -> Instant {
    move || Instant::from_secs(seconds)
}

fn ipv4(from: [u8; 4], port: u16, payload: &[u8]) -> Vec<u8> {
    let length = (UDP + payload.len()) as u16;
    let total = (length + IPV4 as u16).to_be_bytes();
    let mut packet = [&OWN[..], &HARDWARE, &ETHERTYPE_IPV4, &[0x45, 0], &total].concat();
    packet.extend([0, 0, 0, 0, 64, UDP_NUMBER, 0, 0]);
    packet.extend([from, OWN_IP].concat());
    packet.extend([0, 67]);
    packet.extend(port.to_be_bytes());
    packet.extend(length.to_be_bytes());
    packet.extend([0; 2]);
    packet.extend(payload);
    repair(&mut packet);
    packet
}

/// Sets the checksum of the header of IPv4.
fn repair(packet: &mut [u8]) {
    packet[24..26].fill(0);
    let sum = !folded(&packet[ETHERNET..ETHERNET + IPV4]);
    packet[24..26].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(feature = "ipv6")]
fn ipv6(from: [u8; 16], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = [&OWN[..], &HARDWARE, &ETHERTYPE_IPV6].concat();
    packet.extend([0x60, 0, 0, 0, 0, payload.len() as u8, protocol, 255]);
    packet.extend([from, LINK_LOCAL].concat());
    packet.extend(payload);
    if protocol == ICMPV6_NUMBER {
        repair_ipv6(&mut packet);
    }
    packet
}

/// Sets the checksum of an ICMPv6 message.
#[cfg(feature = "ipv6")]
fn repair_ipv6(packet: &mut [u8]) {
    packet[56..58].fill(0);
    let length = packet[19];
    let covered = [
        &packet[22..],
        &[0; 1][..(packet.len() & 1)],
        &[0, length, 0, ICMPV6_NUMBER],
    ];
    let sum = !folded(&covered.concat());
    packet[56..58].copy_from_slice(&sum.to_be_bytes());
}

/// Returns the answer of a host to a neighbour solicitation for its address.
#[cfg(feature = "ipv6")]
fn answer(from: [u8; 16], hardware: [u8; 6]) -> Vec<u8> {
    let mut message = neighbor(NEIGHBOR_ADVERTISEMENT, from, 2, hardware);
    message[4] = 0x60;
    ipv6(from, ICMPV6_NUMBER, &message)
}

/// A state that knows the stack's IPv6 address.
#[cfg(feature = "ipv6")]
fn state_ipv6() -> State {
    let state = state();
    state.watch.learn(LINK_LOCAL);
    state
}

#[cfg(feature = "ipv6")]
const DATAGRAM: [u8; UDP] = [0, 9, 0, 53, 0, 8, 0, 0];

#[test]
fn packets_from_no_address_are_dropped() {
    let mut state = state();
    assert!(!state.passes(&ipv4([0; 4], 9, b""), at(0)));
    assert!(state.passes(&ipv4([192, 0, 2, 1], 9, b""), at(0)));
}

#[test]
fn senders_that_nobody_can_answer_and_pings_to_all_are_dropped() {
    let mut state = state();
    for from in [
        [0, 0, 0, 1],
        [127, 0, 0, 1],
        [224, 0, 0, 1],
        [240, 0, 0, 1],
        [255; 4],
    ] {
        assert!(!state.passes(&ipv4(from, 53, b""), at(0)), "{from:?}");
    }
    let mut ping = ipv4([192, 0, 2, 1], 0, b"");
    // ICMP and TCP; in a frame to all, and to the address of all.
    for protocol in [1, 6] {
        ping[ETHERNET + 9] = protocol;
        let mut passes = |frame_to: [u8; 6], to| {
            ping[..6].copy_from_slice(&frame_to);
            ping[ETHERNET + 16..][..4].copy_from_slice(to);
            state.passes(&ping, at(0))
        };
        assert!(passes(OWN, &OWN_IP));
        assert!(!passes([0xff; 6], &OWN_IP));
        assert!(!passes(OWN, &[192, 0, 2, 255]) && !passes(OWN, &[255; 4]));
    }
    // Datagrams to all pass: DHCP needs them.
    ping[ETHERNET + 9] = UDP_NUMBER;
    ping[..6].fill(0xff);
    assert!(state.passes(&ping, at(0)));
}

#[cfg(feature = "ipv6")]
#[test]
fn so_are_they_over_ipv6() {
    let mut state = state();
    let mut group = LINK_LOCAL;
    group[0] = 0xff;
    for from in [group, LOOPBACK] {
        assert!(!state.passes(&ipv6(from, UDP_NUMBER, &DATAGRAM), at(0)));
    }
    let mut to_loopback = ipv6(NEAR, UDP_NUMBER, &DATAGRAM);
    to_loopback[38..54].copy_from_slice(&LOOPBACK);
    assert!(!state.passes(&to_loopback, at(0)));
    let mut ping = ipv6(
        LINK_LOCAL,
        ICMPV6_NUMBER,
        &[ECHO_REQUEST, 0, 0, 0, 0, 0, 0, 0],
    );
    assert!(state.passes(&ping, at(0)));
    ping[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 1]);
    assert!(!state.passes(&ping, at(0)));
}

#[test]
fn truncated_packets_pass() {
    let mut state = state();
    let whole = ipv4([192, 0, 2, 1], 53, b"a query");
    assert!((0..whole.len()).all(|length| state.passes(&whole[..length], at(0))));
}

#[cfg(feature = "dhcp")]
#[test]
fn dhcp_messages_with_a_router_that_is_no_host_are_dropped() {
    const HOST: [u8; 4] = [192, 0, 2, 1];
    let mut state = state();
    let mut passes = |from, options: &[u8]| {
        let message = [&[0; 240][..], options].concat();
        state.passes(&ipv4(from, lease::CLIENT, &message), at(0))
    };
    for options in [
        &[3, 4, 192, 0, 2, 1, 255][..],
        &[0, 0, 53, 1, 5, 255, 3, 4, 0, 0, 0, 0],
        &[1, 4, 255, 255, 255, 0],
        &[3, 200, 0],
    ] {
        assert!(passes(HOST, options), "{options:?}");
        assert!(!passes([255; 4], options), "{options:?}");
    }
    for options in [
        &[3, 4, 0, 0, 0, 0, 255][..],
        &[53, 1, 5, 3, 4, 224, 0, 0, 1],
        &[0, 3, 4, 255, 255, 255, 255],
        &[3, 4, 192, 0, 2, 1, 3, 4, 0, 0, 0, 0],
        &[3, 2, 192, 0, 255],
    ] {
        assert!(!passes(HOST, options), "{options:?}");
    }
}

#[cfg(feature = "dhcp")]
#[test]
fn dhcp_messages_that_give_an_address_of_no_host_are_dropped() {
    let mut state = state();
    let mut passes = |address: [u8; 4], kind| {
        let options = [53, 1, kind, 1, 4, 255, 255, 255, 0, 3, 4, 192, 0, 2, 1, 255];
        let mut message = message([0; 4], &options);
        message[16..20].copy_from_slice(&address);
        let passes = state.passes(&ipv4([192, 0, 2, 1], lease::CLIENT, &message), at(0));
        (passes, state.agreed.take().is_some())
    };
    const OFFER: u8 = 2;
    const ACK: u8 = 5;
    const NAK: u8 = 6;
    assert_eq!(passes([192, 0, 2, 7], OFFER), (true, false));
    assert_eq!(passes([192, 0, 2, 7], ACK), (true, true));
    assert_eq!(passes([0; 4], NAK), (true, false));
    // Loopback, this network, a group, reserved, all; the router's own.
    for address in [
        [127, 0, 0, 1],
        [0, 1, 2, 3],
        [224, 0, 0, 1],
        [240, 0, 0, 1],
        [255; 4],
        [192, 0, 2, 1],
    ] {
        for kind in [OFFER, ACK] {
            assert_eq!(passes(address, kind), (false, false), "{address:?}");
        }
    }
}

#[test]
fn clients_of_the_service_are_reported_to_the_stack_once_per_second() {
    let mut state = state();
    let query = ipv4([192, 0, 2, 9], 53, b"");
    assert!(state.passes(&query, at(10)));
    let report = state.pending.take().unwrap();
    assert_eq!(report.bytes[6..14], [2, 0, 0, 0, 0, 1, 8, 6]);
    assert_eq!(report.bytes[22..32], [2, 0, 0, 0, 0, 1, 192, 0, 2, 9]);
    assert_eq!(report.bytes[32..42], [2, 0, 0, 0, 0, 2, 192, 0, 2, 2]);
    // The link is asked who that is, in the stack's name.
    let question = state.question.take().unwrap();
    assert_eq!(question.bytes[..6], [0xff; 6]);
    assert_eq!(
        question.bytes[20..32],
        [0, 1, 2, 0, 0, 0, 0, 2, 192, 0, 2, 2]
    );
    assert_eq!(question.bytes[38..42], [192, 0, 2, 9]);
    assert!(state.passes(&query, at(10)) && state.pending.is_none());
    assert!(state.question.is_none());
    // And again, as nobody has answered.
    assert!(state.passes(&query, at(12)) && state.pending.take().is_some());
    assert!(state.question.is_some());
    // Clients of other ports are not reported; a group address is never a sender.
    assert!(state.passes(&ipv4([192, 0, 2, 8], 54, b""), at(12)) && state.pending.is_none());
    let mut group = ipv4([192, 0, 2, 8], 53, b"");
    group[6] |= 1;
    assert!(!state.passes(&group, at(12)) && state.pending.is_none());
}

#[test]
fn what_the_stack_drops_reports_nobody() {
    let good = ipv4([192, 0, 2, 9], 53, b"a query");
    let reports = |change: &dyn Fn(&mut Vec<u8>), is_repaired| {
        let (mut state, mut packet) = (state(), good.clone());
        change(&mut packet);
        if is_repaired {
            repair(&mut packet);
        }
        state.passes(&packet, at(0));
        state.pending.is_some() || state.question.is_some()
    };
    assert!(reports(&|_| {}, true));
    // Any wrong byte of the header of IPv4; a fragment, the first one and others.
    for at in 14..34 {
        assert!(!reports(&|packet| packet[at] ^= 0x10, false), "{at}");
    }
    for (at, value) in [(20, 0x20), (20, 0x01), (21, 0x01)] {
        assert!(!reports(&|packet| packet[at] = value, true), "{at}");
    }
    // Longer than the frame or shorter than its headers; of another version; to another machine,
    // address or all; from another network, from itself.
    assert!(!reports(&|packet| packet[17] += 1, true));
    assert!(!reports(&|packet| packet[17] = 27, true));
    assert!(!reports(&|packet| packet[14] = 0x65, true));
    assert!(!reports(&|packet| packet[5] ^= 1, true));
    assert!(!reports(&|packet| packet[..6].fill(0xff), true));
    assert!(!reports(&|packet| packet[33] = 3, true));
    assert!(!reports(&|packet| packet[33] = 255, true));
    assert!(!reports(&|packet| packet[28] = 3, true));
    assert!(!reports(&|packet| packet[29] = 255, true));
    assert!(!reports(&|packet| packet[29] = 2, true));
    // A datagram that is longer than the packet or shorter than its header; padding counts for
    // nothing.
    assert!(!reports(&|packet| packet[39] += 1, true));
    assert!(!reports(&|packet| packet[39] = 7, true));
    assert!(!reports(
        &|packet| {
            packet[39] += 1;
            packet.push(0);
        },
        true
    ));
    assert!(reports(&|packet| packet.push(0), true));
    // Hardware addresses of nobody else.
    assert!(!reports(&|packet| packet[6..12].fill(0), true));
    assert!(!reports(
        &|packet| packet[6..12].copy_from_slice(&OWN),
        true
    ));
}

#[test]
fn a_header_without_room_for_its_addresses_reports_nobody() {
    // The end of the address is read as the service's port.
    let watch = Box::leak(Box::new(Watch::new(u16::from_be_bytes([
        OWN_IP[2], OWN_IP[3],
    ]))));
    let mut state = State::new(watch, OWN, Some((Ipv4Addr::from(OWN_IP), 24)));
    let mut packet = ipv4([192, 0, 2, 9], 0, b"");
    packet[ETHERNET] = 0x44;
    packet[24..26].fill(0);
    let sum = !folded(&packet[ETHERNET..][..16]);
    packet[24..26].copy_from_slice(&sum.to_be_bytes());
    packet[34..36].copy_from_slice(&[0, 12]);
    assert!(state.passes(&packet, at(0)));
    assert!(state.pending.is_none() && state.question.is_none());
}

#[test]
fn what_cannot_be_answered_is_dropped() {
    let mut state = state();
    let mut passes = |change: fn(&mut Vec<u8>)| {
        let mut packet = ipv4([192, 0, 2, 9], 53, b"");
        change(&mut packet);
        state.passes(&packet, at(0))
    };
    assert!(passes(|_| {}));
    assert!(!passes(|packet| packet[34..36].fill(0)));
    assert!(!passes(|packet| packet[6..12].fill(0)));
    assert!(!passes(|packet| packet[6..12].copy_from_slice(&OWN)));
}

#[test]
fn a_datagram_does_not_move_an_address_that_another_host_has_said_is_its_own() {
    let other = [2, 0, 0, 0, 0, 9];
    for operation in [1, 2] {
        let mut state = state();
        let tells = |frame_to, its: [u8; 6], sender: [u8; 4], to: [u8; 4], state: &mut State| {
            let message = [
                &[0, 1, 8, 0, 6, 4, 0, operation][..],
                &its,
                &sender,
                &OWN,
                &to,
            ];
            let packet = [&frame_to, &other, &ETHERTYPE_ARP[..], &message.concat()].concat();
            // The stack would believe it.
            let passes = frame_to == HARDWARE || its == other;
            assert_eq!(state.passes(&packet, at(0)), passes);
        };
        let says = |sender, to, state: &mut State| tells(OWN, other, sender, to, state);
        let query = ipv4([192, 0, 2, 9], 53, b"");
        // To another machine: the stack passes it over as well.
        says([192, 0, 2, 9], [192, 0, 2, 3], &mut state);
        assert!(state.passes(&query, at(0)) && state.pending.take().is_some());
        // In a frame to another machine; that nobody has it.
        tells(HARDWARE, other, [192, 0, 2, 9], OWN_IP, &mut state);
        tells(OWN, [0; 6], [192, 0, 2, 9], OWN_IP, &mut state);
        tells(OWN, OWN, [192, 0, 2, 9], OWN_IP, &mut state);
        assert!(state.passes(&query, at(2)) && state.pending.take().is_some());
        says([192, 0, 2, 9], OWN_IP, &mut state);
        for second in 3..100 {
            assert!(state.passes(&query, at(second)) && state.pending.is_none());
            assert!(state.question.take().is_some());
        }
    }
}

#[cfg(feature = "ipv6")]
#[test]
fn clients_over_ipv6_are_reported_if_they_are_on_the_link() {
    let mut state = state();
    let query = ipv6(NEAR, UDP_NUMBER, &DATAGRAM);
    // Not to an address that may be another host's.
    assert!(state.passes(&query, at(0)));
    assert!(state.pending.is_none() && state.question.is_none());
    state.watch.learn(LINK_LOCAL);
    assert!(state.passes(&query, at(0)));
    let report = state.pending.take().unwrap();
    assert_eq!(report.length, 86);
    // Without flags: it replaces nothing that the stack knows.
    assert_eq!(report.bytes[58..62], [0; 4]);
    assert_eq!(report.bytes[62..78], NEAR);
    assert_eq!(report.bytes[78..86], [2, 1, 2, 0, 0, 0, 0, 1]);
    // The owner of the address is asked.
    let question = state.question.take().unwrap();
    assert_eq!(
        question.bytes[..12],
        [0x33, 0x33, 0xff, 0, 0, 8, 2, 0, 0, 0, 0, 2]
    );
    assert_eq!(question.bytes[22..38], LINK_LOCAL);
    assert_eq!(question.bytes[62..78], NEAR);
    assert_eq!(question.bytes[78..86], [1, 1, 2, 0, 0, 0, 0, 2]);
    let mut forged = query;
    forged[11] = 9;
    assert!(state.passes(&forged, at(1)) && state.pending.is_none());
    assert!(state.question.take().is_some());
    // Its answer moves the address.
    assert!(state.passes(&answer(NEAR, [2, 0, 0, 0, 0, 9]), at(4)));
    assert!(state.passes(&forged, at(9)) && state.pending.take().is_some());
    // The checksum is right for any number of carries.
    for last in 0..=u16::MAX {
        let mut near = NEAR;
        near[10] = 1;
        near[14..].copy_from_slice(&last.to_be_bytes());
        assert!(state.passes(
            &ipv6(near, UDP_NUMBER, &DATAGRAM),
            at(1_000 + u64::from(last))
        ));
        let report = state.pending.take().unwrap();
        let words = report.bytes[22..]
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum = words.sum::<u32>() + 32 + u32::from(ICMPV6_NUMBER);
        assert_eq!(sum % 0xffff, 0, "{near:x?}");
    }
    let far = [0x20; 16];
    assert!(state.passes(&ipv6(far, UDP_NUMBER, &DATAGRAM), at(0)) && state.pending.is_none());
}

#[cfg(feature = "ipv6")]
#[test]
fn what_the_stack_drops_reports_nobody_over_ipv6() {
    let good = ipv6(NEAR, UDP_NUMBER, &DATAGRAM);
    let reports = |change: fn(&mut Vec<u8>)| {
        let (mut state, mut packet) = (state_ipv6(), good.clone());
        let mut second = [0x20; 16];
        state.watch.learn(second);
        second[8] = 0;
        state.watch.learn(second);
        change(&mut packet);
        state.passes(&packet, at(0));
        state.pending.is_some() || state.question.is_some()
    };
    assert!(reports(|_| {}));
    // Of another version; longer than the frame; a datagram that is longer than its packet, also
    // with padding, or shorter than its header.
    assert!(!reports(|packet| packet[14] = 0x50));
    assert!(!reports(|packet| packet[19] += 1));
    assert!(!reports(|packet| packet[59] += 1));
    assert!(!reports(|packet| {
        packet[59] += 1;
        packet.push(0);
    }));
    assert!(!reports(|packet| packet[59] = 7));
    // From no port; of hardware that is nobody else's; to another machine, a group or another
    // address; from the stack itself; behind options.
    assert!(!reports(|packet| packet[54..56].fill(0)));
    assert!(!reports(|packet| packet[6..12].fill(0)));
    assert!(!reports(|packet| packet[6..12].copy_from_slice(&OWN)));
    assert!(!reports(|packet| packet[5] ^= 1));
    assert!(!reports(|packet| packet[..6].fill(0x33)));
    assert!(!reports(|packet| packet[53] ^= 1));
    assert!(!reports(|packet| packet[38..54].fill(0)));
    assert!(!reports(
        |packet| packet[22..38].copy_from_slice(&LINK_LOCAL)
    ));
    assert!(!reports(|packet| {
        packet[22..38].fill(0x20);
        packet[30] = 0;
        packet[38..54].fill(0x20);
    }));
    for protocol in [0, 43, 44, 60] {
        let behind = [&[UDP_NUMBER, 0, 1, 4, 0, 0, 0, 0], &DATAGRAM[..]].concat();
        let mut state = state_ipv6();
        state.passes(&ipv6(NEAR, protocol, &behind), at(0));
        assert!(state.pending.is_none(), "{protocol}");
    }
}

#[test]
fn frames_from_the_own_hardware_address_are_dropped_whatever_they_carry() {
    let arp = [&[0; 8][..], &HARDWARE, &[192, 0, 2, 1], &[0; 10]].concat();
    for (ethertype, payload) in [
        (ETHERTYPE_IPV4, &ipv4([192, 0, 2, 1], 53, b"")[ETHERNET..]),
        (ETHERTYPE_ARP, &arp[..]),
        ([0x86, 0xdd], &[0; 60][..]),
        ([0x88, 0xcc], &[0; 60][..]),
    ] {
        let passes = |from: &[u8; 6]| {
            let packet = [&OWN[..], from, &ethertype, payload].concat();
            state().passes(&packet, at(0))
        };
        assert!(passes(&HARDWARE), "{ethertype:?}");
        assert!(!passes(&OWN), "{ethertype:?}");
    }
}

#[cfg(feature = "ipv6")]
#[test]
fn neighbors_without_hardware_address_or_with_the_own_one_are_dropped() {
    let other = [2, 0, 0, 0, 0, 9];
    for (kind, option) in [(NEIGHBOR_SOLICITATION, 1), (NEIGHBOR_ADVERTISEMENT, 2)] {
        let passes = |hardware: [u8; 6], before: &[u8]| {
            let message = neighbor(kind, NEAR, option, hardware);
            let message = [&message[..24], before, &message[24..]].concat();
            state_ipv6().passes(&ipv6(NEAR, ICMPV6_NUMBER, &message), at(0))
        };
        // Also behind another option: a nonce.
        for before in [&[][..], &[14, 1, 0, 0, 0, 0, 0, 0]] {
            assert!(passes(other, before));
            for hardware in [[0; 6], OWN, [0xff; 6]] {
                assert!(!passes(hardware, before), "{kind} {hardware:?}");
            }
        }
    }
}

#[cfg(feature = "ipv6")]
#[test]
fn only_an_answer_that_the_stack_accepts_moves_an_address() {
    let other = [2, 0, 0, 0, 0, 9];
    let moves = |change: fn(&mut Vec<u8>), is_repaired: bool| {
        let mut state = state_ipv6();
        let mut query = ipv6(NEAR, UDP_NUMBER, &DATAGRAM);
        assert!(state.passes(&query, at(0)) && state.pending.take().is_some());
        let mut answer = answer(NEAR, other);
        change(&mut answer);
        if is_repaired {
            repair_ipv6(&mut answer);
        }
        state.passes(&answer, at(1));
        // Either sender is the known one.
        state.passes(&query, at(9));
        let stays = state.pending.take().is_some();
        query[6..12].copy_from_slice(&other);
        state.passes(&query, at(9));
        assert_eq!(state.pending.is_none(), stays);
        !stays
    };
    assert!(moves(|_| {}, true));
    // A wrong checksum; forwarded by a router; of another kind; without the flag that overrides.
    assert!(!moves(|packet| packet[57] ^= 1, false));
    assert!(!moves(|packet| packet[83] ^= 4, false));
    assert!(!moves(|packet| packet[21] = 254, true));
    let is_hidden_by_the_sum = |packet: &mut Vec<u8>| {
        packet[21] -= 1;
        packet[57] += 1;
    };
    assert!(!moves(is_hidden_by_the_sum, false));
    assert!(!moves(|packet| packet[55] = 1, true));
    assert!(!moves(|packet| packet[58] = 0, true));
    // On another address; to another machine, group or address; without a host's hardware.
    assert!(!moves(|packet| packet[77] ^= 1, true));
    assert!(!moves(|packet| packet[5] ^= 1, true));
    assert!(!moves(|packet| packet[..6].fill(0x33), true));
    assert!(!moves(|packet| packet[53] ^= 1, true));
    assert!(!moves(|packet| packet[80] |= 1, true));
    assert!(!moves(|packet| packet[78] = 1, true));
    assert!(!moves(|packet| packet[79] = 0, true));
}

#[cfg(feature = "ipv6")]
#[test]
fn options_hide_neither_segments_nor_datagrams_nor_messages() {
    let mut state = state_ipv6();
    let mut passes = |to: [u8; 16], protocol, payload: &[u8]| {
        let behind = [&[protocol, 0, 5, 2, 0, 0, 1, 0], payload].concat();
        let mut packet = ipv6(NEAR, HOP_BY_HOP, &behind);
        packet[38..54].copy_from_slice(&to);
        state.passes(&packet, at(0))
    };
    let mut group = LINK_LOCAL;
    group[0] = 0xff;
    // TCP, and options again.
    for (protocol, payload) in [(6, &[0; 20][..]), (UDP_NUMBER, &DATAGRAM), (0, &[0; 8])] {
        assert!(!passes(LINK_LOCAL, protocol, payload));
        assert!(!passes(group, protocol, payload));
    }
    for kind in 0..=255 {
        let message = [kind; 24];
        assert!(!passes(LINK_LOCAL, ICMPV6_NUMBER, &message));
        // The stack reports to whom asks, which groups it is in.
        assert_eq!(
            passes(group, ICMPV6_NUMBER, &message),
            cfg!(feature = "slaac") && kind == 130
        );
    }
}

#[cfg(feature = "slaac")]
#[test]
fn routers_beyond_the_room_and_prefixes_of_groups_are_dropped() {
    let mut state = state();
    let bits = Cell::new(64);
    let mut passes = |router: u8, lifetime: u8, prefix: u8, second| {
        let mut message = Vec::from([ROUTER_ADVERTISEMENT, 0, 0, 0, 64, 0, 0, lifetime]);
        message.extend([0; 8]);
        message.extend([1, 1, 0, 0, 0, 0, 0, 0, 3, 4, bits.get(), 0xc0]);
        message.extend([0; 12]);
        message.extend([prefix; 16]);
        let mut from = LINK_LOCAL;
        from[15] = router;
        state.passes(&ipv6(from, ICMPV6_NUMBER, &message), at(second))
    };
    assert!(!passes(1, 100, 0xff, 0) && !passes(1, 100, 0, 0));
    for too_long in [129, 255] {
        bits.set(too_long);
        assert!(!passes(1, 100, 0x20, 0));
    }
    bits.set(128);
    assert!((1..=4).all(|router| passes(router, 100, 0x20, 0)));
    assert!(!passes(5, 100, 0x20, 50));
    // A router that leaves keeps its room until the end of its lifetime.
    assert!(passes(1, 0, 0x20, 50) && !passes(5, 100, 0x20, 60));
    assert!(passes(5, 100, 0x20, 101));
}

#[cfg(feature = "slaac")]
#[test]
fn only_routers_on_this_link_are_accepted() {
    let mut message = [0; 16];
    (message[0], message[7]) = (ROUTER_ADVERTISEMENT, 100);
    let good = ipv6(LINK_LOCAL, ICMPV6_NUMBER, &message);
    let changed = |change: fn(&mut Vec<u8>), is_repaired: bool| {
        let (mut state, mut packet) = (state(), good.clone());
        change(&mut packet);
        if is_repaired {
            repair_ipv6(&mut packet);
        }
        let passes = state.passes(&packet, at(0));
        assert_eq!(passes, state.router.is_some());
        passes
    };
    let passes = |change| changed(change, true);
    assert!(passes(|_| {}));
    assert!(passes(|packet| packet[38..54].copy_from_slice(&ALL_NODES)));
    // From another link, no address, a group; to another machine; of another kind.
    assert!(!passes(|packet| packet[21] = 64));
    assert!(!passes(|packet| packet[22..38].fill(0)));
    assert!(!passes(|packet| packet[22] = 0xff));
    assert!(!passes(|packet| packet[38] = 0x20));
    assert!(!passes(|packet| packet[55] = 1));
    // With a wrong checksum; with an option that is empty or cut off.
    assert!(!changed(|packet| packet[61] ^= 1, false));
    for option in [[1, 0, 0, 0, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0, 0, 0]] {
        let message = [&message[..], &option].concat();
        assert!(!state().passes(&ipv6(LINK_LOCAL, ICMPV6_NUMBER, &message), at(0)));
    }
}

/// A message of a DHCP server with options.
#[cfg(feature = "dhcp")]
fn message(transaction: [u8; 4], options: &[u8]) -> Vec<u8> {
    let mut message = alloc::vec![0; 240];
    message[4..8].copy_from_slice(&transaction);
    message[16..20].copy_from_slice(&OWN_IP);
    message.extend(options);
    message
}

#[cfg(feature = "dhcp")]
#[test]
fn a_renewal_says_what_the_first_agreement_said_and_all_are_counted() {
    use crate::filter::lease::{asks, completed};
    use crate::watch::Lease;

    const SERVER: [u8; 4] = [192, 0, 2, 1];
    const FULL: &[u8] = &[
        53, 1, 5, 1, 4, 255, 255, 255, 0, 3, 4, 192, 0, 2, 1, 6, 8, 192, 0, 2, 1, 9, 9, 9, 9, 255,
    ];
    let watch = watch();
    let mut state = State::new(watch, OWN, None);
    let client = |kind, transaction| {
        let mut message = message(transaction, &[53, 1, kind, 255]);
        message[16..20].fill(0);
        let mut packet = ipv4(OWN_IP, 67, &message);
        packet[34..38].copy_from_slice(&[0, 68, 0, 67]);
        asks(&packet, watch);
    };
    let mut hears = |transaction, options: &[u8]| {
        let packet = ipv4(SERVER, lease::CLIENT, &message(transaction, options));
        assert!(state.passes(&packet, at(0)));
        let agreed = state.agreed.as_ref();
        core::mem::take(&mut state.is_thin).then(|| completed(&packet, agreed.unwrap()).unwrap())
    };
    let counts = || Lease::ALL.map(|what| watch.leases(what));
    client(1, [1; 4]);
    client(3, [1; 4]);
    // Of another transaction; thin, and there is nothing to complete it with.
    assert_eq!(hears([2; 4], FULL), None);
    assert_eq!(hears([1; 4], &[53, 1, 5, 255]), None);
    assert_eq!(counts(), [0, 0, 0]);
    assert_eq!(hears([1; 4], FULL), None);
    assert_eq!(counts(), [0, 0, 0]);
    for (round, thin) in [&[53, 1, 5, 54, 4, 192, 0, 2, 1, 255][..], &[53, 1, 5]]
        .iter()
        .enumerate()
    {
        client(3, [3; 4]);
        let whole = hears([3; 4], thin).unwrap();
        let options = &whole[ETHERNET + IPV4 + UDP + 240..];
        let own = if round == 0 { &thin[..9] } else { &thin[..] };
        assert_eq!(options, [own, &FULL[3..]].concat());
        assert_eq!(folded(&whole[ETHERNET..][..IPV4]), u16::MAX);
        let total = u16::from_be_bytes([whole[16], whole[17]]);
        assert_eq!(usize::from(total), whole.len() - ETHERNET);
        assert_eq!(counts(), [1 + round as u64, 0, 0]);
    }
    // A whole one is left as it is. After a refusal the address is lost.
    assert_eq!(hears([3; 4], FULL), None);
    assert_eq!(hears([3; 4], &[53, 1, 6, 255]), None);
    assert_eq!(counts(), [3, 1, 0]);
    client(1, [4; 4]);
    client(1, [5; 4]);
    assert_eq!(counts(), [3, 1, 1]);
    assert_eq!(hears([5; 4], &[53, 1, 5, 255]), None);
}

#[cfg(feature = "dhcp")]
#[test]
fn a_mask_that_the_stack_ignores_counts_as_none() {
    use crate::filter::lease::completed;

    let mut state = State::new(watch(), OWN, None);
    let hears = |state: &mut State, options: &[u8]| {
        let packet = ipv4([192, 0, 2, 1], lease::CLIENT, &message([0; 4], options));
        assert!(state.passes(&packet, at(0)));
        let agreed = state.agreed.as_ref();
        core::mem::take(&mut state.is_thin).then(|| completed(&packet, agreed.unwrap()).unwrap())
    };
    const BAD: [&[u8]; 6] = [
        &[1, 0],
        &[1, 1, 255],
        &[1, 2, 255, 255],
        &[1, 3, 255, 255, 255],
        &[1, 5, 255, 255, 255, 0, 0],
        &[1, 4, 255, 0, 255, 0],
    ];
    for mask in BAD {
        hears(&mut state, &[&[53, 1, 5], mask, &[255]].concat());
        assert!(state.agreed.is_none());
    }
    // Whatever the other options are, and how often they occur.
    let servers = [[6, 12].as_slice(), &[9; 12]].concat();
    let first = [
        &[53, 1, 5],
        &servers[..],
        &servers,
        &[1, 4, 255, 255, 255, 0, 255],
    ]
    .concat();
    assert_eq!(hears(&mut state, &first), None);
    for mask in BAD {
        let whole = hears(&mut state, &[&[53, 1, 5], mask, &[255]].concat()).unwrap();
        let options = &whole[ETHERNET + IPV4 + UDP + 240..];
        let kept = [
            &[53, 1, 5],
            mask,
            &[1, 4, 255, 255, 255, 0],
            &servers,
            &[255],
        ]
        .concat();
        assert_eq!(options, kept);
        assert_eq!(state.agreed.as_ref().unwrap().mask, [255, 255, 255, 0]);
    }
}

#[cfg(feature = "dhcp")]
#[test]
fn a_message_that_the_stack_drops_is_no_agreement() {
    let good = ipv4(
        [192, 0, 2, 1],
        lease::CLIENT,
        &message([0; 4], &[53, 1, 5, 1, 4, 255, 255, 255, 0, 255]),
    );
    let agrees = |change: fn(&mut Vec<u8>)| {
        let mut state = State::new(watch(), OWN, None);
        let mut packet = good.clone();
        change(&mut packet);
        state.passes(&packet, at(0));
        state.agreed.is_some()
    };
    assert!(agrees(|_| {}));
    // A wrong checksum or length; from another port; to another machine.
    assert!(!agrees(|packet| packet[24] ^= 1));
    assert!(!agrees(|packet| packet[39] += 1));
    assert!(!agrees(|packet| packet[35] += 1));
    assert!(!agrees(|packet| packet[5] ^= 1));
}

#[cfg(feature = "dhcp")]
#[test]
fn a_packet_of_ipv6_is_no_message_of_the_dhcp_client() {
    let watch = watch();
    let mut packet = ipv4(OWN_IP, 67, &message([1; 4], &[53, 1, 1, 255]));
    packet[34..38].copy_from_slice(&[0, 68, 0, 67]);
    packet[12..14].copy_from_slice(&[0x86, 0xdd]);
    assert_eq!(lease::asks(&packet, watch), None);
    assert_eq!(watch.transaction.get(), [0; 4]);
}
