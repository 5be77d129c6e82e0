use parquet::basic::LogicalType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::model::{Batch, Labels};
use crate::target::{Group, TargetSpec};
use crate::work::Work;

fn plan(workload: &str) -> CellPlan {
    CellPlan {
        id: 7,
        block: 1,
        experiment: "noise".to_owned(),
        target: TargetSpec::new("process", Vec::new(), Group::Process),
        load: "idle".to_owned(),
        phases: Vec::new(),
        phase_seconds: None,
        workload: workload.to_owned(),
        size: Some(22),
        repetitions: 10,
        timing: "fenced".to_owned(),
        labels: Labels::default(),
        work: Work::new(workload, "repetitions=10"),
        estimate_seconds: 1.0,
        limit_seconds: 10.0,
    }
}

fn delay(index: u64, start_tsc: u64, cycles: u64) -> Delay {
    Delay {
        index,
        start_tsc,
        cycles,
    }
}

fn bin(bin: u32, count: u64, sum: u64, min: u64, max: u64) -> EnvelopeBin {
    EnvelopeBin {
        bin,
        count,
        sum_cycles: sum,
        min_cycles: min,
        max_cycles: max,
    }
}

/// Nine samples of ten: 7 of 100 cycles, one of 130, one of 900; one ran backwards.
fn prime() -> (CellPlan, Batch, Samples) {
    let batch = Batch {
        repetitions: 10,
        sum_cycles: 1_730,
        threshold_cycles: 400,
        delays_seen: 1,
        delays_kept: 1,
        backwards: 1,
        ..Batch::default()
    };
    let samples = Samples {
        counts: [(100, 7), (130, 1), (900, 1)]
            .map(|(cycles, count)| Count { cycles, count })
            .to_vec(),
        delays: vec![delay(5, 10_500, 900)],
        envelope: vec![bin(0, 5, 530, 100, 130), bin(2, 4, 1_200, 100, 900)],
        window: vec![delay(4, 10_400, 100), delay(5, 10_500, 900)],
        ..Samples::default()
    };
    (plan("prime"), batch, samples)
}

/// A spin of ten reads with three gaps, of which one was not listed.
fn gap() -> (CellPlan, Batch, Samples) {
    let batch = Batch {
        repetitions: 10,
        first_tsc: 1_000,
        last_tsc: 21_000,
        sum_cycles: 20_000,
        quiet_squares: Some(1_000),
        threshold_cycles: 400,
        delays_seen: 3,
        delays_kept: 2,
        unkept_longest_cycles: 5_000,
        unkept_cycles: 5_000,
        ..Batch::default()
    };
    let samples = Samples {
        counts: vec![Count {
            cycles: 400,
            count: 2,
        }],
        delays: vec![delay(2, 1_100, 400), delay(9, 15_000, 400)],
        envelope: vec![bin(0, 1, 400, 400, 400), bin(9, 1, 400, 400, 400)],
        window: Vec::new(),
        ..Samples::default()
    };
    (plan("gap"), batch, samples)
}

fn encoded(samples: &Samples) -> [Vec<u8>; 4] {
    encode(&plan("prime"), samples).unwrap()
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
    let delays = move || vec((value(), value(), value()), 0..50);
    let of = |rows: Vec<(u64, u64, u64)>| -> Vec<Delay> {
        rows.into_iter().map(|(i, s, c)| delay(i, s, c)).collect()
    };
    let counts = vec((value(), value()), 0..200);
    let bins = vec((any::<u32>(), value(), value(), value(), value()), 0..50);
    (counts, delays(), bins, delays()).prop_map(move |(counts, delays, bins, window)| Samples {
        counts: counts
            .into_iter()
            .map(|(cycles, count)| Count { cycles, count })
            .collect(),
        delays: of(delays),
        envelope: bins
            .into_iter()
            .map(|(b, n, sum, min, max)| bin(b, n, sum, min, max))
            .collect(),
        window: of(window),
        ..Samples::default()
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
        prop_assert_eq!(decode(7, encoded(&samples)), Ok(samples));
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
        if let Err((file, reason)) = decode(7, files) {
            prop_assert!(FILES.contains(&file));
            prop_assert!(!reason.is_empty());
        }
    }

    #[test]
    fn garbage_is_refused(garbage in vec(any::<u8>(), 0..2_000)) {
        let decoded = decode(7, std::array::from_fn(|_| garbage.clone()));
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
    let mut start = 1 << 40;
    let mut row = |index| {
        start += 1_000 + random() % 5_000;
        delay(index, start, 400 + random() % 10_000)
    };
    let samples = Samples {
        delays: (0..2_000_000).map(|k| row(3 * k)).collect(),
        ..Samples::default()
    };
    let files = encoded(&samples);
    // 24 bytes a row in memory; the differences and zstd take most of that away.
    assert!(
        files[1].len() < 8 * samples.delays.len(),
        "{}",
        files[1].len()
    );
    assert!(decode(7, files) == Ok(samples));
}

#[test]
fn other_programs_see_unsigned_columns_and_where_they_are_from() {
    let files = encoded(&prime().2);
    let expected = [
        "cell:32 cycles:64 count:64",
        "cell:32 index:64 start_tsc:64 cycles:64",
        "cell:32 bin:32 count:64 sum_cycles:64 min_cycles:64 max_cycles:64",
        "cell:32 index:64 start_tsc:64 cycles:64",
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
    let samples = prime().2;
    let (file, reason) = decode(8, encoded(&samples)).unwrap_err();
    assert_eq!(
        (file, reason.as_str()),
        (FILES[0], "belongs to cell 7, not to cell 8")
    );
    let [counts, _, envelope, window] = encoded(&samples);
    let swapped = [counts.clone(), counts, envelope, window];
    let (file, reason) = decode(7, swapped).unwrap_err();
    assert_eq!(
        (file, reason.as_str()),
        (FILES[1], "is damaged: it has no column index")
    );
}

#[test]
fn what_fits_together_is_accepted() {
    for (plan, batch, samples) in [prime(), gap()] {
        assert_eq!(check(&plan, &batch, &samples), Ok(()));
    }
    // Nothing but repetitions that ran backwards.
    let batch = Batch {
        repetitions: 10,
        backwards: 10,
        ..Batch::default()
    };
    assert_eq!(check(&plan("copy"), &batch, &Samples::default()), Ok(()));
}

#[test]
fn every_contradiction_is_found_and_named() {
    type Change = fn(&mut Batch, &mut Samples);
    let of_prime: [(Change, &str, &str); 15] = [
        (|_, s| s.counts.swap(0, 1), "counts", "does not rise"),
        (|_, s| s.counts[1].cycles = 100, "counts", "does not rise"),
        (|_, s| s.counts[1].count = 0, "counts", "count of 0"),
        (
            |_, s| s.counts[0].count = 8,
            "counts",
            "10 samples, with 1 that ran backwards, of 10",
        ),
        (|b, _| b.backwards = 0, "counts", "9 samples, with 0"),
        (
            |b, _| b.sum_cycles += 1,
            "counts",
            "last 1730 cycles, the batch 1731",
        ),
        (
            |_, s| s.counts[0].count = u64::MAX,
            "counts",
            "does not fit",
        ),
        (
            |b, _| b.delays_kept = 0,
            "delays",
            "lists 1 delays of 0 kept and 1 seen",
        ),
        (|b, _| b.delays_seen = 0, "delays", "1 kept and 0 seen"),
        (
            |_, s| s.delays[0].index = 10,
            "delays",
            "repetition 10, counted from 0, of 10",
        ),
        (
            |_, s| s.envelope.swap(0, 1),
            "envelope",
            "bin 0 does not rise",
        ),
        (
            |_, s| s.envelope[0].min_cycles = 107,
            "envelope",
            "bin 0 contradict",
        ),
        (
            |_, s| s.envelope[1].max_cycles = 299,
            "envelope",
            "bin 2 contradict",
        ),
        (
            |_, s| s.envelope.truncate(1),
            "envelope",
            "5 samples of 530 cycles in all, there are 9 of 1730",
        ),
        (
            |_, s| s.window.swap(0, 1),
            "window",
            "index 4 does not rise",
        ),
    ];
    let of_gap: [(Change, &str, &str); 5] = [
        (|b, _| b.delays_kept = 3, "counts", "2 gaps of 3 listed"),
        (
            |b, _| b.unkept_cycles = 19_201,
            "counts",
            "the batch only 20000",
        ),
        (
            |b, _| b.threshold_cycles = 401,
            "delays",
            "gap 2 of 400 cycles is below the threshold",
        ),
        (
            |_, s| s.delays[1].index = 2,
            "delays",
            "index 2 does not rise",
        ),
        (
            |_, s| s.window.push(delay(0, 0, 0)),
            "window",
            "keeps none in sequence",
        ),
    ];
    let changes = of_prime.into_iter().map(|change| (prime(), change));
    let changes = changes.chain(of_gap.into_iter().map(|change| (gap(), change)));
    for ((plan, mut batch, mut samples), (change, expected_file, expected)) in changes {
        change(&mut batch, &mut samples);
        let (file, reason) = check(&plan, &batch, &samples).expect_err(expected);
        assert_eq!(file, format!("{expected_file}.parquet"), "{reason}");
        assert!(reason.contains(expected), "{reason}");
    }
}
