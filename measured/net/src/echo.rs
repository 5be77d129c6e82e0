//! Sends back what comes, by UDP and by TCP (RFC 862).

use edge_nal::{Close, TcpShutdown, UdpReceive, UdpSend};
use embedded_io_async::{Read, Write};

use crate::{Accept, Clock, abort, unless_silent};

/// The port of RFC 862.
pub const PORT: u16 = 7;

/// Sends back each datagram, for ever. What can't be sent is lost, as datagrams are.
pub async fn udp(mut socket: impl UdpReceive + UdpSend) -> ! {
    let mut datagram = [0; 2048];
    loop {
        if let Ok((bytes, from)) = socket.receive(&mut datagram).await {
            let _ = socket.send(from, &datagram[..bytes]).await;
        }
    }
}

/// Accepts connections one after the other and sends back each one's bytes, for ever. So many of these at once serve so many
/// connections.
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
    // What was written is on its way when this returns.
    let _ = unless_silent(clock, connection.close(Close::Both)).await;
}
