//! Answers: a head, and a body that may follow.

use core::fmt::{self, Write};

use heapless::{String, Vec};

use super::date::Date;
use super::metrics;
use super::request::Request;
use super::status::Status;
use super::{INDEX, Site};

/// A buffer for one segment: the payload of an Ethernet frame with IPv6 and TCP with time stamps.
pub type Packet = Vec<u8, 1428>;

/// Maximum length of a file name, in bytes.
const NAME_BYTES: usize = 255;

/// The path of the figures.
const METRICS: &str = "metrics";

/// Media types by file extension.
const MEDIA_TYPES: [(&str, &str); 14] = [
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("txt", "text/plain; charset=utf-8"),
    ("json", "application/json"),
    ("xml", "application/xml"),
    ("pdf", "application/pdf"),
    ("wasm", "application/wasm"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("gif", "image/gif"),
    ("ico", "image/x-icon"),
    ("woff2", "font/woff2"),
];

/// The body of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// These bytes, which may be empty.
    Bytes(&'a [u8]),
    /// The figures of the site.
    Figures,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    status: Status,
    media_type: &'static str,
    body: Body<'a>,
    chunks: bool,
    head_only: bool,
    /// Whether the connection stays open for another request.
    pub stays: bool,
}

impl<'a> Answer<'a> {
    /// Finds the answer to a request.
    pub fn to(request: &Request<'_>, site: &'a impl Site) -> Self {
        let found = request.path.and_then(|path| find(path, site));
        let status = found.err().unwrap_or(Status::Ok);
        let reason = ("text/plain", Body::Bytes(status.reason().as_bytes()));
        let (media_type, body) = found.unwrap_or(reason);
        let &Request {
            chunks, head_only, ..
        } = request;
        // Without chunks, the end of the connection marks the end of a body of unknown length.
        let stays = request.stays && (chunks || body != Body::Figures);
        Self {
            status,
            media_type,
            body,
            chunks,
            head_only,
            stays,
        }
    }

    /// Writes the head, and returns the body.
    pub fn head(&self, now: Option<u64>, to: &mut Packet) -> Body<'a> {
        to.clear();
        // The head is always shorter than a packet.
        let _ = self.write(now, to);
        if self.head_only {
            Body::Bytes(&[])
        } else {
            self.body
        }
    }

    fn write(&self, now: Option<u64>, to: &mut Packet) -> fmt::Result {
        let (status, reason) = (self.status as u16, self.status.reason());
        write!(
            to,
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {}\r\n",
            self.media_type
        )?;
        match self.body {
            Body::Bytes(bytes) => write!(to, "Content-Length: {}\r\n", bytes.len())?,
            Body::Figures if self.chunks => to.write_str("Transfer-Encoding: chunked\r\n")?,
            Body::Figures => {}
        }
        if let Some(now) = now {
            write!(to, "Date: {}\r\n", Date(now))?;
        }
        if self.status == Status::MethodNotAllowed {
            to.write_str("Allow: GET, HEAD\r\n")?;
        }
        to.write_str(match (self.stays, self.chunks) {
            (false, _) => "Connection: close\r\n\r\n",
            (true, false) => "Connection: keep-alive\r\n\r\n",
            (true, true) => "\r\n",
        })
    }
}

/// Finds the body for a path, and its media type.
fn find<'a>(path: &str, site: &'a impl Site) -> Result<(&'static str, Body<'a>), Status> {
    let mut name = decode(path)?;
    if name.is_empty() || name.ends_with('/') {
        name.push_str(INDEX).map_err(|_| Status::UriTooLong)?;
    }
    if name == METRICS && site.metric(0).is_some() {
        return Ok((metrics::MEDIA_TYPE, Body::Figures));
    }
    let bytes = site.file(&name).ok_or(Status::NotFound)?;
    Ok((media_type(&name), Body::Bytes(bytes)))
}

/// Decodes a file name from a path. A name that leads out of its folder is invalid.
fn decode(path: &str) -> Result<String<NAME_BYTES>, Status> {
    let mut name = Vec::<u8, NAME_BYTES>::new();
    let mut bytes = path.bytes().skip(1);
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = (digit(), digit());
                high.zip(low)
                    .map_or(0, |(high, low)| (high * 16 + low) as u8)
            }
            byte => byte,
        };
        if byte == 0 {
            return Err(Status::BadRequest);
        }
        name.push(byte).map_err(|_| Status::UriTooLong)?;
    }
    let name = String::from_utf8(name).map_err(|_| Status::BadRequest)?;
    let leads_out = |part| matches!(part, "." | "..");
    match name.split('/').any(leads_out) {
        true => Err(Status::BadRequest),
        false => Ok(name),
    }
}

fn media_type(name: &str) -> &'static str {
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    let known = MEDIA_TYPES.iter().find(|(known, _)| *known == end);
    known.map_or("application/octet-stream", |(_, media_type)| media_type)
}

/// The figures of a site, packet by packet.
#[derive(Debug)]
pub struct Figures<'a, S> {
    site: &'a S,
    chunks: bool,
    number: usize,
    name: &'a str,
    ended: bool,
}

/// The head of a chunk, whose digits are set when its length is known, and its end.
const CHUNK: (&str, &str) = ("000\r\n", "\r\n");

impl<'a, S: Site> Figures<'a, S> {
    /// Starts with the first figure. With `chunks`, each packet is a chunk.
    pub fn new(site: &'a S, chunks: bool) -> Self {
        let (number, name, ended) = (0, "", false);
        Self {
            site,
            chunks,
            number,
            name,
            ended,
        }
    }

    /// Fills the next packet. Returns false if there are no more figures.
    ///
    /// # Errors
    ///
    /// Fails for a figure that does not fit into a packet.
    pub fn next(&mut self, to: &mut Packet) -> Result<bool, fmt::Error> {
        to.clear();
        if self.ended {
            return Ok(false);
        }
        let (begin, end) = if self.chunks { CHUNK } else { ("", "") };
        to.write_str(begin)?;
        self.fill(to, end.len())?;
        let bytes = to.len() - begin.len();
        self.ended = bytes == 0;
        if self.chunks {
            for (digit, shift) in to.iter_mut().zip([8, 4, 0]) {
                *digit = b"0123456789abcdef"[bytes >> shift & 15];
            }
        }
        to.write_str(end)?;
        Ok(!to.is_empty())
    }

    /// Writes figures while there is room for one and `spare` bytes.
    fn fill(&mut self, to: &mut Packet, spare: usize) -> fmt::Result {
        let begin = to.len();
        while let Some(metric) = self.site.metric(self.number) {
            let before = to.len();
            let described = if metric.name == self.name {
                Ok(())
            } else {
                metric.describe(to)
            };
            let written = described.and_then(|()| write!(to, "{metric}"));
            if written.is_err() || to.capacity() - to.len() < spare {
                to.truncate(before);
                return if before == begin {
                    Err(fmt::Error)
                } else {
                    Ok(())
                };
            }
            (self.number, self.name) = (self.number + 1, metric.name);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::metrics::{Kind, Value};
    use super::*;
    use alloc::format;
    use alloc::string::{String as Text, ToString};

    struct Two(usize);

    impl Site for Two {
        fn file(&self, name: &str) -> Option<&[u8]> {
            match name {
                "index.html" => Some(b"<p>"),
                "a b/c" => Some(b"c"),
                _ => None,
            }
        }

        fn metric(&self, number: usize) -> Option<metrics::Metric<'_>> {
            (number < self.0).then_some(metrics::Metric {
                name: "packets_total",
                help: "Packets by queue.",
                kind: Kind::Counter,
                label: Some(("queue", "receive")),
                value: Value::Count(number as u64),
            })
        }
    }

    fn answer(path: Result<&str, Status>, change: fn(&mut Request<'_>)) -> (Text, Body<'static>) {
        let mut request = Request {
            path,
            head_only: false,
            chunks: true,
            stays: true,
        };
        change(&mut request);
        let mut head = Packet::new();
        let body = Answer::to(&request, &Two(1)).head(Some(0), &mut head);
        let body = match body {
            Body::Bytes(bytes) => Body::Bytes(bytes.to_vec().leak()),
            Body::Figures => Body::Figures,
        };
        (str::from_utf8(&head).unwrap().to_string(), body)
    }

    #[test]
    fn a_file_is_answered_with_its_type_length_and_date() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\
                    Content-Length: 3\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";
        assert_eq!(answer(Ok("/"), |_| {}), (head.into(), Body::Bytes(b"<p>")));
        let only = answer(Ok("/"), |request| request.head_only = true);
        assert_eq!(only, (head.into(), Body::Bytes(b"")));
    }

    #[test]
    fn an_old_client_is_told_when_the_connection_stays() {
        let head = |change| answer(Ok("/metrics"), change).0;
        assert!(head(|_| {}).contains("\r\nTransfer-Encoding: chunked\r\n"));
        let old = head(|request| request.chunks = false);
        assert!(old.ends_with("\r\nConnection: close\r\n\r\n"), "{old}");
        assert!(!old.contains("Transfer"), "{old}");
        let old = answer(Ok("/"), |request| request.chunks = false).0;
        assert!(old.ends_with("\r\nConnection: keep-alive\r\n\r\n"), "{old}");
    }

    #[test]
    fn a_method_that_is_not_allowed_is_told_which_are() {
        let (head, body) = answer(Err(Status::MethodNotAllowed), |_| {});
        assert!(head.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
        assert!(head.contains("\r\nAllow: GET, HEAD\r\n"));
        assert_eq!(body, Body::Bytes(b"Method Not Allowed"));
    }

    #[test]
    fn a_path_is_a_name_that_leads_nowhere_else() {
        for (path, found) in [
            (
                "/a%20b/c",
                Ok(("application/octet-stream", Body::Bytes(b"c"))),
            ),
            (
                "/index.html",
                Ok(("text/html; charset=utf-8", Body::Bytes(b"<p>"))),
            ),
            ("//index.html", Err(Status::NotFound)),
            ("/a%20b/", Err(Status::NotFound)),
            ("/../index.html", Err(Status::BadRequest)),
            ("/a/%2e%2e/index.html", Err(Status::BadRequest)),
            ("/a%2F..%2Findex.html", Err(Status::BadRequest)),
            ("/./index.html", Err(Status::BadRequest)),
            ("/...", Err(Status::NotFound)),
            ("/%", Err(Status::BadRequest)),
            ("/%4", Err(Status::BadRequest)),
            ("/%+4", Err(Status::BadRequest)),
            ("/%00", Err(Status::BadRequest)),
            ("/%ff", Err(Status::BadRequest)),
        ] {
            assert_eq!(find(path, &Two(0)), found, "{path}");
        }
        let long = format!("/{}", "a".repeat(NAME_BYTES));
        assert_eq!(find(&long, &Two(0)), Err(Status::NotFound));
        assert_eq!(find(&(long + "a"), &Two(0)), Err(Status::UriTooLong));
    }

    #[test]
    fn without_figures_there_is_no_path_to_them() {
        assert_eq!(find("/metrics", &Two(0)), Err(Status::NotFound));
    }

    #[test]
    fn figures_are_described_once_and_split_into_chunks() {
        let site = Two(100);
        let mut figures = Figures::new(&site, true);
        let (mut text, mut packet, mut chunks) = (Text::new(), Packet::new(), 0);
        while figures.next(&mut packet).unwrap() {
            let chunk = str::from_utf8(&packet).unwrap();
            let (length, rest) = chunk.split_once("\r\n").unwrap();
            let bytes = usize::from_str_radix(length, 16).unwrap();
            assert_eq!(rest.len(), bytes + 2);
            text.push_str(&rest[..bytes]);
            chunks += 1;
        }
        assert_eq!((&packet[..], chunks > 3), (&b""[..], true));
        assert_eq!(text.matches("# TYPE").count(), 1);
        assert_eq!(text.lines().count(), 102);
        assert!(text.ends_with("packets_total{queue=\"receive\"} 99\n"));
        let mut whole = Text::new();
        let mut figures = Figures::new(&site, false);
        while figures.next(&mut packet).unwrap() {
            whole.push_str(str::from_utf8(&packet).unwrap());
        }
        assert_eq!(whole, text);
    }
}
