//! What other programs write, cut into lines. Who writes without end fills no memory.

use std::mem;

/// A stream that is cut into lines. No more than one line is kept of it.
#[derive(Debug)]
pub struct Lines {
    begun: Vec<u8>,
    longest: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self::new(Self::LONGEST)
    }
}

impl Lines {
    /// The length of the longest line that is passed on whole, in bytes.
    pub const LONGEST: usize = 64 * 1024;

    /// Creates a splitter of lines of at most `longest` bytes (at least 1).
    pub fn new(longest: usize) -> Self {
        Self {
            begun: Vec::new(),
            longest: longest.max(1),
        }
    }

    /// Takes bytes. Passes on each line without its line feed, and whether that is the end of a
    /// line: what is longer than the longest is passed on in pieces.
    pub fn take(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8], bool)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (mut text, is_end) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            while self.begun.len() + text.len() > self.longest {
                let (here, rest) = text.split_at(self.longest - self.begun.len());
                self.begun.extend_from_slice(here);
                line(&self.begun, false);
                self.begun.clear();
                text = rest;
            }
            self.begun.extend_from_slice(text);
            if is_end {
                line(&self.begun, true);
                self.begun.clear();
            }
        }
    }

    /// Returns the line that has begun.
    pub fn begun(&self) -> &[u8] {
        &self.begun
    }

    /// Takes the line that has begun, when nothing more can come.
    pub fn take_begun(&mut self) -> Vec<u8> {
        mem::take(&mut self.begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(longest: usize, pieces: &[&str]) -> (Vec<(String, bool)>, Vec<u8>) {
        let mut lines = Lines::new(longest);
        let mut all = Vec::new();
        for piece in pieces {
            lines.take(piece.as_bytes(), |text, is_end| {
                all.push((String::from_utf8_lossy(text).into_owned(), is_end));
            });
        }
        (all, lines.take_begun())
    }

    #[test]
    fn lines_are_the_same_wherever_they_are_cut() {
        let text = "one\n\ntwelve\nlast";
        let whole = cut(6, &[text]);
        let line = |text: &str| (text.to_owned(), true);
        assert_eq!(whole.0, [line("one"), line(""), line("twelve")]);
        assert_eq!(whole.1, b"last");
        for at in 0..text.len() {
            let (a, b) = text.split_at(at);
            assert_eq!(cut(6, &[a, b]), whole);
        }
    }

    #[test]
    fn a_line_without_end_is_passed_on_in_pieces() {
        let (all, begun) = cut(4, &["abcdefghi\n", "jklm"]);
        let told = [("abcd", false), ("efgh", false), ("i", true)];
        assert_eq!(all, told.map(|(text, is_end)| (text.to_owned(), is_end)));
        assert_eq!(begun, b"jklm");
    }
}
