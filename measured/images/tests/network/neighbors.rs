//! Neighbours: many of them, and some that do not exist.

use std::thread;
use std::time::{Duration, Instant};

use crate::packets::{
    GUEST, GUEST_IP6, HOST_IP, HOST_IP6, ICMP, UDP, arp, echo_request, ipv4, ipv6_from, query, udp,
};
use crate::wire::{CARDS, LIMIT, Wire, from_guest};
use crate::{DNS, PING};

#[test]
fn twenty_clients_in_turn_are_known_to_the_guest() {
    let Some(wire) = Wire::up(PING, CARDS[2], "", "") else {
        return;
    };
    let end = &wire.end;
    let clients = (0..20).map(|number| [192, 0, 2, 100 + number]);
    for client in clients.clone() {
        end.send(&arp([0xff; 6], 1, client));
        let told = |frame: &[u8]| frame[12..14] == [8, 6] && frame[38..42] == client;
        assert!(end.receive(LIMIT, told).is_some());
    }
    // An answer to an unknown neighbour would be lost.
    for number in 0..3 {
        for client in clients.clone() {
            end.send(&ipv4(client, ICMP, &echo_request(8, number, 56)));
            let answers =
                |frame: &[u8]| from_guest(frame, ICMP).is_some() && frame[30..34] == client;
            assert!(end.receive(LIMIT, answers).is_some(), "{client:?}");
        }
    }
}

#[test]
fn only_a_datagram_that_the_stack_accepts_makes_it_ask_for_the_sender() {
    let Some(wire) = Wire::up(DNS, CARDS[2], "", "ip6=2001:db8::2/64") else {
        return;
    };
    let end = &wire.end;
    end.announce();
    let question = udp((1_111, 53), &query(1, "host1"));
    // This card checks no checksum. Questions are at least 10 ms apart.
    let is_asked = |frame: Vec<u8>, about: &[u8]| {
        thread::sleep(Duration::from_millis(20));
        end.send(&frame);
        let asks = |frame: &[u8]| match frame[12..14] {
            [0x08, 0x06] => frame.get(38..42) == Some(about),
            _ => frame.get(54) == Some(&135) && frame.get(62..78) == Some(about),
        };
        end.receive(Duration::from_millis(300), asks).is_some()
    };
    for (change, is_good) in [(0, true), (1, false)] {
        let from = [192, 0, 2, 100 + change];
        let mut datagram = ipv4(from, UDP, &question);
        datagram[40] ^= change;
        assert_eq!(is_asked(datagram, &from), is_good);
        let mut from = HOST_IP6;
        from[15] = 100 + change;
        let mut datagram = ipv6_from((from, GUEST_IP6), UDP, &question);
        datagram[60] ^= change;
        assert_eq!(is_asked(datagram, &from), is_good);
    }
}

#[test]
fn who_forges_his_address_keeps_nobody_waiting() {
    const QUERIES: u16 = 200;
    for words in ["", "gateway=192.0.2.1"] {
        let words = format!("ip6=2001:db8::2/64 {words}");
        let Some(wire) = Wire::up(DNS, CARDS[2], "", &words) else {
            return;
        };
        let end = &wire.end;
        end.announce();
        let forge = |number: u8| {
            let query = udp((1_111, 53), &query(number.into(), "host1"));
            match number % 4 {
                0 => ipv4([192, 0, 2, 100 + number], UDP, &query),
                1 => ipv4([10, 0, 2, number], UDP, &query),
                kind => {
                    let mut from = HOST_IP6;
                    from[15] = 100 + number;
                    from[7] = kind & 1;
                    ipv6_from((from, GUEST_IP6), UDP, &query)
                }
            }
        };
        let mut answered = 0;
        let (mut forged, mut next) = (0, Instant::now());
        for number in 0..QUERIES {
            if next <= Instant::now() || number % 20 == 0 {
                // First to all, which makes no neighbour known.
                let mut to_all = forge(forged % 100);
                to_all[33] = 255;
                crate::packets::repair(&mut to_all);
                end.send(&to_all);
                end.send(&forge(forged % 100));
                forged += 1;
                next = Instant::now() + Duration::from_millis(200);
            }
            let question = udp((2_222, 53), &query(number, "host17"));
            end.send(&ipv4(HOST_IP, UDP, &question));
            let answers = |frame: &[u8]| {
                from_guest(frame, UDP).is_some_and(|udp| {
                    udp[2..4] == 2_222_u16.to_be_bytes() && udp[8..10] == number.to_be_bytes()
                })
            };
            let answer = end.receive(Duration::from_millis(1_500), answers);
            answered += u16::from(answer.is_some());
        }
        assert!(answered >= QUERIES - 20, "{words}: {answered} of {QUERIES}");
        // A group gets no answer, and blocks nobody.
        let mut to_all = ipv4(HOST_IP, UDP, &udp((3_333, 53), &query(1, "host1")));
        to_all[..6].copy_from_slice(&GUEST);
        to_all[33] = 255;
        crate::packets::repair(&mut to_all);
        end.send(&to_all);
        let answers = |frame: &[u8]| {
            from_guest(frame, UDP).is_some_and(|udp| udp[2..4] == 3_333_u16.to_be_bytes())
        };
        let answer = end.receive(Duration::from_millis(300), answers);
        assert_eq!(answer, None);
    }
}
