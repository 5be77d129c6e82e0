//! What is seen of packets on their way to the stack and behind it, of which the stack does not tell.

use core::cell::Cell;
#[cfg(feature = "slaac")]
use core::net::Ipv6Addr;

use embassy_sync::blocking_mutex::raw::NoopRawMutex;
use embassy_sync::signal::Signal;
#[cfg(feature = "slaac")]
use embassy_time::Instant;

/// Where packets are dropped, beside the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// On their way to the stack, which does not outlast them ([`crate::filter`]).
    Filter,
    /// Wishes for a connection, when all were taken ([`crate::backlog`]).
    Connections,
    /// Datagrams to the service's port that it did not get: there was no room, or they were for another machine.
    Room,
    /// Datagrams that can't be answered, as no route leads there or they came to a group.
    Route,
    /// Answers that the stack could not send, as nobody is there.
    Peer,
}

impl Dropped {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Filter,
        Self::Connections,
        Self::Room,
        Self::Route,
        Self::Peer,
    ];

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Connections => "connections",
            Self::Room => "room",
            Self::Route => "route",
            Self::Peer => "peer",
        }
    }
}

/// What the filter and the sockets of a stack see, for a service on a port.
pub struct Watch {
    /// The service's port.
    pub(crate) port: u16,
    /// A client found no place for a connection.
    pub(crate) turned_away: Signal<NoopRawMutex, ()>,
    /// A router of IPv6 announced itself, and until when it may be used.
    #[cfg(feature = "slaac")]
    pub(crate) routers: Signal<NoopRawMutex, (Ipv6Addr, Instant)>,
    /// Datagrams for the service that came to the stack.
    offered: Cell<u64>,
    dropped: [Cell<u64>; Dropped::ALL.len()],
}

impl Watch {
    /// Has seen nothing yet.
    #[must_use]
    pub const fn new(port: u16) -> Self {
        Self {
            port,
            turned_away: Signal::new(),
            #[cfg(feature = "slaac")]
            routers: Signal::new(),
            offered: Cell::new(0),
            dropped: [const { Cell::new(0) }; Dropped::ALL.len()],
        }
    }

    /// Returns how many packets were dropped somewhere.
    #[must_use]
    pub fn dropped(&self, at: Dropped) -> u64 {
        self.dropped[at as usize].get()
    }

    /// Counts packets that are dropped.
    pub(crate) fn lose(&self, at: Dropped, packets: u64) {
        let count = &self.dropped[at as usize];
        count.set(count.get() + packets);
    }

    /// Counts a datagram for the service that comes to the stack.
    pub(crate) fn offer(&self) {
        self.offered.set(self.offered.get() + 1);
    }

    /// Takes note of how many of them the service got, when none waits.
    pub(crate) fn got(&self, datagrams: u64) {
        self.dropped[Dropped::Room as usize].set(self.offered.get().saturating_sub(datagrams));
    }
}
