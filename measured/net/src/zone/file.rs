//! Zone files (RFC 1035, section 5; RFC 2308, section 4, for `$TTL`; RFC 3597, section 5, for
//! unknown types).
//!
//! The first record is the SOA, and its owner is the zone's origin. The records of a name may be
//! anywhere behind it. Equal records count once, and the records of one name and type get the
//! smallest of their times to live (RFC 2181, sections 5 and 5.2). Names above others exist, also
//! without records (RFC 8020).
//!
//! Content that this server would answer wrongly is rejected: `$INCLUDE`, other classes, wildcards,
//! delegations, DNAME, DNSSEC, an alias with other records, and names whose records do not fit into
//! one response.

use alloc::vec::Vec;
use core::fmt;
use core::iter;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use super::{
    A, AAAA, CNAME, LONGEST_LABEL, LONGEST_NAME, NS, Record, SOA, Zone, is_within, parent,
};
use crate::dns::{HEADER, LONGEST, OWN_OPT};

const PTR: u16 = 12;
const MX: u16 = 15;
const TXT: u16 = 16;

/// The types with a text form of their data.
const KINDS: [(&str, u16); 8] = [
    ("A", A),
    ("AAAA", AAAA),
    ("NS", NS),
    ("SOA", SOA),
    ("CNAME", CNAME),
    ("PTR", PTR),
    ("MX", MX),
    ("TXT", TXT),
];
/// The size of a record without its data: pointer to its name, type, class, time to live, length.
const RECORD: usize = 12;
/// Maximum size of a zone, which its offsets can reach, with room for one more record and the names
/// above it.
const MOST_BYTES: usize = u32::MAX as usize - (1 << 17);

/// The description of the expected text.
type Wanted = &'static str;
type Name = heapless::Vec<u8, LONGEST_NAME>;

const NAME: Wanted = "a name of at most 255 bytes, with labels of 1 to 63 bytes between its dots";
const TYPE: Wanted = "a type: A, AAAA, NS, SOA, CNAME, PTR, MX, TXT or TYPEn, in class IN";
const SECONDS: Wanted = "seconds up to 2147483647, or a time such as 1h30m";
const ESCAPE: Wanted = "\\ with a character, or with three digits up to 255";
const GENERIC: Wanted = "\\#, the number of bytes, and these in pairs of hexadecimal digits";
const SMALLER: Wanted = "records of a name that fit into one answer of 4096 bytes";

/// The error for an invalid line of a zone file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadZone<'a> {
    /// The number of the line, from 1.
    pub line: usize,
    /// The text of the line; empty at the end of the file.
    pub text: &'a str,
    /// Description of the expected text.
    pub wanted: &'static str,
}

impl fmt::Display for BadZone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, text, wanted } = self;
        write!(f, "line {line}: '{text:.80}': want {wanted}")
    }
}

impl core::error::Error for BadZone<'_> {}

impl Zone {
    /// Reads a zone file (see the module `zone::file`).
    ///
    /// # Errors
    ///
    /// Returns [`BadZone`] for the first invalid line.
    pub fn read(text: &str) -> Result<Self, BadZone<'_>> {
        let bad = |line: usize, wanted| {
            let text = text.lines().nth(line - 1).unwrap_or_default().trim();
            BadZone { line, text, wanted }
        };
        let mut file = File::new(text);
        let parts = file
            .parts()
            .map_err(|wanted| bad(file.words.line, wanted))?;
        merge(&parts).map_err(|(name, wanted)| bad(last_line(text, name), wanted))
    }
}

/// Merges sorted parts, several of which may have the same name. The error holds the name.
fn merge(parts: &Zone) -> Result<Zone, (&[u8], Wanted)> {
    let mut zone = Zone::new(parts.origin.clone());
    let name_at = |part: &(u32, u32)| parts.name_at(part.0);
    let same = || {
        parts
            .names
            .chunk_by(|one, other| name_at(one) == name_at(other))
    };
    let again = |same: &[(u32, u32)]| (same.len() - 1) * (1 + name_at(&same[0]).len());
    let bytes = parts.bytes.len() - same().map(again).sum::<usize>();
    zone.bytes.reserve_exact(bytes);
    zone.names.reserve_exact(same().count());
    let mut records = Vec::new();
    for same in same() {
        let name = name_at(&same[0]);
        records.clear();
        records.extend(same.iter().flat_map(|part| parts.records_at(*part)));
        records.sort_unstable_by_key(|record| (record.kind, record.data));
        for set in records.chunk_by_mut(|one, other| one.kind == other.kind) {
            let ttl = set.iter().map(|record| record.ttl).min();
            set.iter_mut()
                .for_each(|record| record.ttl = ttl.unwrap_or_default());
        }
        records.dedup();
        if records.len() > 1 && records.iter().any(|record| record.kind == CNAME) {
            return Err((name, "no other record of a name that has a CNAME record"));
        }
        let bytes: usize = records
            .iter()
            .map(|record| RECORD + record.data.len())
            .sum();
        if HEADER + name.len() + 4 + bytes + OWN_OPT > LONGEST {
            return Err((name, SMALLER));
        }
        zone.add(name, &records);
    }
    zone.bytes.shrink_to_fit();
    Ok(zone)
}

/// Reserves room, and a quarter more: a vector that doubles needs three times its size while it is
/// copied.
fn grow<T>(vector: &mut Vec<T>, more: usize) {
    if vector.capacity() - vector.len() < more {
        vector.reserve_exact(more + more.max(vector.len() / 4));
    }
}

/// Returns the line of the last record of a name.
fn last_line(text: &str, name: &[u8]) -> usize {
    let (mut file, mut line) = (File::new(text), 1);
    while let Ok(Some(_)) = file.record() {
        if file.owner == name {
            line = file.words.start;
        }
    }
    line
}

/// A file that is being read, with the values that its next record may omit.
struct File<'a> {
    words: Words<'a>,
    /// The origin of the zone. Empty before the first record.
    zone: Name,
    origin: Name,
    owner: Name,
    ttl: Option<u32>,
    last_ttl: Option<u32>,
    data: Vec<u8>,
}

impl<'a> File<'a> {
    const fn new(text: &'a str) -> Self {
        Self {
            words: Words {
                rest: text,
                line: 1,
                start: 1,
                open: 0,
            },
            zone: Name::new(),
            origin: Name::new(),
            owner: Name::new(),
            ttl: None,
            last_ttl: None,
            data: Vec::new(),
        }
    }

    /// Reads all records. A name occurs several times if its records are apart in the file.
    fn parts(&mut self) -> Result<Zone, Wanted> {
        let mut parts = Zone::new(Vec::new());
        while let Some(record) = self.record()? {
            let Record { kind, ttl, .. } = record;
            if parts.origin.is_empty() {
                parts.origin.extend(&self.zone);
            }
            grow(&mut parts.bytes, LONGEST);
            grow(&mut parts.names, LONGEST_NAME);
            let last = parts
                .names
                .last()
                .map_or(&[][..], |part| parts.name_at(part.0));
            if last != self.owner {
                // The names above the last one exist already.
                let known = iter::successors(Some(parent(&self.owner)), |name| Some(parent(name)))
                    .find(|name| name.len() <= self.zone.len() || is_within(last, name))
                    .map_or(0, <[u8]>::len);
                let mut above = parent(&self.owner);
                while above.len() > known {
                    parts.begin(above);
                    above = parent(above);
                }
                parts.begin(&self.owner);
            }
            parts.push(&Record {
                kind,
                ttl,
                data: &self.data,
            });
            if parts.bytes.len() > MOST_BYTES {
                return Err("a zone of less than 4 GiB");
            }
        }
        if parts.origin.is_empty() {
            return Err("an SOA record");
        }
        parts.sort();
        Ok(parts)
    }

    /// Reads the next record of [`Self::owner`]. None at the end.
    fn record(&mut self) -> Result<Option<Record<'_>>, Wanted> {
        while !self.words.rest.is_empty() {
            self.words.next_line();
            let is_indented = self.words.rest.starts_with([' ', '\t']);
            let Some(word) = self.words.next()? else {
                continue;
            };
            let record = match word.starts_with('$') && !is_indented {
                true => self.directive(word).map(|()| None),
                false => self.entry(word, is_indented).map(Some),
            }?;
            if self.words.next()?.is_some() {
                return Err("nothing more in this record");
            }
            if let Some((kind, ttl)) = record {
                return Ok(Some(Record {
                    kind,
                    ttl,
                    data: &self.data,
                }));
            }
        }
        Ok(None)
    }

    fn directive(&mut self, word: &str) -> Result<(), Wanted> {
        if word.eq_ignore_ascii_case("$ORIGIN") {
            self.origin = self.next_name()?;
        } else if word.eq_ignore_ascii_case("$TTL") {
            self.ttl = Some(self.next_seconds()?);
        } else {
            return Err("a record, $ORIGIN or $TTL, and all records in this file");
        }
        Ok(())
    }

    /// Reads a record from its first word. Returns its type and time to live.
    fn entry(&mut self, mut word: &'a str, is_indented: bool) -> Result<(u16, u32), Wanted> {
        if !is_indented {
            self.owner = self.name(word)?;
            word = self.next(TYPE)?;
        }
        let (mut ttl, mut is_classed) = (None, false);
        let kind = loop {
            if ttl.is_none() && word.starts_with(|first: char| first.is_ascii_digit()) {
                ttl = Some(seconds(word).ok_or(SECONDS)?);
            } else if !is_classed && word.eq_ignore_ascii_case("IN") {
                is_classed = true;
            } else {
                break kind(word)?;
            }
            word = self.next(TYPE)?;
        };
        self.last_ttl = ttl.or(self.last_ttl);
        let ttl = ttl
            .or(self.ttl)
            .or(self.last_ttl)
            .ok_or("a time to live, or $TTL before")?;
        self.check_owner(kind)?;
        self.data.clear();
        self.read_data(kind)?;
        Ok((kind, ttl))
    }

    /// Checks the owner of a record. The owner of the first record becomes the zone's origin.
    fn check_owner(&mut self, kind: u16) -> Result<(), Wanted> {
        let labels = iter::successors(Some(&self.owner[..]), |name| Some(parent(name)));
        if self.owner.is_empty() {
            return Err("a name, as no record before has one");
        }
        if labels
            .take_while(|name| !name.is_empty())
            .any(|name| name.starts_with(b"\x01*"))
        {
            return Err("a name without a label '*', as there are no wildcards here");
        }
        match (kind == SOA, self.zone.is_empty()) {
            (true, true) => self.zone = self.owner.clone(),
            (false, true) => return Err("an SOA record as the first one"),
            (true, false) => return Err("only one SOA record"),
            (false, false) => {}
        }
        if !is_within(&self.owner, &self.zone) {
            return Err("a name of the zone, which is that of the SOA record");
        }
        if kind == NS && self.owner != self.zone {
            return Err("NS records of the zone's origin only, as there are no delegations here");
        }
        Ok(())
    }

    fn read_data(&mut self, kind: u16) -> Result<(), Wanted> {
        let is_known = KINDS.iter().any(|(_, known)| *known == kind);
        if is_known && self.words.clone().next() == Ok(Some("\\#")) {
            return Err("data in its own form, as \\# is for types that are not known");
        }
        match kind {
            A => {
                let address: Ipv4Addr = self.next_parsed("an IPv4 address")?;
                self.put(&address.octets())
            }
            AAAA => {
                let address: Ipv6Addr = self.next_parsed("an IPv6 address")?;
                self.put(&address.octets())
            }
            NS | CNAME | PTR => self.put_name(),
            MX => {
                let preference = self.next_number::<u16>("a preference from 0 to 65535")?;
                self.put(&preference.to_be_bytes())?;
                self.put_name()
            }
            SOA => {
                self.put_name()?;
                self.put_name()?;
                let serial = self.next_number::<u32>("a serial number from 0 to 4294967295")?;
                self.put(&serial.to_be_bytes())?;
                (0..4).try_for_each(|_| {
                    let seconds = self.next_seconds()?;
                    self.put(&seconds.to_be_bytes())
                })
            }
            TXT => self.put_strings(),
            _ => self.put_generic(),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Wanted> {
        self.data.extend(bytes);
        if self.data.len() > LONGEST {
            Err(SMALLER)
        } else {
            Ok(())
        }
    }

    fn put_name(&mut self) -> Result<(), Wanted> {
        let name = self.next_name()?;
        self.put(&name)
    }

    fn put_strings(&mut self) -> Result<(), Wanted> {
        let mut word = self.next("at least one string")?;
        loop {
            let start = self.data.len();
            self.put(&[0])?;
            for symbol in symbols(word) {
                self.put(&[symbol?.0])?;
            }
            let length = self.data.len() - start - 1;
            self.data[start] = length
                .try_into()
                .map_err(|_| "strings of at most 255 bytes")?;
            match self.words.next()? {
                Some(next) => word = next,
                None => return Ok(()),
            }
        }
    }

    fn put_generic(&mut self) -> Result<(), Wanted> {
        if self.next(GENERIC)? != "\\#" {
            return Err(GENERIC);
        }
        let length = self.next_number::<u16>(GENERIC)?;
        while let Some(word) = self.words.next()? {
            let (pairs, []) = word.as_bytes().as_chunks() else {
                return Err(GENERIC);
            };
            for [high, low] in pairs {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = digit(*high).zip(digit(*low)).ok_or(GENERIC)?;
                self.put(&[(high << 4 | low) as u8])?;
            }
        }
        if self.data.len() == length.into() {
            Ok(())
        } else {
            Err(GENERIC)
        }
    }

    fn next(&mut self, wanted: Wanted) -> Result<&'a str, Wanted> {
        self.words.next()?.ok_or(wanted)
    }

    fn next_parsed<T: FromStr>(&mut self, wanted: Wanted) -> Result<T, Wanted> {
        self.next(wanted)?.parse().map_err(|_| wanted)
    }

    fn next_number<T: FromStr>(&mut self, wanted: Wanted) -> Result<T, Wanted> {
        number(self.next(wanted)?).ok_or(wanted)
    }

    fn next_seconds(&mut self) -> Result<u32, Wanted> {
        seconds(self.next(SECONDS)?).ok_or(SECONDS)
    }

    fn next_name(&mut self) -> Result<Name, Wanted> {
        let word = self.next(NAME)?;
        self.name(word)
    }

    /// Reads a name. Without a final dot it is relative to the origin.
    fn name(&self, word: &str) -> Result<Name, Wanted> {
        let (mut name, mut start) = (Name::new(), 0);
        name.push(0).map_err(|_| NAME)?;
        for symbol in symbols(if ["@", "."].contains(&word) { "" } else { word }) {
            match symbol? {
                (b'.', false) if name[start] == 0 => return Err(NAME),
                (b'.', false) => {
                    start = name.len();
                    name.push(0).map_err(|_| NAME)?;
                }
                (byte, is_escaped) if is_escaped || byte.is_ascii_graphic() => {
                    name.push(byte.to_ascii_lowercase()).map_err(|_| NAME)?;
                    name[start] += 1;
                    if usize::from(name[start]) > LONGEST_LABEL {
                        return Err(NAME);
                    }
                }
                _ => return Err(NAME),
            }
        }
        match name[start] == 0 {
            true if start > 0 || word == "." => return Ok(name),
            true if word == "@" => name.clear(),
            true => return Err(NAME),
            false => {}
        }
        if self.origin.is_empty() {
            return Err("a name that ends with a dot, or $ORIGIN before");
        }
        name.extend_from_slice(&self.origin).map_err(|_| NAME)?;
        Ok(name)
    }
}

/// The words of a file. A record ends with its line if no parenthesis is open.
#[derive(Clone)]
struct Words<'a> {
    rest: &'a str,
    line: usize,
    /// The first line of the record.
    start: usize,
    open: usize,
}

impl<'a> Words<'a> {
    /// Reads the next word of a record, with its quotation marks and escapes. None at the end of
    /// the line, which stays.
    fn next(&mut self) -> Result<Option<&'a str>, Wanted> {
        loop {
            let bytes = match self.rest.as_bytes().first() {
                Some(b'\n') | None if self.open == 0 => return Ok(None),
                None => {
                    self.line = self.start;
                    return Err("a closing parenthesis");
                }
                Some(b' ' | b'\t' | b'\r') => 1,
                Some(b'\n') => {
                    self.line += 1;
                    1
                }
                Some(b';') => self.rest.find('\n').unwrap_or(self.rest.len()),
                Some(b'(') => {
                    self.open += 1;
                    1
                }
                Some(b')') => {
                    let open = self.open.checked_sub(1);
                    self.open = open.ok_or("an opening parenthesis before the closing one")?;
                    1
                }
                Some(_) => return self.word().map(Some),
            };
            self.rest = &self.rest[bytes..];
        }
    }

    /// Reads the word that begins here.
    fn word(&mut self) -> Result<&'a str, Wanted> {
        let is_quoted = self.rest.starts_with('"');
        let mut is_escaped = false;
        let is_end = |&(_, byte): &(usize, u8)| match byte {
            b'\n' => true,
            _ if core::mem::take(&mut is_escaped) => false,
            b'"' => true,
            b' ' | b'\t' | b'\r' | b';' | b'(' | b')' => !is_quoted,
            _ => {
                is_escaped = byte == b'\\';
                false
            }
        };
        let mut bytes = self.rest.bytes().enumerate().skip(is_quoted.into());
        let end = bytes.find(is_end).unwrap_or((self.rest.len(), b'\n'));
        let bytes = match (is_quoted, end) {
            (false, (place, _)) => place,
            (true, (place, b'"')) => place + 1,
            (true, _) => return Err("a quotation mark at the end of the string"),
        };
        let (word, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        Ok(word)
    }

    /// Skips the end of a line, if it is next.
    fn next_line(&mut self) {
        if let Some(rest) = self.rest.strip_prefix('\n') {
            self.rest = rest;
            self.line += 1;
        }
        self.start = self.line;
    }
}

/// Returns the bytes of a word, and whether each is escaped.
fn symbols(word: &str) -> impl Iterator<Item = Result<(u8, bool), Wanted>> {
    let quoted = word
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let mut rest = quoted.unwrap_or(word).as_bytes();
    iter::from_fn(move || {
        let (first, after) = rest.split_first()?;
        let (symbol, after) = match (first, after) {
            (
                b'\\',
                [
                    a @ b'0'..=b'9',
                    b @ b'0'..=b'9',
                    c @ b'0'..=b'9',
                    after @ ..,
                ],
            ) => {
                let digit = |byte: &u8| u16::from(byte - b'0');
                let number = digit(a) * 100 + digit(b) * 10 + digit(c);
                (number.try_into().ok().map(|byte| (byte, true)), after)
            }
            (b'\\', [byte, after @ ..]) if !byte.is_ascii_digit() => (Some((*byte, true)), after),
            (b'\\', after) => (None, after),
            (byte, after) => (Some((*byte, false)), after),
        };
        rest = after;
        Some(symbol.ok_or(ESCAPE))
    })
}

/// Reads a type with data that can be served.
fn kind(word: &str) -> Result<u16, Wanted> {
    if let Some((_, kind)) = KINDS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(word))
    {
        return Ok(*kind);
    }
    let generic = word
        .split_at_checked(4)
        .filter(|(start, _)| start.eq_ignore_ascii_case("TYPE"));
    match generic.and_then(|(_, digits)| number(digits)).ok_or(TYPE)? {
        39 => Err("no DNAME record, as they are not supported here"),
        43 | 46..=48 | 50 | 51 => Err("a zone that is not signed, as there is no DNSSEC here"),
        0 | 41 | 128..=255 => Err("a type that records have"),
        kind => Ok(kind),
    }
}

/// Reads a number: digits only, since `parse` would accept a sign.
fn number<T: FromStr>(word: &str) -> Option<T> {
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|_| digits)
}

/// Reads seconds, or numbers with units.
fn seconds(word: &str) -> Option<u32> {
    let mut sum = match number::<u32>(word) {
        Some(seconds) => return i32::try_from(seconds).ok().map(i32::cast_unsigned),
        None => 0_u32,
    };
    for part in word.split_inclusive(|byte: char| !byte.is_ascii_digit()) {
        let (count, unit) = part.split_at_checked(part.len() - 1)?;
        let unit = match unit {
            "s" | "S" => 1,
            "m" | "M" => 60,
            "h" | "H" => 3600,
            "d" | "D" => 86_400,
            "w" | "W" => 604_800,
            _ => return None,
        };
        sum = sum.checked_add(number::<u32>(count)?.checked_mul(unit)?)?;
    }
    i32::try_from(sum).ok().map(i32::cast_unsigned)
}

#[cfg(test)]
mod tests;
