//! A server of files, and of the system's figures for Prometheus (HTTP/1.1 and 1.0).
//!
//! [`request::read`] and [`answer::Answer`] work without sockets; this module is a loop over a
//! connection. A client that sends half a request, never reads, or vanishes loses its connection
//! after [`SILENCE_SECONDS`]; an idle one sooner. A slow reader has more time for a long answer, in
//! proportion to its length.
//!
//! Not implemented: bodies of requests, ranges, conditional requests, compression, redirects.

pub mod answer;
mod date;
pub mod metrics;
pub mod request;
pub mod status;

use core::pin::pin;

use edge_nal::{Close, TcpShutdown};
use embassy_futures::select::{Either, select};
use embedded_io_async::{Read, Write};

use self::answer::{Answer, Body, Figures, Packet};
use self::metrics::Metric;
use self::request::Request;
use self::status::Status;
use crate::{Accept, Clock, SILENCE_SECONDS, abort, unless_silent};

/// The port of HTTP.
pub const PORT: u16 = 80;

/// The file that is served for a folder.
pub const INDEX: &str = "index.html";

/// The page of a site without files.
pub const PAGE: &str = "<!doctype html><title>tare</title><p>There are no files. <a href=\"/metrics\">What is counted</a>";

/// Maximum size of the head of a request, in bytes; each connection has a buffer of this size.
/// Browsers send less than 2 kB to a site that sets no cookies.
const REQUEST_BYTES: usize = 4096;

/// Time limit for an idle connection, in seconds: others may wait for its place.
const IDLE_SECONDS: u32 = 5;

/// Time in seconds for a client to close a connection that the server has closed. A browser that
/// keeps connections for later does not close them before its next request.
const LINGER_SECONDS: u32 = 2;

/// Minimum rate of a reader in bytes per second, after the first [`SILENCE_SECONDS`].
const SLOWEST: usize = 16 << 10;

/// The content that is served.
pub trait Site {
    /// Returns the content of a file by its name, such as `a/b.html`.
    fn file(&self, name: &str) -> Option<&[u8]>;

    /// Returns a figure of `/metrics` by its number, from 0 without gaps.
    fn metric(&self, _number: usize) -> Option<Metric<'_>> {
        None
    }

    /// Returns the time in seconds since 1970, if there is a clock.
    fn now(&self) -> Option<u64> {
        None
    }
}

/// The error for a connection that must be aborted.
struct Lost;

/// Serves connections, one at a time. Never returns. Several of these tasks serve several at once.
pub async fn tcp(listener: &impl Accept, site: &impl Site, clock: impl Clock) -> ! {
    loop {
        match listener.accept().await {
            Some(connection) => serve(connection, site, &clock).await,
            None => clock.sleep(1).await,
        }
    }
}

/// Answers all requests of a connection, and closes it.
pub async fn serve(
    mut connection: impl Read + Write + TcpShutdown,
    site: &impl Site,
    clock: &impl Clock,
) {
    let answered = answer_all(&mut connection, site, clock).await;
    if answered.is_err() || close(&mut connection, clock).await.is_err() {
        abort(clock, connection).await;
    }
}

async fn answer_all(
    connection: &mut (impl Read + Write),
    site: &impl Site,
    clock: &impl Clock,
) -> Result<(), Lost> {
    let mut bytes = [0; REQUEST_BYTES];
    let mut held = 0;
    loop {
        let mut patience = pin!(clock.sleep(match held {
            0 => IDLE_SECONDS,
            _ => SILENCE_SECONDS,
        }));
        let used = loop {
            let all = held == bytes.len();
            if let Some((request, used)) = request::read(&bytes[..held], all) {
                if !answer_one(connection, site, clock, &request).await? {
                    return Ok(());
                }
                break used;
            }
            match select(connection.read(&mut bytes[held..]), patience.as_mut()).await {
                Either::First(Ok(0)) => return Ok(()),
                Either::First(Ok(got)) => {
                    // One limit for the whole request, so that single bytes do not prolong it.
                    if held == 0 {
                        patience.set(clock.sleep(SILENCE_SECONDS));
                    }
                    held += got;
                }
                Either::First(Err(_)) => return Err(Lost),
                Either::Second(()) if held == 0 => return Ok(()),
                Either::Second(()) => {
                    let late = Request::refused(Status::RequestTimeout);
                    return answer_one(connection, site, clock, &late).await.map(drop);
                }
            }
        };
        bytes.copy_within(used..held, 0);
        held -= used;
    }
}

/// Answers a request. Returns whether the connection stays open. One time limit holds for the whole
/// answer, so that a client can't prolong it byte by byte.
async fn answer_one(
    connection: &mut impl Write,
    site: &impl Site,
    clock: &impl Clock,
    request: &Request<'_>,
) -> Result<bool, Lost> {
    let answer = Answer::to(request, site);
    let mut packet = Packet::new();
    let body = answer.head(site.now(), &mut packet);
    let bytes = match &body {
        Body::Bytes(body) => body.len(),
        Body::Figures => 0,
    };
    let more = u32::try_from(bytes / SLOWEST).unwrap_or(u32::MAX);
    let late = clock.sleep(SILENCE_SECONDS.saturating_add(more));
    let sent = send_all(connection, site, request, body, packet);
    match select(sent, late).await {
        Either::First(sent) => sent.map(|()| answer.stays),
        Either::Second(()) => Err(Lost),
    }
}

/// Sends an answer whose head is in `packet`.
async fn send_all(
    connection: &mut impl Write,
    site: &impl Site,
    request: &Request<'_>,
    body: Body<'_>,
    mut packet: Packet,
) -> Result<(), Lost> {
    match body {
        Body::Bytes(body) => {
            // A short body goes into the same packet.
            let room = packet.capacity() - packet.len();
            let (first, rest) = body.split_at(room.min(body.len()));
            packet.extend(first.iter().copied());
            send(connection, &packet).await?;
            send(connection, rest).await
        }
        Body::Figures => {
            send(connection, &packet).await?;
            let mut figures = Figures::new(site, request.chunks);
            while figures.next(&mut packet).map_err(|_| Lost)? {
                send(connection, &packet).await?;
            }
            Ok(())
        }
    }
}

/// Sends bytes.
async fn send(connection: &mut impl Write, mut bytes: &[u8]) -> Result<(), Lost> {
    while !bytes.is_empty() {
        match connection.write(bytes).await {
            Ok(sent) if sent > 0 => bytes = &bytes[sent..],
            _ => return Err(Lost),
        }
    }
    // Not flushed: that would wait for the peer to acknowledge it.
    Ok(())
}

/// Closes the connection for writing and waits for the peer to close, since a reset could overtake
/// the last answer.
async fn close(connection: &mut (impl Read + TcpShutdown), clock: &impl Clock) -> Result<(), Lost> {
    let closed = unless_silent(clock, connection.close(Close::Write)).await;
    closed.ok_or(Lost)?.map_err(|_| Lost)?;
    let mut unread = [0; 64];
    let read = async { while matches!(connection.read(&mut unread).await, Ok(1..)) {} };
    match select(read, clock.sleep(LINGER_SECONDS)).await {
        Either::First(()) => Ok(()),
        Either::Second(()) => Err(Lost),
    }
}

#[cfg(test)]
mod tests;
