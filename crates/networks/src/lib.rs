//! Networks for guests, which nobody reaches from beyond this machine.
//!
//! * [`UserNetwork`]: QEMU's user-mode network. It needs no root: ports of 127.0.0.1 are forwarded
//!   to the guest, and what the guest sends elsewhere is sent on as if QEMU's user had.
//! * [`TapNetwork`]: a TAP device, a bridge and a pair of virtual Ethernet devices between two
//!   network namespaces, one for the hypervisor and one for clients. It requires root, and `ip` of
//!   iproute2.
//! * [`NetworkNamespace`]: what the second is made of.
//! * [`Network`]: one of the two.
//!
//! Nothing of them has to be removed: the kernel ends a namespace, and the devices in it, with the
//! last one who holds it, also after `kill -9`.

mod either;
mod error;
mod namespace;
mod tap;
mod user;

pub use either::Network;
pub use error::NetworkError;
pub use namespace::NetworkNamespace;
pub use tap::TapNetwork;
pub use user::UserNetwork;
