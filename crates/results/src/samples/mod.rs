//! The samples of one cell as Parquet files, the same for every experiment.
//!
//! Each file is one flat table whose first column is the cell's number and whose second is the set's, so that the files of
//! a whole run can be read as one table: `cells/*/counts.parquet`. All numbers are unsigned.

mod check;
mod table;

use std::panic;

use crate::model::{Bin, CellPlan, Count, Event, Instance, SCHEMA, Samples, SetSamples};
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

/// Encodes the samples of a cell, one content for each of [`FILES`].
pub(crate) fn encode(plan: &CellPlan, samples: &Samples) -> Result<[Vec<u8>; 5], String> {
    let about = [
        ("tare.schema", SCHEMA.to_string()),
        ("tare.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("tare.plan", plan.work.to_string()),
    ];
    let id = plan.id;
    fn of<R>(samples: &Samples, list: fn(&SetSamples) -> &[R]) -> Vec<&[R]> {
        samples.sets.iter().map(list).collect()
    }
    let counts = of(samples, |set| &set.counts);
    let events = of(samples, |set| &set.events);
    let envelope = of(samples, |set| &set.envelope);
    let raw = of(samples, |set| &set.raw);
    let failed = |error: parquet::errors::ParquetError| error.to_string();
    Ok([
        table::encode(id, &[&samples.instances], &about).map_err(failed)?,
        table::encode(id, &counts, &about).map_err(failed)?,
        table::encode(id, &events, &about).map_err(failed)?,
        table::encode(id, &envelope, &about).map_err(failed)?,
        table::encode(id, &raw, &about).map_err(failed)?,
    ])
}

/// Decodes the contents of [`FILES`] for a cell with so many sets; for the first one that is damaged, says which and
/// why.
pub(crate) fn decode(
    id: u32,
    sets: usize,
    files: [Vec<u8>; 5],
) -> Result<Samples, (&'static str, String)> {
    let [instances, counts, events, envelope, raw] = files;
    let of = |name: &'static str| move |reason| (name, reason);
    let instances = rows(id, 1, instances).map_err(of(FILES[0]))?;
    let counts = rows(id, sets, counts).map_err(of(FILES[1]))?;
    let events = rows(id, sets, events).map_err(of(FILES[2]))?;
    let envelope = rows(id, sets, envelope).map_err(of(FILES[3]))?;
    let raw = rows(id, sets, raw).map_err(of(FILES[4]))?;
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

/// Decodes one file.
///
/// The Parquet library panics on some damaged files instead of returning an error. The checksum
/// has been compared before, so hardly one comes here; should it, one cell that cannot be read must
/// not take the report of all others with it.
fn rows<R: Row>(id: u32, sets: usize, content: Vec<u8>) -> Result<Vec<Vec<R>>, String> {
    panic::catch_unwind(|| table::decode(id, sets, content)).unwrap_or_else(|_| {
        Err("is damaged in a way that the Parquet library does not handle".to_owned())
    })
}

impl Row for Count {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("value", Width::U64, |row| row.value),
        Column::new("count", Width::U64, |row| row.count),
    ];

    fn from_values(values: impl Fn(usize) -> u64) -> Self {
        Self {
            value: values(0),
            count: values(1),
        }
    }
}

impl Row for Event {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("index", Width::U64, |row| row.index),
        Column::new("at", Width::U64, |row| row.at),
        Column::new("value", Width::U64, |row| row.value),
    ];

    fn from_values(values: impl Fn(usize) -> u64) -> Self {
        Self {
            index: values(0),
            at: values(1),
            value: values(2),
        }
    }
}

impl Row for Bin {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("bin", Width::U32, |row| u64::from(row.bin)),
        Column::new("n", Width::U64, |row| row.n),
        Column::new("sum", Width::U64, |row| row.sum),
        Column::new("min", Width::U64, |row| row.min),
        Column::new("max", Width::U64, |row| row.max),
    ];

    fn from_values(values: impl Fn(usize) -> u64) -> Self {
        Self {
            // The column is one of 32 bits, so nothing is cut off.
            bin: values(0) as u32,
            n: values(1),
            sum: values(2),
            min: values(3),
            max: values(4),
        }
    }
}

impl Row for Instance {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("program", Width::U32, |row| u64::from(row.program)),
        Column::new("planned_ns", Width::U64, |row| row.planned_ns),
        Column::new("started_ns", Width::U64, |row| row.started_ns),
        Column::new("ready_ns", Width::U64, |row| row.ready_ns),
        Column::new("exited_ns", Width::U64, |row| row.exited_ns),
    ];

    fn from_values(values: impl Fn(usize) -> u64) -> Self {
        Self {
            program: values(0) as u32,
            planned_ns: values(1),
            started_ns: values(2),
            ready_ns: values(3),
            exited_ns: values(4),
        }
    }
}

#[cfg(test)]
mod tests;
