//! Requests (RFC 9112).

use core::mem::MaybeUninit;

use httparse::{Error, Header, Status as Parsed};

use super::status::Status;

/// Maximum number of fields in a request. Browsers send about 20.
const FIELDS: usize = 64;

/// Known methods that are not allowed. Any other method is unknown.
const NOT_ALLOWED: [&str; 7] = [
    "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

/// The parts of a request on which the answer depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The path, still encoded, without the query; or the status of an invalid request.
    pub path: Result<&'a str, Status>,
    /// Whether only the head of the answer is wanted.
    pub head_only: bool,
    /// Whether the client knows chunks: HTTP/1.1, not 1.0.
    pub chunks: bool,
    /// Whether the connection stays open for another request.
    pub stays: bool,
}

impl Request<'_> {
    /// Returns the request that is answered with an error, after which the connection ends.
    pub const fn refused(status: Status) -> Self {
        Self {
            path: Err(status),
            head_only: false,
            chunks: true,
            stays: false,
        }
    }
}

/// Reads the first request, and returns it with its number of bytes. None if it is incomplete; with
/// `all`, the buffer is full and no more can come.
pub fn read(bytes: &[u8], all: bool) -> Option<(Request<'_>, usize)> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS];
    let mut parsed = httparse::Request::new(&mut []);
    let refused = match parsed.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(Parsed::Complete(used)) => return Some((understand(&parsed), used)),
        Ok(Parsed::Partial) if !all => return None,
        Ok(Parsed::Partial) if first_line(bytes).is_none() => Status::UriTooLong,
        Ok(Parsed::Partial) | Err(Error::TooManyHeaders) => Status::HeadTooLarge,
        Err(Error::Version) if names_version(bytes) => Status::VersionNotSupported,
        Err(_) => Status::BadRequest,
    };
    Some((Request::refused(refused), bytes.len()))
}

/// Returns the first line that is not empty, if it is complete.
fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let line = bytes.trim_ascii_start();
    line.iter()
        .position(|byte| *byte == b'\n')
        .map(|end| &line[..end])
}

/// Returns whether the first line ends with a version of HTTP.
fn names_version(bytes: &[u8]) -> bool {
    let word =
        first_line(bytes).and_then(|line| line.trim_ascii_end().rsplit(|b| *b == b' ').next());
    matches!(word, Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor])
        if major.is_ascii_digit() && minor.is_ascii_digit())
}

fn understand<'a>(parsed: &httparse::Request<'_, 'a>) -> Request<'a> {
    let chunks = parsed.version == Some(1);
    let method = parsed.method.unwrap_or_default();
    let mut request = Request {
        path: path(method, parsed.path.unwrap_or_default()),
        head_only: method == "HEAD",
        chunks,
        stays: chunks,
    };
    match Framing::read(parsed.headers) {
        Some(framing) if framing.hosts == 1 || (framing.hosts == 0 && !chunks) => {
            // A body is not read, so neither is a request behind it.
            request.stays = framing.stays.unwrap_or(chunks) && !framing.body;
        }
        _ => {
            request.path = Err(Status::BadRequest);
            request.stays = false;
        }
    }
    request
}

/// Reads the path in the target of a request: a path, or a whole URI.
fn path<'a>(method: &str, target: &'a str) -> Result<&'a str, Status> {
    match method {
        "GET" | "HEAD" => {}
        method if NOT_ALLOWED.contains(&method) => return Err(Status::MethodNotAllowed),
        _ => return Err(Status::NotImplemented),
    }
    let path = match target.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => {
            &rest[rest.find(['/', '?']).unwrap_or(rest.len())..]
        }
        _ if target.starts_with('/') => target,
        _ => return Err(Status::BadRequest),
    };
    let path = path.split('?').next().unwrap_or_default();
    Ok(if path.is_empty() { "/" } else { path })
}

/// The fields that define the end of a request and of the connection.
#[derive(Default)]
struct Framing {
    hosts: usize,
    length: Option<u64>,
    body: bool,
    stays: Option<bool>,
}

impl Framing {
    /// Reads the fields. None if they are malformed or contradict each other: then the bytes behind
    /// the head may be a body or another request.
    fn read(fields: &[Header<'_>]) -> Option<Self> {
        let mut framing = Self::default();
        for Header { name, value } in fields {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if is("host") {
                framing.hosts += 1;
            } else if is("content-length") {
                let length = length(value)?;
                if framing.length.is_some_and(|before| before != length) {
                    return None;
                }
                framing.length = Some(length);
                framing.body |= length != 0;
            } else if is("transfer-encoding") {
                framing.body = true;
            } else if is("connection") {
                framing.connection(value);
            }
        }
        Some(framing)
    }

    /// Reads the options of a `Connection` field. `close` wins over `keep-alive`.
    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if option.eq_ignore_ascii_case(b"close") {
                self.stays = Some(false);
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                self.stays = self.stays.or(Some(true));
            }
        }
    }
}

/// Reads a number of bytes: digits only, since `parse` would accept a sign.
fn length(value: &[u8]) -> Option<u64> {
    let digits = value.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(value).ok().filter(|_| digits)?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Status::{
        BadRequest, HeadTooLarge, MethodNotAllowed, NotImplemented, UriTooLong, VersionNotSupported,
    };

    fn one(text: &str) -> Request<'_> {
        let (request, used) = read(text.as_bytes(), false).expect("a whole head");
        assert!(used <= text.len());
        request
    }

    fn stays(text: &str) -> bool {
        one(text).stays
    }

    #[test]
    fn a_path_comes_from_each_form_of_a_target() {
        for (target, path) in [
            ("/", Ok("/")),
            ("/a/b.html?c=d/e", Ok("/a/b.html")),
            ("http://host/a?b", Ok("/a")),
            ("HTTP://host:80", Ok("/")),
            ("http://host?b", Ok("/")),
            ("ftp://host/a", Err(BadRequest)),
            ("*", Err(BadRequest)),
            ("host:80", Err(BadRequest)),
        ] {
            let text = alloc::format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(one(&text).path, path, "{target}");
        }
    }

    #[test]
    fn what_follows_a_head_is_left() {
        let two = b"\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b";
        let (request, used) = read(two, false).unwrap();
        assert_eq!((request.path, &two[used..]), (Ok("/a"), &b"GET /b"[..]));
        assert_eq!(read(&two[used..], false), None);
    }

    #[test]
    fn a_method_is_allowed_known_or_neither() {
        for (method, path) in [
            ("GET", Ok("/")),
            ("HEAD", Ok("/")),
            ("POST", Err(MethodNotAllowed)),
            ("OPTIONS", Err(MethodNotAllowed)),
            ("BREW", Err(NotImplemented)),
            ("get", Err(NotImplemented)),
        ] {
            let request = alloc::format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
            let request = one(&request);
            assert_eq!(request.path, path, "{method}");
            assert_eq!(request.head_only, method == "HEAD");
            assert!(request.stays);
        }
    }

    #[test]
    fn what_is_no_request_is_refused_and_ends_the_connection() {
        for (text, status) in [
            ("\u{16}\u{3}\u{1}\u{2}", BadRequest),
            ("GET / HTTP/1.1\r\n\r\n", BadRequest),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", BadRequest),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", BadRequest),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
                BadRequest,
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                BadRequest,
            ),
            ("GET /\r\n\r\n", BadRequest),
            ("GET / HTTP/2.0\r\n\r\n", VersionNotSupported),
            ("GET / HTCPCP/1.0\r\n\r\n", BadRequest),
        ] {
            let request = one(text);
            assert_eq!(
                (request.path, request.stays),
                (Err(status), false),
                "{text}"
            );
        }
    }

    #[test]
    fn a_head_without_an_end_is_too_long_by_its_line_or_by_its_fields() {
        let path = alloc::format!("GET /{}", "a".repeat(100));
        assert_eq!(read(path.as_bytes(), false), None);
        let refused = |text: &str| read(text.as_bytes(), true).unwrap().0.path.err();
        assert_eq!(refused(&path), Some(UriTooLong));
        assert_eq!(refused("GET / HTTP/1.1\r\nHost: aaaa"), Some(HeadTooLarge));
        let fields = "A: b\r\n".repeat(FIELDS + 1);
        assert_eq!(
            refused(&alloc::format!("GET / HTTP/1.1\r\n{fields}\r\n")),
            Some(HeadTooLarge)
        );
    }

    #[test]
    fn a_connection_stays_as_its_version_and_fields_say() {
        assert!(stays("GET / HTTP/1.1\r\nhost: a\r\n\r\n"));
        assert!(!stays("GET / HTTP/1.0\r\n\r\n"));
        assert!(stays("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
        assert!(!stays(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Close\r\n\r\n"
        ));
        assert!(!stays(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
        ));
        assert!(stays(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
        ));
        assert!(!stays(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        ));
    }
}
