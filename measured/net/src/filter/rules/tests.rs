//! Packets that pass, and packets that are injected.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::*;
#[cfg(feature = "ipv6")]
use crate::filter::ICMPV6_NUMBER;

const HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const OWN: [u8; 6] = [2, 0, 0, 0, 0, 2];
#[cfg(feature = "ipv6")]
const LINK_LOCAL: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];

fn watch() -> &'static Watch {
    Box::leak(Box::new(Watch::new(53)))
}

fn at(seconds: u64) -> impl Fn() -> Instant {
    move || Instant::from_secs(seconds)
}

fn ipv4(from: [u8; 4], port: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = [&OWN[..], &HARDWARE, &ETHERTYPE_IPV4, &[0x45]].concat();
    packet.extend([0, 0, 0, 0, 0, 0, 0, 64, UDP_NUMBER, 0, 0]);
    packet.extend([from, [192, 0, 2, 2]].concat());
    packet.extend([0, 67]);
    packet.extend(port.to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(payload);
    packet
}

#[cfg(feature = "ipv6")]
fn ipv6(from: [u8; 16], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = [&OWN[..], &HARDWARE, &ETHERTYPE_IPV6].concat();
    packet.extend([0x60, 0, 0, 0, 0, payload.len() as u8, protocol, 255]);
    packet.extend([from, LINK_LOCAL].concat());
    packet.extend(payload);
    packet
}

#[test]
fn packets_from_no_address_are_dropped() {
    let mut state = State::new(watch());
    assert!(!state.passes(&ipv4([0; 4], 9, b""), at(0)));
    assert!(state.passes(&ipv4([192, 0, 2, 1], 9, b""), at(0)));
}

#[test]
fn senders_that_nobody_can_answer_and_pings_to_all_are_dropped() {
    let mut state = State::new(watch());
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
    ping[ETHERNET + 9] = ICMP_NUMBER;
    assert!(state.passes(&ping, at(0)));
    ping[..6].fill(0xff);
    assert!(!state.passes(&ping, at(0)));
    // Other packets to all pass: DHCP needs them.
    ping[ETHERNET + 9] = UDP_NUMBER;
    assert!(state.passes(&ping, at(0)));
}

#[cfg(feature = "ipv6")]
#[test]
fn so_are_they_over_ipv6() {
    let mut state = State::new(watch());
    let udp = [0, 9, 0, 53, 0, 8, 0, 0];
    let mut group = LINK_LOCAL;
    group[0] = 0xff;
    for from in [group, LOOPBACK] {
        assert!(!state.passes(&ipv6(from, UDP_NUMBER, &udp), at(0)));
    }
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
    let mut state = State::new(watch());
    let whole = ipv4([192, 0, 2, 1], 53, b"a query");
    assert!((0..whole.len()).all(|length| state.passes(&whole[..length], at(0))));
}

#[cfg(feature = "dhcp")]
#[test]
fn dhcp_messages_with_a_router_that_is_no_host_are_dropped() {
    const HOST: [u8; 4] = [192, 0, 2, 1];
    let mut state = State::new(watch());
    let mut passes = |from, options: &[u8]| {
        let message = [&[0; 240][..], options].concat();
        state.passes(&ipv4(from, DHCP_CLIENT, &message), at(0))
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

#[test]
fn clients_of_the_service_are_reported_to_the_stack_once_per_second() {
    let mut state = State::new(watch());
    let query = ipv4([192, 0, 2, 9], 53, b"");
    assert!(state.passes(&query, at(10)));
    let report = state.pending.take().unwrap();
    assert_eq!(report.bytes[6..14], [2, 0, 0, 0, 0, 1, 8, 6]);
    assert_eq!(report.bytes[22..32], [2, 0, 0, 0, 0, 1, 192, 0, 2, 9]);
    assert_eq!(report.bytes[32..42], [2, 0, 0, 0, 0, 2, 192, 0, 2, 2]);
    assert!(state.passes(&query, at(10)) && state.pending.is_none());
    assert!(state.passes(&query, at(12)) && state.pending.take().is_some());
    // Clients of other ports are not reported; a group address is never a sender.
    assert!(state.passes(&ipv4([192, 0, 2, 8], 54, b""), at(12)) && state.pending.is_none());
    let mut group = ipv4([192, 0, 2, 8], 53, b"");
    group[6] |= 1;
    assert!(!state.passes(&group, at(12)) && state.pending.is_none());
}

#[cfg(feature = "ipv6")]
#[test]
fn clients_over_ipv6_are_reported_if_they_are_on_the_link() {
    let mut state = State::new(watch());
    let udp = [0, 9, 0, 53, 0, 8, 0, 0];
    assert!(state.passes(&ipv6(LINK_LOCAL, UDP_NUMBER, &udp), at(0)));
    let report = state.pending.take().unwrap();
    assert_eq!(report.length, 86);
    assert_eq!(report.bytes[62..78], LINK_LOCAL);
    assert_eq!(report.bytes[78..86], [2, 1, 2, 0, 0, 0, 0, 1]);
    // The checksum is right for any number of carries.
    for last in 0..=u16::MAX {
        let mut near = LINK_LOCAL;
        near[14..].copy_from_slice(&last.to_be_bytes());
        assert!(state.passes(&ipv6(near, UDP_NUMBER, &udp), at(1_000 + u64::from(last))));
        let report = state.pending.take().unwrap();
        let words = report.bytes[22..]
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum = words.sum::<u32>() + 32 + u32::from(ICMPV6_NUMBER);
        assert_eq!(sum % 0xffff, 0, "{near:x?}");
    }
    let far = [0x20; 16];
    assert!(state.passes(&ipv6(far, UDP_NUMBER, &udp), at(0)) && state.pending.is_none());
}

#[cfg(feature = "slaac")]
#[test]
fn routers_beyond_the_room_and_prefixes_of_groups_are_dropped() {
    let mut state = State::new(watch());
    let mut passes = |router: u8, lifetime: u8, prefix: u8, second| {
        let mut message = Vec::from([ROUTER_ADVERTISEMENT, 0, 0, 0, 64, 0, 0, lifetime]);
        message.extend([0; 8]);
        message.extend([1, 1, 0, 0, 0, 0, 0, 0, 3, 4, 64, 0xc0]);
        message.extend([0; 12]);
        message.extend([prefix; 16]);
        let mut from = LINK_LOCAL;
        from[15] = router;
        // Hop-by-hop options change nothing.
        let behind = [&[ICMPV6_NUMBER, 0, 1, 4, 0, 0, 0, 0], &message[..]].concat();
        let plain = state.passes(&ipv6(from, ICMPV6_NUMBER, &message), at(second));
        assert_eq!(state.passes(&ipv6(from, 0, &behind), at(second)), plain);
        plain
    };
    assert!(!passes(1, 100, 0xff, 0) && !passes(1, 100, 0, 0));
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
    let passes = |change: fn(&mut Vec<u8>)| {
        let (mut state, mut packet) = (State::new(watch()), good.clone());
        change(&mut packet);
        let passes = state.passes(&packet, at(0));
        assert_eq!(passes, state.router.is_some());
        passes
    };
    assert!(passes(|_| {}));
    assert!(passes(|packet| packet[38..54].copy_from_slice(&ALL_NODES)));
    // From another link, no address, a group; to another machine; of another kind.
    assert!(!passes(|packet| packet[21] = 64));
    assert!(!passes(|packet| packet[22..38].fill(0)));
    assert!(!passes(|packet| packet[22] = 0xff));
    assert!(!passes(|packet| packet[38] = 0x20));
    assert!(!passes(|packet| packet[55] = 1));
}
