//! What can go wrong when a network is made.

use std::io;

/// Says what could not be done, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The kernel makes no network namespace.
    #[error(
        "no network namespace: {0}; it requires root (CAP_SYS_ADMIN) and a kernel with CONFIG_NET_NS"
    )]
    Namespace(#[source] io::Error),

    /// The program that sets devices up can't be started.
    #[error("cannot start ip: {0}; install iproute2")]
    NoIp(#[source] io::Error),

    /// A device can't be made.
    #[error(
        "ip {words}: {said}; a TAP network requires root, /dev/net/tun, and a kernel with bridges and veth"
    )]
    Device {
        /// The words of the command.
        words: String,
        /// Its output.
        said: String,
    },

    /// A program that is no guest can't be in QEMU's network.
    #[error("QEMU's user-mode network is for guests only")]
    ForGuests,

    /// No port of 127.0.0.1 is free.
    #[error("no port of 127.0.0.1 is free: {0}")]
    NoPort(#[source] io::Error),
}
