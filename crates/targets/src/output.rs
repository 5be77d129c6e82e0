//! What one instance writes: cut into lines, with the time when it got ready and the last that it
//! said.

use std::collections::VecDeque;

use tare_docker::Stream;
use tare_guard::Lines;
use tare_wire::line::Stream as Records;

use crate::launch::{Ready, with_last};

/// How much is kept of each stream, from its end: enough for what a kernel writes when it panics.
const KEPT: usize = 16 * 1024;

/// The length of the longest prompt, in bytes: what is longer is looked at when the line is whole,
/// so that one that comes byte by byte is not looked at again and again.
const PROMPT: usize = 512;

/// The output of an instance.
#[derive(Debug, Default)]
pub struct InstanceOutput {
    ready_ns: u64,
    /// When standard output was closed; 0 until then.
    closed_ns: u64,
    output: Channel,
    error: Channel,
}

impl InstanceOutput {
    /// Takes bytes of a stream that were read at a time. Passes on each whole line, and whether it
    /// is a record.
    pub fn take(
        &mut self,
        stream: Stream,
        bytes: &[u8],
        at_ns: u64,
        ready: &Ready,
        mut line: impl FnMut(&[u8], bool),
    ) {
        let mut is_ready = false;
        match (stream, ready) {
            (Stream::Error, _) => self.error.take(bytes, line),
            (Stream::Output, Ready::Output | Ready::Started) => {
                is_ready = matches!(ready, Ready::Output);
                self.output.tail.take(bytes);
            }
            (Stream::Output, Ready::Record) => self.output.take(bytes, |text, is_record| {
                is_ready |= is_record;
                line(text, is_record);
            }),
            (Stream::Output, Ready::Line(wanted)) => {
                let is_due = self.ready_ns == 0;
                let matches = |text: &[u8]| {
                    let text = String::from_utf8_lossy(text);
                    wanted.is_match(text.trim_end_matches('\r'))
                };
                self.output.take(bytes, |text, is_record| {
                    is_ready = is_ready || is_due && matches(text);
                    line(text, is_record);
                });
                is_ready = is_ready || self.prompt().is_some_and(matches);
            }
        }
        if is_ready && self.ready_ns == 0 {
            self.ready_ns = at_ns;
        }
    }

    /// Returns the unfinished line if it may be the prompt that is waited for.
    fn prompt(&self) -> Option<&[u8]> {
        let begun = self.output.lines.begun();
        (self.ready_ns == 0 && begun.len() <= PROMPT).then_some(begun)
    }

    /// Passes on the lines that have begun, when nothing more can come.
    pub fn finish(&mut self, mut line: impl FnMut(&[u8], bool)) {
        for kept in [&mut self.error, &mut self.output] {
            let begun = kept.lines.take_begun();
            if !begun.is_empty() {
                kept.tail.pass_on(&begun, &mut line);
            }
        }
    }

    /// Takes the end of standard output.
    pub fn close(&mut self, at_ns: u64) {
        if self.closed_ns == 0 {
            self.closed_ns = at_ns;
        }
    }

    /// Returns whether standard output was closed well before the end: a process that ends closes it,
    /// too.
    pub(crate) fn was_closed_before(&self, end_ns: u64) -> bool {
        const WELL_NS: u64 = 2_000_000;
        self.closed_ns > 0 && end_ns.saturating_sub(self.closed_ns) > WELL_NS
    }

    /// Returns when it got ready; 0 if it did not.
    pub fn ready_ns(&self) -> u64 {
        self.ready_ns
    }

    /// Adds the last lines of the console to what the instance was doing, if it has written some.
    pub(crate) fn with_last(&mut self, doing: &str) -> String {
        let [output, error] = self.tails();
        match [output, error].into_iter().find(|text| !text.is_empty()) {
            Some(text) => with_last(doing, text.lines()),
            None => doing.to_owned(),
        }
    }

    /// Returns the last of standard output and standard error, without records and without white
    /// space around.
    pub(crate) fn tails(&mut self) -> [String; 2] {
        [&mut self.output, &mut self.error].map(|kept| {
            let begun = kept.lines.take_begun();
            kept.tail.take(&begun);
            kept.tail.text()
        })
    }
}

/// Returns whether a line is a record of the measured code or of a load.
fn is_record(line: &[u8]) -> bool {
    let has = |marker: &str| {
        let mut places = line.windows(marker.len());
        places.any(|place| place == marker.as_bytes())
    };
    has(Records::Measured.marker()) || has(Records::Load.marker())
}

/// A stream cut into lines, and its end.
#[derive(Debug, Default)]
struct Channel {
    lines: Lines,
    tail: Tail,
}

impl Channel {
    fn take(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8], bool)) {
        let (lines, tail) = (&mut self.lines, &mut self.tail);
        lines.take(bytes, |text, _| tail.pass_on(text, &mut line));
    }
}

/// The end of a text.
#[derive(Debug, Default)]
struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    /// Passes on a line, and whether it is a record; keeps it if not.
    fn pass_on(&mut self, text: &[u8], line: &mut impl FnMut(&[u8], bool)) {
        let is_record = is_record(text);
        if !is_record {
            self.take(text);
            self.take(b"\n");
        }
        line(text, is_record);
    }

    fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let surplus = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..surplus);
    }

    fn text(&mut self) -> String {
        let text = String::from_utf8_lossy(self.bytes.make_contiguous());
        text.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_passed_on_whole_and_records_are_in_no_tail() {
        let mut output = InstanceOutput::default();
        let mut lines = Vec::new();
        let pieces: [&[u8]; 3] = [b"one\ntw", b"o\n[ 1.0] tare5: 0 hello\n", b"three"];
        for (at_ns, piece) in (1..).zip(pieces) {
            output.take(Stream::Output, piece, at_ns, &Ready::Record, |line, is| {
                lines.push((String::from_utf8_lossy(line).into_owned(), is));
            });
        }
        let told = [
            ("one", false),
            ("two", false),
            ("[ 1.0] tare5: 0 hello", true),
        ];
        assert_eq!(lines, told.map(|(line, is)| (line.to_owned(), is)));
        assert_eq!(output.ready_ns(), 2);
        assert_eq!(output.tails()[0], "one\ntwo\nthree");
    }

    #[test]
    fn a_prompt_gets_an_instance_ready() {
        let mut output = InstanceOutput::default();
        let ready = Ready::Line(regex_lite::Regex::new("login:").unwrap());
        for (at_ns, piece) in [(1, "boot\nlog"), (2, "in: ")] {
            output.take(Stream::Output, piece.as_bytes(), at_ns, &ready, |_, _| {});
        }
        assert_eq!(output.ready_ns(), 2);
    }

    #[test]
    fn an_unfinished_line_is_matched_up_to_a_length_and_a_whole_one_always() {
        let ready = Ready::Line(regex_lite::Regex::new("login:$").unwrap());
        for (length, expected_ns) in [(PROMPT, 1), (PROMPT + 1, 2)] {
            let mut output = InstanceOutput::default();
            let line = format!("{:>length$}", "login:");
            for (at_ns, piece) in [(1, line.as_bytes()), (2, b"\n")] {
                output.take(Stream::Output, piece, at_ns, &ready, |_, _| {});
            }
            assert_eq!(output.ready_ns(), expected_ns, "{length}");
        }
    }

    #[test]
    fn no_unfinished_line_is_matched_after_a_match() {
        let mut output = InstanceOutput::default();
        let ready = Ready::Line(regex_lite::Regex::new("login:").unwrap());
        let mut take = |at_ns, piece: &str| {
            output.take(Stream::Output, piece.as_bytes(), at_ns, &ready, |_, _| {});
            (output.prompt().is_some(), output.ready_ns())
        };
        assert_eq!(take(1, "boot\nlog"), (true, 0));
        assert_eq!(take(2, "in: "), (false, 2));
        assert_eq!(take(3, "root\nlogin:"), (false, 2));
    }

    #[test]
    fn endless_output_without_newline_does_not_fill_the_memory() {
        let mut output = InstanceOutput::default();
        let mut sum = 0;
        for _ in 0..20 {
            output.take(
                Stream::Output,
                &[0; 10_000],
                1,
                &Ready::Record,
                |line, _| {
                    assert!(line.len() <= Lines::LONGEST);
                    sum += line.len();
                },
            );
        }
        output.finish(|line, _| sum += line.len());
        assert_eq!(sum, 200_000);
        assert_eq!(output.output.tail.bytes.len(), KEPT);
    }
}
