//! A TAP device as the network card of the stack.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::task::Context;

use async_io::Async;
use embassy_net_driver::{
    Capabilities, Checksum, Driver, HardwareAddress, LinkState, RxToken, TxToken,
};
use tare_virtio::checksum::Place;

/// The header of Ethernet, in bytes.
const ETHERNET: usize = 14;
/// The flags for a device of raw Ethernet packets without a header (Linux,
/// `Documentation/networking/tuntap.rst`).
const FLAGS: i16 = 0x0002 | 0x1000;
/// The request that attaches a file to a device: `_IOW('T', 202, int)`.
const ATTACH: u64 = 0x4004_54ca;

/// The request that sets the offloads that the reader supports: `_IOW('T', 208, unsigned int)`.
const OFFLOAD: u64 = 0x4004_54d0;

/// An attached device.
pub struct Tap {
    device: Async<File>,
    packet: Vec<u8>,
    bytes: usize,
    address: [u8; 6],
}

impl Tap {
    /// Attaches to an existing device, or creates it if permitted. The kernel, at the other end,
    /// has its own address.
    pub fn open(name: &str, mtu: u16) -> io::Result<Self> {
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/net/tun")?;
        let mut request = [0_u8; 40];
        if name.len() > 15 {
            return Err(io::Error::other("its name is longer than 15 bytes"));
        }
        request[..name.len()].copy_from_slice(name.as_bytes());
        request[16..18].copy_from_slice(&FLAGS.to_ne_bytes());
        // SAFETY: the request is as long as the kernel's `ifreq`.
        let attached = unsafe { libc::ioctl(device.as_raw_fd(), ATTACH, request.as_mut_ptr()) };
        if attached == -1 {
            return Err(io::Error::last_os_error());
        }
        // No offloads: the previous user may have enabled incomplete checksums. SAFETY: takes a
        // number and touches no memory.
        if unsafe { libc::ioctl(device.as_raw_fd(), OFFLOAD, 0) } == -1 {
            return Err(io::Error::last_os_error());
        }
        let bytes = ETHERNET + usize::from(mtu);
        // Locally administered, unique per process.
        let [a, b, c, d] = std::process::id().to_be_bytes();
        Ok(Self {
            device: Async::new(device)?,
            packet: vec![0; bytes],
            bytes: 0,
            address: [2, 0, a, b, c, d],
        })
    }
}

impl Driver for Tap {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = ToSend<'a>;

    fn receive(&mut self, context: &mut Context<'_>) -> Option<(Received<'_>, ToSend<'_>)> {
        loop {
            // SAFETY: the file is not replaced.
            let read = unsafe { self.device.get_mut() }.read(&mut self.packet);
            match read {
                Ok(bytes) => {
                    let packet = &self.packet[..bytes];
                    // The filter reads packets before the stack would check them.
                    if Place::find(packet).is_some_and(|sum| !sum.is_right(packet)) {
                        continue;
                    }
                    self.bytes = bytes;
                    let packet = &mut self.packet[..self.bytes];
                    return Some((Received(packet), ToSend(&self.device)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.device.poll_readable(context).is_pending() {
                        return None;
                    }
                }
                Err(_) => return None,
            }
        }
    }

    fn transmit(&mut self, _: &mut Context<'_>) -> Option<ToSend<'_>> {
        Some(ToSend(&self.device))
    }

    fn link_state(&mut self, _: &mut Context<'_>) -> LinkState {
        LinkState::Up
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = self.packet.len();
        (capabilities.checksum.udp, capabilities.checksum.tcp) = (Checksum::Tx, Checksum::Tx);
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.address)
    }
}

/// A received packet.
pub struct Received<'a>(&'a mut [u8]);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

/// A packet to send.
pub struct ToSend<'a>(&'a Async<File>);

impl TxToken for ToSend<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
        let mut packet = vec![0; bytes];
        let result = fill(&mut packet);
        // A device that is down, or whose queue is full, loses packets like a cable.
        let _ = self.0.get_ref().write(&packet);
        result
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_packet_with_a_wrong_checksum_reaches_neither_filter_nor_stack() {
        let right = [
            &[2; 6][..],
            &[6; 6],
            &[0x08, 0x00],
            &[0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0x66, 0xcf],
            &[10, 0, 0, 1, 10, 0, 0, 2],
            &[0xff, 0xff, 0, 53, 0, 8, 0xeb, 0xa6],
        ]
        .concat();
        let (device, other) = UnixDatagram::pair().unwrap();
        let mut tap = Tap {
            device: Async::new(File::from(OwnedFd::from(device))).unwrap(),
            packet: vec![0; 1_514],
            bytes: 0,
            address: [2; 6],
        };
        let context = &mut Context::from_waker(Waker::noop());
        for at in [26, 35, 37, 41] {
            let mut wrong = right.clone();
            wrong[at] ^= 1;
            other.send(&wrong).unwrap();
            assert!(tap.receive(context).is_none(), "{at}");
        }
        other.send(&right).unwrap();
        let (received, _) = tap.receive(context).unwrap();
        received.consume(|packet| assert_eq!(packet, right));
    }
}
