//! The driver's records, on standard output.

use std::io::{self, Write};

use tare_wire::line::{Encoder, MAX_PAYLOAD, Stream};
use tare_wire::record::{End, Failure, Notice, Record};

/// A writer of records.
#[derive(Debug)]
pub(super) struct Reporter {
    encoder: Encoder,
    /// Whether the reader has gone.
    unheard: bool,
}

impl Default for Reporter {
    fn default() -> Self {
        Self {
            encoder: Encoder::of(Stream::Load),
            unheard: false,
        }
    }
}

impl Reporter {
    /// Writes a record at once. A text that is too long for a line is truncated.
    pub(super) fn put(&mut self, record: &Record<'_>) {
        let short;
        let record = match record {
            Record::Notice(Notice { text }) => {
                short = Record::Notice(Notice { text: cut(text) });
                &short
            }
            Record::Failure(Failure { text }) => {
                short = Record::Failure(Failure { text: cut(text) });
                &short
            }
            other => other,
        };
        let Ok(line) = self.encoder.encode(record) else {
            // Only possible for a load whose own text is that long; without its first record, no
            // record is valid.
            return;
        };
        let mut out = io::stdout().lock();
        // A closed pipe means that the reader has gone.
        if out.write_all(line).and_then(|()| out.flush()).is_err() {
            self.unheard = true;
        }
    }

    /// Writes the last record.
    pub(super) fn end(&mut self) {
        let records = self.encoder.written();
        self.put(&Record::End(End { records }));
    }

    /// Returns whether the reader has gone.
    pub(super) fn is_unheard(&self) -> bool {
        self.unheard
    }
}

/// Truncates a text so that it fits into a record with other fields.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_PAYLOAD - 100)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let text = "µ".repeat(MAX_PAYLOAD);
        let notice = Record::Notice(Notice { text: cut(&text) });
        assert!(Encoder::of(Stream::Load).encode(&notice).is_ok());
        assert_eq!(cut("short"), "short");
    }
}
