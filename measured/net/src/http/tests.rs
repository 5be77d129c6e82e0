//! Whole connections, without sockets.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::Cell;
use core::convert::Infallible;
use core::future::pending;

use embassy_futures::{block_on, yield_now};
use embedded_io_async::ErrorType;
use proptest::prelude::*;

use super::metrics::{Kind, Value};
use super::*;

/// A client that sends `step` bytes at a time and takes as many, ends what it sends or falls
/// silent, and may not read.
struct Client<'a> {
    sends: &'a [u8],
    step: usize,
    ends: bool,
    reads: bool,
    received: &'a mut Vec<u8>,
    silent: &'a Cell<bool>,
    aborted: &'a Cell<bool>,
}

impl ErrorType for Client<'_> {
    type Error = Infallible;
}

impl Read for Client<'_> {
    async fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Infallible> {
        let sent = self.step.min(self.sends.len()).min(bytes.len());
        if sent == 0 && !self.ends {
            self.silent.set(true);
            return pending().await;
        }
        let (now, later) = self.sends.split_at(sent);
        bytes[..sent].copy_from_slice(now);
        self.sends = later;
        Ok(sent)
    }
}

impl Write for Client<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        if !self.reads {
            self.silent.set(true);
            return pending().await;
        }
        let taken = self.step.min(bytes.len());
        self.received.extend(&bytes[..taken]);
        Ok(taken)
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl TcpShutdown for Client<'_> {
    async fn close(&mut self, _: Close) -> Result<(), Infallible> {
        Ok(())
    }

    async fn abort(&mut self) -> Result<(), Infallible> {
        self.aborted.set(true);
        Ok(())
    }
}

/// A clock on which no time passes, unless the client is silent.
struct UntilSilent<'a>(&'a Cell<bool>);

impl Clock for UntilSilent<'_> {
    async fn sleep(&self, _seconds: u32) {
        core::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            match self.0.get() {
                true => core::task::Poll::Ready(()),
                false => core::task::Poll::Pending,
            }
        })
        .await;
    }
}

struct Large;

impl Site for Large {
    fn file(&self, name: &str) -> Option<&[u8]> {
        match name {
            "large" => Some(&[b'x'; 100_000]),
            "small" => Some(b"small"),
            _ => None,
        }
    }

    fn metric(&self, number: usize) -> Option<Metric<'_>> {
        (number < 2).then_some(Metric {
            name: "heap_bytes",
            help: "Bytes in use.",
            kind: Kind::Gauge,
            label: None,
            value: Value::Count(7),
        })
    }
}

/// The bytes that a client received, and whether it was cut off.
struct Seen {
    text: String,
    aborted: bool,
}

fn serve_client(sends: &[u8], step: usize, ends: bool, reads: bool) -> Seen {
    let (silent, aborted) = (Cell::new(false), Cell::new(false));
    let mut received = Vec::new();
    let client = Client {
        sends,
        step,
        ends,
        reads,
        received: &mut received,
        silent: &silent,
        aborted: &aborted,
    };
    block_on(serve(client, &Large, &UntilSilent(&silent)));
    let text = String::from_utf8_lossy(&received).to_string();
    let aborted = aborted.get();
    Seen { text, aborted }
}

fn get(path: &str) -> String {
    alloc::format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

#[test]
fn requests_of_one_connection_are_answered_in_turn_however_they_are_cut() {
    let sends = get("/small") + &get("/large") + &get("/none") + &get("/small");
    for step in [1, 7, 1000, 100_000] {
        let seen = serve_client(sends.as_bytes(), step, true, true);
        assert!(!seen.aborted);
        let statuses: Vec<_> = seen
            .text
            .split("HTTP/1.1 ")
            .skip(1)
            .map(|answer| &answer[..3])
            .collect();
        assert_eq!(statuses, ["200", "200", "404", "200"], "{step}");
        let large = "x".repeat(100_000);
        assert!(seen.text.contains(&(large + "HTTP/1.1 404 Not Found\r\n")));
        assert!(seen.text.ends_with("\r\n\r\nsmall"));
    }
}

#[test]
fn nothing_is_answered_behind_a_request_that_closes() {
    let post = "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let seen = serve_client(
        (post.to_string() + &get("/small")).as_bytes(),
        1000,
        true,
        true,
    );
    assert!(seen.text.starts_with("HTTP/1.1 405 "));
    assert_eq!(
        (seen.text.matches("HTTP/1.1").count(), seen.aborted),
        (1, false)
    );
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let path = "/".to_string() + &"a".repeat(REQUEST_BYTES);
    let seen = serve_client(get(&path).as_bytes(), 1000, true, true);
    assert!(seen.text.starts_with("HTTP/1.1 414 "), "{}", seen.text);
    let field = alloc::format!("GET / HTTP/1.1\r\nHost: a\r\nA: {path}\r\n\r\n");
    let seen = serve_client(field.as_bytes(), 1000, true, true);
    assert!(seen.text.starts_with("HTTP/1.1 431 "), "{}", seen.text);
}

#[test]
fn figures_come_in_chunks_and_the_connection_stays() {
    let seen = serve_client(
        (get("/metrics") + &get("/small")).as_bytes(),
        1000,
        true,
        true,
    );
    let figures =
        "# HELP heap_bytes Bytes in use.\n# TYPE heap_bytes gauge\nheap_bytes 7\nheap_bytes 7\n";
    let chunked = alloc::format!(
        "\r\n\r\n{:03x}\r\n{figures}\r\n000\r\n\r\nHTTP/1.1 200 OK",
        figures.len()
    );
    assert!(seen.text.contains(&chunked), "{}", seen.text);
}

#[test]
fn a_client_that_falls_silent_loses_its_connection() {
    let half = serve_client(b"GET / HT", 1000, false, true);
    assert!(half.text.starts_with("HTTP/1.1 408 Request Timeout\r\n"));
    // It does not close either.
    assert!(half.aborted);
    let idle = serve_client(b"", 1000, false, true);
    assert_eq!((&idle.text[..], idle.aborted), ("", true));
    let unread = serve_client(get("/large").as_bytes(), 1000, false, false);
    assert_eq!((&unread.text[..], unread.aborted), ("", true));
}

proptest! {
    #[test]
    fn every_byte_may_come(bytes in prop::collection::vec(any::<u8>(), 0..300), step in 1..50_usize) {
        let seen = serve_client(&bytes, step, true, true);
        prop_assert!(seen.text.is_empty() || seen.text.starts_with("HTTP/1.1 4") || seen.text.starts_with("HTTP/1.1 5"));
    }

    #[test]
    fn a_request_with_some_bytes_changed_is_answered_once(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = b"GET /small?a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let seen = serve_client(&bytes, 1000, true, true);
        // Only a byte that ends the head early leaves something behind it, or one that spoils its
        // end.
        prop_assert!(seen.text.matches("HTTP/1.1 ").count() <= 2);
        prop_assert!(!seen.aborted);
    }
}

/// A clock, in seconds, on which each write takes one.
struct Slow<'a>(&'a Cell<u32>);

impl Clock for Slow<'_> {
    async fn sleep(&self, seconds: u32) {
        let end = self.0.get() + seconds;
        while self.0.get() < end {
            yield_now().await;
        }
    }
}

/// A connection that takes this many bytes per second.
struct SlowReader<'a> {
    bytes: usize,
    taken: usize,
    seconds: &'a Cell<u32>,
}

impl ErrorType for SlowReader<'_> {
    type Error = Infallible;
}

impl Write for SlowReader<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        self.seconds.set(self.seconds.get() + 1);
        yield_now().await;
        let taken = self.bytes.min(bytes.len());
        self.taken += taken;
        Ok(taken)
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[test]
fn who_reads_slowly_has_a_time_for_each_answer_by_its_length() {
    let takes = |name: &[u8], bytes| {
        let seconds = Cell::new(0);
        let mut reader = SlowReader {
            bytes,
            taken: 0,
            seconds: &seconds,
        };
        let request = [b"GET /", name, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
        let (request, _) = request::read(&request, true).unwrap();
        let clock = Slow(&seconds);
        let answer = answer_one(&mut reader, &Large, &clock, &request);
        (block_on(answer).is_ok(), seconds.get(), reader.taken)
    };
    let (is_done, seconds, taken) = takes(b"small", 1);
    assert!(!is_done && (30..=32).contains(&seconds) && taken < 40);
    let (is_done, seconds, _) = takes(b"large", 1_000);
    assert!(!is_done && (36..=38).contains(&seconds), "{seconds}");
    let (is_done, _, taken) = takes(b"large", 4_000);
    assert!(is_done && taken > 100_000);
}
