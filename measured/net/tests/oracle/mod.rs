//! The expected answers of a name server, according to the crate `domain` and RFC 1034.
//!
//! `domain` reads the zone file, the queries and the answers. The expected answer is found as
//! described in RFC 1034, section 4.3.2, in a plain list of records that is searched from end to
//! end. If names in records after the question are unreadable, the answer is not compared: a name
//! server need not read them.

use domain::base::iana::Class;
use domain::base::name::ToLabelIter;
use domain::base::rdata::ComposeRecordData;
use domain::base::{Message, Name, ParsedName, Rtype, ToName, Ttl};
use domain::rdata::AllRecordData;
use domain::zonefile::inplace::{Entry, Zonefile};
use tare_net::dns::{LONGEST, Transport, answer};
use tare_net::zone::Zone;

const TEXT: &str = include_str!("example.zone");
/// Maximum size of a UDP answer in bytes: with EDNS and without.
const DATAGRAM: usize = 1232;
const PLAIN: usize = 512;
const HEADER: usize = 12;
/// Maximum length of a chain of aliases.
const ALIASES: usize = 8;

const FINE: u16 = 0;
const MALFORMED: u16 = 1;
const NO_SUCH_NAME: u16 = 3;
const NOT_IMPLEMENTED: u16 = 4;
const REFUSED: u16 = 5;
const BAD_VERSION: u16 = 16;

type OwnedName = Name<Vec<u8>>;

/// A record in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Known {
    owner: OwnedName,
    kind: Rtype,
    ttl: Ttl,
    data: Vec<u8>,
}

impl Known {
    fn new(owner: &impl ToName, kind: Rtype, ttl: Ttl, data: &impl ComposeRecordData) -> Self {
        let mut bytes = Vec::new();
        data.compose_canonical_rdata(&mut bytes).expect("memory");
        Self {
            owner: owner.to_canonical_name(),
            kind,
            ttl,
            data: bytes,
        }
    }
}

/// The content of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Answer {
    code: u16,
    is_authoritative: bool,
    questions: u16,
    answers: Vec<Known>,
    authorities: Vec<Known>,
    /// The bit DO, if there is a record of EDNS.
    edns: Option<bool>,
}

/// The content of a query.
struct Query {
    name: OwnedName,
    kind: Rtype,
    class: Class,
    /// The maximum size of a UDP answer for the client, and version and flags.
    edns: Option<(usize, u32)>,
}

/// A query as read by `domain`.
enum Reading {
    Query(Query),
    /// It is unreadable, or RFC 1035 or 6891 forbids it.
    Malformed,
    /// A name after the question is unreadable.
    Unclear,
}

impl Reading {
    fn new(asked: &Message<&[u8]>) -> Self {
        let counts = asked.header_counts();
        let (Ok(question), Ok(mut additional)) = (asked.sole_question(), asked.additional()) else {
            return Self::Malformed;
        };
        let has_others = (counts.ancount(), counts.nscount()) != (0, 0);
        let bytes = HEADER + usize::from(question.qname().compose_len()) + 4;
        // Nothing before the question can be the target of a pointer in its name.
        if has_others || additional.pos() != bytes {
            return Self::Malformed;
        }
        let mut edns = None;
        let mut start = additional.pos();
        while let Some(record) = additional.next() {
            let Ok(record) = record else {
                return Self::Unclear;
            };
            if record.rtype() == Rtype::OPT {
                // Its name is one byte: the root, without a pointer.
                let bytes = 11 + usize::from(record.rdlen());
                if edns.is_some() || additional.pos() != start + bytes {
                    return Self::Malformed;
                }
                let bytes = usize::from(record.class().to_int());
                edns = Some((bytes, record.ttl().as_secs() & 0xff_ffff));
            }
            start = additional.pos();
        }
        if additional.pos() != asked.as_slice().len() {
            return Self::Malformed;
        }
        let name = question.qname().to_canonical_name();
        Self::Query(Query {
            name,
            kind: question.qtype(),
            class: question.qclass(),
            edns,
        })
    }
}

/// A name server, and its zone as read by `domain`.
pub struct Oracle {
    zone: Zone,
    origin: OwnedName,
    records: Vec<Known>,
}

impl Oracle {
    /// Reads the zone with both.
    ///
    /// # Panics
    ///
    /// Panics if one of them can't.
    pub fn new() -> Self {
        let entries = Zonefile::from(TEXT).map(|entry| match entry.expect("a record") {
            Entry::Record(it) => Known::new(it.owner(), it.rtype(), it.ttl(), it.data()),
            Entry::Include { .. } => panic!("a zone in one file"),
        });
        let mut records: Vec<_> = entries.collect();
        records.sort();
        // The first of a set has the smallest time to live, which applies to all (RFC 2181, section
        // 5.2).
        let is_set =
            |one: &Known, other: &Known| one.owner == other.owner && one.kind == other.kind;
        for set in records.chunk_by_mut(is_set) {
            let ttl = set[0].ttl;
            set.iter_mut().for_each(|record| record.ttl = ttl);
            set.sort();
        }
        records.dedup();
        let zone = Zone::read(TEXT).expect("a zone");
        let origin = Name::from_octets(zone.origin().to_vec()).expect("a name");
        Self {
            zone,
            origin,
            records,
        }
    }

    /// Returns the names of the records, in wire format.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.records.iter().map(|record| record.owner.as_slice())
    }

    /// Answers a query over both transports, and compares the answers with the expected ones.
    ///
    /// # Panics
    ///
    /// Panics where they differ.
    pub fn check(&self, query: &[u8]) {
        let (mut stream, mut datagram) = ([0; LONGEST], [0; DATAGRAM]);
        let by_tcp = answer(query, &self.zone, Transport::Tcp, &mut stream);
        let by_udp = answer(query, &self.zone, Transport::Udp, &mut datagram);
        let asked = Message::from_octets(query).ok();
        let Some(asked) = asked.filter(|asked| !asked.header().qr()) else {
            assert_eq!((by_tcp, by_udp), (None, None));
            return;
        };
        let stream = &stream[..by_tcp.expect("an answer by TCP")];
        let datagram = &datagram[..by_udp.expect("an answer by UDP")];
        let (whole, is_whole_cut) = read_answer(&asked, stream);
        let (part, is_cut) = read_answer(&asked, datagram);
        let mut wanted = Answer::default();
        let mut most = PLAIN;
        match Reading::new(&asked) {
            _ if asked.header().opcode().to_int() != 0 => wanted.code = NOT_IMPLEMENTED,
            Reading::Malformed => wanted.code = MALFORMED,
            Reading::Query(query) => {
                most = query
                    .edns
                    .map_or(PLAIN, |(bytes, _)| bytes.clamp(PLAIN, DATAGRAM));
                wanted = self.look_up(query);
            }
            Reading::Unclear => return,
        }
        if [NOT_IMPLEMENTED, MALFORMED].contains(&wanted.code) {
            // In a malformed query the position of the OPT record is ambiguous; but there must be
            // one.
            let has_any = query.windows(3).any(|bytes| bytes == [0, 0, 41]);
            assert!(has_any || whole.edns.is_none());
            wanted.edns = whole.edns;
        }
        assert!(!is_whole_cut && datagram.len() <= most);
        assert_eq!(whole, wanted, "by TCP");
        if is_cut {
            assert!(stream.len() > most, "cut, though there is room");
            assert!(
                part.answers
                    .iter()
                    .all(|record| wanted.answers.contains(record))
            );
            assert!(part.authorities.is_empty() || part.authorities == wanted.authorities);
            (wanted.answers, wanted.authorities) = (part.answers.clone(), part.authorities.clone());
        }
        assert_eq!(part, wanted, "by UDP");
    }

    /// Returns the expected answer.
    fn look_up(&self, query: Query) -> Answer {
        let mut said = Answer {
            questions: 1,
            edns: query.edns.map(|(_, flags)| flags & 0x8000 != 0),
            ..Answer::default()
        };
        let Query {
            mut name,
            kind,
            class,
            edns,
        } = query;
        if edns.is_some_and(|(_, flags)| flags >> 16 > 0) {
            said.code = BAD_VERSION;
            return said;
        }
        let is_transfer = [Rtype::AXFR, Rtype::IXFR].contains(&kind);
        if is_transfer || ![Class::IN, Class::ANY].contains(&class) || !name.ends_with(&self.origin)
        {
            said.code = REFUSED;
            return said;
        }
        said.is_authoritative = true;
        for _ in 0..ALIASES {
            let owned = self.records.iter().filter(|record| record.owner == name);
            let meant = owned
                .clone()
                .filter(|record| [record.kind, Rtype::ANY].contains(&kind));
            let before = said.answers.len();
            said.answers.extend(meant.cloned());
            if said.answers.len() > before {
                break;
            }
            let Some(alias) = owned.clone().find(|record| record.kind == Rtype::CNAME) else {
                // A name exists if one at or below it has records.
                let exists = self
                    .records
                    .iter()
                    .any(|record| record.owner.ends_with(&name));
                said.code = if exists { FINE } else { NO_SUCH_NAME };
                said.authorities.push(self.start());
                break;
            };
            said.answers.push(alias.clone());
            name = Name::from_octets(alias.data.clone()).expect("a name");
            if !name.ends_with(&self.origin) {
                break;
            }
        }
        said.answers.sort();
        said
    }

    /// Returns the SOA record, for a negative answer (RFC 2308, section 3).
    fn start(&self) -> Known {
        let start = self
            .records
            .iter()
            .find(|record| record.kind == Rtype::SOA)
            .expect("an SOA record");
        let minimum = u32::from_be_bytes(*start.data.last_chunk().expect("a number"));
        Known {
            ttl: start.ttl.min(Ttl::from_secs(minimum)),
            ..start.clone()
        }
    }
}

/// Reads an answer to its end, and returns whether it is truncated.
fn read_answer(asked: &Message<&[u8]>, bytes: &[u8]) -> (Answer, bool) {
    let reply = Message::from_octets(bytes).expect("a header");
    let (head, asked_head) = (reply.header(), asked.header());
    assert!(head.qr() && !head.ra() && !head.z() && !head.ad() && !head.cd());
    assert_eq!(
        (head.id(), head.opcode(), head.rd()),
        (asked_head.id(), asked_head.opcode(), asked_head.rd())
    );
    let (question, answers, authorities, mut additional) = reply.sections().expect("sections");
    let known = |record: Result<domain::base::ParsedRecord<'_, &[u8]>, _>| {
        let record = record.expect("a record");
        assert_eq!(record.class(), Class::IN);
        let it = record
            .to_any_record::<AllRecordData<_, ParsedName<_>>>()
            .expect("data of its type");
        Known::new(it.owner(), it.rtype(), it.ttl(), it.data())
    };
    let mut answers: Vec<_> = answers.map(known).collect();
    answers.sort();
    let opt = reply.opt();
    if let Some(opt) = &opt {
        assert_eq!(
            (usize::from(opt.udp_payload_size()), opt.version()),
            (DATAGRAM, 0)
        );
    }
    assert_eq!(additional.by_ref().count(), opt.iter().len());
    assert_eq!(additional.pos(), bytes.len());
    let said = Answer {
        code: opt
            .as_ref()
            .map_or(head.rcode().to_int().into(), |opt| opt.rcode(head).to_int()),
        is_authoritative: head.aa(),
        questions: reply.header_counts().qdcount(),
        answers,
        authorities: authorities.map(known).collect(),
        edns: opt.map(|opt| opt.dnssec_ok()),
    };
    // The question is repeated unchanged.
    for question in question {
        let end = HEADER + usize::from(question.expect("a question").qname().compose_len()) + 4;
        assert_eq!(bytes[HEADER..end], asked.as_slice()[HEADER..end]);
    }
    (said, head.tc())
}
