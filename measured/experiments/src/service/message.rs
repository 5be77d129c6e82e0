//! The requests of a client, and how their answers are checked.

use std::io::Write;
use std::net::Ipv4Addr;
use std::ops::Range;

use super::http;
use crate::service::Protocol;

/// The longest message that is sent or read, in bytes: any right answer is shorter.
pub const LONGEST: usize = 1024;

/// The types of ICMP's echo messages, and where their number is (RFC 792).
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const NUMBER: Range<usize> = 6..8;
/// Bytes of a message's header (RFC 1035, section 4.1.1).
const HEADER: usize = 12;
/// The flags of an authoritative answer (QR, AA) to a standard query without RD: whole (no TC), with
/// RCODE 0, NOERROR.
const ANSWER: u16 = (1 << 15) | (1 << 10);
/// The time to live of the zone's records, in seconds.
const TTL: [u8; 4] = 3600_u32.to_be_bytes();
/// Type A, class IN.
const A_IN: [u8; 4] = [0, 1, 0, 1];
/// The first address of the zone.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);

/// Returns the address of a host of the synthetic zone.
pub fn address(host: u64) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST.to_bits() + host as u32)
}

/// A message that is made in place.
pub struct Message {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Message {
    /// Makes the request of a number for a host.
    pub fn request(protocol: Protocol, id: u16, host: u64) -> Self {
        let mut bytes = [0; LONGEST];
        bytes[..2].copy_from_slice(&id.to_be_bytes());
        let length = match protocol {
            Protocol::Dns => {
                // One question.
                bytes[5] = 1;
                let mut rest = &mut bytes[HEADER + 1..];
                // There is room for any host.
                let _ = write!(rest, "host{host}");
                let label = LONGEST - HEADER - 1 - rest.len();
                let _ = rest.write_all(b"\x07example\0");
                let _ = rest.write_all(&A_IN);
                let left = rest.len();
                bytes[HEADER] = label as u8;
                LONGEST - left
            }
            Protocol::Echo => {
                bytes[2..10].copy_from_slice(&host.to_be_bytes());
                32
            }
            Protocol::Ping => {
                // Code and checksum are the kernel's, as is the identifier.
                bytes[..2].copy_from_slice(&[ECHO_REQUEST, 0]);
                bytes[NUMBER].copy_from_slice(&id.to_be_bytes());
                bytes[NUMBER.end..][..8].copy_from_slice(&host.to_be_bytes());
                32
            }
            Protocol::Http => {
                bytes[..http::REQUEST.len()].copy_from_slice(http::REQUEST);
                http::REQUEST.len()
            }
        };
        Self { bytes, length }
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Returns whether an answer is right.
    pub fn is_answered_by(&self, protocol: Protocol, host: u64, answer: &[u8]) -> bool {
        let request = self.bytes();
        match protocol {
            Protocol::Echo => answer == request,
            Protocol::Ping => {
                answer.first() == Some(&ECHO_REPLY)
                    && answer.get(NUMBER.start..) == request.get(NUMBER.start..)
            }
            Protocol::Http => http::is_right(answer),
            Protocol::Dns => {
                let question = &request[HEADER..];
                answer.len() > request.len()
                    && answer[..2] == request[..2]
                    && answer[2..4] == ANSWER.to_be_bytes()
                    // One question, and one record that answers it.
                    && answer[4..8] == [0, 1, 0, 1]
                    && answer[HEADER..].starts_with(question)
                    && first_address(&answer[HEADER + question.len()..], question)
                        == Some(address(host))
            }
        }
    }
}

/// Returns the number of a message, as it stands in its first bytes; that of a ping behind its
/// identifier.
pub fn number(protocol: Protocol, message: &[u8]) -> Option<u16> {
    let from = match protocol {
        Protocol::Ping => NUMBER.start,
        _ => 0,
    };
    Some(u16::from_be_bytes(*message.get(from..)?.first_chunk()?))
}

/// Returns the address in the first record behind a question, if it is one of the same name: by a
/// pointer to it or written out.
fn first_address(records: &[u8], question: &[u8]) -> Option<Ipv4Addr> {
    let name = &question[..question.len() - A_IN.len()];
    let rest = records
        .strip_prefix(&[0xc0, HEADER as u8])
        .or_else(|| records.strip_prefix(name))?;
    let rest = rest.strip_prefix(&A_IN)?;
    let data = rest.strip_prefix(&TTL)?.strip_prefix(&[0, 4])?;
    Some((*data.first_chunk::<4>()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the answer to a request.
    fn answer(request: &Message, address: [u8; 4]) -> Vec<u8> {
        let mut answer = request.bytes().to_vec();
        answer[2] = 0x84;
        answer[7] = 1;
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4]);
        answer.extend(address);
        answer
    }

    #[test]
    fn a_request_asks_for_the_address_of_its_host() {
        let request = Message::request(Protocol::Dns, 0x1234, 17);
        let wanted = b"\x12\x34\0\0\0\x01\0\0\0\0\0\0\x06host17\x07example\0\0\x01\0\x01";
        assert_eq!(request.bytes(), wanted);
        assert_eq!(number(Protocol::Dns, request.bytes()), Some(0x1234));
        assert_eq!(number(Protocol::Dns, &[1]), None);
    }

    #[test]
    fn a_ping_is_answered_by_its_reply() {
        let request = Message::request(Protocol::Ping, 0x1234, 17);
        let mut reply = request.bytes().to_vec();
        // The kernel's parts: checksum and identifier.
        reply[..6].copy_from_slice(&[0, 0, 1, 2, 3, 4]);
        assert_eq!(number(Protocol::Ping, &reply), Some(0x1234));
        assert!(request.is_answered_by(Protocol::Ping, 17, &reply));
        for place in [0, 6, 7, 15, reply.len() - 1] {
            let mut other = reply.clone();
            other[place] ^= 8;
            assert!(
                !request.is_answered_by(Protocol::Ping, 17, &other),
                "{place}"
            );
        }
        assert!(!request.is_answered_by(Protocol::Ping, 17, &reply[..reply.len() - 1]));
        assert_eq!(number(Protocol::Ping, &[]), None);
    }

    #[test]
    fn an_answer_is_right_if_everything_in_it_is() {
        let request = Message::request(Protocol::Dns, 7, 258);
        let right = answer(&request, [10, 0, 1, 2]);
        let is_right = |answer: &[u8]| request.is_answered_by(Protocol::Dns, 258, answer);
        assert!(is_right(&right));
        let with = |place: usize, byte: u8| {
            let mut other = right.clone();
            other[place] = byte;
            other
        };
        let last = right.len() - 1;
        for (place, byte) in [
            (1, 8),
            (2, 0x04),
            (2, 0x80),
            (2, 0x85),
            (2, 0x86),
            (3, 0x80),
            (3, 3),
            (5, 2),
            (7, 0),
            (7, 2),
            (14, b'H'),
            (last, 3),
            (last - 4, 5),
            (last - 6, 0),
            (last - 10, 3),
            (last - 12, 28),
        ] {
            assert!(!is_right(&with(place, byte)), "{place}: {byte}");
        }
        for length in 0..right.len() {
            assert!(!is_right(&right[..length]), "{length}");
        }
        // A name that is written out again is the same name.
        let mut long = request.bytes().to_vec();
        long[2] = 0x84;
        long[7] = 1;
        let name = request.bytes()[12..].to_vec();
        long.extend(&name[..name.len() - 4]);
        long.extend([0, 1, 0, 1, 0, 0, 14, 16, 0, 4, 10, 0, 1, 2]);
        assert!(is_right(&long));
    }

    #[test]
    fn an_echo_is_right_if_it_is_the_same() {
        let request = Message::request(Protocol::Echo, 7, 1);
        let mut answer = request.bytes().to_vec();
        assert!(request.is_answered_by(Protocol::Echo, 1, &answer));
        answer.push(0);
        assert!(!request.is_answered_by(Protocol::Echo, 1, &answer));
    }
}
