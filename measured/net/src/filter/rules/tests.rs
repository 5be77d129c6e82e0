//! Packets that pass, and packets that are injected.

use alloc::boxed::Box;
use alloc::vec::Vec;

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
    packet
}

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
    let mut state = state();
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
}

#[test]
fn a_datagram_does_not_move_an_address_that_another_host_has_said_is_its_own() {
    let other = [2, 0, 0, 0, 0, 9];
    for operation in [1, 2] {
        let mut state = state();
        let says = |sender: [u8; 4], to: [u8; 4], state: &mut State| {
            let message = [
                &[0, 1, 8, 0, 6, 4, 0, operation][..],
                &other,
                &sender,
                &OWN,
                &to,
            ];
            let packet = [&OWN[..], &other, &ETHERTYPE_ARP, &message.concat()].concat();
            assert!(state.passes(&packet, at(0)));
        };
        let query = ipv4([192, 0, 2, 9], 53, b"");
        // To another machine: the stack passes it over as well.
        says([192, 0, 2, 9], [192, 0, 2, 3], &mut state);
        assert!(state.passes(&query, at(0)) && state.pending.take().is_some());
        says([192, 0, 2, 9], OWN_IP, &mut state);
        for second in 1..100 {
            assert!(state.passes(&query, at(second)) && state.pending.is_none());
            assert!(state.question.take().is_some());
        }
    }
}

#[cfg(feature = "ipv6")]
#[test]
fn clients_over_ipv6_are_reported_if_they_are_on_the_link() {
    let mut state = state();
    let udp = [0, 9, 0, 53, 0, 8, 0, 0];
    assert!(state.passes(&ipv6(NEAR, UDP_NUMBER, &udp), at(0)));
    let report = state.pending.take().unwrap();
    assert_eq!(report.length, 86);
    // Without flags: it replaces nothing that the stack knows.
    assert_eq!(report.bytes[58..62], [0; 4]);
    assert_eq!(report.bytes[62..78], NEAR);
    assert_eq!(report.bytes[78..86], [2, 1, 2, 0, 0, 0, 0, 1]);
    // Nothing is asked until the stack's own address is known; then its owner.
    assert!(state.question.is_none());
    state.watch.own.set(Some(LINK_LOCAL));
    let mut forged = ipv6(NEAR, UDP_NUMBER, &udp);
    forged[11] = 9;
    assert!(state.passes(&forged, at(1)) && state.pending.is_none());
    let question = state.question.take().unwrap();
    assert_eq!(
        question.bytes[..12],
        [0x33, 0x33, 0xff, 0, 0, 8, 2, 0, 0, 0, 0, 2]
    );
    assert_eq!(question.bytes[22..38], LINK_LOCAL);
    assert_eq!(question.bytes[62..78], NEAR);
    assert_eq!(question.bytes[78..86], [1, 1, 2, 0, 0, 0, 0, 2]);
    // Its answer moves the address.
    let mut answer = Vec::from([NEIGHBOR_ADVERTISEMENT, 0, 0, 0, 0x60, 0, 0, 0]);
    answer.extend(NEAR);
    answer.extend([2, 1, 2, 0, 0, 0, 0, 9]);
    // Not if a router has forwarded it.
    let mut answer = ipv6(NEAR, ICMPV6_NUMBER, &answer);
    answer[21] = 254;
    assert!(state.passes(&answer, at(2)));
    assert!(state.passes(&forged, at(3)) && state.pending.is_none());
    answer[21] = 255;
    assert!(state.passes(&answer, at(4)));
    assert!(state.passes(&forged, at(9)) && state.pending.take().is_some());
    // The checksum is right for any number of carries.
    for last in 0..=u16::MAX {
        let mut near = NEAR;
        near[10] = 1;
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
    let mut state = state();
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
        let (mut state, mut packet) = (state(), good.clone());
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
fn a_packet_of_ipv6_is_no_message_of_the_dhcp_client() {
    let watch = watch();
    let mut packet = ipv4(OWN_IP, 67, &message([1; 4], &[53, 1, 1, 255]));
    packet[34..38].copy_from_slice(&[0, 68, 0, 67]);
    packet[12..14].copy_from_slice(&[0x86, 0xdd]);
    assert_eq!(lease::asks(&packet, watch), None);
    assert_eq!(watch.transaction.get(), [0; 4]);
}
