use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::zone::wire;

/// What most files begin with.
const HEAD: &str = "$ORIGIN example.\n$TTL 1h\n@ SOA ns hostmaster 1 2 3 4 60\n";

/// A file with everything in it.
const WHOLE: &str = r#"; A zone.
$origin Example.
$TTL 1h30m
@       IN SOA  ns Host\.Master.example. ( 4294967295 ; serial
                1h 10M
                1d 60 )
                NS      ns
        7200    MX      10 Mail
WWW     5 IN    A       192.0.2.1
        IN 5    AAAA    2001:db8::1
text            TXT     "a; \"b\" (c)" d\ e\009""
alias           CNAME   www
other           CNAME   www.example.org.
$ORIGIN b.c.Example.
deep    ( A     192.0.2.2 ) ; alone
        TYPE65280 \# 3 0a0B 0c
www.example.    A       192.0.2.0
\@.\065. example. PTR
"#;

fn zone(rest: &str) -> Result<Zone, String> {
    let text = format!("{HEAD}{rest}");
    Zone::read(&text).map_err(|bad| bad.to_string())
}

/// Returns the types, times to live and data of a name.
fn records(zone: &Zone, name: &str) -> Option<Vec<(u16, u32, Vec<u8>)>> {
    let name = wire(name)?;
    let records = zone.records(&name)?;
    Some(
        records
            .map(|record| (record.kind, record.ttl, record.data.to_vec()))
            .collect(),
    )
}

#[test]
fn every_way_to_write_a_record_is_read() {
    let text = WHOLE.rsplit_once("\\@").unwrap().0;
    let zone = Zone::read(text).unwrap();
    assert_eq!(zone.origin(), wire("example").unwrap());
    let soa = [
        b"\x02ns\x07example\x00\x0bhost.master\x07example\x00".as_slice(),
        &[
            255, 255, 255, 255, 0, 0, 14, 16, 0, 0, 2, 88, 0, 1, 81, 128, 0, 0, 0, 60,
        ],
    ];
    let mail = b"\x00\x0a\x04mail\x07example\x00".to_vec();
    let origin = [
        (NS, 5400, wire("ns.example").unwrap()),
        (SOA, 5400, soa.concat()),
        (MX, 7200, mail),
    ];
    assert_eq!(records(&zone, "example").unwrap(), origin);
    let six = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)
        .octets()
        .to_vec();
    // The other address of the name stands at the end, with another time to live.
    let addresses = [
        (A, 5, [192, 0, 2, 0].to_vec()),
        (A, 5, [192, 0, 2, 1].to_vec()),
        (AAAA, 5, six),
    ];
    assert_eq!(records(&zone, "www.example").unwrap(), addresses);
    let text = b"\x0aa; \"b\" (c)\x04d e\x09\x00".to_vec();
    assert_eq!(records(&zone, "text.example").unwrap(), [(TXT, 5400, text)]);
    assert_eq!(
        records(&zone, "alias.example").unwrap(),
        [(CNAME, 5400, wire("www.example").unwrap())]
    );
    assert_eq!(
        records(&zone, "other.example").unwrap(),
        [(CNAME, 5400, wire("www.example.org").unwrap())]
    );
    let deep = [
        (A, 5400, [192, 0, 2, 2].to_vec()),
        (65280, 5400, [10, 11, 12].to_vec()),
    ];
    assert_eq!(records(&zone, "deep.b.c.example").unwrap(), deep);
    for above in ["b.c.example", "c.example"] {
        assert_eq!(records(&zone, above), Some(Vec::new()));
    }
    for other in ["a.c.example", "ns.example", "org"] {
        assert_eq!(records(&zone, other), None);
    }
    assert_eq!(zone.names.len(), 8);
    assert!(
        zone.names
            .is_sorted_by_key(|(start, _)| zone.name_at(*start))
    );
}

#[test]
fn equal_records_count_once_and_the_smallest_time_to_live_counts() {
    let zone =
        zone("a 300 A 192.0.2.1\nb A 192.0.2.3\nA 200 A 192.0.2.2\na 100 A 192.0.2.1\na AAAA ::\n")
            .unwrap();
    let [one, two] = [1, 2].map(|last| (A, 100, Vec::from([192, 0, 2, last])));
    assert_eq!(
        records(&zone, "a.example").unwrap(),
        [one, two, (AAAA, 3600, Vec::from([0; 16]))]
    );
}

#[test]
fn the_last_time_to_live_counts_only_without_one_for_all() {
    let text = "example. 5 SOA . . 1 2 3 4 5\na.example. A 192.0.2.1\nb.example. 7 A 192.0.2.1\nc.example. A 192.0.2.1";
    let zone = Zone::read(text).unwrap();
    for (name, ttl) in [("a.example", 5), ("b.example", 7), ("c.example", 7)] {
        assert_eq!(records(&zone, name).unwrap()[0].1, ttl);
    }
}

#[test]
fn names_are_as_long_as_they_may_be() {
    let label = "a".repeat(LONGEST_LABEL);
    // The zone's own labels take 9 bytes, and 3 times 64 are before these.
    for (last, is_good) in [(53, true), (54, false)] {
        let name = [&*label, &label, &label, &label[..last]].join(".");
        assert_eq!(zone(&format!("{name} A 192.0.2.1")).is_ok(), is_good);
        assert_eq!(
            zone(&format!("{name}.example. A 192.0.2.1")).is_ok(),
            is_good
        );
    }
    assert!(zone(&format!("{label}a A 192.0.2.1")).is_err());
}

#[test]
fn a_root_zone_and_escaped_names_are_read() {
    let zone = Zone::read(". 1 SOA . . 1 2 3 4 5\n\\@.a\\.B\\200. 1 A 192.0.2.1").unwrap();
    assert_eq!((zone.origin(), zone.names.len()), (&[0][..], 3));
    assert!(
        zone.records(b"\x01@\x04a.b\xc8\0")
            .is_some_and(|records| records.count() == 1)
    );
}

#[test]
fn what_can_not_be_read_or_served_is_told_with_its_line() {
    let long = format!("a TXT {}", "x".repeat(256));
    let large = "a TXT (".to_string() + &"\"0123456789\" ".repeat(400) + ")";
    let many = (0..260).map(|host| format!("a A 10.0.{}.{}\n", host / 256, host % 256));
    let many = many.collect::<String>();
    for (rest, said) in [
        (
            "\n\n\nhost1 A 300.1.2.3",
            "line 7: 'host1 A 300.1.2.3': want an IPv4 address",
        ),
        ("a AAAA 1.2.3.4", "want an IPv6 address"),
        ("a A", "line 4: 'a A': want an IPv4 address"),
        ("a A 1.2.3.4 5", "want nothing more"),
        ("a", "want a type"),
        ("a CH TXT b", "want a type"),
        ("a IN IN A 1.2.3.4", "want a type"),
        ("a SRV 0 0 0 a", "want a type"),
        ("a TYPE65536 \\# 0", "want a type"),
        ("a TYPE255 \\# 0", "want a type that records have"),
        ("a TYPE39 \\# 0", "want no DNAME"),
        ("a TYPE46 \\# 0", "want a zone that is not signed"),
        ("a TYPE64 \\# 2 0", "want \\#, the number"),
        ("a TYPE64 \\# 2 000", "want \\#, the number"),
        ("a TYPE64 \\# 1 +0", "want \\#, the number"),
        ("a TYPE64 abc", "want \\#, the number"),
        ("a 1h30 A 1.2.3.4", "want seconds"),
        ("a 2147483648 A 1.2.3.4", "want seconds"),
        ("a 99999w A 1.2.3.4", "want seconds"),
        ("$TTL", "want seconds"),
        ("$INCLUDE a", "want a record, $ORIGIN or $TTL"),
        (
            "$GENERATE 1-2 a A 1.2.3.4",
            "want a record, $ORIGIN or $TTL",
        ),
        ("* A 1.2.3.4", "want a name without a label '*'"),
        ("a.\\042.b A 1.2.3.4", "want a name without a label '*'"),
        ("a NS b", "want NS records of the zone's origin only"),
        ("a.example.org. A 1.2.3.4", "want a name of the zone"),
        ("anexample. A 1.2.3.4", "want a name of the zone"),
        ("a..b A 1.2.3.4", "want a name of"),
        ("\"\" A 1.2.3.4", "want a name of"),
        ("ä A 1.2.3.4", "want a name of"),
        ("a\\256 A 1.2.3.4", "want \\ with"),
        ("a TXT b\\", "want \\ with"),
        ("a\\1 A 1.2.3.4", "want \\ with"),
        ("a TXT", "want at least one string"),
        ("a TXT \\# 1 00", "want data in its own form"),
        ("a PTR \\#", "want data in its own form"),
        (&long, "want strings of at most 255 bytes"),
        (
            "a TXT \"b\n\"",
            "line 4: 'a TXT \"b': want a quotation mark",
        ),
        (
            "a TXT (\nb\n\n",
            "line 4: 'a TXT (': want a closing parenthesis",
        ),
        ("a TXT b )", "want an opening parenthesis"),
        ("a MX -1 b", "want a preference"),
        (
            "@ SOA ns hostmaster 1 2 3 4 60",
            "line 4: '@ SOA ns hostmaster 1 2 3 4 60': want only one SOA record",
        ),
        (
            "a A 1.2.3.4\nb A 1.2.3.4\na CNAME b\nc A 1.2.3.4",
            "line 6: 'a CNAME b': want no other record",
        ),
        (
            "a CNAME b\na CNAME c",
            "line 5: 'a CNAME c': want no other record",
        ),
        ("@ CNAME b", "want no other record"),
        (
            "a A 1.2.3.4\na (\nCNAME\nb )",
            "line 5: 'a (': want no other record",
        ),
        (&large, "line 4: 'a TXT (\"0123456789\" \"0123"),
        (
            &many,
            "line 263: 'a A 10.0.1.3': want records of a name that fit",
        ),
    ] {
        let bad = zone(rest).map(drop).unwrap_err();
        assert!(bad.contains(said) && bad.len() < 200, "{bad}, but {said}");
    }
    for (text, said) in [
        ("", "line 1: '': want an SOA record"),
        ("; nothing\n", "want an SOA record"),
        (" A 1.2.3.4", "want a time to live"),
        (" 1 A 1.2.3.4", "want a name, as"),
        ("a 1 A 1.2.3.4", "want a name that ends with a dot"),
        ("@ 1 A 1.2.3.4", "want a name that ends with a dot"),
        ("a. 1 A 1.2.3.4", "want an SOA record as the first one"),
        ("a. SOA . . 1 2 3 4 5", "want a time to live"),
        ("a. 1 SOA . . 1 2 3 4", "want seconds"),
        ("a. 1 SOA . . 4294967296 2 3 4 5", "want a serial number"),
    ] {
        let bad = Zone::read(text).unwrap_err().to_string();
        assert!(bad.contains(said), "{bad}, but {said}");
    }
}

#[test]
fn a_name_has_as_many_records_as_one_answer_takes() {
    let file = |hosts: u32| {
        (0..hosts)
            .map(|host| format!("a A {}\n", Ipv4Addr::from(host)))
            .collect::<String>()
    };
    // Header, question, EDNS; then 16 bytes each.
    let most = (LONGEST - HEADER - 15 - OWN_OPT) as u32 / 16;
    let zone = zone(&file(most)).unwrap();
    let query = [
        &[0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1],
        &*wire("a.example").unwrap(),
        b"\0\x01\0\x01\0\0\x29\0\0\0\0\0\0\0\0",
    ];
    let mut reply = [0; LONGEST];
    crate::dns::answer(
        &query.concat(),
        &zone,
        crate::dns::Transport::Tcp,
        &mut reply,
    )
    .unwrap();
    assert_eq!(u16::from_be_bytes([reply[6], reply[7]]), most as u16);
    assert!(super::tests::zone(&file(most + 1)).is_err());
}

#[test]
fn a_large_zone_is_the_synthetic_one() {
    let host = |host: u32| {
        let address = Ipv4Addr::from(0x0a00_0000 + host);
        format!(
            "host{host} A {address}\n AAAA 2001:db8::{:x}:{:x}\n",
            host >> 16,
            host & 0xffff
        )
    };
    let text =
        HEAD.to_string() + " NS ns\nns A 192.0.2.53\n" + &(0..10_000).map(host).collect::<String>();
    let (read, synthetic) = (Zone::read(&text).unwrap(), Zone::synthetic(10_000));
    assert_eq!(read.names.len(), synthetic.names.len());
    for host in 0..10_000 {
        let name = wire(&format!("host{host}.example")).unwrap();
        assert!(
            read.records(&name)
                .unwrap()
                .eq(synthetic.records(&name).unwrap())
        );
    }
    assert_eq!(read.bytes.capacity(), read.bytes.len());
}

/// Reads a text, and checks what it gives.
fn check(text: &str) -> Result<(), TestCaseError> {
    match Zone::read(text) {
        Ok(zone) => {
            prop_assert!(
                zone.names
                    .is_sorted_by(|one, other| zone.name_at(one.0) < zone.name_at(other.0))
            );
            for (start, _) in &zone.names {
                let name = zone.name_at(*start);
                prop_assert!(zone.has(name) && name.len() <= LONGEST_NAME);
                prop_assert!(name == zone.origin() || zone.records(parent(name)).is_some());
            }
        }
        Err(bad) => prop_assert!(bad.line <= text.lines().count() + 1 && text.contains(bad.text)),
    }
    Ok(())
}

proptest! {
    #[test]
    fn whatever_comes_is_read_or_refused(bytes: Vec<u8>) {
        check(&String::from_utf8_lossy(&bytes))?;
        check(&(HEAD.to_string() + &String::from_utf8_lossy(&bytes)))?;
    }

    #[test]
    fn a_file_with_other_bytes_in_it_is_read_or_refused(
        changes in prop::collection::vec((any::<Index>(), 0..4_usize, "[ -~]|[\n\t\"();\\\\$@.*ä]|[0-9]{3}|(A|NS|SOA|CNAME|TYPE9) "), 1..6),
    ) {
        let mut text: Vec<char> = WHOLE.chars().collect();
        for (place, removed, new) in changes {
            let place = place.index(text.len());
            let end = text.len().min(place + removed);
            text.splice(place..end, new.chars());
        }
        check(&text.into_iter().collect::<String>())?;
    }
}
