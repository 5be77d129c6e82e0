//! Requests and answers, as far as an engine needs them: RFC 9112 over a Unix socket.
//!
//! Each request has its own connection and asks to close it, so an answer ends at the latest
//! with the stream.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How often a call that gets no answer looks whether it is to be waited for any longer.
const LOOK: Duration = Duration::from_millis(100);

/// How long a call that began at one moment and may take until another has left: less if the user
/// has no patience.
pub type RemainingTime = fn(begun: Instant, deadline: Instant) -> Duration;

/// The function that returns it; without one only the call's own limit counts.
pub(crate) static LEFT: OnceLock<RemainingTime> = OnceLock::new();

/// The version of the engine's interface that is spoken.
const VERSION: &str = "/v1.41";

/// The longest head of an answer that is read.
const MOST_HEAD: usize = 16 * 1024;

/// The longest body that is read.
const MOST_BODY: u64 = 8 * 1024 * 1024;

/// One request.
#[derive(Debug)]
pub(crate) struct Request {
    head: String,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self {
            head: format!("{method} {VERSION}{path} HTTP/1.1\r\nHost: docker\r\n"),
            body: Vec::new(),
        }
    }

    pub(crate) fn body(mut self, kind: &str, body: Vec<u8>) -> Self {
        // A String takes everything.
        let _ = write!(self.head, "Content-Type: {kind}\r\n");
        self.body = body;
        self
    }

    /// Asks for the connection to become a stream.
    pub(crate) fn upgrade(mut self) -> Self {
        self.head
            .push_str("Upgrade: tcp\r\nConnection: Upgrade\r\n");
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut head = self.head.clone();
        if !head.contains("Connection:") {
            head.push_str("Connection: close\r\n");
        }
        let _ = write!(head, "Content-Length: {}\r\n\r\n", self.body.len());
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Sends a request. All of the call fails when it takes longer than `limit`.
pub(crate) fn send(socket: &Path, request: &Request, limit: Duration) -> io::Result<Connection> {
    let begun = Instant::now();
    let deadline = begun + limit;
    let stream = connect(socket, begun, deadline)?;
    stream.set_read_timeout(Some(LOOK))?;
    stream.set_write_timeout(Some(LOOK))?;
    let mut connection = Connection {
        stream,
        begun,
        deadline,
    };
    connection.write_all(&request.bytes())?;
    Ok(connection)
}

/// Connects to an engine. One that accepts nothing keeps its callers waiting without end, so
/// another thread waits.
fn connect(socket: &Path, begun: Instant, deadline: Instant) -> io::Result<UnixStream> {
    let (tell, told) = mpsc::channel();
    let socket = socket.to_owned();
    thread::Builder::new().spawn(move || tell.send(UnixStream::connect(socket)))?;
    loop {
        match told.recv_timeout(LOOK) {
            Ok(connected) => return connected,
            Err(mpsc::RecvTimeoutError::Timeout) if !left(begun, deadline).is_zero() => {}
            Err(_) => return Err(ErrorKind::TimedOut.into()),
        }
    }
}

/// Returns how long a call is still waited for.
fn left(begun: Instant, deadline: Instant) -> Duration {
    match LEFT.get() {
        Some(left) => left(begun, deadline),
        None => deadline.saturating_duration_since(Instant::now()),
    }
}

/// A connection on which one call is made.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    begun: Instant,
    deadline: Instant,
}

impl Connection {
    /// Returns the stream, for what comes on it later.
    pub(crate) fn into_stream(self) -> UnixStream {
        self.stream
    }

    /// Repeats what the engine keeps waiting, as long as there is patience: also with one that
    /// sends a byte now and then.
    fn patiently(&self, mut transfer: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
        while !left(self.begun, self.deadline).is_zero() {
            match transfer() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                moved => return moved,
            }
        }
        Err(ErrorKind::TimedOut.into())
    }
}

impl Read for Connection {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.patiently(|| (&self.stream).read(bytes))
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(|| (&self.stream).write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    length: Option<u64>,
    chunked: bool,
}

/// Reads the head of an answer, and not a byte more.
pub(crate) fn read_head(stream: &mut impl Read) -> io::Result<Head> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        if bytes.len() == MOST_HEAD {
            return Err(bad("the head of the answer does not end"));
        }
        stream.read_exact(&mut byte)?;
        bytes.push(byte[0]);
    }
    Head::parse(&bytes).ok_or_else(|| bad("the answer is not HTTP"))
}

impl Head {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let mut lines = text.split("\r\n");
        let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?;
        let mut head = Self {
            status: status.parse().ok()?,
            length: None,
            chunked: false,
        };
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':')?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                head.length = Some(value.parse().ok()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.chunked = value.eq_ignore_ascii_case("chunked");
            }
        }
        Some(head)
    }

    /// Reads the body to its end.
    pub(crate) fn read_body(&self, stream: impl Read) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let end = self.length.unwrap_or(u64::MAX).min(MOST_BODY + 1);
        if self.status == 204 || self.status == 304 {
            return Ok(bytes);
        }
        stream.take(end).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MOST_BODY {
            return Err(bad("the answer is too long"));
        }
        if self
            .length
            .is_some_and(|length| length > bytes.len() as u64)
        {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if self.chunked {
            return unchunk(&bytes).ok_or_else(|| bad("the answer is cut short"));
        }
        Ok(bytes)
    }
}

/// Joins the chunks of a body; None if the last one is missing.
pub(crate) fn unchunk(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let line = str::from_utf8(&bytes[..end]).ok()?;
        let length = line.split(';').next()?.trim();
        let length = usize::from_str_radix(length, 16).ok()?;
        bytes = &bytes[end + 2..];
        if length == 0 {
            return Some(body);
        }
        body.extend_from_slice(bytes.get(..length)?);
        bytes = bytes.get(length..)?.strip_prefix(b"\r\n")?;
    }
}

/// Escapes a text for the query of a path.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn bad(why: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(text: &str) -> io::Result<(u16, Vec<u8>)> {
        let mut stream = text.as_bytes();
        let head = read_head(&mut stream)?;
        Ok((head.status, head.read_body(stream)?))
    }

    #[test]
    fn bodies_end_by_length_chunks_or_stream() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
            "HTTP/1.0 200 OK\r\n\r\nhello",
        ] {
            assert_eq!(answer(text).unwrap(), (200, b"hello".to_vec()));
        }
        assert_eq!(answer("HTTP/1.1 204 No Content\r\n\r\n").unwrap().0, 204);
    }

    #[test]
    fn a_cut_answer_is_an_error() {
        for text in [
            "",
            "HTTP/1.1 200 OK\r\nContent-Le",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n",
            "SSH-2.0-x\r\n\r\n",
        ] {
            assert!(answer(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_answer_that_is_too_long_is_an_error() {
        let long = " ".repeat(usize::try_from(MOST_BODY).unwrap() + 1);
        let error = answer(&format!("HTTP/1.1 200 OK\r\n\r\n{long}")).unwrap_err();
        assert_eq!(error.to_string(), "the answer is too long");
    }

    #[test]
    fn queries_are_escaped() {
        assert_eq!(escape("LABEL a=b/ü"), "LABEL%20a%3Db%2F%C3%BC");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = unchunk(&bytes);
            let _ = Head::parse(&bytes);
            let _ = read_head(&mut &bytes[..]);
        }
    }

    #[test]
    fn an_engine_that_accepts_nothing_is_given_up() {
        let folder = std::env::temp_dir().join(format!("tare-docker-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let socket = folder.join("socket");
        let script = "import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(0)
c = socket.socket(socket.AF_UNIX)
c.connect(sys.argv[1])
print('full', flush=True)
sys.stdin.read()";
        let engine = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(&socket)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn();
        let Ok(mut engine) = engine else {
            std::fs::remove_dir(&folder).unwrap();
            return tare_testkit::skip("an engine that accepts nothing", "python3 is not here");
        };
        let said = engine.stdout.as_mut().unwrap().read_exact(&mut [0; 5]);
        let request = Request::new("GET", "/_ping");
        let sent = send(&socket, &request, Duration::from_millis(300)).map(drop);
        drop(engine.stdin.take());
        engine.wait().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        said.unwrap();
        assert_eq!(sent.unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn an_engine_that_sends_a_byte_now_and_then_has_the_time_of_its_call() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(LOOK)).unwrap();
        let begun = Instant::now();
        let mut connection = Connection {
            stream: ours,
            begun,
            deadline: begun + Duration::from_millis(300),
        };
        let read = thread::scope(|scope| {
            scope.spawn(move || {
                while theirs.write_all(b"x").is_ok() {
                    thread::sleep(Duration::from_millis(20));
                }
            });
            let read = read_head(&mut connection);
            drop(connection);
            read
        });
        assert_eq!(read.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
}
