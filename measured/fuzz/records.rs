//! Decodes lines, and records from payloads without a line, as damage and its checksum would hide
//! most of them: a record survives its line, and a damaged line is never another record.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tare_wire::line::{Encoder, Line, MAX_PAYLOAD, Stream, decode_of};
use tare_wire::record::Record;
use tare_wire::rows;

/// Reads all rows of a record's list.
fn read(record: &Record<'_>) {
    // Some sets have a period, and others are unknown.
    let period_of = |set: u32| (!set.is_multiple_of(5)).then_some(u64::from(set % 3) * 1_000);
    match *record {
        Record::Counts(list) => drop(rows::counts(list).count()),
        Record::Events(list) | Record::Raw(list) => drop(rows::samples(list, period_of).count()),
        Record::Envelope(list) => drop(rows::bins(list).count()),
        Record::Parts(list) => drop(rows::parts(list).count()),
        Record::TraceEvents(list) => drop(list.rows.rows::<5>().count()),
        _ => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    for stream in [Stream::Measured, Stream::Load] {
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Line::Record { record, .. } = decode_of(stream, line, &mut [0; MAX_PAYLOAD]) {
                read(&record);
            }
        }
    }
    let Some((damage, payload)) = bytes.split_first_chunk::<3>() else {
        return;
    };
    let Ok(record) = postcard::from_bytes::<Record<'_>>(payload) else {
        return;
    };
    read(&record);
    let mut encoder = Encoder::default();
    let Ok(line) = encoder.encode(&record) else {
        return;
    };
    let whole = Line::Record {
        sequence: 0,
        record,
    };
    let is_same = |line: &[u8]| {
        let mut room = [0; MAX_PAYLOAD];
        match decode_of(Stream::Measured, line, &mut room) {
            // A number that is none differs from itself.
            again @ Line::Record { .. } => Some(format!("{again:?}") == format!("{whole:?}")),
            _ => None,
        }
    };
    assert_eq!(is_same(line), Some(true));
    let mut line = line.to_vec();
    let at = usize::from(u16::from_be_bytes([damage[0], damage[1]])) % line.len();
    line[at] ^= damage[2];
    assert_ne!(is_same(&line), Some(false));
    // As from a console that loses the rest.
    assert_ne!(is_same(&line[..at]), Some(false));
});
