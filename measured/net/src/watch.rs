//! Counts of dropped packets and signals between the filter and the sockets of a stack.

use core::cell::Cell;
#[cfg(feature = "tcp")]
use core::cell::RefCell;
#[cfg(feature = "slaac")]
use core::net::Ipv6Addr;

#[cfg(feature = "tcp")]
use embassy_net::{IpAddress, IpEndpoint};
use embassy_sync::blocking_mutex::raw::NoopRawMutex;
use embassy_sync::signal::Signal;
#[cfg(feature = "tcp")]
use embassy_sync::waitqueue::WakerRegistration;
#[cfg(feature = "slaac")]
use embassy_time::Instant;

#[cfg(feature = "tcp")]
use crate::filter::{Established, Peer};

/// Maximum number of connections whose numbers are kept: no image has more places.
#[cfg(feature = "tcp")]
const CONNECTIONS: usize = 64;

/// Maximum number of own IPv6 addresses that are kept: the stack has no room for more.
#[cfg(feature = "ipv6")]
const ADDRESSES: usize = 8;
/// The IPv6 address of loopback.
#[cfg(feature = "ipv6")]
pub(crate) const LOOPBACK: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// A place where packets are dropped, besides the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Packets that the stack cannot handle safely ([`crate::filter`]).
    Filter,
    /// Connection attempts while all sockets were in use ([`crate::backlog`]).
    Connections,
    /// Datagrams to the port of the service that found no room, or were for another machine.
    Room,
    /// Datagrams without a possible answer: from outside all routes, or to a multicast group.
    Route,
    /// Answers to a neighbour that does not exist.
    Peer,
}

impl Dropped {
    /// All places.
    pub const ALL: [Self; 5] = [
        Self::Filter,
        Self::Connections,
        Self::Room,
        Self::Route,
        Self::Peer,
    ];

    /// Returns its name.
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

/// What became of the address that DHCP gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// A server gave it again.
    Renewed,
    /// A server refused a request.
    Refused,
    /// The stack lost it: refused, run out, or the link was down.
    Lost,
}

impl Lease {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Renewed, Self::Refused, Self::Lost];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Renewed => "renewed",
            Self::Refused => "refused",
            Self::Lost => "lost",
        }
    }
}

/// The counts and signals of a stack with a service on a port.
pub struct Watch {
    /// The service's port.
    pub(crate) port: u16,
    /// A client found all sockets in use.
    pub(crate) turned_away: Signal<NoopRawMutex, ()>,
    /// The last IPv6 router that announced itself, and the end of its lifetime.
    #[cfg(feature = "slaac")]
    pub(crate) routers: Signal<NoopRawMutex, (Ipv6Addr, Instant)>,
    /// The number of datagrams for the service that reached the stack.
    offered: Cell<u64>,
    dropped: [Cell<u64>; Dropped::ALL.len()],
    leases: [Cell<u64>; Lease::ALL.len()],
    /// The last transaction of the DHCP client, and whether it has an address.
    #[cfg(feature = "dhcp")]
    pub(crate) transaction: Cell<[u8; 4]>,
    #[cfg(feature = "dhcp")]
    pub(crate) has_lease: Cell<bool>,
    /// The connections to the service.
    #[cfg(feature = "tcp")]
    pub(crate) established: RefCell<heapless::Vec<Established, CONNECTIONS>>,
    /// The peer whose connection is to end, and what wakes the stack for that.
    #[cfg(feature = "tcp")]
    pub(crate) ending: Cell<Option<Peer>>,
    #[cfg(feature = "tcp")]
    pub(crate) stack: RefCell<WakerRegistration>,
    /// The IPv6 addresses from which the stack last sent, and their number. Unused places hold the
    /// address of loopback.
    #[cfg(feature = "ipv6")]
    own: [Cell<[u8; 16]>; ADDRESSES],
    #[cfg(feature = "ipv6")]
    learned: Cell<usize>,
}

impl Watch {
    /// Returns counts of zero for a service on a port.
    pub const fn new(port: u16) -> Self {
        Self {
            port,
            turned_away: Signal::new(),
            #[cfg(feature = "slaac")]
            routers: Signal::new(),
            offered: Cell::new(0),
            dropped: [const { Cell::new(0) }; Dropped::ALL.len()],
            leases: [const { Cell::new(0) }; Lease::ALL.len()],
            #[cfg(feature = "dhcp")]
            transaction: Cell::new([0; 4]),
            #[cfg(feature = "dhcp")]
            has_lease: Cell::new(false),
            #[cfg(feature = "tcp")]
            established: RefCell::new(heapless::Vec::new()),
            #[cfg(feature = "tcp")]
            ending: Cell::new(None),
            #[cfg(feature = "tcp")]
            stack: RefCell::new(WakerRegistration::new()),
            #[cfg(feature = "ipv6")]
            own: [const { Cell::new(LOOPBACK) }; ADDRESSES],
            #[cfg(feature = "ipv6")]
            learned: Cell::new(0),
        }
    }

    /// Keeps an IPv6 address from which the stack sends.
    #[cfg(feature = "ipv6")]
    pub(crate) fn learn(&self, address: [u8; 16]) {
        if address != [0; 16] && !self.owns(address) {
            let learned = self.learned.get();
            self.own[learned % ADDRESSES].set(address);
            self.learned.set(learned + 1);
        }
    }

    /// Returns whether the stack has sent from an IPv6 address.
    #[cfg(feature = "ipv6")]
    pub(crate) fn owns(&self, address: [u8; 16]) -> bool {
        self.own.iter().any(|own| own.get() == address)
    }

    /// Returns how many packets were dropped at a place.
    pub fn dropped(&self, at: Dropped) -> u64 {
        self.dropped[at as usize].get()
    }

    /// Returns how often this became of the address that DHCP gave.
    pub fn leases(&self, what: Lease) -> u64 {
        self.leases[what as usize].get()
    }

    /// Counts what became of it.
    #[cfg(feature = "dhcp")]
    pub(crate) fn count(&self, what: Lease) {
        let count = &self.leases[what as usize];
        count.set(count.get() + 1);
    }

    /// Forgets a connection that is over.
    #[cfg(feature = "tcp")]
    pub(crate) fn forget(&self, peer: &Peer) {
        let mut established = self.established.borrow_mut();
        if let Some(at) = established.iter().position(|known| known.peer == *peer) {
            established.swap_remove(at);
        }
    }

    /// Makes room for new connections: forgets what never became one.
    #[cfg(feature = "tcp")]
    pub(crate) fn forget_others(&self, peers: impl Iterator<Item = IpEndpoint> + Clone) {
        let mut established = self.established.borrow_mut();
        if established.is_full() {
            established.retain(|known| peers.clone().any(|peer| numbers(peer) == known.peer));
        }
    }

    /// Lets the filter end a connection.
    #[cfg(feature = "tcp")]
    pub(crate) fn end(&self, peer: IpEndpoint) {
        self.ending.set(Some(numbers(peer)));
        self.stack.borrow_mut().wake();
    }

    /// Returns whether the filter has not ended the connection yet.
    #[cfg(feature = "tcp")]
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.get().is_some()
    }

    /// Counts dropped packets.
    pub(crate) fn lose(&self, at: Dropped, packets: u64) {
        let count = &self.dropped[at as usize];
        count.set(count.get() + packets);
    }

    /// Counts a datagram for the service that reaches the stack.
    pub(crate) fn offer(&self) {
        self.offered.set(self.offered.get() + 1);
    }

    /// Records how many of them the service received, when none waits.
    pub(crate) fn got(&self, datagrams: u64) {
        self.dropped[Dropped::Room as usize].set(self.offered.get().saturating_sub(datagrams));
    }
}

/// Returns the address of a peer, of IPv4 in the first bytes, and its port.
#[cfg(feature = "tcp")]
pub(crate) fn numbers(peer: IpEndpoint) -> Peer {
    let mut address = [0; 16];
    match peer.addr {
        IpAddress::Ipv4(peer) => address[..4].copy_from_slice(&peer.octets()),
        #[cfg(feature = "ipv6")]
        IpAddress::Ipv6(peer) => address = peer.octets(),
    }
    (address, peer.port.to_be_bytes())
}
