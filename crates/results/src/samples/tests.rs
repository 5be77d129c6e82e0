use std::io::Write;

use parquet::basic::LogicalType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::model::{Arrived, Labels, Record, SetHead, Unit};
use crate::work::Work;

fn event(index: u64, at: u64, value: u64) -> Event {
    Event { index, at, value }
}

fn bin(bin: u32, n: u64, sum: u64, min: u64, max: u64) -> Bin {
    Bin {
        bin,
        n,
        sum,
        min,
        max,
    }
}

fn count(value: u64, count: u64) -> Count {
    Count { value, count }
}

/// Makes a cell of one set.
fn cell(head: SetHead, set: SetSamples) -> (Record, Samples) {
    let record = Record {
        sets: vec![head],
        ..Record::default()
    };
    let samples = Samples {
        instances: vec![Instance::default()],
        sets: vec![set],
    };
    (record, samples)
}

/// Nine samples of ten: 7 of 100 cycles, one of 130, one of 900; one ran backwards.
fn durations() -> (Record, Samples) {
    let head = SetHead {
        measure: "duration".to_owned(),
        n: 9,
        sum: 1_730,
        first: 10_000,
        last: 12_000,
        threshold: 593,
        seen: 1,
        kept: 1,
        backwards: 1,
        raw: 2,
        ..SetHead::default()
    };
    let set = SetSamples {
        counts: vec![count(100, 7), count(130, 1), count(900, 1)],
        events: vec![event(5, 10_500, 900)],
        envelope: vec![bin(0, 5, 530, 100, 130), bin(2, 4, 1_200, 100, 900)],
        raw: vec![event(4, 10_400, 100), event(5, 10_500, 900)],
    };
    cell(head, set)
}

/// A spin of ten reads with three gaps, of which one was not listed.
fn gaps() -> (Record, Samples) {
    let head = SetHead {
        measure: "gap".to_owned(),
        n: 10,
        sum: 20_000,
        first: 1_000,
        last: 21_000,
        squares_below: Some(1_000),
        threshold: 400,
        seen: 3,
        kept: 2,
        unkept_max: 5_000,
        unkept_sum: 5_000,
        ..SetHead::default()
    };
    let set = SetSamples {
        counts: vec![count(400, 2)],
        events: vec![event(2, 1_100, 400), event(9, 15_000, 400)],
        envelope: vec![bin(0, 1, 400, 400, 400), bin(9, 1, 400, 400, 400)],
        raw: Vec::new(),
    };
    cell(head, set)
}

/// Two phases of a thread's wake-ups, with a bin that reaches from one into the other, and one
/// latency that had no room.
fn latencies() -> (Record, Samples) {
    let head = |phase: u32| SetHead {
        measure: "latency".to_owned(),
        labels: Labels::of([("thread", "0")]).with("phase", phase),
        unit: Unit::Ns,
        first: 1_000,
        last: 5_000,
        period: 1_000,
        threshold: 900,
        ..SetHead::default()
    };
    let heads = [
        SetHead {
            n: 3,
            sum: 60,
            ..head(0)
        },
        SetHead {
            n: 2,
            sum: 40,
            uncounted: 1,
            uncounted_sum: 20,
            uncounted_max: 20,
            ..head(1)
        },
    ];
    let sets = [
        SetSamples {
            counts: vec![count(20, 3)],
            envelope: vec![bin(0, 4, 80, 20, 20)],
            ..SetSamples::default()
        },
        SetSamples {
            counts: vec![count(20, 1)],
            envelope: vec![bin(1, 1, 20, 20, 20)],
            ..SetSamples::default()
        },
    ];
    let record = Record {
        sets: heads.into(),
        ..Record::default()
    };
    let samples = Samples {
        instances: vec![Instance::default()],
        sets: sets.into(),
    };
    (record, samples)
}

#[test]
fn what_can_not_be_read_again_is_not_written() {
    let most = MOST_INSTANCES as usize;
    let samples = Samples {
        instances: vec![Instance::default(); most + 1],
        sets: Vec::new(),
    };
    let record = Record {
        arrived: Some(Arrived::default()),
        ..Record::default()
    };
    let (file, why) = check(&record, &samples).unwrap_err();
    assert_eq!(file, FILES[0]);
    assert!(why.contains(&format!("at most {most}")), "{why}");
}

/// Decodes the contents of files.
fn decode(
    id: u32,
    heads: &[SetHead],
    contents: [Vec<u8>; 5],
) -> Result<Samples, (&'static str, String)> {
    let files = contents.map(|content| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        file
    });
    super::decode(id, heads, files)
}

fn encoded(samples: &Samples) -> [Vec<u8>; 5] {
    encode(7, &Work::new("prime", "repetitions=10"), samples).unwrap()
}

/// Makes heads of this number of sets, each with any number of samples.
fn heads(sets: usize) -> Vec<SetHead> {
    let head = SetHead {
        n: u64::MAX,
        kept: u64::MAX,
        raw: u64::MAX,
        ..SetHead::default()
    };
    vec![head; sets]
}

fn any_samples() -> impl Strategy<Value = Samples> {
    let value = || {
        prop_oneof![
            0_u64..5_000,
            any::<u64>(),
            Just(u64::MAX),
            Just(1 << 63),
            Just((1 << 63) - 1)
        ]
    };
    let events = move || {
        let rows = vec((value(), value(), value()), 0..50);
        rows.prop_map(|rows| {
            let rows = rows.into_iter();
            rows.map(|(i, at, v)| event(i, at, v)).collect::<Vec<_>>()
        })
    };
    let counts = vec((value(), value()), 0..200);
    let bins = vec((any::<u32>(), value(), value(), value(), value()), 0..50);
    let set =
        (counts, events(), bins, events()).prop_map(|(counts, events, bins, raw)| SetSamples {
            counts: counts.into_iter().map(|(v, n)| count(v, n)).collect(),
            events,
            envelope: bins
                .into_iter()
                .map(|(b, n, sum, min, max)| bin(b, n, sum, min, max))
                .collect(),
            raw,
        });
    let instances = vec((any::<u32>(), value(), value(), value(), value()), 0..5);
    (instances, vec(set, 0..3)).prop_map(|(instances, sets)| Samples {
        instances: instances
            .into_iter()
            .map(|(program, planned, started, ready, exited)| Instance {
                program,
                planned_ns: planned,
                started_ns: started,
                ready_ns: ready,
                exited_ns: exited,
                fate: program % 5,
                counts: 1,
                peak_bytes: exited,
                ..Instance::default()
            })
            .collect(),
        sets,
    })
}

/// Does one thing to a file that a bad disk or a cut transfer might do.
fn spoil(content: &mut Vec<u8>, kind: u8, place: usize, byte: u8) {
    if content.is_empty() {
        return;
    }
    let place = place % content.len();
    match kind % 4 {
        0 => content[place] ^= byte.max(1),
        1 => content.truncate(place),
        2 => content.insert(place, byte),
        _ => content[place..].fill(byte),
    }
}

proptest! {
    #[test]
    fn whatever_is_written_is_read(samples in any_samples()) {
        prop_assert_eq!(decode(7, &heads(samples.sets.len()), encoded(&samples)), Ok(samples));
    }

    #[test]
    fn spoilt_files_are_read_or_refused(
        samples in any_samples(),
        spoils in vec((any::<u8>(), any::<usize>(), any::<u8>()), 1..4),
        footer in any::<bool>(),
    ) {
        let mut files = encoded(&samples);
        for file in &mut files {
            for (kind, place, byte) in &spoils {
                // The footer is small, but all else depends on it.
                let last = file.len().saturating_sub(300);
                let place = if footer { last + place % 300 } else { *place };
                spoil(file, *kind, place, *byte);
            }
        }
        if let Err((file, reason)) = decode(7, &heads(samples.sets.len()), files) {
            prop_assert!(FILES.contains(&file));
            prop_assert!(!reason.is_empty());
        }
    }

    #[test]
    fn garbage_is_refused(garbage in vec(any::<u8>(), 0..2_000)) {
        let decoded = decode(7, &heads(1), std::array::from_fn(|_| garbage.clone()));
        prop_assert!(decoded.is_err());
    }
}

#[test]
fn two_million_rows_come_back() {
    let mut seed = 1_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        seed >> 40
    };
    let mut at = 1 << 40;
    let mut row = |index| {
        at += 1_000 + random() % 5_000;
        event(index, at, 400 + random() % 10_000)
    };
    let set = SetSamples {
        events: (0..2_000_000).map(|k| row(3 * k)).collect(),
        ..SetSamples::default()
    };
    let samples = Samples {
        instances: Vec::new(),
        sets: vec![set],
    };
    let files = encoded(&samples);
    // 24 bytes a row in memory; the differences and zstd take most of that away.
    assert!(files[2].len() < 8 * 2_000_000, "{}", files[2].len());
    assert!(decode(7, &heads(1), files) == Ok(samples));
}

#[test]
fn other_programs_see_unsigned_columns_and_where_they_are_from() {
    let files = encoded(&durations().1);
    let expected = [
        "cell:32 set:32 program:32 planned_ns:64 started_ns:64 ready_ns:64 exited_ns:64 fate:32 failure:32 counts:32 \
         status:32 reset_ns:64 kernel_ns:64 main_ns:64 user_ns:64 system_ns:64 own_ns:64 peak_bytes:64",
        "cell:32 set:32 value:64 count:64",
        "cell:32 set:32 index:64 at:64 value:64",
        "cell:32 set:32 bin:32 n:64 sum:64 min:64 max:64",
        "cell:32 set:32 index:64 at:64 value:64",
    ];
    for (content, expected) in files.into_iter().zip(expected) {
        let file = SerializedFileReader::new(bytes::Bytes::from(content)).unwrap();
        let metadata = file.metadata().file_metadata();
        let column = |column: &parquet::schema::types::ColumnDescPtr| {
            let Some(LogicalType::Integer(integer)) = column.logical_type_ref() else {
                panic!("{column:?}");
            };
            assert!(!integer.is_signed);
            format!("{}:{}", column.name(), integer.bit_width)
        };
        let columns: Vec<_> = metadata
            .schema_descr()
            .columns()
            .iter()
            .map(column)
            .collect();
        assert_eq!(columns.join(" "), expected);
        let about = metadata.key_value_metadata().unwrap();
        let value = |key: &str| {
            about
                .iter()
                .find(|pair| pair.key == key)
                .and_then(|pair| pair.value.clone())
        };
        assert_eq!(value("tare.schema"), Some(SCHEMA.to_string()));
        assert_eq!(
            value("tare.version").as_deref(),
            Some(env!("CARGO_PKG_VERSION"))
        );
        assert_eq!(
            value("tare.plan").as_deref(),
            Some("workload=prime repetitions=10")
        );
    }
}

#[test]
fn a_file_of_another_cell_or_of_another_table_is_refused() {
    let samples = durations().1;
    let (file, reason) = decode(8, &heads(1), encoded(&samples)).unwrap_err();
    assert_eq!(
        (file, reason.as_str()),
        (FILES[0], "belongs to cell 7, not to cell 8")
    );
    let [instances, counts, _, envelope, raw] = encoded(&samples);
    let swapped = [instances, counts.clone(), counts, envelope, raw];
    let (file, reason) = decode(7, &heads(1), swapped).unwrap_err();
    assert_eq!(
        (file, reason.as_str()),
        (FILES[2], "is damaged: it has no column index")
    );
    let mut more = samples.clone();
    more.sets.push(samples.sets[0].clone());
    let (file, reason) = decode(7, &heads(1), encoded(&more)).unwrap_err();
    assert_eq!(file, FILES[1], "{reason}");
    assert!(reason.contains("set 1"), "{reason}");
}

#[test]
fn more_rows_than_can_be_read_are_not_written() {
    let rows = vec![count(100, 1); 1 << 20];
    let sets = [rows.as_slice(); 65];
    let refused = super::table::encode(7, &sets, &[]).unwrap_err().to_string();
    assert!(
        refused.contains("68157440 rows, at most 67108864"),
        "{refused}"
    );
}

#[test]
fn rows_that_are_all_alike_come_back_but_not_out_of_a_few_bytes() {
    let (_, mut samples) = durations();
    samples.sets[0].counts = vec![count(100, 1); 1_200_000];
    let mut files = encoded(&samples);
    assert!(decode(7, &heads(1), files.clone()) == Ok(samples.clone()));
    let small = super::table::properties(&[], true).unwrap();
    files[1] = super::table::encode_with(small, 7, &[&samples.sets[0].counts]).unwrap();
    let (file, reason) = decode(7, &heads(1), files).unwrap_err();
    assert_eq!(file, FILES[1]);
    assert!(
        reason.contains("claims to have 1200000 rows in "),
        "{reason}"
    );
}

#[test]
fn a_footer_that_is_larger_than_any_is_not_read() {
    let (_, samples) = durations();
    let mut files = encoded(&samples);
    let length = files[1].len() - 8;
    files[1][length..length + 4].copy_from_slice(&(64_u32 << 20).to_le_bytes());
    let reason = decode(7, &heads(1), files).unwrap_err().1;
    assert_eq!(reason, "is damaged: its footer has 67108864 bytes");
}

#[test]
fn a_file_with_more_rows_than_its_cell_has_is_not_decoded() {
    let (record, mut samples) = durations();
    assert_eq!(
        decode(7, &record.sets, encoded(&samples)),
        Ok(samples.clone())
    );
    // Compressed, all of them take a few bytes.
    samples.sets[0].counts = vec![count(100, 1); 300_000];
    let files = encoded(&samples);
    assert!(files[1].len() < 10_000, "{}", files[1].len());
    let (file, reason) = decode(7, &record.sets, files.clone()).unwrap_err();
    assert_eq!(file, FILES[1]);
    assert!(
        reason.contains("claims to have 300000 rows, there can be 9"),
        "{reason}"
    );
    assert_eq!(decode(7, &heads(1), files), Ok(samples));
}

#[test]
fn a_page_that_says_it_is_larger_than_its_rows_is_not_decompressed() {
    let (_, mut samples) = durations();
    let different =
        (0..20_000_u64).map(|value| count(value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1, 1));
    samples.sets[0].counts = different.collect();
    let mut files = encoded(&samples);
    assert_eq!(decode(7, &heads(1), files.clone()), Ok(samples));
    let reader = SerializedFileReader::new(bytes::Bytes::from(files[1].clone())).unwrap();
    let columns = reader.metadata().row_group(0).columns().iter();
    // A head begins with the type of its page and then the size, here of three bytes with seven
    // bits of it in each.
    let sizes = columns.map(|column| column.byte_range().0 as usize + 3);
    let mut sizes = sizes.filter(|&place| {
        let size = &files[1][place..place + 3];
        size[..2].iter().all(|byte| *byte >= 0x80) && size[2] < 0x80
    });
    let last = sizes.next().unwrap() + 2;
    files[1][last] = 0x7f;
    let (file, reason) = decode(7, &heads(1), files).unwrap_err();
    assert_eq!(file, FILES[1]);
    assert!(reason.contains(" bytes for 20000 rows"), "{reason}");
}

#[test]
fn values_that_no_measurement_has_are_refused() {
    let change: [fn(&mut SetSamples); 3] = [
        |set| set.counts[2].value = 1 << 63,
        |set| set.events[0].value = u64::MAX,
        |set| set.envelope[1].max = 1 << 63,
    ];
    for change in change {
        let (record, mut samples) = durations();
        change(&mut samples.sets[0]);
        let (_, reason) = check(&record, &samples).unwrap_err();
        assert!(
            reason.contains("is not between 0 and 9223372036854775807"),
            "{reason}"
        );
    }
}

#[test]
fn what_fits_together_is_accepted() {
    for (record, samples) in [durations(), gaps(), latencies()] {
        assert_eq!(check(&record, &samples), Ok(()));
    }
    // Nothing but samples that ran backwards, and an instance that measured nothing.
    let head = SetHead {
        backwards: 10,
        ..SetHead::default()
    };
    let (record, samples) = cell(head, SetSamples::default());
    assert_eq!(check(&record, &samples), Ok(()));
    assert_eq!(check(&Record::default(), &Samples::default()), Ok(()));
}

#[test]
fn every_contradiction_is_found_and_named() {
    type Change = fn(&mut SetHead, &mut SetSamples);
    let of_durations: [(Change, &str, &str); 16] = [
        (|_, s| s.counts.swap(0, 1), "counts", "does not rise"),
        (|_, s| s.counts[1].value = 100, "counts", "does not rise"),
        (|_, s| s.counts[1].count = 0, "counts", "count of 0"),
        (
            |_, s| s.counts[0].count = 8,
            "counts",
            "10 samples, with 0 that found no room, of 9",
        ),
        (|h, _| h.n = 10, "counts", "9 samples, with 0"),
        (
            |h, _| h.uncounted = 1,
            "counts",
            "with 1 that found no room",
        ),
        (|h, _| h.sum += 1, "counts", "make 1730 in all"),
        (
            |_, s| s.counts[0].count = u64::MAX,
            "counts",
            "does not match",
        ),
        (|h, _| h.kept = 0, "events", "lists 1 samples, not 0"),
        (|h, _| h.seen = 0, "events", "lists 1 samples of 0 seen"),
        (
            |_, s| s.events[0].at = 12_001,
            "events",
            "sample 5 is from before or after the measurement",
        ),
        (
            |_, s| s.envelope.swap(0, 1),
            "envelope",
            "bin 0 does not rise",
        ),
        (
            |_, s| s.envelope[0].min = 107,
            "envelope",
            "bin 0 contradict",
        ),
        (
            |_, s| s.envelope[1].max = 299,
            "envelope",
            "bin 2 contradict",
        ),
        (
            |_, s| s.envelope.truncate(1),
            "envelope",
            "5 samples of duration of 530 in all, there are 9 of 1730",
        ),
        (|_, s| s.raw.swap(0, 1), "raw", "do not rise"),
    ];
    let of_gaps: [(Change, &str, &str); 6] = [
        (|h, _| h.kept = 3, "counts", "2 samples of 3 listed"),
        (
            |h, _| h.unkept_sum = 19_201,
            "counts",
            "all of them only 20000",
        ),
        (
            |h, _| h.threshold = 401,
            "events",
            "sample 2 of 400 is below the threshold",
        ),
        (|_, s| s.events[1].index = 2, "events", "do not rise"),
        (
            |_, s| s.events[0].at = 999,
            "events",
            "sample 2 is from before or after",
        ),
        (
            |_, s| s.raw.push(event(0, 1_000, 0)),
            "raw",
            "lists 1 samples, not 0",
        ),
    ];
    let of_latencies: [(Change, &str, &str); 2] = [
        (
            |h, _| h.n = 4,
            "counts",
            "of 4 (set latency phase=0 thread=0)",
        ),
        (
            |_, s| s.envelope[0].n = 3,
            "envelope",
            "bin 0 contradict each other (set latency phase=0 thread=0)",
        ),
    ];
    let changes = of_durations.into_iter().map(|change| (durations(), change));
    let changes = changes.chain(of_gaps.into_iter().map(|change| (gaps(), change)));
    let changes = changes.chain(of_latencies.into_iter().map(|change| (latencies(), change)));
    for ((mut record, mut samples), (change, expected_file, expected)) in changes {
        change(&mut record.sets[0], &mut samples.sets[0]);
        let (file, reason) = check(&record, &samples).expect_err(expected);
        assert_eq!(file, format!("{expected_file}.parquet"), "{reason}");
        assert!(reason.contains(expected), "{reason}");
    }
    let (record, mut samples) = durations();
    samples.sets.clear();
    let (_, reason) = check(&record, &samples).unwrap_err();
    assert!(reason.contains("0 sets of 1"), "{reason}");
}
