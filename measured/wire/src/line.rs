//! Records as lines of text: writing them, and finding them among other text.

use core::fmt::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use crc::{CRC_32_ISO_HDLC, Crc, Table};

use crate::packed;
use crate::record::Record;

/// The start of every record of the measured code; the digit is [`crate::PROTOCOL`].
pub const MARKER: &str = "tare5:";

/// The start of every record of a load.
const LOAD_MARKER: &str = "tare5-load:";

/// A numbered sequence of records. Several may share one line out of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stream {
    /// The records of the measured code.
    #[default]
    Measured,
    /// The records of a load.
    Load,
}

impl Stream {
    /// Returns the start of each of its records.
    pub const fn marker(self) -> &'static str {
        match self {
            Self::Measured => MARKER,
            Self::Load => LOAD_MARKER,
        }
    }
}

/// Maximum length of a line in bytes, with the newline.
pub const MAX_LINE: usize = 4_000;

/// Maximum length of a payload in bytes, before base64.
pub const MAX_PAYLOAD: usize = packed::CAPACITY + 200;

const CHECKSUM: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISO_HDLC);

/// A writer of numbered records.
#[derive(Debug)]
pub struct Encoder {
    stream: Stream,
    next: u64,
    line: [u8; MAX_LINE],
}

impl Default for Encoder {
    fn default() -> Self {
        Self::of(Stream::default())
    }
}

impl Encoder {
    /// Starts a stream.
    pub const fn of(stream: Stream) -> Self {
        Self {
            stream,
            next: 0,
            line: [0; MAX_LINE],
        }
    }

    /// Writes a record as one line, newline included.
    ///
    /// # Errors
    ///
    /// Returns [`TooLong`] if the texts make the record longer than [`MAX_PAYLOAD`]; its number is
    /// then used for the next record.
    pub fn encode(&mut self, record: &Record<'_>) -> Result<&[u8], TooLong> {
        let mut payload = [0; MAX_PAYLOAD];
        let payload = postcard::to_slice(record, &mut payload).map_err(|_| TooLong)?;
        let marker = self.stream.marker();
        let mut line = Cursor {
            line: &mut self.line,
            at: 0,
        };
        let no_room = |fmt::Error| TooLong;
        write!(line, "{marker} {} {} ", self.next, record.kind()).map_err(no_room)?;
        line.at += STANDARD_NO_PAD
            .encode_slice(payload, &mut line.line[line.at..])
            .map_err(|_| TooLong)?;
        let sum = CHECKSUM.checksum(&line.line[marker.len() + 1..line.at]);
        writeln!(line, " {sum:08x}").map_err(no_room)?;
        self.next += 1;
        let end = line.at;
        Ok(&self.line[..end])
    }

    /// Returns how many records were written.
    pub fn written(&self) -> u64 {
        self.next
    }
}

/// A writer of text into a line.
struct Cursor<'a> {
    line: &'a mut [u8],
    at: usize,
}

impl Write for Cursor<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.line[self.at..].get_mut(..text.len());
        room.ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.at += text.len();
        Ok(())
    }
}

/// The error for a record that does not fit into a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// The content of a line.
#[expect(
    clippy::large_enum_variant,
    reason = "there is no allocator, and only one line is decoded at a time"
)]
#[derive(Debug, PartialEq)]
pub enum Line<'a> {
    /// A whole record.
    Record {
        /// Its number, counted from 0.
        sequence: u64,
        /// Its content.
        record: Record<'a>,
    },
    /// Other text: firmware chatter, a boot message, output of a program.
    Other,
    /// A damaged record.
    Damaged(Damage),
}

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The line does not have the five fields of a record, or one is malformed.
    Form,
    /// The checksum does not match.
    Checksum,
    /// The checksum matches, but the payload is unknown to this version.
    Payload,
}

/// Finds the record of the measured code in a line, as [`decode_of`] does.
pub fn decode<'a>(line: &[u8], room: &'a mut [u8; MAX_PAYLOAD]) -> Line<'a> {
    decode_of(Stream::Measured, line, room)
}

/// Finds the record of a stream in a line, behind any other text. Records of other streams are
/// [`Line::Other`].
///
/// `room` receives the decoded payload, from which the record borrows.
pub fn decode_of<'a>(stream: Stream, line: &[u8], room: &'a mut [u8; MAX_PAYLOAD]) -> Line<'a> {
    let marker = stream.marker();
    let Some(found) = find_last(line, marker.as_bytes()) else {
        return Line::Other;
    };
    let text = line[found + marker.len()..].trim_ascii();
    let Some(Fields {
        covered,
        sequence,
        kind,
        payload,
        checksum,
    }) = fields(text)
    else {
        return Line::Damaged(Damage::Form);
    };
    if CHECKSUM.checksum(covered) != checksum {
        return Line::Damaged(Damage::Checksum);
    }
    let Ok(used) = STANDARD_NO_PAD.decode_slice(payload, room) else {
        return Line::Damaged(Damage::Payload);
    };
    match postcard::from_bytes::<Record<'_>>(&room[..used]) {
        Ok(record) if record.kind().as_bytes() == kind => Line::Record { sequence, record },
        _ => Line::Damaged(Damage::Payload),
    }
}

struct Fields<'a> {
    covered: &'a [u8],
    sequence: u64,
    kind: &'a [u8],
    payload: &'a [u8],
    checksum: u32,
}

fn fields(text: &[u8]) -> Option<Fields<'_>> {
    let last_space = text.iter().rposition(|byte| *byte == b' ')?;
    let covered = &text[..last_space];
    let checksum = &text[last_space + 1..];
    let mut parts = covered.split(|byte| *byte == b' ');
    let (sequence, kind, payload) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || checksum.len() != 8 {
        return None;
    }
    let checksum = core::str::from_utf8(checksum).ok()?;
    Some(Fields {
        covered,
        sequence: core::str::from_utf8(sequence).ok()?.parse().ok()?,
        kind,
        payload,
        checksum: u32::from_str_radix(checksum, 16).ok()?,
    })
}

fn find_last(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).rposition(|window| window == what)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::packed::Packer;
    use crate::record::{End, List, Notice};

    fn line_of(record: &Record<'_>) -> Vec<u8> {
        Encoder::default().encode(record).unwrap().to_vec()
    }

    fn notice(text: &str) -> Record<'_> {
        Record::Notice(Notice { text })
    }

    #[test]
    fn a_line_looks_as_documented() {
        let mut encoder = Encoder::default();
        encoder.encode(&Record::End(End { records: 0 })).unwrap();
        let line = encoder.encode(&notice("hi")).unwrap();
        let text = core::str::from_utf8(line).unwrap();
        assert_eq!(text, "tare5: 1 notice CgJoaQ e51fdc27\n");
    }

    #[test]
    fn the_longest_list_fits_into_a_line() {
        let mut packer = Packer::default();
        while packer.push([u64::MAX, u64::MAX]) {}
        let record = Record::Counts(List {
            rows: packer.packed(),
        });
        let line = line_of(&record);
        assert!(line.len() <= MAX_LINE);
        let mut room = [0; MAX_PAYLOAD];
        assert_eq!(
            decode(&line, &mut room),
            Line::Record {
                sequence: 0,
                record
            }
        );
    }

    #[test]
    fn a_text_that_is_too_long_is_refused_and_numbering_goes_on() {
        let long = "x".repeat(MAX_PAYLOAD);
        let mut encoder = Encoder::default();
        assert_eq!(encoder.encode(&notice(&long)), Err(TooLong));
        assert!(
            encoder
                .encode(&notice("y"))
                .unwrap()
                .starts_with(b"tare5: 0 ")
        );
    }

    #[test]
    fn firmware_chatter_before_the_marker_is_skipped() {
        let mut line = b"SeaBIOS (1.16)\x1b[2J\r".to_vec();
        line.extend(line_of(&notice("there")));
        let mut room = [0; MAX_PAYLOAD];
        assert_eq!(
            decode(&line, &mut room),
            Line::Record {
                sequence: 0,
                record: notice("there")
            }
        );
    }

    #[test]
    fn streams_do_not_see_each_other() {
        let mut room = [0; MAX_PAYLOAD];
        for (stream, other) in [
            (Stream::Load, Stream::Measured),
            (Stream::Measured, Stream::Load),
        ] {
            let mut encoder = Encoder::of(stream);
            let line = encoder.encode(&Record::Going).unwrap();
            let record = Record::Going;
            let sequence = 0;
            assert_eq!(
                decode_of(stream, line, &mut room),
                Line::Record { sequence, record }
            );
            assert_eq!(decode_of(other, line, &mut room), Line::Other);
        }
    }

    #[test]
    fn other_text_is_other() {
        let mut room = [0; MAX_PAYLOAD];
        assert_eq!(
            decode(b"[    0.000000] Linux version", &mut room),
            Line::Other
        );
        assert_eq!(decode(b"", &mut room), Line::Other);
    }

    proptest! {
        #[test]
        fn one_changed_byte_is_detected(
            text in "[a-z ]{0,40}", place in any::<prop::sample::Index>(), flip in 1_u8..=255
        ) {
            let good = line_of(&notice(&text));
            let body = good.len() - 1;
            let mut bad = good.clone();
            let place = place.index(body);
            bad[place] ^= flip;
            let mut room = [0; MAX_PAYLOAD];
            if let Line::Record { sequence, record } = decode(&bad, &mut room) {
                // Only white space or the case of a hexadecimal digit may change unnoticed.
                prop_assert_eq!(sequence, 0);
                prop_assert_eq!(record, notice(&text));
            }
        }

        #[test]
        fn one_lost_byte_is_detected(
            text in "[a-z]{1,40}", place in any::<prop::sample::Index>()
        ) {
            let good = line_of(&notice(&text));
            let mut bad = good.clone();
            // From the end of the marker: a damaged marker is other text.
            bad.remove(MARKER.len() + 1 + place.index(good.len() - MARKER.len() - 2));
            let mut room = [0; MAX_PAYLOAD];
            let is_damaged = matches!(decode(&bad, &mut room), Line::Damaged(_));
            prop_assert!(is_damaged);
        }

        #[test]
        fn any_bytes_end_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut line = b"tare5: 0 ".to_vec();
            line.extend(bytes);
            let mut room = [0; MAX_PAYLOAD];
            let _ = decode(&line, &mut room);
        }
    }
}
