//! The folder of one cell: written whole or not at all, read with suspicion.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use crate::bounds;
use crate::disk::{Folder, Unwritten, at};
use crate::layout;
use crate::model::{Cell, CellPlan, Samples};
use crate::record;
use crate::samples;
use crate::sums::{self, Sums};

/// Says which file is damaged and how.
#[derive(Debug)]
pub(crate) struct Damage {
    pub path: PathBuf,
    pub reason: String,
}

/// Holds the files of a cell, ready to be written.
#[derive(Debug)]
pub(crate) struct Files(Vec<(&'static str, Vec<u8>)>);

impl Files {
    /// Encodes a cell after checking that it can be read back; says what contradicts itself.
    pub(crate) fn encode(cell: &Cell, samples: Option<&Samples>) -> Result<Self, String> {
        bounds::check_cell(cell)?;
        let mut files = vec![packed(cell)?];
        match (cell.outcome.record(), samples) {
            (Some(record), Some(samples)) => {
                samples::check(record, samples)
                    .map_err(|(file, reason)| format!("{file} {reason}"))?;
                let contents = samples::encode(cell.plan.id, &cell.plan.work, samples)?;
                files.extend(samples::FILES.into_iter().zip(contents));
            }
            (Some(_), None) => return Err("it is done, but has no samples".to_owned()),
            (None, Some(_)) => return Err("it was not measured, but has samples".to_owned()),
            (None, None) => {}
        }
        for (name, content) in &files {
            layout::check_size(name, content)?;
        }
        Ok(Self(files))
    }

    /// Writes the files into a new folder of this name.
    ///
    /// Says which path it could not write; nothing is left of the folder then.
    pub(crate) fn prepare(&self, cells: &Folder, partial: &str) -> Result<(), Unwritten> {
        self.write(cells, partial).inspect_err(|_| {
            // What cannot be removed either is removed by the next attempt at this cell.
            let _ = cells.remove(partial);
        })
    }

    fn write(&self, cells: &Folder, partial: &str) -> Result<(), Unwritten> {
        let path = cells.path_of(partial);
        let folder = cells.make_folder(partial).map_err(at(&path))?;
        let files = self.0.iter();
        let sums = Sums::of(files.map(|(name, content)| (*name, content.as_slice())));
        let sums = sums.text().into_bytes();
        for (name, content) in self.0.iter().chain([&(sums::NAME, sums)]) {
            let written = folder.write_new(name, content);
            written.map_err(at(&folder.path_of(name)))?;
        }
        folder.sync().map_err(at(&path))
    }
}

/// A cell folder whose record was read.
#[derive(Debug)]
pub(crate) struct Recorded {
    folder: Folder,
    sums: Sums,
    pub cell: Cell,
}

impl Recorded {
    /// Reads the record of the cell that `plan` describes from the folder of a name; `None` if
    /// there is no such folder.
    pub(crate) fn read(
        cells: &Folder,
        name: &str,
        plan: &CellPlan,
    ) -> Result<Option<Self>, Damage> {
        let folder = match cells.folder(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| unreadable(cells, name, &error))?,
        };
        let sums = read(&folder, sums::NAME)?;
        let sums = Sums::parse(&sums).map_err(|reason| damage(&folder, sums::NAME, reason))?;
        let is_packed = sums.has(layout::PACKED_CELL);
        let name = if is_packed {
            layout::PACKED_CELL
        } else {
            layout::CELL
        };
        let broken = |reason| damage(&folder, name, reason);
        let mut content = read_checked(&folder, name, &sums)?;
        if is_packed {
            let text = unpacked(&content);
            content = text.map_err(|error| broken(format!("is damaged: {error}")))?;
        }
        let cell: Cell = record::decode(&content).map_err(|error| broken(error.reason()))?;
        if cell.plan != *plan {
            let reason = "belongs to another plan than plan.json".to_owned();
            return Err(broken(reason));
        }
        bounds::check_cell(&cell).map_err(|problem| broken(format!("is damaged: {problem}")))?;
        Ok(Some(Self { folder, sums, cell }))
    }

    /// Compares the checksums of the samples.
    pub(crate) fn check_samples(&self) -> Result<(), Damage> {
        let is_done = self.cell.outcome.record().is_some();
        for name in samples::FILES.into_iter().filter(|_| is_done) {
            self.open_samples(name)?;
        }
        Ok(())
    }

    /// Reads the samples of a cell that is done; those of another are empty.
    pub(crate) fn samples(&self) -> Result<Samples, Damage> {
        let Some(record) = self.cell.outcome.record() else {
            return Ok(Samples::default());
        };
        let broken = |(name, reason)| damage(&self.folder, name, reason);
        let [instances, counts, events, envelope, raw] =
            samples::FILES.map(|name| self.open_samples(name));
        let files = [instances?, counts?, events?, envelope?, raw?];
        let samples = samples::decode(self.cell.plan.id, &record.sets, files).map_err(broken)?;
        samples::check(record, &samples).map_err(broken)?;
        Ok(samples)
    }

    /// Opens a file of samples after comparing its checksum. It is read again from there: whole, it
    /// may be larger than the samples.
    fn open_samples(&self, name: &'static str) -> Result<File, Damage> {
        let failed = |error: io::Error| unreadable(&self.folder, name, &error);
        let file = self.folder.open_to_read(name, layout::most_bytes(name));
        let file = file.map_err(failed)?;
        let checked = self.sums.check_read(name, &file).map_err(failed)?;
        checked.map_err(|reason| damage(&self.folder, name, reason))?;
        Ok(file)
    }
}

/// Encodes the record of a cell, that of a long run compressed: it has hundreds of cells, and the
/// kernel's events repeat few names.
fn packed(cell: &Cell) -> Result<(&'static str, Vec<u8>), String> {
    // That of small files: a tenth less than by default.
    const LEVEL: i32 = 19;
    let mut sets = cell.outcome.record().into_iter().flat_map(|of| &of.sets);
    let is_long = sets.any(|head| head.listed.is_some());
    let content = record::encode(cell, !is_long)?;
    if !is_long {
        return Ok((layout::CELL, content));
    }
    let packed = zstd::encode_all(&*content, LEVEL);
    Ok((
        layout::PACKED_CELL,
        packed.map_err(|error| error.to_string())?,
    ))
}

/// Reads what [`packed`] has compressed, which is no larger than a record may be.
fn unpacked(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let most = layout::most_bytes(layout::CELL);
    zstd::Decoder::new(content)?
        .take(most)
        .read_to_end(&mut text)?;
    Ok(text)
}

fn read_checked(folder: &Folder, name: &'static str, sums: &Sums) -> Result<Vec<u8>, Damage> {
    let content = read(folder, name)?;
    sums.check(name, &content)
        .map_err(|reason| damage(folder, name, reason))?;
    Ok(content)
}

fn read(folder: &Folder, name: &str) -> Result<Vec<u8>, Damage> {
    let read = folder.read(name, layout::most_bytes(name));
    read.map_err(|error| unreadable(folder, name, &error))
}

/// Says why something in a folder cannot be read.
pub(crate) fn unreadable(folder: &Folder, name: &str, error: &io::Error) -> Damage {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "is missing".to_owned(),
        io::ErrorKind::InvalidData => error.to_string(),
        _ => format!("cannot be read ({error})"),
    };
    damage(folder, name, reason)
}

fn damage(folder: &Folder, name: &str, reason: String) -> Damage {
    let path = folder.path_of(name);
    Damage { path, reason }
}
