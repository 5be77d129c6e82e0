//! Status codes (RFC 9110).

/// A status code, with its number in the RFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The file or the figures follow.
    Ok = 200,
    /// The request is malformed.
    BadRequest = 400,
    /// No such file.
    NotFound = 404,
    /// A method that changes files.
    MethodNotAllowed = 405,
    /// The request was not complete in time.
    RequestTimeout = 408,
    /// The target is longer than the buffer.
    UriTooLong = 414,
    /// Too many fields, or too long ones.
    HeadTooLarge = 431,
    /// An unknown method.
    NotImplemented = 501,
    /// A version other than HTTP/1.
    VersionNotSupported = 505,
}

impl Status {
    /// Returns the reason phrase of the RFC.
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
