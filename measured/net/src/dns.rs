//! An authoritative name server: [`answer`] turns a query into its answer, two loops do so with datagrams and connections.
//!
//! It follows RFC 1034 and 1035, 2308 (names that are not there), 2181 (one answer's records have one time to live), 6891 (EDNS), 7766 (TCP)
//! and 8906 (what must be answered at all). The answers fit into 1,232 bytes where that is possible, so that they are in one packet; else
//! they are cut (TC), and the client asks again by TCP.

use edge_nal::{Close, TcpShutdown, UdpReceive, UdpSend};
use embassy_futures::select::select;
use embedded_io_async::{Read, Write};

use crate::zone::{CNAME, LONGEST_LABEL, LONGEST_NAME, Record, SOA, Zone};
use crate::{Accept, Clock, unless_silent};

/// The port of the service.
pub const PORT: u16 = 53;
/// The longest message, in bytes, that is taken or made here; by UDP what is made is shorter.
pub const LONGEST: usize = 4096;

/// How long a client may take to close what is closed here, in seconds: the last answer may have to be sent again.
const CLOSING_SECONDS: u32 = 5;

pub(crate) const HEADER: usize = 12;
/// The longest answer to who tells nothing else (RFC 1035, section 4.2.1).
const PLAIN: usize = 512;
/// The longest answer by UDP that is in one packet nearly everywhere (DNS flag day 2020).
const UNFRAGMENTED: usize = 1232;
/// How many names may stand for one another in a row.
const MOST_ALIASES: usize = 8;

const IS_ANSWER: u16 = 1 << 15;
const OPCODE: u16 = 0xf << 11;
const IS_AUTHORITATIVE: u16 = 1 << 10;
const IS_CUT: u16 = 1 << 9;
const WANTS_RECURSION: u16 = 1 << 8;

const OPT: u16 = 41;
/// The bit DO among its flags.
const WANTS_DNSSEC: u16 = 1 << 15;
/// Types that are asked for, and that no record has: transfers of zones.
const TRANSFERS: [u16; 2] = [251, 252];
const ANY: u16 = 255;
const INTERNET: u16 = 1;

/// What an answer says of the question (RFC 1035, section 4.1.1; RFC 6891, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    Fine = 0,
    Malformed = 1,
    NoSuchName = 3,
    NotImplemented = 4,
    Refused = 5,
    BadVersion = 16,
}

/// How a query came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// As a datagram.
    Udp,
    /// Over a connection.
    Tcp,
}

/// What is asked: a name, in lower case, and as it was written.
struct Question<'a> {
    name: heapless::Vec<u8, LONGEST_NAME>,
    kind: u16,
    class: u16,
    bytes: &'a [u8],
}

/// What a client tells of itself (RFC 6891, section 6.1.2).
#[derive(Clone, Copy)]
struct Edns {
    bytes: u16,
    version: u8,
    /// Whether it understands DNSSEC, in the bit DO.
    wants_dnssec: bool,
}

/// Answers a query, and returns the length of the answer. `None` for what must not be answered: answers, and what is shorter than a
/// header. `reply` holds at least 512 bytes.
pub fn answer(query: &[u8], zone: &Zone, transport: Transport, reply: &mut [u8]) -> Option<usize> {
    let mut rest = Reader(query);
    let [id, flags, questions, answers, authorities, additional] = rest.header()?;
    if flags & IS_ANSWER != 0 {
        return None;
    }
    let mut writer = Writer::new(reply, PLAIN, id, flags & (OPCODE | WANTS_RECURSION));
    if flags & OPCODE != 0 {
        return Some(writer.finish(Code::NotImplemented, find_edns(query)));
    }
    let read = match (questions, answers, authorities) {
        (1, 0, 0) => rest.question().zip(rest.edns(additional)),
        _ => None,
    };
    let Some((question, edns)) = read.filter(|_| rest.0.is_empty()) else {
        return Some(writer.finish(Code::Malformed, find_edns(query)));
    };
    writer.most = match (transport, edns) {
        (Transport::Tcp, _) => usize::MAX,
        (Transport::Udp, Some(edns)) => usize::from(edns.bytes).clamp(PLAIN, UNFRAGMENTED),
        (Transport::Udp, None) => PLAIN,
    };
    writer.most = writer.most.min(writer.reply.len()) - edns.map_or(0, |_| OWN_OPT);
    writer.question(question.bytes);
    let code = match edns {
        Some(Edns { version: 1.., .. }) => Code::BadVersion,
        _ => find(&question, zone, &mut writer),
    };
    Some(writer.finish(code, edns))
}

/// Finds what a client tells of itself in a query that can't be answered, as far as it can be read (RFC 6891, section 6.1.1).
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
fn find(question: &Question<'_>, zone: &Zone, writer: &mut Writer<'_>) -> Code {
    let is_here = [INTERNET, ANY].contains(&question.class) && zone.has(&question.name);
    if !is_here || TRANSFERS.contains(&question.kind) {
        return Code::Refused;
    }
    writer.flags |= IS_AUTHORITATIVE;
    let mut name = question.name.as_slice();
    // The first is where the question has it.
    let mut at = Name::At(HEADER as u16);
    for _ in 0..MOST_ALIASES {
        let Some(records) = zone.records(name) else {
            writer.start_of_authority(zone);
            // What an alias stands for is another question's matter (RFC 2308, section 2.1).
            return Code::NoSuchName;
        };
        let is_meant = |record: &Record<'_>| question.kind == record.kind || question.kind == ANY;
        let mut meant = records.clone().filter(is_meant).peekable();
        if meant.peek().is_some() {
            meant.for_each(|record| writer.answer(at, &record));
            return Code::Fine;
        }
        let Some(alias) = records.clone().find(|record| record.kind == CNAME) else {
            writer.start_of_authority(zone);
            return Code::Fine;
        };
        writer.answer(at, &alias);
        (name, at) = (alias.data, Name::Whole(alias.data));
        if !zone.has(name) {
            return Code::Fine;
        }
    }
    Code::Fine
}

/// The bytes of a message that have not been read.
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

    /// Reads the one question. Its name has nothing before it to refer to, so nothing in it is compressed.
    fn question(&mut self) -> Option<Question<'a>> {
        let start = self.0;
        let mut name = heapless::Vec::new();
        loop {
            let length = *self.take(1)?.first()?;
            if usize::from(length) > LONGEST_LABEL {
                return None;
            }
            name.push(length).ok()?;
            if length == 0 {
                break;
            }
            for byte in self.take(length.into())? {
                name.push(byte.to_ascii_lowercase()).ok()?;
            }
        }
        let (kind, class) = (self.number()?, self.number()?);
        let bytes = &start[..start.len() - self.0.len()];
        Some(Question {
            name,
            kind,
            class,
            bytes,
        })
    }

    /// Reads the records behind the question, among which is at most one of EDNS. `None` if they are malformed.
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

    /// Reads a record, and returns whether its name is the root's, and what it says if it is one of EDNS.
    fn record(&mut self) -> Option<(bool, Option<Edns>)> {
        let is_root = self.skip_name()?;
        let (kind, bytes) = (self.number()?, self.number()?);
        let (version, flags) = (self.number()? as u8, self.number()?);
        let length = self.number()?;
        self.take(length.into())?;
        let edns = Edns {
            bytes,
            version,
            wants_dnssec: flags & WANTS_DNSSEC != 0,
        };
        Some((is_root, (kind == OPT).then_some(edns)))
    }

    /// Passes over a name, and says whether it is the root's.
    fn skip_name(&mut self) -> Option<bool> {
        let mut is_root = true;
        loop {
            match *self.take(1)?.first()? {
                0 => return Some(is_root),
                // The rest is elsewhere.
                0xc0.. => return self.take(1).map(|_| false),
                length if usize::from(length) <= LONGEST_LABEL => self.take(length.into())?,
                _ => return None,
            };
            is_root = false;
        }
    }
}

/// A name in an answer.
#[derive(Clone, Copy)]
enum Name<'a> {
    /// The one at this offset of the message.
    At(u16),
    /// Written out.
    Whole(&'a [u8]),
}

/// The bytes of the record of EDNS that is sent.
pub(crate) const OWN_OPT: usize = 11;

/// An answer that is being written.
struct Writer<'a> {
    reply: &'a mut [u8],
    used: usize,
    /// How long it may be, without the record of EDNS.
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
            flags: flags | IS_ANSWER,
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

    /// Repeats the question as it was written: some clients hide a secret in the case of its letters. There is room for the longest.
    fn question(&mut self, bytes: &[u8]) {
        self.put(bytes);
        self.questions = 1;
    }

    /// Writes a record, and says whether there was room.
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
        self.put(&INTERNET.to_be_bytes());
        self.put(&record.ttl.to_be_bytes());
        self.put(&(record.data.len() as u16).to_be_bytes());
        self.put(record.data);
        true
    }

    /// Writes a record that was asked for; where it does not fit, the answer is cut.
    fn answer(&mut self, name: Name<'_>, record: &Record<'_>) {
        match self.record(name, record) {
            true => self.answers += 1,
            false => self.flags |= IS_CUT,
        }
    }

    /// Tells until when there is nothing: as long as the start of authority says, if that is shorter (RFC 2308, section 3).
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
            false => self.flags |= IS_CUT,
        }
    }

    /// Completes the answer, and returns its length.
    fn finish(mut self, code: Code, edns: Option<Edns>) -> usize {
        let code = code as u16;
        if let Some(edns) = edns {
            // DO comes back as it was (RFC 3225, section 3).
            let flags = if edns.wants_dnssec { WANTS_DNSSEC } else { 0 };
            // The root's name, the type, how long a query may be, the upper bits of the code, version 0, flags, no options.
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

/// Answers datagrams, for ever. What can't be sent is lost, as datagrams are.
pub async fn udp(mut socket: impl UdpReceive + UdpSend, zone: &Zone) -> ! {
    // A query may be longer than any answer.
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

/// Accepts connections one after the other and answers each one's queries, for ever. So many of these at once serve so many connections.
pub async fn tcp(listener: &impl Accept, zone: &Zone, clock: impl Clock) -> ! {
    loop {
        match listener.accept().await {
            Some(mut connection) => {
                while serve(&mut connection, zone, &clock).await.is_some() {}
                // Whether the other side is still there, or not.
                let _ = select(connection.close(Close::Both), clock.sleep(CLOSING_SECONDS)).await;
            }
            None => clock.sleep(1).await,
        }
    }
}

/// Answers one query, in front of which its length stands. `None` if there was none.
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

    /// Makes a query with its id, one question, and what is behind it.
    fn query(name: &str, kind: u16, behind: &[u8]) -> Vec<u8> {
        let additional = u8::from(!behind.is_empty());
        let mut query = Vec::from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, additional]);
        query.extend(wire(name).unwrap());
        query.extend(kind.to_be_bytes());
        query.extend([0, 1]);
        query.extend(behind);
        query
    }

    /// Makes the record of EDNS with a length and a version.
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

    /// Returns flags without the code, the code, and how many questions, answers, authorities and additional records there are.
    fn head(reply: &[u8]) -> (u16, u16, [u8; 4]) {
        let flags = u16::from_be_bytes([reply[2], reply[3]]);
        (
            flags & !0xf,
            flags & 0xf,
            [reply[5], reply[7], reply[9], reply[11]],
        )
    }

    const AUTHORITATIVE: u16 = IS_ANSWER | IS_AUTHORITATIVE | WANTS_RECURSION;

    #[test]
    fn an_address_is_answered_behind_the_question_as_it_was_written() {
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
    fn what_is_not_there_comes_with_the_start_of_authority() {
        for (name, kind, code) in [
            ("host300.example", A, 3),
            ("host1.example", NS, 0),
            ("a.b.example", A, 3),
        ] {
            let reply = ask(&query(name, kind, &[]), Transport::Udp).unwrap();
            assert_eq!(head(&reply), (AUTHORITATIVE, code, [1, 0, 1, 0]), "{name}");
            // It may be kept for a minute.
            let at = query(name, kind, &[]).len() + 9 + 4;
            assert_eq!(reply[at..at + 4], [0, 0, 0, 60]);
        }
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        for (name, kind) in [
            ("example.org", A),
            ("org", A),
            ("host1.example", TRANSFERS[1]),
        ] {
            let reply = ask(&query(name, kind, &[]), Transport::Udp).unwrap();
            assert_eq!(
                head(&reply),
                (IS_ANSWER | WANTS_RECURSION, 5, [1, 0, 0, 0]),
                "{name}"
            );
        }
        let mut chaos = query("host1.example", A, &[]);
        *chaos.last_mut().unwrap() = 3;
        assert_eq!(head(&ask(&chaos, Transport::Udp).unwrap()).1, 5);
    }

    #[test]
    fn edns_is_answered_by_its_own_record_and_another_version_is_none() {
        let reply = ask(&query("host1.example", A, &edns(4096, 0)), Transport::Udp).unwrap();
        assert_eq!(head(&reply), (AUTHORITATIVE, 0, [1, 1, 0, 1]));
        assert_eq!(
            reply[reply.len() - 11..],
            [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]
        );
        let reply = ask(&query("host1.example", A, &edns(4096, 1)), Transport::Udp).unwrap();
        assert_eq!(head(&reply), (IS_ANSWER | WANTS_RECURSION, 0, [1, 0, 0, 1]));
        // BADVERS is 16: its upper bits are in the record.
        assert_eq!(reply[reply.len() - 6], 1);
    }

    #[test]
    fn dnssec_is_wanted_in_the_answer_as_in_the_query() {
        let mut asked = query("host1.example", A, &edns(1232, 0));
        let flags = asked.len() - 4;
        asked[flags] = 0x80;
        let reply = ask(&asked, Transport::Udp).unwrap();
        assert_eq!(reply[reply.len() - 4..], [0x80, 0, 0, 0]);
    }

    #[test]
    fn what_is_not_understood_has_edns_if_the_query_had() {
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
    fn what_does_not_fit_is_cut_by_udp_and_whole_by_tcp() {
        let mut zone = Zone::synthetic(0);
        let (name, texts) = (wire("large.example").unwrap(), [b'x'; 100]);
        zone.extend_for_test(&name, 12, &texts);
        let mut reply = [0; LONGEST];
        let large = query("large.example", 16, &edns(u16::MAX, 0));
        let length = answer(&large, &zone, Transport::Udp, &mut reply).unwrap();
        assert!((1000..=UNFRAGMENTED).contains(&length));
        assert_eq!(head(&reply).0, AUTHORITATIVE | IS_CUT);
        let length = answer(
            &query("large.example", 16, &[]),
            &zone,
            Transport::Udp,
            &mut reply,
        )
        .unwrap();
        assert!(length <= PLAIN && head(&reply).0 & IS_CUT != 0);
        answer(&large, &zone, Transport::Tcp, &mut reply).unwrap();
        assert_eq!(head(&reply), (AUTHORITATIVE, 0, [1, 12, 0, 1]));
    }

    #[test]
    fn what_is_malformed_is_told_if_its_header_can_be_read() {
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
            assert_eq!((flags, code), (IS_ANSWER | WANTS_RECURSION, 1));
            assert_eq!(counts[..3], [0; 3]);
        }
        let mut update = good.clone();
        update[2] |= 5 << 3;
        assert_eq!(head(&ask(&update, Transport::Udp).unwrap()).1, 4);
        let mut reply = good;
        reply[2] |= 0x80;
        assert_eq!(ask(&reply, Transport::Udp), None);
    }

    /// Reads an answer to its end, and returns how many records it has.
    fn records(reply: &[u8]) -> Option<usize> {
        let mut rest = Reader(reply);
        let [_, flags, questions, answers, authorities, additional] = rest.header()?;
        assert!(flags & IS_ANSWER != 0);
        if questions == 1 {
            rest.question()?;
        }
        let all = answers + authorities + additional;
        rest.edns(all)?;
        rest.0.is_empty().then_some(all.into())
    }

    proptest! {
        #[test]
        fn whatever_comes_is_answered_by_a_whole_message_or_not_at_all(bytes: Vec<u8>) {
            if let Some(reply) = ask(&bytes, Transport::Udp) {
                prop_assert!(reply.len() <= PLAIN && records(&reply).is_some());
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
