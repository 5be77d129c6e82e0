//! The end of a container, told when it comes.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use serde_json::Value;

use crate::http::{Head, unchunk};

/// The length of the longest answer that is believed to be one, in bytes.
const LONGEST: usize = 64 * 1024;

/// A question that is answered when the container has ended. It can be polled.
#[derive(Debug)]
pub struct Exit {
    stream: UnixStream,
    came: Vec<u8>,
    /// The container's status, once it is known.
    status: Option<i32>,
}

impl Exit {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            came: Vec::new(),
            status: None,
        })
    }

    /// Returns whether the status is known.
    pub fn is_known(&self) -> bool {
        self.status.is_some()
    }

    /// Returns the status of the container if it has ended, without waiting: 128 more than the
    /// signal if that ended it.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine closes the connection without an answer, or answers that it
    /// can't tell.
    pub fn status(&mut self) -> io::Result<Option<i32>> {
        let mut bytes = [0; 4096];
        while self.status.is_none() {
            if self.came.len() > LONGEST {
                let why = "the engine's answer about the container's end does not end";
                return Err(io::Error::new(ErrorKind::InvalidData, why));
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => {
                    self.status = Some(parse(&self.came)?);
                }
                Ok(n) => self.came.extend_from_slice(&bytes[..n]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(self.status)
    }
}

impl AsFd for Exit {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Reads the whole answer.
fn parse(bytes: &[u8]) -> io::Result<i32> {
    let no_answer = || {
        let why = "the engine closed the connection before the container's end";
        io::Error::new(ErrorKind::UnexpectedEof, why)
    };
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = bytes.split_at(split.ok_or_else(no_answer)? + 4);
    let head = Head::parse(head).ok_or_else(no_answer)?;
    let body = unchunk(body).unwrap_or_else(|| body.to_vec());
    let answer: Value = serde_json::from_slice(&body).map_err(|_| no_answer())?;
    let status = answer["StatusCode"]
        .as_i64()
        .and_then(|s| s.try_into().ok());
    match status {
        Some(status) if head.status == 200 => Ok(status),
        _ => Err(io::Error::other(format!(
            "the engine can't tell the container's end: {answer}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_found_and_a_cut_answer_is_an_error() {
        let whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                     1f\r\n{\"Error\":null,\"StatusCode\":137}\r\n0\r\n\r\n";
        assert_eq!(parse(whole.as_bytes()).unwrap(), 137);
        for cut in 0..40 {
            assert!(parse(&whole.as_bytes()[..cut]).is_err());
        }
        assert!(parse(b"HTTP/1.1 404 Not Found\r\n\r\n{\"message\":\"none\"}").is_err());
    }
}
