//! Which neighbours the filter tells the stack of, from the datagrams of clients.
//!
//! A datagram says nothing about where its sender is: a router forwards those of forged senders, too.
//! So one counts only for an address that nobody is known to have, and the host that has it is asked
//! by the protocol of the link at once. Its answer reaches the stack and counts more than what the
//! filter has told.

use embassy_time::{Duration, Instant};
use heapless::Vec;

/// The number of addresses that are remembered, as many as the stack's table holds.
const NEIGHBORS: usize = 64;
/// A neighbour is reported again after this time, or after this number of others: the stack forgets it
/// after a minute, or when its table is full.
const AGAIN: Duration = Duration::from_secs(1);
const OTHERS: u32 = 32;
/// Time between two questions.
const QUESTIONS: Duration = Duration::from_millis(10);

/// An address and its host.
#[derive(Clone, Copy, Debug)]
struct Neighbor {
    /// The address; of IPv4 in the first bytes.
    address: [u8; 16],
    hardware: [u8; 6],
    /// Whether that was its answer on the link, not a datagram.
    is_confirmed: bool,
    /// Whether the link was asked.
    was_asked: bool,
    /// The time of its last report to the stack, and the number of reports until then.
    told: (Instant, u32),
}

/// What follows from a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Whether the address of the datagram's sender is reported to the stack.
    pub tells: bool,
    /// Whether the link is asked who has it.
    pub asks: bool,
}

/// The addresses on the link that are known.
#[derive(Debug)]
pub struct Neighbors {
    known: Vec<Neighbor, NEIGHBORS>,
    /// The next place to be used when there is no room.
    next: usize,
    told: u32,
    asked: Instant,
}

impl Neighbors {
    pub const fn new() -> Self {
        Self {
            known: Vec::new(),
            next: 0,
            told: 0,
            asked: Instant::MIN,
        }
    }

    /// Returns what follows from a datagram from an address on the link.
    pub fn sends(&mut self, address: [u8; 16], hardware: [u8; 6], now: Instant) -> Finding {
        let told = (now, self.told);
        let may_ask = self.asked == Instant::MIN || now >= self.asked + QUESTIONS;
        let (tells, asks) = match self.find(address) {
            Some(known) if known.hardware == hardware => {
                let (at, before) = known.told;
                let tells = now >= at + AGAIN || told.1.wrapping_sub(before) >= OTHERS;
                if tells {
                    known.told = told;
                }
                // Until it has answered, at each report.
                let asks = may_ask && !known.is_confirmed && (tells || !known.was_asked);
                known.was_asked |= asks;
                (tells, asks)
            }
            Some(_) => (false, may_ask),
            None => {
                self.keep(Neighbor {
                    address,
                    hardware,
                    is_confirmed: false,
                    was_asked: may_ask,
                    told,
                });
                (true, may_ask)
            }
        };
        self.told = self.told.wrapping_add(tells.into());
        if asks {
            self.asked = now;
        }
        Finding { tells, asks }
    }

    /// Keeps what a host has said on the link, which the stack believes as well.
    pub fn is_at(&mut self, address: [u8; 16], hardware: [u8; 6], now: Instant) {
        self.keep(Neighbor {
            address,
            hardware,
            is_confirmed: true,
            was_asked: true,
            told: (now, self.told),
        });
    }

    fn find(&mut self, address: [u8; 16]) -> Option<&mut Neighbor> {
        self.known.iter_mut().find(|known| known.address == address)
    }

    /// Keeps a neighbour, if need be in place of one that is not confirmed, else of the oldest.
    fn keep(&mut self, neighbor: Neighbor) {
        if let Some(known) = self.find(neighbor.address) {
            *known = neighbor;
        } else if self.known.push(neighbor).is_err() {
            let mut places = (self.next..NEIGHBORS).chain(0..self.next);
            let at = places.find(|at| !self.known[*at].is_confirmed);
            let at = at.unwrap_or(self.next);
            self.known[at] = neighbor;
            self.next = (at + 1) % NEIGHBORS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const TWO: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const NOTHING: Finding = Finding {
        tells: false,
        asks: false,
    };

    fn address(number: u16) -> [u8; 16] {
        let mut address = [0; 16];
        address[..2].copy_from_slice(&number.to_be_bytes());
        address
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_datagram_tells_of_an_address_that_nobody_has_and_asks_who_has_it() {
        let mut neighbors = Neighbors::new();
        let first = neighbors.sends(address(1), ONE, at(0));
        assert_eq!((first.tells, first.asks), (true, true));
        assert_eq!(neighbors.sends(address(1), ONE, at(999)), NOTHING);
        // The stack forgets in time.
        assert!(neighbors.sends(address(1), ONE, at(1_000)).tells);
        // Another sender redirects nothing; the link is asked.
        let other = neighbors.sends(address(1), TWO, at(2_000));
        assert_eq!((other.tells, other.asks), (false, true));
        assert_eq!(neighbors.sends(address(1), TWO, at(2_009)), NOTHING);
        assert!(neighbors.sends(address(1), TWO, at(2_010)).asks);
        // An answer on the link takes precedence.
        neighbors.is_at(address(1), TWO, at(2_020));
        assert!(!neighbors.sends(address(1), ONE, at(9_000)).tells);
        assert!(neighbors.sends(address(1), TWO, at(9_000)).tells);
    }

    #[test]
    fn the_link_is_asked_until_it_has_answered() {
        let mut neighbors = Neighbors::new();
        assert!(neighbors.sends(address(2), TWO, at(1)).asks);
        let mut sends = |millis| neighbors.sends(address(1), ONE, at(millis));
        // As soon as a question may be sent, and then each time that the neighbour is reported.
        assert!(!sends(10).asks);
        assert!(sends(11).asks);
        assert!(!sends(500).asks);
        assert!(sends(1_010).asks && !sends(1_500).asks);
        neighbors.is_at(address(1), ONE, at(1_600));
        assert!(!neighbors.sends(address(1), ONE, at(9_000)).asks);
    }

    #[test]
    fn hosts_that_answered_stay_known_among_any_number_of_senders() {
        let mut neighbors = Neighbors::new();
        for number in 0..32 {
            neighbors.is_at(address(number), ONE, at(0));
        }
        for number in 1_000..10_000 {
            assert!(neighbors.sends(address(number), TWO, at(1)).tells);
        }
        for number in 0..32 {
            assert!(
                !neighbors.sends(address(number), TWO, at(2)).tells,
                "{number}"
            );
            // Reported again at once: the others may have taken its place in the stack's table.
            assert!(
                neighbors.sends(address(number), ONE, at(2)).tells,
                "{number}"
            );
            assert!(
                !neighbors.sends(address(number), ONE, at(2)).tells,
                "{number}"
            );
        }
        // The oldest goes when all have answered.
        for number in 100..164 {
            neighbors.is_at(address(number), ONE, at(3));
        }
        neighbors.is_at(address(200), ONE, at(3));
        assert_eq!(neighbors.known.len(), NEIGHBORS);
        assert!(
            neighbors.sends(address(200), TWO, at(4))
                != Finding {
                    tells: true,
                    asks: true
                }
        );
    }
}
