//! A guest's card in its own network, and clients in theirs.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::{NetworkError, NetworkNamespace};

/// The server's side: the way to the clients, on a bridge. No device of it has its own address, or
/// sends anything by itself.
const BRIDGE_DEVICES: [&str; 6] = [
    "link set dev lo up",
    "link add bridge0 type bridge stp_state 0 mcast_snooping 0",
    "link set dev bridge0 addrgenmode none",
    "link set dev uplink addrgenmode none master bridge0",
    "link set dev bridge0 up",
    "link set dev uplink up",
];

/// The device of a guest's card, on the bridge.
const GUEST_DEVICES: [&str; 3] = [
    "tuntap add dev tap0 mode tap vnet_hdr",
    "link set dev tap0 addrgenmode none master bridge0",
    "link set dev tap0 up",
];

/// The way of a program in the guest's place to the bridge.
const MEMBER_DEVICES: [&str; 2] = [
    "link set dev member addrgenmode none master bridge0",
    "link set dev member up",
];

/// The clients' side, whose addresses are those for documentation (RFC 5737, RFC 3849).
const CLIENT_DEVICES: [&str; 5] = [
    "link set dev lo up",
    "address add 192.0.2.1/24 dev eth0",
    "address add 2001:db8::1/64 dev eth0 nodad",
    "link set dev eth0 up",
    // A server that is asked from its start on is behind a bridge that does not forward yet: its
    // hardware address is asked for every 20 ms instead of every second, and for as long.
    "ntable change name arp_cache dev eth0 retrans 20 mcast_probes 150 ucast_probes 150",
];

/// A network of a guest and its clients: the hypervisor runs in one namespace and clients in
/// another, with a bridge and a pair of virtual Ethernet devices between them.
#[derive(Debug)]
pub struct TapNetwork {
    /// Where the hypervisor runs.
    pub hypervisor: NetworkNamespace,
    /// Where clients run.
    pub clients: NetworkNamespace,
    /// Where a program runs that has the guest's addresses.
    member: OnceLock<NetworkNamespace>,
}

impl TapNetwork {
    /// The name of the TAP device in the hypervisor's namespace.
    pub const DEVICE: &str = "tap0";
    /// The guest's addresses, by [`TapNetwork::WORDS`].
    pub const GUEST: (Ipv4Addr, Ipv6Addr) = (
        Ipv4Addr::new(192, 0, 2, 2),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    );
    /// The length of the prefix of the guest's first address.
    pub const PREFIX: u8 = 24;
    /// What tells an image of the unikernel these addresses.
    pub const WORDS: &str = "ip=192.0.2.2/24 ip6=2001:db8::2/64";

    /// Makes the namespaces and the devices in them.
    ///
    /// # Errors
    ///
    /// [`NetworkError`] if this process may not, or the kernel lacks what it takes.
    pub fn new() -> Result<Self, NetworkError> {
        let network = Self::without_tap()?;
        for words in GUEST_DEVICES {
            ip(&network.hypervisor, words)?;
        }
        Ok(network)
    }

    /// Makes the same for programs in the guest's place only, which takes no `/dev/net/tun`.
    ///
    /// # Errors
    ///
    /// As [`TapNetwork::new`].
    pub fn without_tap() -> Result<Self, NetworkError> {
        let network = Self {
            hypervisor: NetworkNamespace::new()?,
            clients: NetworkNamespace::new()?,
            member: OnceLock::new(),
        };
        let pair = format!(
            "link add uplink type veth peer name eth0 netns {}",
            network.clients.path()
        );
        ip(&network.hypervisor, &pair)?;
        for words in BRIDGE_DEVICES {
            ip(&network.hypervisor, words)?;
        }
        for words in CLIENT_DEVICES {
            ip(&network.clients, words)?;
        }
        // For the sockets of pings, which say so themselves where they are not allowed.
        let allow = || fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0");
        let _ = network.clients.within(allow);
        Ok(network)
    }

    /// Returns a namespace for programs in the guest's place: with its addresses, and a pair of
    /// virtual Ethernet devices to the bridge. Made the first time.
    ///
    /// # Errors
    ///
    /// As [`TapNetwork::new`].
    pub fn member(&self) -> Result<&NetworkNamespace, NetworkError> {
        match self.member.get() {
            Some(member) => Ok(member),
            None => self.join(NetworkNamespace::new()?),
        }
    }

    /// Makes a namespace, which somebody else may have made, that of programs in the guest's place.
    /// Its name for its end of the pair is `eth0`.
    ///
    /// # Errors
    ///
    /// As [`TapNetwork::new`]. There can be one such namespace.
    pub fn join(&self, member: NetworkNamespace) -> Result<&NetworkNamespace, NetworkError> {
        let pair = format!(
            "link add member type veth peer name eth0 netns {}",
            member.path()
        );
        ip(&self.hypervisor, &pair)?;
        for words in MEMBER_DEVICES {
            ip(&self.hypervisor, words)?;
        }
        let (v4, v6) = Self::GUEST;
        for words in [
            "link set dev lo up",
            &format!("address add {v4}/{} dev eth0", Self::PREFIX),
            &format!("address add {v6}/64 dev eth0 nodad"),
            "link set dev eth0 up",
        ] {
            ip(&member, words)?;
        }
        Ok(self.member.get_or_init(|| member))
    }

    /// Returns the value of QEMU's `-netdev`. QEMU has to run in the hypervisor's namespace.
    #[must_use]
    pub fn netdev(&self, id: &str) -> String {
        let device = Self::DEVICE;
        format!("tap,id={id},ifname={device},script=no,downscript=no")
    }
}

/// Sets something up in a namespace.
fn ip(within: &NetworkNamespace, words: &str) -> Result<(), NetworkError> {
    let mut command = Command::new("ip");
    command.args(words.split(' ')).stdin(Stdio::null());
    within
        .contain(&mut command)
        .map_err(NetworkError::Namespace)?;
    let ran = command.output().map_err(NetworkError::NoIp)?;
    if ran.status.success() {
        return Ok(());
    }
    Err(NetworkError::Device {
        words: words.to_owned(),
        said: String::from_utf8_lossy(&ran.stderr).trim().to_owned(),
    })
}
