//! The query for the records of a name, and the data in its answer (RFC 1035).

use alloc::vec::Vec;

use crate::dns::HEADER;
use crate::zone::wire;

/// Makes a query for the records of a kind of a name, that asks for recursion. `None` if the name is
/// invalid.
pub fn query(number: u16, name: &str, kind: u16) -> Option<Vec<u8>> {
    let mut query = number.to_be_bytes().to_vec();
    query.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    query.extend_from_slice(&wire(name)?);
    query.extend_from_slice(&kind.to_be_bytes());
    query.extend_from_slice(&[0, 1]);
    Some(query)
}

/// Returns the data of the records that an answer has of the kind that was asked for. `None` if it is
/// no answer of this query, or an error.
pub fn data<'a>(answer: &'a [u8], query: &[u8]) -> Option<Vec<&'a [u8]>> {
    let is_own = answer.get(..2)? == query.get(..2)?
        && answer.get(HEADER..query.len())? == query.get(HEADER..)?;
    // A response, and no error.
    if !is_own || answer[2] & 0x80 == 0 || answer[3] & 0xf != 0 {
        return None;
    }
    let kind_and_class = query.last_chunk::<4>()?;
    let mut rest = &answer[query.len()..];
    let mut found = Vec::new();
    for _ in 0..u16::from_be_bytes([answer[6], answer[7]]) {
        let (head, after) = after_name(rest)?.split_first_chunk::<10>()?;
        let length = u16::from_be_bytes([head[8], head[9]]);
        let (data, after) = after.split_at_checked(length.into())?;
        if head.starts_with(kind_and_class) {
            found.push(data);
        }
        rest = after;
    }
    Some(found)
}

/// Returns what is behind the name that some bytes begin with.
fn after_name(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let (length, after) = bytes.split_first()?;
        match length {
            0 => return Some(after),
            1..64 => bytes = after.get(usize::from(*length)..)?,
            // The rest of the name is elsewhere.
            192.. => return after.get(1..),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dns::{LONGEST, Transport, answer};
    use crate::zone::{A, AAAA, Zone};

    #[test]
    fn the_records_of_the_kind_that_was_asked_for_are_found() {
        let zone = Zone::synthetic(300);
        let mut reply = [0; LONGEST];
        for (kind, wanted) in [(A, &[10, 0, 1, 2][..]), (AAAA, &[0x20, 1, 0xd, 0xb8])] {
            let query = query(7, "host258.example", kind).unwrap();
            let length = answer(&query, &zone, Transport::Udp, &mut reply).unwrap();
            let found = data(&reply[..length], &query).unwrap();
            assert!(
                found.len() == 1 && found[0].starts_with(wanted),
                "{found:?}"
            );
            for end in 0..length {
                assert_eq!(data(&reply[..end], &query), None, "{end}");
            }
            reply[0] = 1;
            assert_eq!(data(&reply[..length], &query), None);
        }
        let unknown = query(7, "host300.example", A).unwrap();
        let length = answer(&unknown, &zone, Transport::Udp, &mut reply).unwrap();
        assert_eq!(data(&reply[..length], &unknown), None);
        assert_eq!(query(7, "a..b", A), None);
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(end in proptest::collection::vec(any::<u8>(), 0..64)) {
            let query = query(0, "a", A).unwrap();
            let bytes = [&query[..2], &[0x80, 0, 0, 1, 0, 9], &query[8..], &end].concat();
            let _ = data(&bytes, &query);
        }
    }
}
