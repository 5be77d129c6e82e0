//! Network devices, which are down in a guest or a namespace until they are brought up.

use std::fs;
use std::io;
use std::net::Ipv4Addr;

use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The name of the loopback device.
pub const LOOPBACK: &str = "lo";

/// Returns whether the loopback device is up.
pub fn is_loopback_up() -> bool {
    let Ok(text) = fs::read_to_string("/sys/class/net/lo/flags") else {
        // Without sysfs: binding succeeds if there is an address.
        return std::net::UdpSocket::bind("127.0.0.1:0").is_ok();
    };
    let flags = text.trim().trim_start_matches("0x");
    u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & libc::IFF_UP as u32 != 0)
}

/// Brings a device up, with an address and the length of its prefix (`192.0.2.2/24`) if one is
/// given. For the init of a guest or namespace, or the owner of a host.
///
/// # Errors
///
/// Returns the kernel's error: it requires CAP_NET_ADMIN, and the device; or
/// [`io::ErrorKind::InvalidInput`] if the text is no address with a prefix.
pub fn raise(name: &str, address: Option<&str>) -> io::Result<()> {
    // SAFETY: takes no pointers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: zeroed is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.len() - 1;
    for (to, byte) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = byte as libc::c_char;
    }
    let mut set = |what: libc::Ioctl, value| {
        request.ifr_ifru = value;
        // SAFETY: the request has a device name and the value that the call reads, and outlives it.
        match unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    if let Some((address, prefix)) = address.map(parsed).transpose()? {
        let mask = u32::MAX.checked_shl(u32::from(32 - prefix)).unwrap_or(0);
        set(libc::SIOCSIFADDR, of_address(address))?;
        set(libc::SIOCSIFNETMASK, of_address(Ipv4Addr::from_bits(mask)))?;
    }
    let up = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    set(
        libc::SIOCSIFFLAGS,
        libc::__c_anonymous_ifr_ifru { ifru_flags: up },
    )
}

/// Reads an address and the length of its prefix.
fn parsed(text: &str) -> io::Result<(Ipv4Addr, u8)> {
    let read = || {
        let (address, prefix) = text.split_once('/')?;
        let prefix = prefix.parse().ok().filter(|prefix| *prefix <= 32)?;
        Some((address.parse().ok()?, prefix))
    };
    read().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Returns the value of a request with an address.
fn of_address(address: Ipv4Addr) -> libc::__c_anonymous_ifr_ifru {
    let mut data = [0; 14];
    for (to, byte) in data[2..].iter_mut().zip(address.octets()) {
        *to = byte as libc::c_char;
    }
    libc::__c_anonymous_ifr_ifru {
        ifru_addr: libc::sockaddr {
            sa_family: libc::AF_INET as libc::sa_family_t,
            sa_data: data,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_prefix() {
        let read = |text| parsed(text).ok();
        assert_eq!(
            read("192.0.2.2/24"),
            Some((Ipv4Addr::new(192, 0, 2, 2), 24))
        );
        for text in ["192.0.2.2", "192.0.2.2/33", "host/24", "/"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
