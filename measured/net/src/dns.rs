//! An authoritative name server: [`answer`] turns a query into its response, [`udp`] and [`tcp`]
//! serve datagrams and connections.
//!
//! It follows RFC 1034 and 1035, 2181 (one TTL for the records of an answer), 2308 (names that do
//! not exist), 6891 (EDNS), 7766 (TCP) and 8906 (which queries need a response). A UDP response has
//! at most 1,232 bytes, so that it is one packet; a longer one is truncated (TC), and the client
//! asks again by TCP.
//!
//! It reads and writes its messages itself: an authoritative answer is a header, the question and a
//! few records, 2.4 kB of code. So a test compares it with another reader, and `make fuzz` looks
//! for queries that the two read differently.

use edge_nal::{Close, TcpShutdown, UdpReceive, UdpSend};
use embassy_futures::select::select;
use embedded_io_async::{Read, Write};

use crate::zone::{CNAME, LONGEST_LABEL, LONGEST_NAME, Record, SOA, Zone};
use crate::{Accept, Clock, unless_silent};

/// The port of the service.
pub const PORT: u16 = 53;
/// Maximum size of a message, in bytes. UDP responses are shorter.
pub const LONGEST: usize = 4096;

/// Time in seconds for a client to close a connection that the server has closed: the last response
/// may have to be sent again.
const CLOSING_SECONDS: u32 = 5;

pub(crate) const HEADER: usize = 12;
/// Maximum size of a UDP response without EDNS (RFC 1035, section 4.2.1).
const WITHOUT_EDNS: usize = 512;
/// Maximum size of a UDP response that is one packet nearly everywhere (DNS flag day 2020).
const UNFRAGMENTED: usize = 1232;
/// Maximum length of a chain of aliases.
const MOST_ALIASES: usize = 8;

// Flags of the header (RFC 1035, section 4.1.1).
const QR: u16 = 1 << 15;
const OPCODE: u16 = 0xf << 11;
const AA: u16 = 1 << 10;
const TC: u16 = 1 << 9;
const RD: u16 = 1 << 8;

const OPT: u16 = 41;
/// The flag of OPT that asks for DNSSEC.
const DO: u16 = 1 << 15;
/// The types IXFR and AXFR: transfers of zones.
const TRANSFERS: [u16; 2] = [251, 252];
const ANY: u16 = 255;
/// The class IN.
const IN: u16 = 1;

/// A response code (RFC 1035, section 4.1.1; RFC 6891, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rcode {
    NoError = 0,
    FormErr = 1,
    NxDomain = 3,
    NotImp = 4,
    Refused = 5,
    BadVers = 16,
}

/// The transport of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// As a datagram.
    Udp,
    /// Over a connection.
    Tcp,
}

/// A question: its name in lower case, and its bytes as received.
struct Question<'a> {
    name: &'a [u8],
    kind: u16,
    class: u16,
    bytes: &'a [u8],
}

/// The OPT record of a client (RFC 6891, section 6.1.2).
#[derive(Clone, Copy)]
struct Edns {
    /// Maximum size of a response.
    bytes: u16,
    version: u8,
    has_do: bool,
}

/// Writes the response to a query, and returns its length. None for messages that need none:
/// responses, and those shorter than a header. `reply` holds at least 512 bytes.
pub fn answer(query: &[u8], zone: &Zone, transport: Transport, reply: &mut [u8]) -> Option<usize> {
    let mut rest = Reader(query);
    let [id, flags, questions, answers, authorities, additional] = rest.header()?;
    if flags & QR != 0 {
        return None;
    }
    let mut writer = Writer::new(reply, WITHOUT_EDNS, id, flags & (OPCODE | RD));
    if flags & OPCODE != 0 {
        return Some(writer.finish(Rcode::NotImp, find_edns(query)));
    }
    // In its place from the start: moves of 264 bytes cost as much as finding a record.
    let mut name = heapless::Vec::new();
    let read = match (questions, answers, authorities) {
        (1, 0, 0) => rest.question(&mut name).zip(rest.edns(additional)),
        _ => None,
    };
    let Some((question, edns)) = read.filter(|_| rest.0.is_empty()) else {
        return Some(writer.finish(Rcode::FormErr, find_edns(query)));
    };
    writer.most = match (transport, edns) {
        (Transport::Tcp, _) => usize::MAX,
        (Transport::Udp, Some(edns)) => usize::from(edns.bytes).clamp(WITHOUT_EDNS, UNFRAGMENTED),
        (Transport::Udp, None) => WITHOUT_EDNS,
    };
    writer.most = writer.most.min(writer.reply.len()) - edns.map_or(0, |_| OWN_OPT);
    writer.question(question.bytes);
    let code = match edns {
        Some(Edns { version: 1.., .. }) => Rcode::BadVers,
        _ => find(&question, zone, &mut writer),
    };
    Some(writer.finish(code, edns))
}

/// Finds the OPT record in a malformed query, if it can be reached (RFC 6891, section 6.1.1).
fn find_edns(query: &[u8]) -> Option<Edns> {
    let mut rest = Reader(query);
    let [_, _, questions, answers, authorities, additional] = rest.header()?;
    for _ in 0..questions {
        rest.skip_name()?;
        rest.take(4)?;
    }
    let before = u32::from(answers) + u32::from(authorities);
    for number in 0..before + u32::from(additional) {
        match rest.record()? {
            (true, edns) if number >= before && edns.is_some() => return edns,
            _ => {}
        }
    }
    None
}

/// Writes the records that answer a question.
fn find(question: &Question<'_>, zone: &Zone, writer: &mut Writer<'_>) -> Rcode {
    let is_here = [IN, ANY].contains(&question.class) && zone.has(question.name);
    if !is_here || TRANSFERS.contains(&question.kind) {
        return Rcode::Refused;
    }
    writer.flags |= AA;
    let mut name = question.name;
    // The first name is that of the question.
    let mut at = Name::At(HEADER as u16);
    for _ in 0..MOST_ALIASES {
        let Some(records) = zone.records(name) else {
            writer.start_of_authority(zone);
            // Also where an alias leads to no name (RFC 2308, section 2.1).
            return Rcode::NxDomain;
        };
        let matches = |record: &Record<'_>| question.kind == record.kind || question.kind == ANY;
        let mut matching = records.clone().filter(matches).peekable();
        if matching.peek().is_some() {
            matching.for_each(|record| writer.answer(at, &record));
            return Rcode::NoError;
        }
        let Some(alias) = records.clone().find(|record| record.kind == CNAME) else {
            writer.start_of_authority(zone);
            return Rcode::NoError;
        };
        writer.answer(at, &alias);
        (name, at) = (alias.data, Name::Whole(alias.data));
        if !zone.has(name) {
            return Rcode::NoError;
        }
    }
    Rcode::NoError
}

/// The unread bytes of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_be_bytes(*number))
    }

    fn header(&mut self) -> Option<[u16; 6]> {
        let mut header = [0; 6];
        for number in &mut header {
            *number = self.number()?;
        }
        Some(header)
    }

    /// Reads the question, and puts its name into `name`, which is empty. It is the first name, so
    /// it is never compressed.
    fn question<'q>(
        &mut self,
        name: &'q mut heapless::Vec<u8, LONGEST_NAME>,
    ) -> Option<Question<'q>>
    where
        'a: 'q,
    {
        let start = self.0;
        loop {
            let length = *self.take(1)?.first()?;
            if usize::from(length) > LONGEST_LABEL {
                return None;
            }
            if length == 0 {
                break;
            }
            self.take(length.into())?;
        }
        let whole = &start[..start.len() - self.0.len()];
        name.extend_from_slice(whole).ok()?;
        // The lengths are smaller than all letters.
        name.iter_mut().for_each(u8::make_ascii_lowercase);
        let (kind, class) = (self.number()?, self.number()?);
        let bytes = &start[..start.len() - self.0.len()];
        Some(Question {
            name,
            kind,
            class,
            bytes,
        })
    }

    /// Reads the records behind the question, with at most one OPT. None if they are malformed.
    fn edns(&mut self, records: u16) -> Option<Option<Edns>> {
        let mut edns = None;
        for _ in 0..records {
            match self.record()? {
                (_, None) => {}
                (true, found) if edns.is_none() => edns = found,
                _ => return None,
            }
        }
        Some(edns)
    }

    /// Reads a record. Returns whether its name is the root, and its content if it is an OPT
    /// record.
    fn record(&mut self) -> Option<(bool, Option<Edns>)> {
        let is_root = self.skip_name()?;
        let (kind, bytes) = (self.number()?, self.number()?);
        let (version, flags) = (self.number()? as u8, self.number()?);
        let length = self.number()?;
        self.take(length.into())?;
        let edns = Edns {
            bytes,
            version,
            has_do: flags & DO != 0,
        };
        Some((is_root, (kind == OPT).then_some(edns)))
    }

    /// Skips a name. Returns whether it is the root.
    fn skip_name(&mut self) -> Option<bool> {
        let mut is_root = true;
        loop {
            match *self.take(1)?.first()? {
                0 => return Some(is_root),
                // A pointer to the rest.
                0xc0.. => return self.take(1).map(|_| false),
                length if usize::from(length) <= LONGEST_LABEL => self.take(length.into())?,
                _ => return None,
            };
            is_root = false;
        }
    }
}

/// The owner name of a record in a response.
#[derive(Clone, Copy)]
enum Name<'a> {
    /// A pointer to this offset of the message.
    At(u16),
    /// The whole name.
    Whole(&'a [u8]),
}

/// The size of the server's OPT record, in bytes.
pub(crate) const OWN_OPT: usize = 11;

/// A response that is being written.
struct Writer<'a> {
    reply: &'a mut [u8],
    used: usize,
    /// Maximum size without the OPT record.
    most: usize,
    flags: u16,
    questions: u16,
    answers: u16,
    authorities: u16,
}

impl<'a> Writer<'a> {
    fn new(reply: &'a mut [u8], most: usize, id: u16, flags: u16) -> Self {
        reply[..2].copy_from_slice(&id.to_be_bytes());
        Self {
            reply,
            used: HEADER,
            most,
            flags: flags | QR,
            questions: 0,
            answers: 0,
            authorities: 0,
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        if let Some(room) = self.reply.get_mut(self.used..self.used + bytes.len()) {
            room.copy_from_slice(bytes);
            self.used += bytes.len();
        }
    }

    /// Repeats the question as received, since some clients hide a secret in the case of its
    /// letters. There is room for the longest.
    fn question(&mut self, bytes: &[u8]) {
        self.put(bytes);
        self.questions = 1;
    }

    /// Writes a record. Returns false if there is no room.
    fn record(&mut self, name: Name<'_>, record: &Record<'_>) -> bool {
        let name_bytes = match name {
            Name::At(_) => 2,
            Name::Whole(name) => name.len(),
        };
        if self.used + name_bytes + 10 + record.data.len() > self.most {
            return false;
        }
        match name {
            Name::At(offset) => self.put(&(0xc000 | offset).to_be_bytes()),
            Name::Whole(name) => self.put(name),
        }
        self.put(&record.kind.to_be_bytes());
        self.put(&IN.to_be_bytes());
        self.put(&record.ttl.to_be_bytes());
        self.put(&(record.data.len() as u16).to_be_bytes());
        self.put(record.data);
        true
    }

    /// Adds a record to the answer section; the response is truncated if it does not fit.
    fn answer(&mut self, name: Name<'_>, record: &Record<'_>) {
        match self.record(name, record) {
            true => self.answers += 1,
            false => self.flags |= TC,
        }
    }

    /// Adds the SOA record, whose TTL limits how long a negative answer is cached (RFC 2308,
    /// section 3).
    fn start_of_authority(&mut self, zone: &Zone) {
        let mut records = zone.records(zone.origin()).into_iter().flatten();
        let Some(start) = records.find(|record| record.kind == SOA) else {
            return;
        };
        let minimum = start
            .data
            .last_chunk()
            .map(|bytes| u32::from_be_bytes(*bytes));
        let record = Record {
            ttl: start.ttl.min(minimum.unwrap_or(u32::MAX)),
            ..start
        };
        match self.record(Name::Whole(zone.origin()), &record) {
            true => self.authorities += 1,
            false => self.flags |= TC,
        }
    }

    /// Completes the response, and returns its length.
    fn finish(mut self, code: Rcode, edns: Option<Edns>) -> usize {
        let code = code as u16;
        if let Some(edns) = edns {
            // DO is copied from the query (RFC 3225, section 3).
            let flags = if edns.has_do { DO } else { 0 };
            // Root, type, maximum size of a query, upper bits of the code with version 0, flags, no
            // options.
            self.put(&[0]);
            for number in [OPT, UNFRAGMENTED as u16, code >> 4 << 8, flags, 0] {
                self.put(&number.to_be_bytes());
            }
        }
        let header = [
            self.flags | code & 0xf,
            self.questions,
            self.answers,
            self.authorities,
            edns.is_some().into(),
        ];
        for (place, number) in header.into_iter().enumerate() {
            self.reply[2 + 2 * place..][..2].copy_from_slice(&number.to_be_bytes());
        }
        self.used
    }
}

/// Answers datagrams. Never returns. A response that can't be sent is lost.
pub async fn udp(mut socket: impl UdpReceive + UdpSend, zone: &Zone) -> ! {
    // A query may be longer than any response.
    let (mut query, mut reply) = ([0; LONGEST], [0; UNFRAGMENTED]);
    loop {
        let Ok((bytes, from)) = socket.receive(&mut query).await else {
            continue;
        };
        if let Some(length) = answer(&query[..bytes], zone, Transport::Udp, &mut reply) {
            let _ = socket.send(from, &reply[..length]).await;
        }
    }
}

/// Serves connections, one at a time. Never returns. Several of these tasks serve several at once.
pub async fn tcp(listener: &impl Accept, zone: &Zone, clock: impl Clock) -> ! {
    loop {
        match listener.accept().await {
            Some(mut connection) => {
                while serve(&mut connection, zone, &clock).await.is_some() {}
                // The other side may have gone.
                let _ = select(connection.close(Close::Both), clock.sleep(CLOSING_SECONDS)).await;
            }
            None => clock.sleep(1).await,
        }
    }
}

/// Answers one query, which its length precedes. None if the connection has ended.
async fn serve(
    connection: &mut (impl Read + Write + TcpShutdown),
    zone: &Zone,
    clock: &impl Clock,
) -> Option<()> {
    let (mut query, mut reply) = ([0; LONGEST], [0; 2 + LONGEST]);
    let mut length = [0; 2];
    unless_silent(clock, connection.read_exact(&mut length))
        .await?
        .ok()?;
    let query = query.get_mut(..u16::from_be_bytes(length).into())?;
    unless_silent(clock, connection.read_exact(query))
        .await?
        .ok()?;
    let length = answer(query, zone, Transport::Tcp, &mut reply[2..])?;
    reply[..2].copy_from_slice(&(length as u16).to_be_bytes());
    unless_silent(clock, connection.write_all(&reply[..2 + length]))
        .await?
        .ok()
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::zone::{A, AAAA, NS, wire};

    /// Returns a query with one question, and `behind` as its additional record.
    fn query(name: &str, kind: u16, behind: &[u8]) -> Vec<u8> {
        let additional = u8::from(!behind.is_empty());
        let mut query = Vec::from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, additional]);
        query.extend(wire(name).unwrap());
        query.extend(kind.to_be_bytes());
        query.extend([0, 1]);
        query.extend(behind);
        query
    }

    /// Returns an OPT record with a size and a version.
    fn edns(bytes: u16, version: u8) -> Vec<u8> {
        let mut record = Vec::from([0, 0, 41]);
        record.extend(bytes.to_be_bytes());
        record.extend([0, version, 0, 0, 0, 0]);
        record
    }

    fn ask(query: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let zone = Zone::synthetic(300);
        let mut reply = [0; LONGEST];
        let length = answer(query, &zone, transport, &mut reply)?;
        Some(reply[..length].to_vec())
    }

    /// Returns the flags without the code, the code, and the four counts of records.
    fn head(reply: &[u8]) -> (u16, u16, [u8; 4]) {
        let flags = u16::from_be_bytes([reply[2], reply[3]]);
        (
            flags & !0xf,
            flags & 0xf,
            [reply[5], reply[7], reply[9], reply[11]],
        )
    }

    const AUTHORITATIVE: u16 = QR | AA | RD;

    #[test]
    fn an_address_is_answered_behind_the_question_as_received() {
        let mut asked = query("host258.example", A, &[]);
        asked[13] = b'H';
        let reply = ask(&asked, Transport::Udp).unwrap();
        assert_eq!(head(&reply), (AUTHORITATIVE, 0, [1, 1, 0, 0]));
        assert_eq!(&reply[..2], &asked[..2]);
        assert_eq!(&reply[12..asked.len()], &asked[12..]);
        let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4, 10, 0, 1, 2];
        assert_eq!(&reply[asked.len()..], record);
        let six = ask(&query("host1.example", AAAA, &[]), Transport::Tcp).unwrap();
        assert_eq!(
            six[six.len() - 16..],
            [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
        );
    }

    #[test]
    fn a_name_that_does_not_exist_comes_with_the_soa_record() {
        for (name, kind, code) in [
            ("host300.example", A, 3),
            ("host1.example", NS, 0),
            ("a.b.example", A, 3),
        ] {
            let reply = ask(&query(name, kind, &[]), Transport::Udp).unwrap();
            assert_eq!(head(&reply), (AUTHORITATIVE, code, [1, 0, 1, 0]), "{name}");
            // It may be cached for a minute.
            let at = query(name, kind, &[]).len() + 9 + 4;
            assert_eq!(reply[at..at + 4], [0, 0, 0, 60]);
        }
    }

    #[test]
    fn names_outside_the_zone_are_refused() {
        for (name, kind) in [
            ("example.org", A),
            ("org", A),
            ("host1.example", TRANSFERS[1]),
        ] {
            let reply = ask(&query(name, kind, &[]), Transport::Udp).unwrap();
            assert_eq!(head(&reply), (QR | RD, 5, [1, 0, 0, 0]), "{name}");
        }
        let mut chaos = query("host1.example", A, &[]);
        *chaos.last_mut().unwrap() = 3;
        assert_eq!(head(&ask(&chaos, Transport::Udp).unwrap()).1, 5);
    }

    #[test]
    fn edns_is_answered_by_an_opt_record_and_another_version_by_badvers() {
        let reply = ask(&query("host1.example", A, &edns(4096, 0)), Transport::Udp).unwrap();
        assert_eq!(head(&reply), (AUTHORITATIVE, 0, [1, 1, 0, 1]));
        assert_eq!(
            reply[reply.len() - 11..],
            [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]
        );
        let reply = ask(&query("host1.example", A, &edns(4096, 1)), Transport::Udp).unwrap();
        assert_eq!(head(&reply), (QR | RD, 0, [1, 0, 0, 1]));
        // BADVERS is 16: its upper bits are in the record.
        assert_eq!(reply[reply.len() - 6], 1);
    }

    #[test]
    fn the_flag_do_is_copied_from_the_query() {
        let mut asked = query("host1.example", A, &edns(1232, 0));
        let flags = asked.len() - 4;
        asked[flags] = 0x80;
        let reply = ask(&asked, Transport::Udp).unwrap();
        assert_eq!(reply[reply.len() - 4..], [0x80, 0, 0, 0]);
    }

    #[test]
    fn a_response_to_an_invalid_query_has_edns_if_the_query_had() {
        let good = query("host1.example", A, &edns(1232, 0));
        let mut update = good.clone();
        update[2] |= 5 << 3;
        let mut longer = good.clone();
        longer.push(0);
        let mut two_questions = good.clone();
        two_questions[5] = 2;
        two_questions.splice(12..12, [0, 0, 1, 0, 1]);
        for (asked, code) in [(update, 4), (longer, 1), (two_questions, 1)] {
            let reply = ask(&asked, Transport::Udp).unwrap();
            assert_eq!(head(&reply).1, code);
            assert_eq!(head(&reply).2, [0, 0, 0, 1]);
            assert_eq!(reply[HEADER..], [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
        }
        let mut update = query("host1.example", A, &[]);
        update[2] |= 5 << 3;
        assert_eq!(head(&ask(&update, Transport::Udp).unwrap()).2, [0; 4]);
    }

    #[test]
    fn a_long_response_is_truncated_by_udp_and_whole_by_tcp() {
        let mut zone = Zone::synthetic(0);
        let (name, texts) = (wire("large.example").unwrap(), [b'x'; 100]);
        zone.extend_for_test(&name, 12, &texts);
        let mut reply = [0; LONGEST];
        let large = query("large.example", 16, &edns(u16::MAX, 0));
        let length = answer(&large, &zone, Transport::Udp, &mut reply).unwrap();
        assert!((1000..=UNFRAGMENTED).contains(&length));
        assert_eq!(head(&reply).0, AUTHORITATIVE | TC);
        let length = answer(
            &query("large.example", 16, &[]),
            &zone,
            Transport::Udp,
            &mut reply,
        )
        .unwrap();
        assert!(length <= WITHOUT_EDNS && head(&reply).0 & TC != 0);
        answer(&large, &zone, Transport::Tcp, &mut reply).unwrap();
        assert_eq!(head(&reply), (AUTHORITATIVE, 0, [1, 12, 0, 1]));
    }

    #[test]
    fn a_malformed_query_is_reported_if_its_header_can_be_read() {
        let good = query("host1.example", A, &edns(512, 0));
        for length in HEADER..good.len() {
            let reply = ask(&good[..length], Transport::Udp).unwrap();
            assert_eq!(head(&reply).1, 1, "{length} bytes");
        }
        assert!((0..HEADER).all(|length| ask(&good[..length], Transport::Udp).is_none()));
        let twice = [edns(512, 0), edns(512, 0)].concat();
        let mut both = query("host1.example", A, &twice);
        both[11] = 2;
        let mut longer = good.clone();
        longer.push(0);
        let mut elsewhere = good.clone();
        elsewhere[12] = 0xc0;
        let mut none = good.clone();
        none[5] = 0;
        for wrong in [both, longer, elsewhere, none] {
            let (flags, code, counts) = head(&ask(&wrong, Transport::Udp).unwrap());
            assert_eq!((flags, code), (QR | RD, 1));
            assert_eq!(counts[..3], [0; 3]);
        }
        let mut update = good.clone();
        update[2] |= 5 << 3;
        assert_eq!(head(&ask(&update, Transport::Udp).unwrap()).1, 4);
        let mut reply = good;
        reply[2] |= 0x80;
        assert_eq!(ask(&reply, Transport::Udp), None);
    }

    /// Reads a response to its end, and returns its number of records.
    fn records(reply: &[u8]) -> Option<usize> {
        let mut rest = Reader(reply);
        let [_, flags, questions, answers, authorities, additional] = rest.header()?;
        assert!(flags & QR != 0);
        if questions == 1 {
            rest.question(&mut heapless::Vec::new())?;
        }
        let all = answers + authorities + additional;
        rest.edns(all)?;
        rest.0.is_empty().then_some(all.into())
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered_by_a_whole_message_or_not_at_all(bytes: Vec<u8>) {
            if let Some(reply) = ask(&bytes, Transport::Udp) {
                prop_assert!(reply.len() <= WITHOUT_EDNS && records(&reply).is_some());
            }
        }

        #[test]
        fn a_query_with_other_bytes_in_it_is_answered_by_a_whole_message(
            host in 0..400_u32, kind in 0..300_u16, bytes: u16, version in 0..2_u8,
            changes: Vec<(usize, u8)>, is_tcp: bool,
        ) {
            let mut bytes = query(&format!("host{host}.example"), kind, &edns(bytes, version));
            for (place, byte) in changes {
                let place = place % bytes.len();
                bytes[place] = byte;
            }
            let transport = if is_tcp { Transport::Tcp } else { Transport::Udp };
            if let Some(reply) = ask(&bytes, transport) {
                prop_assert!(is_tcp || reply.len() <= UNFRAGMENTED);
                prop_assert!(records(&reply).is_some());
                prop_assert_eq!(&reply[..2], &bytes[..2]);
            }
        }
    }
}
