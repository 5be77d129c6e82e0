//! The records of one zone, sorted by their names, in a few contiguous pieces of memory.
//!
//! Names are stored in wire format (RFC 1035, section 3.1), in lower case.

use alloc::vec::Vec;

#[cfg(feature = "zone-file")]
mod file;
#[cfg(feature = "zone-file")]
mod text;

#[cfg(feature = "zone-file")]
pub use file::BadZone;

/// Maximum length of a name in wire format, in bytes.
pub const LONGEST_NAME: usize = 255;
/// Maximum length of a label, in bytes.
pub const LONGEST_LABEL: usize = 63;

/// The type of IPv4 addresses.
pub const A: u16 = 1;
/// The type of name servers.
pub const NS: u16 = 2;
/// The type of aliases.
pub const CNAME: u16 = 5;
/// The type of the start of authority.
pub const SOA: u16 = 6;
/// The type of IPv6 addresses.
pub const AAAA: u16 = 28;

/// Maximum number of hosts in a synthetic zone: the number of addresses in its network.
pub const MOST_HOSTS: u32 = 1 << 24;
/// The time to live of synthetic records, in seconds.
const TTL: u32 = 3600;

/// A record of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its type.
    pub kind: u16,
    /// Its time to live, in seconds.
    pub ttl: u32,
    /// Its data, without compressed names.
    pub data: &'a [u8],
}

/// Returns a record of a synthetic zone.
fn record(kind: u16, data: &[u8]) -> Record<'_> {
    Record {
        kind,
        ttl: TTL,
        data,
    }
}

/// The records of a zone.
#[derive(Clone, Debug)]
pub struct Zone {
    origin: Vec<u8>,
    /// For each name: its length, the name, and the type, time to live, length and data of each
    /// record.
    bytes: Vec<u8>,
    /// The start of each name and the end of its records, in the order of names.
    names: Vec<(u32, u32)>,
}

impl Zone {
    /// Returns a zone without names.
    fn new(origin: Vec<u8>) -> Self {
        Self {
            origin,
            bytes: Vec::new(),
            names: Vec::new(),
        }
    }

    /// Returns the zone `example` with some hosts: `host0.example` has the addresses 10.0.0.0 and
    /// 2001:db8::, each further host has the next ones.
    ///
    /// # Panics
    ///
    /// Panics for more than [`MOST_HOSTS`].
    pub fn synthetic(hosts: u32) -> Self {
        assert!(
            hosts <= MOST_HOSTS,
            "a synthetic zone has 2^24 hosts at most"
        );
        const ORIGIN: &[u8] = b"\x07example\0";
        const SERVER: &[u8] = b"\x02ns\x07example\0";
        let mut zone = Self::new(ORIGIN.to_vec());
        let mut start = SERVER.to_vec();
        start.extend_from_slice(b"\x0ahostmaster\x07example\0");
        // Serial, refresh, retry, expire, and the time to live of negative answers.
        for number in [1_u32, 3600, 600, 86_400, 60] {
            start.extend_from_slice(&number.to_be_bytes());
        }
        // Reserved once: a vector that grows holds up to three times its size while it is copied.
        zone.bytes
            .reserve_exact(hosts as usize * HOST_BYTES + OTHER_BYTES);
        zone.names.reserve_exact(hosts as usize + 2);
        let mut host = heapless::Vec::<u8, HOST_BYTES>::new();
        // There is room for the longest.
        let _ = host.extend_from_slice(FIRST_HOST);
        // In their order: names with fewer digits are shorter and come first.
        let first = hosts.min(FIRST_AS_LONG);
        zone.add(SERVER, &[record(A, &[192, 0, 2, 53])]);
        zone.extend(&mut host, first);
        zone.add(ORIGIN, &[record(SOA, &start), record(NS, SERVER)]);
        zone.extend(&mut host, hosts - first);
        zone
    }

    /// Appends hosts, and leaves the one after them.
    fn extend(&mut self, host: &mut heapless::Vec<u8, HOST_BYTES>, number: u32) {
        for _ in 0..number {
            let start = self.bytes.len() as u32;
            self.bytes.extend_from_slice(host);
            self.names.push((start, self.bytes.len() as u32));
            next_host(host);
        }
    }

    /// Returns the name of the zone.
    pub fn origin(&self) -> &[u8] {
        &self.origin
    }

    /// Returns whether a name, in lower case, is within the zone.
    pub fn has(&self, name: &[u8]) -> bool {
        is_within(name, &self.origin)
    }

    /// Returns the records of a name, in lower case. None if there is no such name.
    pub fn records(&self, name: &[u8]) -> Option<impl Iterator<Item = Record<'_>> + Clone> {
        let name = Key::of(name);
        let order = |(start, _): &(u32, u32)| Key::of(self.name_at(*start)).cmp(&name);
        let place = self.names.binary_search_by(order).ok()?;
        Some(self.records_at(self.names[place]))
    }

    /// Adds a new name with all its records. Fast for names that come nearly in order.
    fn add(&mut self, name: &[u8], records: &[Record<'_>]) {
        self.begin(name);
        records.iter().for_each(|record| self.push(record));
        if let Some(last) = self.names.pop() {
            self.insert(last);
        }
    }

    /// Inserts a name, with its records, by its place among the others.
    fn insert(&mut self, new: (u32, u32)) {
        let name = Key::of(self.name_at(new.0));
        let is_before = |(start, _): &(u32, u32)| Key::of(self.name_at(*start)) < name;
        let place = match self.names.last().is_some_and(is_before) {
            true => self.names.len(),
            false => self.names.partition_point(is_before),
        };
        self.names.insert(place, new);
    }

    /// Appends a name without records.
    fn begin(&mut self, name: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.push(name.len() as u8);
        self.bytes.extend_from_slice(name);
        self.names.push((start, self.bytes.len() as u32));
    }

    /// Adds a record to the last name.
    fn push(&mut self, record: &Record<'_>) {
        let length = record.data.len() as u16;
        self.bytes.extend_from_slice(&record.kind.to_be_bytes());
        self.bytes.extend_from_slice(&record.ttl.to_be_bytes());
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(record.data);
        if let Some((_, end)) = self.names.last_mut() {
            *end = self.bytes.len() as u32;
        }
    }

    /// Adds a name with equal TXT records.
    #[cfg(test)]
    pub(crate) fn extend_for_test(&mut self, name: &[u8], number: usize, text: &[u8]) {
        self.add(name, &alloc::vec![record(16, text); number]);
    }

    #[cfg(feature = "zone-file")]
    fn sort(&mut self) {
        let mut names = core::mem::take(&mut self.names);
        names.sort_unstable_by(|(one, _), (other, _)| {
            Key::of(self.name_at(*one)).cmp(&Key::of(self.name_at(*other)))
        });
        self.names = names;
    }

    fn name_at(&self, start: u32) -> &[u8] {
        let start = start as usize;
        let length = usize::from(self.bytes[start]);
        &self.bytes[start + 1..start + 1 + length]
    }

    fn records_at(&self, (start, end): (u32, u32)) -> impl Iterator<Item = Record<'_>> + Clone {
        let first = start as usize + 1 + self.name_at(start).len();
        let mut rest = &self.bytes[first..end as usize];
        core::iter::from_fn(move || {
            let (kind, after) = rest.split_first_chunk()?;
            let (ttl, after) = after.split_first_chunk()?;
            let (length, after) = after.split_first_chunk()?;
            let (data, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
            rest = after;
            Some(Record {
                kind: u16::from_be_bytes(*kind),
                ttl: u32::from_be_bytes(*ttl),
                data,
            })
        })
    }
}

/// The order of names: by their first eight bytes as one number, in which most differ, then as a
/// whole. Names of fewer bytes come first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    first: u64,
    name: &'a [u8],
}

impl<'a> Key<'a> {
    fn of(name: &'a [u8]) -> Self {
        let first = name.first_chunk().copied();
        Self {
            first: first.map_or(0, u64::from_be_bytes),
            name,
        }
    }
}

/// Returns whether a name is another one or below it.
fn is_within(name: &[u8], other: &[u8]) -> bool {
    let mut rest = name;
    while !rest.is_empty() && rest != other {
        rest = parent(rest);
    }
    !rest.is_empty()
}

/// Returns the name above a name; empty above the root.
fn parent(name: &[u8]) -> &[u8] {
    let length = name.first().copied().unwrap_or_default();
    name.get(1 + usize::from(length)..).unwrap_or_default()
}

/// The first host of a synthetic zone: the length of its name, the name, and both records, with
/// their time to live ([`TTL`]).
const FIRST_HOST: &[u8] = b"\x0f\x05host0\x07example\0\
    \0\x01\0\0\x0e\x10\0\x04\x0a\0\0\0\
    \0\x1c\0\0\x0e\x10\0\x10\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\0";

/// Makes the bytes of a host of a synthetic zone those of the next one: the number in its name and
/// its addresses. An image is ready once its zone is, and most of it is the same for all hosts.
fn next_host(host: &mut heapless::Vec<u8, HOST_BYTES>) {
    /// The lengths of the name and of its label, and `host`.
    const NUMBER: usize = 6;
    // The first address, the head of the next record, and the second.
    if let Some(last) = host.last_chunk_mut::<28>() {
        let v4 = u32::from_be_bytes([last[0], last[1], last[2], last[3]]) + 1;
        last[..4].copy_from_slice(&v4.to_be_bytes());
        last[24..].copy_from_slice(&(v4 % MOST_HOSTS).to_be_bytes());
    }
    let end = 2 + host.get(1).map_or(0, |label| usize::from(*label));
    let digits = host.get_mut(NUMBER..end).unwrap_or_default();
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    // There is room for the longest.
    let _ = host.insert(NUMBER, b'1');
    host.iter_mut().take(2).for_each(|length| *length += 1);
}

/// Maximum length of a host's name in a synthetic zone, in wire format.
const LONGEST_HOST: usize = 22;
/// The first host of a synthetic zone whose label is as long as the zone's.
const FIRST_AS_LONG: u32 = 100;
/// Maximum size of both other names of a synthetic zone, with their records.
const OTHER_BYTES: usize = 128;
/// Maximum size of a host in a synthetic zone: its name, and two records of 8 bytes plus address.
const HOST_BYTES: usize = 1 + LONGEST_HOST + 8 + 4 + 8 + 16;

/// Returns a name in wire format, in lower case. None if it is invalid.
pub fn wire(name: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(name.len() + 2);
    let name = name.as_bytes();
    for label in name
        .strip_suffix(b".")
        .unwrap_or(name)
        .split(|byte| *byte == b'.')
    {
        if label.is_empty() || label.len() > LONGEST_LABEL || !label.is_ascii() {
            return None;
        }
        bytes.push(label.len() as u8);
        bytes.extend(label.iter().map(u8::to_ascii_lowercase));
    }
    bytes.push(0);
    (bytes.len() <= LONGEST_NAME).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn every_host_has_the_next_address() {
        let zone = Zone::synthetic(10_000);
        for (host, v4) in [
            (0, [10, 0, 0, 0]),
            (256, [10, 0, 1, 0]),
            (9_999, [10, 0, 39, 15]),
        ] {
            let name = wire(&format!("HOST{host}.Example.")).unwrap();
            let mut records = zone.records(&name).unwrap();
            let first = records.next().unwrap();
            assert_eq!((first.kind, first.ttl, first.data), (A, TTL, &v4[..]));
            let second = records.next().unwrap();
            assert_eq!((second.kind, second.data.len()), (AAAA, 16));
            assert!(zone.has(&name) && records.next().is_none());
        }
        for name in [
            "host10000.example",
            "host01.example",
            "h.host1.example",
            "example.org",
        ] {
            assert!(zone.records(&wire(name).unwrap()).is_none(), "{name}");
            assert_eq!(wire(&format!("{name}..")), None);
        }
        assert!(!zone.has(&wire("example.org").unwrap()) && !zone.has(&wire("anexample").unwrap()));
        assert_eq!(zone.records(zone.origin()).unwrap().count(), 2);
        // Each host's bytes fit into what was reserved.
        assert!(zone.bytes.len() <= zone.bytes.capacity() && zone.bytes.capacity() < 10_000 * 64);
    }

    #[test]
    fn invalid_names_are_rejected() {
        let long = "a".repeat(64);
        for name in ["", "a..b", "ä.example", &long, &"a.".repeat(128)] {
            assert_eq!(wire(name), None, "{name}");
        }
    }
}
