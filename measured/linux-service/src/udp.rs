//! A socket for datagrams that is waited for in the kernel.
//!
//! Two system calls serve a request: one that waits for it and one that sends the answer. An
//! executor with an event queue takes three times as many when requests come one at a time.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use edge_nal::{UdpReceive, UdpSend};
use embedded_io_async::ErrorType;

/// A socket that blocks its thread until a datagram has come.
pub struct Blocking(pub UdpSocket);

impl ErrorType for Blocking {
    type Error = io::Error;
}

impl UdpReceive for Blocking {
    async fn receive(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.recv_from(buffer)
    }
}

impl UdpSend for Blocking {
    async fn send(&mut self, remote: SocketAddr, data: &[u8]) -> io::Result<()> {
        self.0.send_to(data, remote).map(|_| ())
    }
}
