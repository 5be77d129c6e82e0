//! IPv6 routers: valid ones, hostile ones, and none.

use std::thread;
use std::time::{Duration, Instant};

use crate::PING;
use crate::link::give_address;
use crate::packets::{ETHERNET, GUEST_IP6, ICMP6, UDP, echo_request, ipv6_from, neighbor, router};
use crate::wire::{CARDS, End, LIMIT, Wire, from_guest};

/// The guest's interface identifier from its hardware address.
const OWN: [u8; 8] = [0x50, 0x54, 0, 0xff, 0xfe, 0x12, 0x34, 0x56];
const PREFIX: [u8; 8] = [0x20, 1, 0xd, 0xb8, 0, 7, 0, 0];
/// An address behind a router.
const FAR: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];

/// The address of a router on the link.
fn link_local(number: u16) -> [u8; 16] {
    let mut address = [0; 16];
    [address[0], address[1]] = [0xfe, 0x80];
    address[14..].copy_from_slice(&number.to_be_bytes());
    address
}

fn is_icmp6(frame: &[u8], kind: u8) -> bool {
    frame.len() > ETHERNET + 40
        && frame[12..14] == [0x86, 0xdd]
        && frame[20] == ICMP6
        && frame[ETHERNET + 40] == kind
}

/// Whether the guest answers pings to an address, also from behind a router, which announces itself
/// by some packet.
fn answers(end: &End, address: [u8; 16], announcement: &[u8]) -> bool {
    [link_local(1), FAR].into_iter().all(|from| {
        (0..60).any(|number| {
            end.send(announcement);
            end.send(&neighbor(link_local(1)));
            let ping = echo_request(128, number, 56);
            end.send(&ipv6_from((from, address), ICMP6, &ping));
            let answers = |frame: &[u8]| is_icmp6(frame, 129) && frame[22..38] == address;
            end.receive(Duration::from_secs(1), answers).is_some()
        })
    })
}

/// Returns the guest's address with the prefix.
fn own() -> [u8; 16] {
    [PREFIX, OWN].concat().try_into().unwrap()
}

/// Returns whether the guest configures an address from a router's advertisement.
fn makes_address(end: &End) -> bool {
    answers(end, own(), &router(link_local(1), 1_800, PREFIX))
}

#[test]
fn an_address_is_made_of_what_a_router_announces_while_ipv4_is_up() {
    for (card, words) in [(CARDS[0], "gateway=192.0.2.1"), (CARDS[2], "")] {
        let Some(wire) = Wire::up(PING, card, "", words) else {
            return;
        };
        assert!(makes_address(&wire.end), "{card:?}");
        wire.end.announce();
        assert!(wire.end.ping(1, 56, LIMIT).is_some(), "{card:?}");
    }
}

#[test]
fn a_router_that_was_away_or_had_a_rival_is_used_again() {
    let Some(wire) = Wire::up(PING, CARDS[0], "", "gateway=192.0.2.1") else {
        return;
    };
    let end = &wire.end;
    assert!(makes_address(end));
    end.send(&router(link_local(1), 0, PREFIX));
    thread::sleep(Duration::from_secs(1));
    assert!(makes_address(end));
    end.send(&router(link_local(2), 1, PREFIX));
    thread::sleep(Duration::from_secs(2));
    assert!(makes_address(end));
    // The unspecified address, a group and an address off the link are no routers.
    end.send(&router(link_local(1), 0, PREFIX));
    thread::sleep(Duration::from_secs(1));
    for from in [[0; 16], [0xff; 16], FAR] {
        end.send(&router(from, 1_800, PREFIX));
        thread::sleep(Duration::from_millis(100));
        let ping = echo_request(128, 1, 56);
        end.send(&ipv6_from((FAR, own()), ICMP6, &ping));
    }
    assert!(makes_address(end));
}

#[test]
fn a_router_is_asked_for_three_times_beside_a_static_address() {
    let Some(wire) = Wire::up(PING, CARDS[0], "", "") else {
        return;
    };
    let asks = || wire.end.receive(LIMIT, |frame| is_icmp6(frame, 133));
    assert!((0..3).all(|_| asks().is_some()));
}

#[test]
fn a_static_router_of_ipv6_is_used() {
    let words = "ip6=2001:db8::2/64 gateway6=fe80::1";
    if let Some(wire) = Wire::up(PING, CARDS[2], "", words) {
        assert!(answers(&wire.end, GUEST_IP6, &neighbor(link_local(1))));
    }
}

#[test]
fn floods_of_routers_and_prefixes_harm_nothing_whatever_dhcp_says_later() {
    let Some(wire) = Wire::new(PING, CARDS[0], "", "figures=9100") else {
        return;
    };
    let end = &wire.end;
    let asks = end.receive(LIMIT, |frame| is_icmp6(frame, 133));
    assert!(asks.is_some());
    // The prefix of a group yields no address.
    end.send(&router(link_local(1), 1_800, [0xff, 2, 0, 0, 0, 0, 0, 0]));
    end.send(&router(link_local(1), 1_800, PREFIX));
    end.flood((2..2_000_u16).map(|number| {
        let [high, low] = number.to_be_bytes();
        let prefix = [0x20, 1, 0xd, 0xb8, high, low, 0, 0];
        router(link_local(number), 1_800, prefix)
    }));
    give_address(end, 3_600, &[3, 4, 192, 0, 2, 1]);
    assert!(end.ping(1, 56, LIMIT).is_some());
    assert!(makes_address(end));
    let dropped = end.figures()("network_dropped_packets_total{by=\"filter\"}");
    assert!(dropped >= 1_995, "{dropped}");
}

#[test]
fn a_guest_without_a_router_of_ipv6_is_idle_when_it_has_asked_for_one_and_keeps_its_times() {
    /// The lease in seconds, so that half of it ends just after the idle period.
    const LEASE: u32 = 44;
    let is_idle = |card: (&'static str, &'static str)| {
        let Some(wire) = Wire::new(PING, card, "", "figures=9100") else {
            return;
        };
        let end = &wire.end;
        let start = Instant::now();
        give_address(end, LEASE, b"");
        // The last solicitation comes after eight seconds, and a fourth one would be due four
        // seconds later.
        while start.elapsed() < Duration::from_secs(16) {
            end.receive(Duration::from_secs(1), |_| false);
        }
        let before = (wire.ticks(), end.figures());
        thread::sleep(Duration::from_secs(3));
        let idle = wire.ticks() - before.0;
        assert!(idle <= 30, "{card:?}: {idle} ticks of 10 ms in 3 s");
        let now = end.figures();
        for name in ["executor_passes_total", "executor_spins_total"] {
            let count = now(name) - before.1(name);
            assert!(count <= 100, "{card:?}: {count} {name}");
        }
        // The lease is renewed in time, though nothing has been received.
        let renews = |frame: &[u8]| from_guest(frame, UDP).is_some_and(|udp| udp[3] == 67);
        assert!(end.receive(LIMIT, renews).is_some(), "{card:?}");
        // A later router is accepted.
        assert!(makes_address(end), "{card:?}");
    };
    // Both wait for most of the time.
    thread::scope(|scope| {
        for card in [CARDS[0], CARDS[2]] {
            scope.spawn(move || is_idle(card));
        }
    });
}
