//! The loopback device, which is down in a guest until it is brought up.

use std::fs;
use std::io;

use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Returns whether the loopback device is up.
#[must_use]
pub fn is_up() -> bool {
    let Ok(text) = fs::read_to_string("/sys/class/net/lo/flags") else {
        // Without sysfs: binding succeeds if there is an address.
        return std::net::UdpSocket::bind("127.0.0.1:0").is_ok();
    };
    let flags = text.trim().trim_start_matches("0x");
    u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & libc::IFF_UP as u32 != 0)
}

/// Brings the loopback device up. For the init of a guest or namespace, or the owner of a host.
///
/// # Errors
///
/// Returns the kernel's error: it requires CAP_NET_ADMIN.
pub fn raise() -> io::Result<()> {
    // SAFETY: takes no pointers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: zeroed is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request has a device name and flags, as SIOCSIFFLAGS requires, and outlives the
    // call.
    let done = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw mut request,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
