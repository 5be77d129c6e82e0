//! The sets as they come: each with its head and its lists.

use tare_wire::packed::Malformed;
use tare_wire::record::{self, List, Record};
use tare_wire::rows::{self, Count, Sample};

use super::labels;
use crate::bounds;
use crate::model::{Bin, Event, SetHead, SetSamples};

/// All sets, each at the place of its number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sets(pub Vec<Set>);

/// One set. Its counts are those of parts of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Set {
    pub head: SetHead,
    /// All but the counts.
    pub samples: SetSamples,
    /// By rising part, and value within each.
    pub counts: Vec<Count>,
    /// How many parts there are to be.
    parts: u32,
    /// When each part begins, counted from the set's first sample; empty if there is but one.
    pub begins: Vec<u64>,
}

impl Sets {
    /// Takes the head of the next set.
    pub(super) fn head(&mut self, set: &record::Set<'_>) -> Result<(), Malformed> {
        if set.number as usize != self.0.len() {
            return Err(Malformed);
        }
        self.0.push(Set {
            head: SetHead {
                measure: set.measure.to_owned(),
                labels: labels(set.labels)?,
                unit: set.unit,
                n: set.n,
                sum: set.sum,
                min: set.min,
                max: set.max,
                first: set.first,
                last: set.last,
                period: set.period,
                threshold: set.threshold,
                seen: set.seen,
                kept: set.kept,
                listed: set.listed,
                unkept_max: set.unkept_max,
                unkept_sum: set.unkept_sum,
                squares_below: set.squares_below,
                uncounted: set.uncounted,
                uncounted_sum: set.uncounted_sum,
                sum_at_least: false,
                uncounted_min: set.uncounted_min,
                uncounted_max: set.uncounted_max,
                backwards: set.backwards,
                bin: set.bin,
                raw: set.raw,
            },
            parts: set.parts,
            ..Set::default()
        });
        Ok(())
    }

    /// Takes a list; what is no list is left alone. Returns how many bytes are kept of it.
    pub(super) fn list(&mut self, record: &Record<'_>) -> Result<usize, Malformed> {
        let mut kept = 0;
        match *record {
            Record::Parts(list) => {
                for row in rows::parts(list) {
                    let row = row?;
                    self.of(row.set)?.begins.push(row.begin);
                    kept += size_of_val(&row.begin);
                }
            }
            Record::Counts(list) => {
                for row in rows::counts(list) {
                    let row = row?;
                    self.of(row.set)?.counts.push(row);
                    kept += size_of_val(&row);
                }
            }
            Record::Events(list) => {
                for (set, event) in self.samples(list)? {
                    self.of(set)?.samples.events.push(event);
                    kept += size_of_val(&event);
                }
            }
            Record::Raw(list) => {
                for (set, event) in self.samples(list)? {
                    self.of(set)?.samples.raw.push(event);
                    kept += size_of_val(&event);
                }
            }
            Record::Envelope(list) => {
                for row in rows::bins(list) {
                    let row = row?;
                    let bin = u32::try_from(row.number).map_err(|_| Malformed)?;
                    self.of(row.set)?.samples.envelope.push(Bin {
                        bin,
                        n: row.n,
                        sum: row.sum,
                        min: row.min,
                        max: row.max,
                    });
                    kept += size_of::<Bin>();
                }
            }
            _ => {}
        }
        Ok(kept)
    }

    /// Checks that every set agrees with its lists, and that there are those that others name; says
    /// what contradicts it.
    pub(super) fn check(&self, mut named: impl Iterator<Item = u32>) -> Result<(), String> {
        if let Some(stray) = named.find(|set| *set as usize >= self.0.len()) {
            return Err(format!("there is no set {stray}"));
        }
        self.0.iter().try_for_each(Set::check)
    }

    /// Checks that all figures are such as a measurement can have; says which one is not.
    pub(super) fn check_bounds(&self) -> Result<(), String> {
        self.0.iter().try_for_each(|set| {
            bounds::check_set(&set.head)?;
            let counts = set.counts.iter().map(|row| row.value);
            bounds::check_values(counts.chain(set.samples.values()))
        })
    }

    fn of(&mut self, set: u32) -> Result<&mut Set, Malformed> {
        self.0.get_mut(set as usize).ok_or(Malformed)
    }

    fn samples(&self, list: List<'_>) -> Result<Vec<(u32, Event)>, Malformed> {
        let head = |set: u32| Some(&self.0.get(set as usize)?.head);
        let rows = rows::samples(list, |set| Some(head(set)?.period));
        rows.map(|row| {
            let Sample {
                set,
                index,
                time,
                value,
            } = row?;
            let at = head(set).ok_or(Malformed)?.first.wrapping_add(time);
            Ok((set, Event { index, at, value }))
        })
        .collect()
    }
}

impl Set {
    fn check(&self) -> Result<(), String> {
        let head = &self.head;
        let (due, listed) = (head.listed(), self.samples.events.len());
        if due != listed as u64 {
            return Err(format!("{due} samples were to be listed, {listed} are"));
        }
        let due = match head.squares_below {
            Some(_) => head.kept.into(),
            None => i128::from(head.n) - i128::from(head.uncounted),
        };
        let counted: i128 = self.counts.iter().map(|row| i128::from(row.count)).sum();
        if due != counted {
            return Err(format!("{due} samples were to be counted, {counted} are"));
        }
        let parts = self.begins.len().max(1);
        let is_sound = parts == self.parts.max(1) as usize
            && self.begins.first().is_none_or(|first| *first == 0)
            && self.begins.is_sorted()
            && self.counts.iter().all(|row| (row.part as usize) < parts)
            && self
                .counts
                .is_sorted_by(|a, b| (a.part, a.value) < (b.part, b.value));
        match is_sound {
            true => Ok(()),
            false => Err("the counts or their parts are not in ascending order".to_owned()),
        }
    }
}
