//! Records of measured code: a reader of streams, and a simple model of the records for known
//! samples.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use tare_wire::PROTOCOL;
use tare_wire::line::{Encoder, Line, MAX_PAYLOAD, Stream, decode_of};
use tare_wire::packed::{Packed, in_lists};
use tare_wire::record::{Calibration, End, Hello, List, Ready, Record, Set};
use tare_wire::rows::{self, Bin, Count, Part, Sample};

/// The records of a stream. Their memory is never freed: a test ends soon.
#[derive(Debug, Default)]
pub struct RecordList {
    /// All records, in order.
    pub records: Vec<Record<'static>>,
}

impl RecordList {
    /// Reads the records of a stream, possibly among other lines.
    ///
    /// # Panics
    ///
    /// Panics as [`RecordList::line`] does.
    #[must_use]
    pub fn read(stream: Stream, text: &[u8]) -> Self {
        let mut told = Self::default();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            told.line(stream, line);
        }
        told
    }

    /// Reads one line. Returns whether it is a record.
    ///
    /// # Panics
    ///
    /// Panics if the record is damaged, or out of sequence.
    pub fn line(&mut self, stream: Stream, line: &[u8]) -> bool {
        let room = Box::leak(Box::new([0; MAX_PAYLOAD]));
        match decode_of(stream, line, room) {
            Line::Other => return false,
            Line::Damaged(damage) => panic!("{damage:?}: {}", String::from_utf8_lossy(line)),
            Line::Record { sequence, record } => {
                assert_eq!(sequence, self.records.len() as u64, "{record:?}");
                self.records.push(record);
            }
        }
        true
    }

    /// Returns the kind of each record.
    #[must_use]
    pub fn kinds(&self) -> Vec<&'static str> {
        self.records.iter().map(Record::kind).collect()
    }

    /// Returns the values that `pick` selects from the records.
    pub fn all<T>(&self, pick: impl Fn(&Record<'static>) -> Option<T>) -> Vec<T> {
        self.records.iter().filter_map(pick).collect()
    }

    /// Returns a number that is not sampled.
    #[must_use]
    pub fn value(&self, measure: &str, labels: &str) -> Option<f64> {
        self.records.iter().find_map(|record| match record {
            Record::Value(it) if (it.measure, it.labels) == (measure, labels) => Some(it.value),
            _ => None,
        })
    }

    /// Returns a fact about the target, or about a part of it.
    #[must_use]
    pub fn fact(&self, name: &str, labels: &str) -> Option<&'static str> {
        self.records.iter().find_map(|record| match record {
            Record::Fact(it) if (it.name, it.labels) == (name, labels) => Some(it.value),
            _ => None,
        })
    }

    /// Returns a counter of events below the measured code.
    #[must_use]
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.records.iter().find_map(|record| match record {
            Record::Counter(it) if it.name == name => Some(it.count),
            _ => None,
        })
    }

    /// Returns all notices.
    #[must_use]
    pub fn notices(&self) -> Vec<&'static str> {
        self.all(|record| match record {
            Record::Notice(it) => Some(it.text),
            _ => None,
        })
    }

    /// Returns the reason of a failure.
    #[must_use]
    pub fn failure(&self) -> Option<&'static str> {
        self.records.iter().find_map(|record| match record {
            Record::Failure(it) => Some(it.text),
            _ => None,
        })
    }

    /// Returns the sets with their lists.
    ///
    /// # Panics
    ///
    /// Panics if the sets are not numbered in sequence, or a list is malformed or belongs to none
    /// of them.
    #[must_use]
    pub fn sets(&self) -> Vec<Lists> {
        let mut sets: Vec<Lists> = Vec::new();
        for record in &self.records {
            let period = |sets: &[Lists], set| Some(sets.get(set as usize)?.set.period);
            let samples = |sets: &[Lists], list| -> Vec<Sample> {
                let samples = rows::samples(list, |set| period(sets, set));
                samples.map(Result::unwrap).collect()
            };
            match *record {
                Record::Set(set) => {
                    assert_eq!(set.number as usize, sets.len());
                    let lists = Lists::default();
                    sets.push(Lists { set, ..lists });
                }
                Record::Parts(list) => {
                    for row in rows::parts(list).map(Result::unwrap) {
                        sets[row.set as usize].parts.push(row);
                    }
                }
                Record::Counts(list) => {
                    for row in rows::counts(list).map(Result::unwrap) {
                        sets[row.set as usize].counts.push(row);
                    }
                }
                Record::Events(list) => {
                    for row in samples(&sets, list) {
                        sets[row.set as usize].events.push(row);
                    }
                }
                Record::Raw(list) => {
                    for row in samples(&sets, list) {
                        sets[row.set as usize].raw.push(row);
                    }
                }
                Record::Envelope(list) => {
                    for row in rows::bins(list).map(Result::unwrap) {
                        sets[row.set as usize].bins.push(row);
                    }
                }
                _ => {}
            }
        }
        sets
    }
}

/// One set with its lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lists {
    /// Its head.
    pub set: Set<'static>,
    /// The parts of time into which it is divided; none if it is not.
    pub parts: Vec<Part>,
    /// Exact counts per value.
    pub counts: Vec<Count>,
    /// Samples at or above the threshold.
    pub events: Vec<Sample>,
    /// Raw samples.
    pub raw: Vec<Sample>,
    /// The envelope over time.
    pub bins: Vec<Bin>,
}

/// The capacity of measured code.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Number of distinct values, counted per part.
    pub values: usize,
    /// Number of events.
    pub events: usize,
    /// Number of raw samples, from the first one on.
    pub raw: usize,
    /// Number of bins; later samples belong to the last one.
    pub bins: u64,
}

impl Room {
    /// More than any test needs.
    pub const ENOUGH: Self = Self {
        values: usize::MAX,
        events: usize::MAX,
        raw: usize::MAX,
        bins: u64::MAX,
    };
}

impl Lists {
    /// Folds samples, each with its index, its time from the first one on, and its value. `set`
    /// holds the parts of the head that are known in advance; `begins` are the beginnings of the
    /// parts.
    ///
    /// # Panics
    ///
    /// Panics if a sample belongs to no part.
    #[must_use]
    pub fn fold(
        set: Set<'static>,
        begins: &[u64],
        samples: impl IntoIterator<Item = (u64, u64, u64)>,
        room: Room,
    ) -> Self {
        let number = set.number;
        let part = |begin: &u64| Part {
            set: number,
            begin: *begin,
        };
        let mut lists = Self {
            set: Set {
                min: u64::MAX,
                last: set.first,
                parts: begins.len().max(1) as u32,
                ..set
            },
            parts: begins.iter().map(part).collect(),
            ..Self::default()
        };
        let set = &mut lists.set;
        let mut counts = BTreeMap::<(u32, u64), u64>::new();
        let mut bins = BTreeMap::<u64, Bin>::new();
        let mut known = BTreeSet::new();
        for (index, time, value) in samples {
            set.n += 1;
            set.sum += value;
            set.min = set.min.min(value);
            set.max = set.max.max(value);
            set.last = set.first.wrapping_add(time).wrapping_add(value);
            let sample = Sample {
                set: number,
                index,
                time,
                value,
            };
            if lists.raw.len() < room.raw {
                lists.raw.push(sample);
            }
            let is_long = value >= set.threshold;
            let is_listed = is_long && lists.events.len() < room.events;
            set.seen += u64::from(is_long);
            if is_listed {
                lists.events.push(sample);
            } else if is_long {
                set.unkept_max = set.unkept_max.max(value);
                set.unkept_sum += value;
            }
            let part = match begins {
                [] => 0,
                begins => begins.iter().rposition(|begin| *begin <= time).unwrap() as u32,
            };
            if known.len() < room.values {
                known.insert((part, value));
            }
            // Listed values are always counted.
            if is_listed || known.contains(&(part, value)) {
                *counts.entry((part, value)).or_default() += 1;
            } else {
                let least = if set.uncounted == 0 {
                    value
                } else {
                    set.uncounted_min
                };
                set.uncounted_min = least.min(value);
                set.uncounted += 1;
                set.uncounted_sum += value;
                set.uncounted_max = set.uncounted_max.max(value);
            }
            let bin = (time / set.bin.max(1)).min(room.bins - 1);
            let bin = bins.entry(bin).or_insert(Bin {
                set: number,
                number: bin,
                n: 0,
                sum: 0,
                min: u64::MAX,
                max: 0,
            });
            bin.n += 1;
            bin.sum += value;
            bin.min = bin.min.min(value);
            bin.max = bin.max.max(value);
        }
        set.min = set.min.min(set.max);
        set.kept = lists.events.len() as u64;
        set.raw = lists.raw.len() as u64;
        let counts = counts.into_iter().map(|((part, value), count)| Count {
            set: number,
            part,
            value,
            count,
        });
        lists.counts = counts.collect();
        lists.bins = bins.into_values().collect();
        lists
    }

    /// Returns the records of the set.
    #[must_use]
    pub fn records(&self) -> Vec<Record<'static>> {
        let period = self.set.period;
        let sample = |row: Sample, before| row.pack(before, period);
        let mut records = vec![Record::Set(self.set)];
        let mut put = |of: fn(List<'static>) -> Record<'static>, lists: Vec<List<'static>>| {
            records.extend(lists.into_iter().map(of));
        };
        put(Record::Parts, packed(&self.parts, Part::pack));
        put(Record::Counts, packed(&self.counts, Count::pack));
        put(Record::Events, packed(&self.events, sample));
        put(Record::Raw, packed(&self.raw, sample));
        put(Record::Envelope, packed(&self.bins, |row, _| row.pack()));
        records
    }

    /// Checks that the lists agree with the head.
    ///
    /// # Panics
    ///
    /// Panics if they do not.
    pub fn check(&self) {
        let set = &self.set;
        let sum = |values: &mut dyn Iterator<Item = u64>| values.sum::<u64>();
        let counted = sum(&mut self.counts.iter().map(|row| row.count));
        let cycles = sum(&mut self.counts.iter().map(|row| row.value * row.count));
        if set.squares_below.is_some() {
            assert_eq!(counted, set.kept);
        } else {
            let whole = (counted + set.uncounted, cycles + set.uncounted_sum);
            assert_eq!(whole, (set.n, set.sum), "{set:?}");
            let of_bins = (
                sum(&mut self.bins.iter().map(|bin| bin.n)),
                sum(&mut self.bins.iter().map(|bin| bin.sum)),
            );
            assert_eq!(of_bins, (set.n, set.sum), "{set:?}");
            let values = || self.counts.iter().map(|row| row.value);
            let max = values().max().unwrap_or(0).max(set.uncounted_max);
            assert_eq!(max, set.max, "{set:?}");
            assert!(set.uncounted > 0 || values().min().unwrap_or(0) == set.min);
        }
        let place = |row: &Count| (row.part, row.value);
        assert!(self.counts.is_sorted_by(|a, b| place(a) < place(b)));
        assert!(self.counts.iter().all(|row| row.part < set.parts));
        let kept = (self.events.len() as u64, self.raw.len() as u64);
        assert_eq!(kept, (set.listed.unwrap_or(set.kept), set.raw));
        for list in [&self.events, &self.raw] {
            assert!(list.is_sorted_by(|a, b| a.index < b.index));
            let is_in_time = |row: &Sample| match set.period {
                0 => row.time <= set.last.wrapping_sub(set.first),
                period => row.time == row.index * period,
            };
            assert!(list.iter().all(is_in_time));
        }
        assert!(self.events.iter().all(|row| row.value >= set.threshold));
    }
}

/// Packs rows into lists.
fn packed<T: Copy, const N: usize>(
    rows: &[T],
    pack: impl Fn(T, Option<T>) -> [u64; N],
) -> Vec<List<'static>> {
    let mut lists = Vec::new();
    let packed = in_lists(rows.iter().copied(), pack, |rows| {
        let rows = Packed(rows.0.to_vec().leak());
        lists.push(List { rows });
        Ok::<_, Infallible>(())
    });
    let Ok(()) = packed;
    lists
}

/// Returns the output of an instance: its own records, its sets, and further ones.
///
/// # Panics
///
/// Panics if a record is too long for a line.
#[must_use]
pub fn instance(sets: &[Lists], more: &[Record<'_>]) -> Vec<Vec<u8>> {
    let mut records = vec![
        Record::Hello(Hello {
            protocol: PROTOCOL,
            version: "1.2.3",
            environment: "linux",
            plan: "",
        }),
        Record::Ready(Ready {
            tsc: 1,
            monotonic_ns: Some(2),
            cpu: Some(1),
            buffer_bytes: 48_000,
            locked: true,
            latency_held: false,
        }),
        Record::Calibration(Calibration {
            fenced_region_cycles: 78,
            fenced_cost_cycles: 104.5,
            published_region_cycles: 52,
            published_cost_cycles: 60.25,
            bare_read_cycles: 25.96,
            step_cycles: 26,
            loop_cycles: 1.0 / 3.0,
        }),
    ];
    for lists in sets {
        records.extend_from_slice(&lists.records());
    }
    records.extend_from_slice(more);
    records.push(Record::End(End {
        records: records.len() as u64,
    }));
    let mut encoder = Encoder::default();
    let line = |record| encoder.encode(record).unwrap().to_vec();
    records.iter().map(line).collect()
}
