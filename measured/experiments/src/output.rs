//! Writes records, and splits lists so that each fits into a line.

use core::fmt::{self, Write};

use heapless::String;
use tare_wire::line::{Encoder, TooLong};
use tare_wire::packed::in_lists;
use tare_wire::record::{End, Fact, List, Notice, Record, Set, Value};
use tare_wire::rows::{self, Count, Part, Sample};

use crate::envelope::Bin;
use crate::platform::{Platform, WriteError};

/// The maximum length of texts in records; longer texts are truncated.
const TEXT: usize = 1_000;

/// The maximum length of a fact's value, usually the kernel's command line.
const FACT: usize = 2_100;

/// Formats a text without allocation.
pub fn text(content: &impl fmt::Display) -> String<TEXT> {
    let mut text = String::new();
    // A truncated text is no reason to lose the record.
    let _ = write!(text, "{content}");
    text
}

/// Returns each value of a sorted sequence with its number of occurrences.
pub fn runs(sorted: impl Iterator<Item = u64>) -> impl Iterator<Item = (u64, u64)> {
    let mut sorted = sorted.peekable();
    core::iter::from_fn(move || {
        let value = sorted.next()?;
        let mut count = 1;
        while sorted.next_if_eq(&value).is_some() {
            count += 1;
        }
        Some((value, count))
    })
}

/// Truncates a text to at most `most` bytes, between two characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Numbers records and writes them to a platform.
pub struct Output<'p, P> {
    /// The platform.
    pub platform: &'p mut P,
    encoder: Encoder,
}

#[expect(
    clippy::redundant_closure,
    reason = "a variant's constructor is not general over the lifetime of its list"
)]
impl<'p, P: Platform> Output<'p, P> {
    /// Starts at record 0.
    pub fn new(platform: &'p mut P) -> Self {
        let encoder = Encoder::default();
        Self { platform, encoder }
    }

    /// Writes one record.
    pub fn put(&mut self, record: &Record<'_>) -> Result<(), WriteError> {
        match self.encoder.encode(record) {
            Ok(line) => self.platform.write(line),
            // All texts are bounded by TEXT and all lists by the packer.
            Err(TooLong) => unreachable!("a record that does not fit into a line"),
        }
    }

    /// Sends buffered records.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.platform.flush()
    }

    /// Writes a notice.
    pub fn notice(&mut self, text: &str) -> Result<(), WriteError> {
        self.put(&Record::Notice(Notice { text }))
    }

    /// Writes the facts that the platform reports about its environment.
    pub fn facts(&mut self) -> Result<(), WriteError> {
        for number in 0.. {
            // A copy, because writing borrows the platform, too.
            let mut value = String::<FACT>::new();
            let Some((name, told)) = self.platform.fact(number) else {
                break;
            };
            let _ = value.push_str(cut(told, FACT));
            self.fact(name, "", &value)?;
        }
        Ok(())
    }

    /// Writes a fact about a part of the environment; without labels, about the whole.
    pub fn fact(&mut self, name: &str, labels: &str, value: &str) -> Result<(), WriteError> {
        self.put(&Record::Fact(Fact {
            name,
            labels,
            value,
        }))
    }

    /// Writes values that are not sampled, each with its measure and unit; a bare number has no
    /// unit.
    pub fn values(&mut self, labels: &str, values: &[(&str, &str, u64)]) -> Result<(), WriteError> {
        for &(measure, unit, value) in values {
            let value = value as f64;
            self.put(&Record::Value(Value {
                measure,
                labels,
                unit,
                value,
            }))?;
        }
        Ok(())
    }

    /// Writes counts per value, by rising set, part and value.
    pub fn counts(&mut self, counts: impl Iterator<Item = Count>) -> Result<(), WriteError> {
        self.list(|list| Record::Counts(list), counts, Count::pack)
    }

    /// Writes a set of sorted values of which only the numbers of occurrences are known.
    ///
    /// `set` describes the time of the measurement, and the values that are not among these: its
    /// uncounted ones, which are above all others.
    pub fn sorted(&mut self, set: Set<'_>, values: &[u64]) -> Result<(), WriteError> {
        self.put(&Record::Set(Set {
            n: values.len() as u64 + set.uncounted,
            sum: values.iter().sum::<u64>().saturating_add(set.uncounted_sum),
            min: values.first().copied().unwrap_or(set.uncounted_min),
            max: values
                .last()
                .copied()
                .unwrap_or_default()
                .max(set.uncounted_max),
            parts: 1,
            ..set
        }))?;
        let counts = runs(values.iter().copied()).map(|(value, count)| Count {
            set: set.number,
            part: 0,
            value,
            count,
        });
        self.counts(counts)
    }

    /// Writes the samples at or above the threshold of a set, by rising index.
    pub fn events(
        &mut self,
        period: u64,
        samples: impl Iterator<Item = Sample>,
    ) -> Result<(), WriteError> {
        let pack = |sample: Sample, before| sample.pack(before, period);
        self.list(|list| Record::Events(list), samples, pack)
    }

    /// Writes raw samples of a set, by rising index.
    pub fn raw(
        &mut self,
        period: u64,
        samples: impl Iterator<Item = Sample>,
    ) -> Result<(), WriteError> {
        let pack = |sample: Sample, before| sample.pack(before, period);
        self.list(|list| Record::Raw(list), samples, pack)
    }

    /// Writes the bins that have samples.
    pub fn envelope(&mut self, set: u32, bins: &[Bin]) -> Result<(), WriteError> {
        let filled = (0..).zip(bins).filter(|(_, bin)| bin.count > 0);
        let rows = filled.map(|(number, bin)| rows::Bin {
            set,
            number,
            n: bin.count,
            sum: bin.sum,
            min: bin.shortest,
            max: bin.longest,
        });
        let pack = |row: rows::Bin, _| row.pack();
        self.list(|list| Record::Envelope(list), rows, pack)
    }

    /// Writes where parts begin.
    pub fn parts(&mut self, parts: impl Iterator<Item = Part>) -> Result<(), WriteError> {
        self.list(|list| Record::Parts(list), parts, Part::pack)
    }

    /// Writes the last record.
    pub fn end(&mut self) -> Result<(), WriteError> {
        let records = self.encoder.written();
        self.put(&Record::End(End { records }))
    }

    /// Packs rows into as few records as possible.
    fn list<T: Copy, const N: usize>(
        &mut self,
        record: impl Fn(List<'_>) -> Record<'_>,
        rows: impl Iterator<Item = T>,
        pack: impl Fn(T, Option<T>) -> [u64; N],
    ) -> Result<(), WriteError> {
        in_lists(rows, pack, |rows| self.put(&record(List { rows })))
    }
}
