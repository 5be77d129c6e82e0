//! What a container writes, taken apart into its two streams.
//!
//! Both streams come through one connection, in frames: the number of the stream, three bytes of
//! nothing, the length (four bytes, the highest first), and that number of bytes.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// One of a container's two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// How many reads of 16 KiB are made at a time: who writes without pause can't hold the reader
/// up.
const MOST_READS: usize = 64;

/// The connection to what a container writes. It can be polled.
#[derive(Debug)]
pub struct Attached {
    stream: UnixStream,
    frames: Frames,
    ended: bool,
}

impl Attached {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            frames: Frames::default(),
            ended: false,
        })
    }

    /// Returns whether both streams have ended.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Hands out what has come, without waiting.
    ///
    /// # Errors
    ///
    /// Returns why the connection broke.
    pub fn read(&mut self, mut take: impl FnMut(Stream, &[u8])) -> io::Result<()> {
        let mut bytes = [0; 16 * 1024];
        for _ in 0..MOST_READS {
            if self.ended {
                break;
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => self.ended = true,
                Ok(n) => self.frames.take(&bytes[..n], &mut take),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsFd for Attached {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Takes frames apart, wherever they are cut.
#[derive(Debug, Default)]
struct Frames {
    /// The part of a frame's head that has come.
    head: Vec<u8>,
    /// The frame that has begun: whose it is and how much is missing.
    rest: Option<(Stream, usize)>,
}

impl Frames {
    fn take(&mut self, mut bytes: &[u8], take: &mut impl FnMut(Stream, &[u8])) {
        const HEAD: usize = 8;
        while !bytes.is_empty() {
            if let Some((stream, missing)) = &mut self.rest {
                let here = bytes.len().min(*missing);
                take(*stream, &bytes[..here]);
                bytes = &bytes[here..];
                *missing -= here;
                if *missing == 0 {
                    self.rest = None;
                }
                continue;
            }
            let here = bytes.len().min(HEAD - self.head.len());
            self.head.extend_from_slice(&bytes[..here]);
            bytes = &bytes[here..];
            if let [kind, _, _, _, a, b, c, d] = self.head[..] {
                let length = u32::from_be_bytes([a, b, c, d]) as usize;
                let stream = if kind == 2 {
                    Stream::Error
                } else {
                    Stream::Output
                };
                self.rest = (length > 0).then_some((stream, length));
                self.head.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_are_joined_wherever_they_are_cut(
            parts in proptest::collection::vec((any::<bool>(), "[a-z]{0,20}"), 0..10),
            cuts in proptest::collection::vec(1_usize..9, 1..100),
        ) {
            let (mut wire, mut expected) = (Vec::new(), [String::new(), String::new()]);
            for (error, text) in &parts {
                wire.extend_from_slice(&[1 + u8::from(*error), 0, 0, 0]);
                wire.extend_from_slice(&u32::try_from(text.len()).unwrap().to_be_bytes());
                wire.extend_from_slice(text.as_bytes());
                expected[usize::from(*error)].push_str(text);
            }
            let (mut frames, mut seen) = (Frames::default(), [Vec::new(), Vec::new()]);
            let mut rest = &wire[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at(rest.len().min(*cut));
                rest = after;
                frames.take(piece, &mut |stream, bytes| {
                    seen[usize::from(stream == Stream::Error)].extend_from_slice(bytes);
                });
            }
            prop_assert_eq!(seen.map(|bytes| String::from_utf8(bytes).unwrap()), expected);
        }
    }
}
