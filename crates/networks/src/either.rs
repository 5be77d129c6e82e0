//! The network of a server: with a TAP device, or QEMU's own.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::{NetworkError, NetworkNamespace, TapNetwork, UserNetwork};

/// One of both.
#[derive(Debug)]
pub enum Network {
    /// Between network namespaces.
    Tap(TapNetwork),
    /// On this machine's loopback device; for guests only.
    User(UserNetwork),
}

impl Network {
    /// Returns the one between namespaces.
    ///
    /// # Errors
    ///
    /// [`NetworkError::ForGuests`] if it is QEMU's.
    pub fn tap(&self) -> Result<&TapNetwork, NetworkError> {
        match self {
            Self::Tap(network) => Ok(network),
            Self::User(_) => Err(NetworkError::ForGuests),
        }
    }

    /// Returns the namespace of programs in the guest's place.
    ///
    /// # Errors
    ///
    /// As [`TapNetwork::new`], and [`NetworkError::ForGuests`] if it is QEMU's.
    pub fn member(&self) -> Result<&NetworkNamespace, NetworkError> {
        self.tap()?.member()
    }

    /// Returns the namespace in which QEMU runs, if it is another one than this process's.
    #[must_use]
    pub fn hypervisor(&self) -> Option<&NetworkNamespace> {
        self.tap().ok().map(|network| &network.hypervisor)
    }

    /// Returns the namespace in which clients run, if it is another one than this process's.
    #[must_use]
    pub fn clients(&self) -> Option<&NetworkNamespace> {
        self.tap().ok().map(|network| &network.clients)
    }

    /// Returns where clients reach a port of the server.
    #[must_use]
    pub fn address(&self, port: u16) -> SocketAddr {
        let (guest, _) = TapNetwork::GUEST;
        let forwarded = match self {
            Self::Tap(_) => None,
            Self::User(network) => network.address(port),
        };
        forwarded.unwrap_or(SocketAddr::new(IpAddr::V4(guest), port))
    }

    /// Does something on a thread in the namespace of clients.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        match self.clients() {
            Some(clients) => clients.within(work),
            None => Ok(work()),
        }
    }

    /// Returns the value of QEMU's `-netdev`.
    #[must_use]
    pub fn netdev(&self, id: &str) -> String {
        match self {
            Self::Tap(network) => network.netdev(id),
            Self::User(network) => {
                let (guest, _) = TapNetwork::GUEST;
                let own = network.netdev(id);
                format!("{own},net=192.0.2.0/24,host=192.0.2.1,dhcpstart={guest}")
            }
        }
    }
}
