//! Writes records, and splits lists so that each fits into a line.

use core::fmt::{self, Write};

use heapless::String;
use tare_wire::line::{Encoder, TooLong};
use tare_wire::packed::Packer;
use tare_wire::record::{End, Fact, List, Notice, Record};
use tare_workloads::gap::Gap;

use crate::envelope::Bin;
use crate::platform::{Platform, WriteError};

/// Is how long a text of a record can be; what is longer is cut.
const TEXT: usize = 1_000;

/// Is how long the value of a fact can be: a kernel's command line, as a rule.
const VALUE: usize = 2_100;

/// Puts a text together without allocation.
pub fn text(content: &impl fmt::Display) -> String<TEXT> {
    let mut text = String::new();
    // A text that is too long stays cut: an error here is no reason to lose the record.
    let _ = write!(text, "{content}");
    text
}

/// Cuts a text to at most `most` bytes, between two characters.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Numbers records and writes them.
#[derive(Default)]
pub struct Output {
    encoder: Encoder,
}

#[expect(
    clippy::redundant_closure,
    reason = "a variant's constructor is not general over the lifetime of its list"
)]
impl Output {
    /// Writes one record.
    pub fn put(
        &mut self,
        platform: &mut impl Platform,
        record: &Record<'_>,
    ) -> Result<(), WriteError> {
        match self.encoder.encode(record) {
            Ok(line) => platform.write(line),
            // All texts are bounded by TEXT and all lists by the packer.
            Err(TooLong) => unreachable!("a record that does not fit into a line"),
        }
    }

    /// Writes a remark.
    pub fn notice(&mut self, platform: &mut impl Platform, text: &str) -> Result<(), WriteError> {
        self.put(platform, &Record::Notice(Notice { text }))
    }

    /// Writes what the platform tells of the place.
    pub fn facts(&mut self, platform: &mut impl Platform) -> Result<(), WriteError> {
        for number in 0.. {
            // A copy, because writing takes the platform, too.
            let mut value = String::<VALUE>::new();
            let Some((name, told)) = platform.fact(number) else {
                break;
            };
            let _ = value.push_str(cut(told, VALUE));
            self.put(
                platform,
                &Record::Fact(Fact {
                    name,
                    value: &value,
                }),
            )?;
        }
        Ok(())
    }

    /// Writes counts per value, ascending.
    pub fn counts(
        &mut self,
        platform: &mut impl Platform,
        counts: impl Iterator<Item = (u64, u64)>,
    ) -> Result<(), WriteError> {
        let mut before = 0;
        self.list(
            platform,
            |list| Record::Counts(list),
            counts,
            |(value, count), first| {
                let base = if first { 0 } else { before };
                before = value;
                [value - base, count]
            },
        )
    }

    /// Writes delays in order of time, relative to the batch's first stamp.
    pub fn delays(
        &mut self,
        platform: &mut impl Platform,
        first_tsc: u64,
        delays: &[Gap],
    ) -> Result<(), WriteError> {
        let mut before = (0, first_tsc);
        self.list(
            platform,
            |list| Record::Delays(list),
            delays.iter(),
            |delay, first| {
                let (index, start) = if first { (0, first_tsc) } else { before };
                before = (delay.index, delay.start);
                [
                    delay.index - index,
                    delay.start.wrapping_sub(start),
                    delay.length,
                ]
            },
        )
    }

    /// Writes raw samples, relative to the batch's first stamp.
    pub fn window(
        &mut self,
        platform: &mut impl Platform,
        first_tsc: u64,
        samples: impl Iterator<Item = Gap>,
    ) -> Result<(), WriteError> {
        self.list(
            platform,
            |list| Record::Window(list),
            samples,
            |sample, _| {
                [
                    sample.index,
                    sample.start.wrapping_sub(first_tsc),
                    sample.length,
                ]
            },
        )
    }

    /// Writes the bins that hold samples.
    pub fn envelope(
        &mut self,
        platform: &mut impl Platform,
        bins: &[Bin],
    ) -> Result<(), WriteError> {
        let filled = (0_u64..).zip(bins).filter(|(_, bin)| bin.count > 0);
        let mut before = 0;
        self.list(
            platform,
            |list| Record::Envelope(list),
            filled,
            |(number, bin), first| {
                let base = if first { 0 } else { before };
                before = number;
                [number - base, bin.count, bin.sum, bin.shortest, bin.longest]
            },
        )
    }

    /// Ends the sequence.
    pub fn end(&mut self, platform: &mut impl Platform) -> Result<(), WriteError> {
        let records = self.encoder.written();
        self.put(platform, &Record::End(End { records }))
    }

    /// Packs rows into as few records as hold them. `row` is told whether a row is the first of
    /// its record, where differences start anew.
    pub fn list<T: Clone, const N: usize>(
        &mut self,
        platform: &mut impl Platform,
        record: impl Fn(List<'_>) -> Record<'_>,
        items: impl Iterator<Item = T>,
        mut row: impl FnMut(T, bool) -> [u64; N],
    ) -> Result<(), WriteError> {
        let mut packer = Packer::default();
        for item in items {
            let first = packer.is_empty();
            if !packer.push(row(item.clone(), first)) {
                let rows = packer.packed();
                self.put(platform, &record(List { rows }))?;
                packer.clear();
                let fits = packer.push(row(item, true));
                debug_assert!(fits, "an empty record holds any row");
            }
        }
        if packer.is_empty() {
            return Ok(());
        }
        let rows = packer.packed();
        self.put(platform, &record(List { rows }))
    }
}
