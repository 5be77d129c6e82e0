//! The echo service, over UDP and TCP (RFC 862).

use edge_nal::{Close, TcpShutdown, UdpReceive, UdpSend};
use embedded_io_async::{Read, Write};

use crate::{Accept, Clock, abort, unless_silent};

/// The port of RFC 862.
pub const PORT: u16 = 7;

/// The first port of clients. What comes from one below is another service's answer, and an answer
/// to that may be answered in turn: one forged datagram would keep two services busy forever.
const CLIENTS: u16 = 1024;

/// Echoes datagrams on a port. Never returns. A datagram that can't be sent is lost. Datagrams from
/// the same port or from one below 1024 are not answered.
pub async fn udp(mut socket: impl UdpReceive + UdpSend, port: u16) -> ! {
    let mut datagram = [0; 2048];
    loop {
        if let Ok((bytes, from)) = socket.receive(&mut datagram).await
            && let Some(said) = datagram.get(..bytes)
            && from.port() >= CLIENTS
            && from.port() != port
        {
            let _ = socket.send(from, said).await;
        }
    }
}

/// Echoes connections, one at a time. Never returns. Several of these tasks serve several at once.
pub async fn tcp(listener: &impl Accept, clock: impl Clock) -> ! {
    loop {
        match listener.accept().await {
            Some(connection) => serve(connection, &clock).await,
            None => clock.sleep(1).await,
        }
    }
}

async fn serve(mut connection: impl Read + Write + TcpShutdown, clock: &impl Clock) {
    let mut bytes = [0; 2048];
    loop {
        match unless_silent(clock, connection.read(&mut bytes)).await {
            Some(Ok(0)) => break,
            Some(Ok(got)) => {
                match unless_silent(clock, connection.write_all(&bytes[..got])).await {
                    Some(Ok(())) => {}
                    _ => return abort(clock, connection).await,
                }
            }
            _ => return abort(clock, connection).await,
        }
    }
    // The last bytes are on their way when this returns.
    let _ = unless_silent(clock, connection.close(Close::Both)).await;
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::cell::RefCell;
    use core::convert::Infallible;
    use core::future::{Future, pending};
    use core::net::{IpAddr, Ipv4Addr, SocketAddr};
    use core::pin::pin;
    use core::task::{Context, Waker};

    use edge_nal::io::ErrorType;

    use super::*;

    /// Datagrams of so many bytes, that arrive from these ports; and to which ones answers went.
    struct Socket<'a> {
        arriving: Vec<(u16, usize)>,
        answered: &'a RefCell<Vec<(u16, usize)>>,
    }

    impl ErrorType for Socket<'_> {
        type Error = Infallible;
    }

    impl UdpReceive for Socket<'_> {
        async fn receive(&mut self, _: &mut [u8]) -> Result<(usize, SocketAddr), Infallible> {
            match self.arriving.pop() {
                Some((port, bytes)) => {
                    let from = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
                    Ok((bytes, SocketAddr::new(from, port)))
                }
                None => pending().await,
            }
        }
    }

    impl UdpSend for Socket<'_> {
        async fn send(&mut self, to: SocketAddr, datagram: &[u8]) -> Result<(), Infallible> {
            let answer = (to.port(), datagram.len());
            self.answered.borrow_mut().push(answer);
            Ok(())
        }
    }

    #[test]
    fn services_get_no_answer() {
        let answered = RefCell::default();
        let socket = Socket {
            arriving: Vec::from([
                (65_535, 5),
                (PORT, 5),
                (53, 5),
                (1_023, 5),
                (2_001, 5),
                // Longer than what is kept of it.
                (2_000, 2_049),
                (1_024, 2_048),
            ]),
            answered: &answered,
        };
        let mut service = pin!(udp(socket, 2_001));
        let context = &mut Context::from_waker(Waker::noop());
        assert!(service.as_mut().poll(context).is_pending());
        assert_eq!(answered.borrow()[..], [(1_024, 2_048), (65_535, 5)]);
    }
}
