//! A TAP device as the network card of the stack.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::task::Context;

use async_io::Async;
use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};

/// The header of Ethernet, in bytes.
const ETHERNET: usize = 14;
/// Makes a device of whole Ethernet packets, with nothing in front of them (Linux, `Documentation/networking/tuntap.rst`).
const FLAGS: i16 = 0x0002 | 0x1000;
/// Attaches a file to a device: `_IOW('T', 202, int)`.
const ATTACH: u64 = 0x4004_54ca;

/// Says which work on packets may be left to the reader: `_IOW('T', 208, unsigned int)`.
const OFFLOAD: u64 = 0x4004_54d0;

/// A device in use.
pub struct Tap {
    device: Async<File>,
    packet: Vec<u8>,
    bytes: usize,
    address: [u8; 6],
}

impl Tap {
    /// Takes a device into use that is there, or may be made. Its peer, the kernel, has an address of its own.
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
        // None: who had the device before may have wanted incomplete checksums.
        // SAFETY: takes a number and touches no memory.
        if unsafe { libc::ioctl(device.as_raw_fd(), OFFLOAD, 0) } == -1 {
            return Err(io::Error::last_os_error());
        }
        let bytes = ETHERNET + usize::from(mtu);
        // Locally administered, one's own.
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
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.address)
    }
}

/// A packet that has come.
pub struct Received<'a>(&'a mut [u8]);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

/// A packet to be sent.
pub struct ToSend<'a>(&'a Async<File>);

impl TxToken for ToSend<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
        let mut packet = vec![0; bytes];
        let result = fill(&mut packet);
        // A device takes any packet; one that is down, or whose queue is full, loses it as a cable would.
        let _ = self.0.get_ref().write(&packet);
        result
    }
}
