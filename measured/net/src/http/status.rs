//! What becomes of a request (RFC 9110).

/// The status of an answer: its number is that of the RFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Here it is.
    Ok = 200,
    /// It can't be read.
    BadRequest = 400,
    /// There is no such file.
    NotFound = 404,
    /// Files can only be read.
    MethodNotAllowed = 405,
    /// It did not come to its end in time.
    RequestTimeout = 408,
    /// Its target is longer than what is read here.
    UriTooLong = 414,
    /// It has more fields than are read here, or longer ones.
    HeadTooLarge = 431,
    /// Its method is not known.
    NotImplemented = 501,
    /// It is written in another version than HTTP/1.
    VersionNotSupported = 505,
}

impl Status {
    /// Its name in the RFC.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::BadRequest => "Bad Request",
            Self::NotFound => "Not Found",
            Self::MethodNotAllowed => "Method Not Allowed",
            Self::RequestTimeout => "Request Timeout",
            Self::UriTooLong => "URI Too Long",
            Self::HeadTooLarge => "Request Header Fields Too Large",
            Self::NotImplemented => "Not Implemented",
            Self::VersionNotSupported => "HTTP Version Not Supported",
        }
    }
}
