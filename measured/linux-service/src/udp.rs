//! A socket for datagrams that is waited for in the kernel, and takes those that wait together.
//!
//! Two system calls serve as many requests as have come: one takes them, or waits for the first,
//! and one sends their answers.

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;

use edge_nal::{UdpReceive, UdpSend};
use embedded_io_async::ErrorType;

/// The most datagrams that are taken together.
const BATCH: usize = 16;
/// The longest datagram, in bytes: longer ones are cut.
const LONGEST: usize = 4096;

/// A socket that blocks its thread until a datagram has come. It sends to whom the last one that was
/// received is from, at most one answer to each.
pub struct Batched {
    socket: UdpSocket,
    requests: Box<[Datagram; BATCH]>,
    /// Those that were taken, and those of them that were passed on.
    taken: usize,
    received: usize,
    answers: Box<[Datagram; BATCH]>,
    /// Those that wait to be sent.
    answered: usize,
}

/// A datagram and the address of the other side.
#[derive(Clone, Copy)]
struct Datagram {
    bytes: [u8; LONGEST],
    length: usize,
    address: libc::sockaddr_in6,
    address_length: u32,
}

impl Batched {
    /// Takes a socket.
    pub fn new(socket: UdpSocket) -> Self {
        let slots = || {
            let none = Datagram {
                bytes: [0; LONGEST],
                length: 0,
                // SAFETY: it consists of numbers.
                address: unsafe { mem::zeroed() },
                address_length: 0,
            };
            Box::new([none; BATCH])
        };
        Self {
            socket,
            requests: slots(),
            taken: 0,
            received: 0,
            answers: slots(),
            answered: 0,
        }
    }

    /// Waits for datagrams, and takes all that are there.
    fn take(&mut self) -> io::Result<()> {
        (self.taken, self.received) = (0, 0);
        for slot in &mut *self.requests {
            slot.length = LONGEST;
            slot.address_length = size_of_val(&slot.address) as u32;
        }
        let mut parts = [NOTHING; BATCH];
        let mut headers = headers(&mut *self.requests, &mut parts);
        let (socket, all) = (self.socket.as_raw_fd(), headers.as_mut_ptr());
        let wait = libc::MSG_WAITFORONE;
        // SAFETY: the headers point to buffers and addresses of their lengths, which are not moved.
        let taken = unsafe { libc::recvmmsg(socket, all, BATCH as u32, wait, ptr::null_mut()) };
        self.taken = usize::try_from(taken).map_err(|_| io::Error::last_os_error())?;
        for (slot, header) in self.requests.iter_mut().zip(&headers[..self.taken]) {
            slot.length = header.msg_len as usize;
            slot.address_length = header.msg_hdr.msg_namelen;
        }
        Ok(())
    }

    /// Sends the answers. One that can't be sent is lost.
    fn flush(&mut self) {
        let mut waiting = &mut self.answers[..mem::take(&mut self.answered)];
        while !waiting.is_empty() {
            let mut parts = [NOTHING; BATCH];
            let mut headers = headers(waiting, &mut parts);
            let (socket, all) = (self.socket.as_raw_fd(), headers.as_mut_ptr());
            // SAFETY: as in `take`.
            let sent = unsafe { libc::sendmmsg(socket, all, waiting.len() as u32, 0) };
            let done = usize::try_from(sent).unwrap_or_default().max(1);
            waiting = &mut waiting[done..];
        }
    }
}

const NOTHING: libc::iovec = libc::iovec {
    iov_base: ptr::null_mut(),
    iov_len: 0,
};

/// Makes headers that point to datagrams, by these parts.
fn headers(slots: &mut [Datagram], parts: &mut [libc::iovec; BATCH]) -> [libc::mmsghdr; BATCH] {
    // SAFETY: it consists of numbers and pointers, which may be null.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    for ((header, part), slot) in headers.iter_mut().zip(parts).zip(slots) {
        part.iov_base = slot.bytes.as_mut_ptr().cast();
        part.iov_len = slot.length;
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_name = ptr::from_mut(&mut slot.address).cast();
        header.msg_hdr.msg_namelen = slot.address_length;
    }
    headers
}

impl Datagram {
    /// Returns the address of the other side, in the layout of its family.
    fn address(&self) -> SocketAddr {
        let port = u16::from_be(self.address.sin6_port);
        if i32::from(self.address.sin6_family) == libc::AF_INET {
            // Both layouts begin with the family and the port; the address is next.
            let address = Ipv4Addr::from_bits(u32::from_be(self.address.sin6_flowinfo));
            return SocketAddr::new(address.into(), port);
        }
        SocketAddr::new(Ipv6Addr::from(self.address.sin6_addr.s6_addr).into(), port)
    }
}

impl ErrorType for Batched {
    type Error = io::Error;
}

impl UdpReceive for Batched {
    async fn receive(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        if self.received == self.taken {
            self.flush();
            self.take()?;
        }
        let slot = &self.requests[self.received];
        self.received += 1;
        let length = slot.length.min(buffer.len());
        buffer[..length].copy_from_slice(&slot.bytes[..length]);
        Ok((slot.length, slot.address()))
    }
}

impl UdpSend for Batched {
    async fn send(&mut self, _: SocketAddr, data: &[u8]) -> io::Result<()> {
        let request = self
            .received
            .checked_sub(1)
            .map(|last| &self.requests[last]);
        let slot = self.answers.get_mut(self.answered).zip(request);
        let Some((slot, request)) = slot.filter(|_| data.len() <= LONGEST) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        slot.bytes[..data.len()].copy_from_slice(data);
        slot.length = data.len();
        (slot.address, slot.address_length) = (request.address, request.address_length);
        self.answered += 1;
        if self.received == self.taken {
            self.flush();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use embassy_futures::block_on;

    use super::*;

    #[test]
    fn each_answer_goes_to_whom_asked_also_of_more_than_a_batch() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let server = UdpSocket::bind(address).unwrap();
            let clients = [(); BATCH + 3].map(|()| UdpSocket::bind(address).unwrap());
            for (number, client) in (0..).zip(&clients) {
                client.set_nonblocking(true).unwrap();
                client
                    .send_to(&[number; 3], server.local_addr().unwrap())
                    .unwrap();
            }
            let mut server = Batched::new(server);
            let mut request = [0; 2];
            for (number, client) in (0..).zip(&clients) {
                let (length, from) = block_on(server.receive(&mut request)).unwrap();
                assert_eq!((length, request), (3, [number; 2]));
                assert_eq!(from, client.local_addr().unwrap());
                // Every third one gets none.
                if number % 3 != 0 {
                    block_on(server.send(from, &[number + 100])).unwrap();
                }
            }
            server.flush();
            for (number, client) in (0..).zip(&clients) {
                let answer = client
                    .recv_from(&mut request)
                    .map(|(length, _)| (length, request[0]));
                let wanted = (number % 3 != 0).then_some((1, number + 100));
                assert_eq!(answer.ok(), wanted);
            }
        }
    }
}
