//! The samples of one cell as Parquet files, the same for every experiment.
//!
//! Each file is one flat table whose first column is the cell's number and whose second is the
//! set's, so that the files of a whole run can be read as one table: `cells/*/counts.parquet`. All
//! numbers are unsigned.

mod check;
mod pages;
mod table;

use std::fs::File;
use std::panic;

use parquet::errors::ParquetError;

use crate::model::{
    Bin, Count, Event, Instance, MOST_INSTANCES, SCHEMA, Samples, SetHead, SetSamples,
};
use crate::work::Work;
pub(crate) use check::check;
use table::{Column, Row, Width};

/// The files in the order in which they are written.
pub(crate) const FILES: [&str; 5] = [
    "instances.parquet",
    "counts.parquet",
    "events.parquet",
    "envelope.parquet",
    "raw.parquet",
];

/// Encodes the samples of a cell, which was asked to do `work`: one content for each of [`FILES`].
pub(crate) fn encode(id: u32, work: &Work, samples: &Samples) -> Result<[Vec<u8>; 5], String> {
    let about = [
        ("tare.schema", SCHEMA.to_string()),
        ("tare.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("tare.plan", work.to_string()),
    ];
    fn each<R>(samples: &Samples, list: fn(&SetSamples) -> &[R]) -> Vec<&[R]> {
        samples.sets.iter().map(list).collect()
    }
    let encoded = || {
        Ok([
            table::encode(id, &[&samples.instances], &about)?,
            table::encode(id, &each(samples, |set| &set.counts), &about)?,
            table::encode(id, &each(samples, |set| &set.events), &about)?,
            table::encode(id, &each(samples, |set| &set.envelope), &about)?,
            table::encode(id, &each(samples, |set| &set.raw), &about)?,
        ])
    };
    encoded().map_err(|error: ParquetError| error.to_string())
}

/// Decodes the contents of [`FILES`] for a cell whose sets have these heads; for the first one that
/// is damaged, says which and why.
pub(crate) fn decode(
    id: u32,
    heads: &[SetHead],
    files: [File; 5],
) -> Result<Samples, (&'static str, String)> {
    let [instances, counts, events, envelope, raw] = files;
    let of = |name: &'static str| move |reason| (name, reason);
    let most = |of: fn(&SetHead) -> u64| heads.iter().map(of).fold(0, u64::saturating_add);
    // Each value and each bin has a sample at least.
    let counted = most(|head| match head.squares_below {
        Some(_) => head.kept,
        None => head.n,
    });
    let (kept, in_raw) = (most(|head| head.kept), most(|head| head.raw));
    let sets = heads.len();
    let instances = rows(id, 1, MOST_INSTANCES, instances).map_err(of(FILES[0]))?;
    let counts = rows(id, sets, counted, counts).map_err(of(FILES[1]))?;
    let events = rows(id, sets, kept, events).map_err(of(FILES[2]))?;
    let envelope = rows(id, sets, counted, envelope).map_err(of(FILES[3]))?;
    let raw = rows(id, sets, in_raw, raw).map_err(of(FILES[4]))?;
    let lists = counts.into_iter().zip(events).zip(envelope).zip(raw);
    let sets = lists.map(|(((counts, events), envelope), raw)| SetSamples {
        counts,
        events,
        envelope,
        raw,
    });
    Ok(Samples {
        instances: instances.into_iter().flatten().collect(),
        sets: sets.collect(),
    })
}

/// Decodes one file of at most `most` rows.
///
/// The Parquet library panics on some damaged files instead of returning an error. The checksum
/// has been compared before, so hardly one comes here; should it, one cell that cannot be read must
/// not take the report of all others with it.
fn rows<R: Row>(id: u32, sets: usize, most: u64, file: File) -> Result<Vec<Vec<R>>, String> {
    panic::catch_unwind(|| table::decode(id, sets, most, file)).unwrap_or_else(|_| {
        Err("is damaged in a way that the Parquet library does not handle".to_owned())
    })
}

/// Makes a struct the row of a table: its fields are the columns behind the numbers of cell and
/// set, and of those types.
macro_rules! row {
    ($row:ident: $($field:ident $width:ident),+) => {
        impl Row for $row {
            const COLUMNS: &'static [Column<Self>] =
                &[$(Column::new(stringify!($field), Width::$width, |row| row.$field.into())),+];

            fn from_values(mut next: impl FnMut() -> u64) -> Self {
                // A column of 32 bits holds no more.
                Self { $($field: next() as _),+ }
            }
        }
    };
}

row!(Count: value U64, count U64);
row!(Event: index U64, at U64, value U64);
row!(Bin: bin U32, n U64, sum U64, min U64, max U64);
row!(
    Instance: program U32, planned_ns U64, started_ns U64, ready_ns U64, exited_ns U64, fate U32, failure U32, counts U32,
    status U32, reset_ns U64, kernel_ns U64, main_ns U64, user_ns U64, system_ns U64, own_ns U64, peak_bytes U64
);

#[cfg(test)]
mod tests;
