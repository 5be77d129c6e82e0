//! Cards on PCI and with MMIO, whose packets are sent and received one by one.

use std::thread;
use std::time::Duration;

use crate::packets::{ACK, GUEST, HOST_IP, ICMP, SYN, TCP, echo_request, ipv4, tcp};
use crate::wire::{CARDS, LIMIT, Wire, from_guest};
use crate::{ECHO, PING};

#[test]
fn pings_of_all_sizes_are_answered_on_all_machines_and_an_idle_guest_costs_nothing() {
    for card in CARDS {
        let Some(wire) = Wire::up(PING, card, "", "") else {
            return;
        };
        assert_eq!(wire.end.arp(), Some(GUEST), "{card:?}");
        wire.end.announce();
        for sequence in 0..200 {
            let bytes = usize::from(sequence) * 1472 / 199;
            let answer = wire.end.ping(sequence, bytes, LIMIT);
            assert!(answer.is_some(), "{card:?} {bytes}");
        }
        // One that spins takes 300.
        let before = wire.ticks();
        thread::sleep(Duration::from_secs(3));
        let idle = wire.ticks() - before;
        assert!(idle <= 30, "{card:?}: {idle} ticks of 10 ms in 3 s");
    }
}

#[test]
fn a_burst_into_a_ring_of_four_is_answered_and_the_full_ring_waits() {
    for card in CARDS {
        for events in [",event_idx=on", ",event_idx=off"] {
            let Some(wire) = Wire::up(PING, card, events, "ring=4") else {
                return;
            };
            assert_eq!(wire.end.arp(), Some(GUEST), "{card:?}");
            wire.end.announce();
            // Packets that do not fit may be lost, but not later ones.
            for _ in 0..5 {
                wire.end.send_hastily(
                    (0..200).map(|number| ipv4(HOST_IP, ICMP, &echo_request(8, number, 1000))),
                );
                wire.end.receive(Duration::from_millis(300), |_| false);
                let answer = wire.end.ping(1000, 10, LIMIT);
                assert!(answer.is_some(), "{card:?}{events}");
            }
        }
    }
}

#[test]
fn a_computation_that_does_not_yield_keeps_pings_waiting() {
    let median = |words: &str| -> Option<Duration> {
        let wire = Wire::up(PING, CARDS[2], "", words)?;
        assert_eq!(wire.end.arp(), Some(GUEST));
        wire.end.announce();
        // Not all between two computations.
        let pause = Duration::from_millis(100);
        let pings = (0..9).map(|sequence| {
            thread::sleep(pause);
            wire.end.ping(sequence, 56, LIMIT)
        });
        let mut pings: Vec<Duration> = pings.collect::<Option<_>>().expect("all are answered");
        pings.sort();
        Some(pings[4])
    };
    let alone = median("compute=1000");
    let (Some(alone), Some(yields)) = (alone, median("compute=1000 yield=yes")) else {
        return;
    };
    assert!(alone > 3 * yields, "{alone:?} against {yields:?}");
}

#[test]
fn a_link_that_was_down_carries_packets_again() {
    for card in CARDS {
        let Some(wire) = Wire::up(PING, card, "", "") else {
            return;
        };
        wire.end.announce();
        for round in 0..3 {
            assert!(wire.end.ping(round, 56, LIMIT).is_some(), "{card:?}");
            wire.plug(false);
            let answer = wire.end.ping(100 + round, 56, Duration::from_millis(300));
            assert_eq!(answer, None, "{card:?}");
            wire.plug(true);
        }
        assert!(wire.end.ping(10, 56, LIMIT).is_some(), "{card:?}");
    }
}

#[test]
fn a_card_that_is_polled_does_not_interrupt() {
    for card in CARDS {
        let Some(wire) = Wire::up(PING, card, "", "poll=yes") else {
            return;
        };
        let end = &wire.end;
        assert_eq!(end.arp(), Some(GUEST), "{card:?}");
        end.announce();
        let all_answered = (0..100).all(|sequence| end.ping(sequence, 56, LIMIT).is_some());
        assert!(all_answered, "{card:?}");
        let figure = end.figures();
        let names = ["receive", "transmit"];
        let interrupts = names.map(|name| figure(&format!("network_{name}_interrupts_total")));
        // QEMU interrupts for the first packet of each queue, regardless of the settings.
        assert!(
            interrupts[0] + interrupts[1] <= 2,
            "{card:?}: {interrupts:?}"
        );
        assert_eq!(figure("executor_wake_ups_total"), 0, "{card:?}");
    }
}

#[test]
fn no_packet_is_longer_than_the_mtu() {
    let Some(wire) = Wire::up(ECHO, CARDS[2], "", "mtu=1280") else {
        return;
    };
    let end = &wire.end;
    end.announce();
    assert!(end.ping(1, 1_280 - 28, LIMIT).is_some());
    let longer = end.ping(2, 1_280 - 28 + 4, Duration::from_millis(300));
    assert_eq!(longer, None);
    // The first option of the answer limits the size of peers' packets.
    end.send(&ipv4(HOST_IP, TCP, &tcp((999, 7), (1, 0), SYN, b"")));
    let answers = |frame: &[u8]| from_guest(frame, TCP).is_some() && frame[47] == SYN | ACK;
    let answer = end.receive(LIMIT, answers).expect("an answer");
    let longest = (1_280 - 40_u16).to_be_bytes();
    assert_eq!(answer[54..58], [2, 4, longest[0], longest[1]]);
}
