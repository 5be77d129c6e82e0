//! A zone as a zone file, which other name servers read: one record a line, without directives.

use alloc::vec::Vec;
use core::fmt;
use core::iter;
use core::net::{Ipv4Addr, Ipv6Addr};

use super::{A, AAAA, NS, Record, SOA, Zone, parent};

impl fmt::Display for Zone {
    /// Writes the SOA record first, as readers want it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |is_origin: bool| {
            let names = self.names.iter();
            names.filter(move |(start, _)| (self.name_at(*start) == self.origin) == is_origin)
        };
        for place in of(true).chain(of(false)) {
            let name = Name(self.name_at(place.0));
            let mut records: Vec<Record<'_>> = self.records_at(*place).collect();
            records.sort_by_key(|record| record.kind != SOA);
            for record in records {
                writeln!(f, "{name} {} IN {}", record.ttl, Data(record))?;
            }
        }
        Ok(())
    }
}

/// A name in wire format, as text.
struct Name<'a>(&'a [u8]);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((length @ 1.., after)) = rest.split_first() {
            let (label, next) = after.split_at(usize::from(*length).min(after.len()));
            for byte in label {
                match byte {
                    b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' => write!(f, "{}", char::from(*byte))?,
                    _ => write!(f, "\\{byte:03}")?,
                }
            }
            f.write_str(".")?;
            rest = next;
        }
        if self.0.len() == 1 {
            f.write_str(".")
        } else {
            Ok(())
        }
    }
}

/// The type and the data of a record: those of synthetic zones in their own form, others in that
/// of RFC 3597.
struct Data<'a>(Record<'a>);

impl fmt::Display for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { kind, data, .. } = self.0;
        match (kind, data.first_chunk(), data.first_chunk()) {
            (A, Some(four), _) => write!(f, "A {}", Ipv4Addr::from_octets(*four)),
            (AAAA, _, Some(six)) => write!(f, "AAAA {}", Ipv6Addr::from_octets(*six)),
            (NS, ..) => write!(f, "NS {}", Name(data)),
            (SOA, ..) => {
                let ends = |rest: &&[u8]| rest.first().is_none_or(|length| *length == 0);
                let end = iter::successors(Some(data), |rest| Some(parent(rest))).find(ends);
                let mailbox = end.and_then(|end| end.get(1..)).unwrap_or_default();
                write!(f, "SOA {} {}", Name(data), Name(mailbox))?;
                let numbers: Option<&[u8; 20]> = data.last_chunk();
                let numbers = numbers.map(|bytes| bytes.as_chunks().0).unwrap_or_default();
                let mut numbers = numbers.iter().map(|number| u32::from_be_bytes(*number));
                numbers.try_for_each(|number| write!(f, " {number}"))
            }
            _ => {
                write!(f, "TYPE{kind} \\# {} ", data.len())?;
                data.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_synthetic_zone_is_read_back_from_its_file() {
        let zone = Zone::synthetic(300);
        let text = zone.to_string();
        for line in [
            "host258.example. 3600 IN A 10.0.1.2",
            "host258.example. 3600 IN AAAA 2001:db8::102",
            "example. 3600 IN NS ns.example.",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}");
        }
        let soa = "example. 3600 IN SOA ns.example. hostmaster.example. 1 3600 600 86400 60\n";
        assert!(text.starts_with(soa));
        let again = Zone::read(&text).unwrap().to_string();
        assert!(again == text, "{again:.1000}");
    }
}
