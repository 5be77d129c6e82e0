//! The reader's side: what does a dead owner leave in force?

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use serde::Deserialize;

use super::{Header, Line, VERSION};
use crate::record::Record;

/// The content of a journal.
#[derive(Debug, PartialEq)]
pub(crate) struct Contents {
    pub(crate) header: Header,
    /// The things in force, in the order of the intents.
    pub(crate) in_force: Vec<(u64, Record)>,
    /// The first whole line that is invalid. Lines after it are read nevertheless.
    pub(crate) damage: Option<Damage>,
    /// Length of all whole lines, in bytes.
    pub(super) length: u64,
    /// Length of the first line, in bytes.
    pub(super) header_length: u64,
    /// The number of the next intent.
    pub(super) next: u64,
}

/// Why a journal cannot be believed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) why: String,
}

/// Why there are no contents.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// The file cannot be read.
    Io(io::Error),
    /// Its first line is invalid.
    Damaged(Damage),
    /// It was written by a later version.
    Newer(u32),
}

/// Reads a journal from its beginning. A last line without an end was being written when the owner
/// died, so what it announces was not done; it is ignored.
pub(crate) fn read(file: &mut File) -> Result<Contents, Unreadable> {
    /// Far more than a run writes; what is longer is not a journal.
    const LIMIT_BYTES: u64 = 64 * 1024 * 1024;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).map_err(Unreadable::Io)?;
    file.take(LIMIT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(Unreadable::Io)?;
    if bytes.len() as u64 > LIMIT_BYTES {
        return Err(damaged(1, "the file is far too long"));
    }
    parse(&bytes)
}

pub(super) fn parse(bytes: &[u8]) -> Result<Contents, Unreadable> {
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let mut lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n');
    let first = lines
        .next()
        .ok_or_else(|| damaged(1, "the file has no whole line"))?;
    let mut contents = Contents {
        header: parse_header(first)?,
        in_force: Vec::new(),
        damage: None,
        length: whole as u64,
        header_length: first.len() as u64,
        next: 1,
    };
    for (index, line) in lines.enumerate() {
        let outcome = serde_json::from_slice(line)
            .map_err(|error| error.to_string())
            .and_then(|line| contents.apply(line));
        if let Err(why) = outcome {
            contents.damage.get_or_insert(Damage {
                line: index + 2,
                why,
            });
        }
    }
    Ok(contents)
}

fn parse_header(line: &[u8]) -> Result<Header, Unreadable> {
    /// All that a later version may be relied on to have.
    #[derive(Deserialize)]
    struct AnyVersion {
        version: u32,
    }
    let bad = |error: serde_json::Error| damaged(1, &error.to_string());
    let AnyVersion { version } = serde_json::from_slice(line).map_err(bad)?;
    if version > VERSION {
        return Err(Unreadable::Newer(version));
    }
    match serde_json::from_slice(line).map_err(bad)? {
        Line::Opened(header) => Ok(header),
        _ => Err(damaged(1, "it does not say whose journal this is")),
    }
}

impl Contents {
    fn apply(&mut self, line: Line) -> Result<(), String> {
        match line {
            Line::Opened(_) => return Err("a second beginning".into()),
            Line::Intent { number, .. } if number < self.next => {
                return Err(format!("number {number} is not new"));
            }
            Line::Intent { number, thing } => {
                self.next = number.saturating_add(1);
                self.in_force.push((number, thing));
            }
            Line::Update { number, thing } => match self.place_of(number) {
                Some(place) => self.in_force[place].1 = thing,
                None => return Err(format!("number {number} was never announced")),
            },
            Line::Undone { number } => match self.place_of(number) {
                Some(place) => drop(self.in_force.remove(place)),
                None => return Err(format!("number {number} was never announced")),
            },
        }
        Ok(())
    }

    fn place_of(&self, number: u64) -> Option<usize> {
        self.in_force.iter().position(|(known, _)| *known == number)
    }
}

fn damaged(line: usize, why: &str) -> Unreadable {
    Unreadable::Damaged(Damage {
        line,
        why: why.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::journal::writer::tests::{bytes, child, open};

    #[test]
    fn nonsense_is_damage_and_the_rest_is_still_read() {
        let (_root, _state, mut journal) = open();
        journal.intend(child).unwrap();
        let mut text = bytes(&journal);
        text.extend_from_slice(b"\0\0\0garbage\n");
        text.extend_from_slice(
            br#"{"record":"intent","number":2,"thing":{"kind":"scratch","path":"/x"}}"#,
        );
        text.push(b'\n');
        let contents = parse(&text).unwrap();
        assert_eq!(contents.in_force.len(), 2);
        assert_eq!(contents.damage.unwrap().line, 3);
        assert!(matches!(parse(b""), Err(Unreadable::Damaged(_))));
        assert!(matches!(parse(b"garbage\n"), Err(Unreadable::Damaged(_))));
        let later = br#"{"record":"opened","version":99,"whatever":[]}"#;
        assert!(matches!(
            parse(&[&later[..], b"\n"].concat()),
            Err(Unreadable::Newer(99))
        ));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&text);
        }
    }
}
