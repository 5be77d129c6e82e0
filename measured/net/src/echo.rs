//! The echo service, over UDP and TCP (RFC 862).

use edge_nal::{Close, TcpShutdown, UdpReceive, UdpSend};
use embedded_io_async::{Read, Write};

use crate::{Accept, Clock, abort, unless_silent};

/// The port of RFC 862.
pub const PORT: u16 = 7;

/// Echoes datagrams. Never returns. A datagram that can't be sent is lost.
pub async fn udp(mut socket: impl UdpReceive + UdpSend) -> ! {
    let mut datagram = [0; 2048];
    loop {
        if let Ok((bytes, from)) = socket.receive(&mut datagram).await {
            let _ = socket.send(from, &datagram[..bytes]).await;
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
