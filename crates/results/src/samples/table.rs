//! One flat table of unsigned numbers as a Parquet file.
//!
//! The column API of the `parquet` crate is used without Arrow: the tables need nothing that Arrow
//! adds, and the build stays small.
//!
//! A file is one row group, compressed with zstd. The numbers of cell and set take a dictionary;
//! all other columns are stored as differences, which suits what rises or stays within a narrow
//! range (DELTA_BINARY_PACKED of the Parquet format).

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{ChunkReader, FileReader, Length, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use super::pages;

/// The name of the first column of every table.
const CELL: &str = "cell";

/// The name of the second column: the place of the row's set in the cell's record.
const SET: &str = "set";

/// The most rows that a file may have, whatever its cell says: as many as the buffers of a thread
/// of measured code may list, and those of all threads together.
const MOST_ROWS: u64 = 1 << 26;

/// How many rows a file may have for its size: the first number in any case, and the second for each
/// of its bytes. A few bytes could claim to be rows that no memory holds.
const ROWS_OF_ANY: u64 = 1 << 20;
const ROWS_OF_A_BYTE: u64 = 4;

/// The most bytes that one value may take, not compressed.
const MOST_BYTES: u64 = 12;

/// The most bytes that what is not rows may take: the pages of a column, and the footer.
const ROOM: u64 = 1 << 16;
const MOST_FOOTER: u64 = 1 << 20;

/// The most rows of a table for which compression, dictionaries and statistics take more than they
/// save.
const FEW_ROWS: usize = 16;

/// How many values are decoded at a time.
const CHUNK: usize = 1 << 16;

/// The width of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    U32,
    U64,
}

impl Width {
    fn bits(self) -> i8 {
        match self {
            Self::U32 => 32,
            Self::U64 => 64,
        }
    }

    fn physical(self) -> Physical {
        match self {
            Self::U32 => Physical::INT32,
            Self::U64 => Physical::INT64,
        }
    }
}

/// Describes a column of a table with rows of type `R`.
pub(super) struct Column<R> {
    name: &'static str,
    width: Width,
    get: fn(&R) -> u64,
}

impl<R> Column<R> {
    pub(super) const fn new(name: &'static str, width: Width, get: fn(&R) -> u64) -> Self {
        Self { name, width, get }
    }
}

/// The row of a table.
pub(super) trait Row: Sized + 'static {
    /// The columns behind the numbers of cell and set.
    const COLUMNS: &'static [Column<Self>];

    /// Makes a row from the values of its columns, one after the other.
    fn from_values(next: impl FnMut() -> u64) -> Self;
}

/// Encodes a table of one cell, set by set; `about` becomes the file's key-value metadata.
pub(super) fn encode<R: Row>(
    cell: u32,
    sets: &[&[R]],
    about: &[(&str, String)],
) -> Result<Vec<u8>, ParquetError> {
    let count: usize = sets.iter().map(|rows| rows.len()).sum();
    check_rows(count as u64, u64::MAX).map_err(ParquetError::General)?;
    let content = encode_with(properties(about, count > FEW_ROWS)?, cell, sets)?;
    match check_rows(count as u64, content.len() as u64) {
        Ok(()) => Ok(content),
        // All alike, they take too few bytes to be read again.
        Err(_) => encode_with(properties(about, false)?, cell, sets),
    }
}

pub(super) fn encode_with<R: Row>(
    properties: WriterProperties,
    cell: u32,
    sets: &[&[R]],
) -> Result<Vec<u8>, ParquetError> {
    let mut content = Vec::new();
    let mut file = SerializedFileWriter::new(&mut content, schema::<R>()?, Arc::new(properties))?;
    let rows = || sets.iter().copied().flatten();
    if rows().next().is_some() {
        let mut group = file.next_row_group()?;
        put(&mut group, Width::U32, rows().map(|_| u64::from(cell)))?;
        let numbers = (0..)
            .zip(sets)
            .flat_map(|(set, rows)| rows.iter().map(move |_| set));
        put(&mut group, Width::U32, numbers)?;
        for column in R::COLUMNS {
            put(&mut group, column.width, rows().map(column.get))?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(content)
}

/// Decodes a table, which must be of this cell, of this number of sets, of at most this number of
/// rows and of exactly these types; returns the problem otherwise.
///
/// Compressed, millions of rows may take a few bytes: what the file claims is compared with what
/// its cell has before anything is decoded. Further columns are left unread: a later version may
/// add some.
pub(super) fn decode<R: Row>(
    cell: u32,
    sets: usize,
    most: u64,
    content: File,
) -> Result<Vec<Vec<R>>, String> {
    let broken = |error: ParquetError| format!("is damaged: {error}");
    let bytes = content.len();
    check_footer(&content)?;
    let pages = content.try_clone().map_err(|error| broken(error.into()))?;
    let file = SerializedFileReader::new(content).map_err(broken)?;
    let metadata = file.metadata().file_metadata();
    let claimed = metadata.num_rows();
    if u64::try_from(claimed).is_err() {
        return Err(format!("is damaged: it claims to have {claimed} rows"));
    }
    check_rows(claimed as u64, bytes)?;
    if claimed as u64 > most {
        return Err(format!(
            "does not match cell.json: it claims to have {claimed} rows, there can be {most}"
        ));
    }
    let mut places = vec![
        (CELL, place(metadata.schema_descr(), CELL, Width::U32)?),
        (SET, place(metadata.schema_descr(), SET, Width::U32)?),
    ];
    for column in R::COLUMNS {
        let place = place(metadata.schema_descr(), column.name, column.width)?;
        places.push((column.name, place));
    }

    let mut decoded: Vec<Vec<R>> = Vec::new();
    decoded.resize_with(sets, Vec::new);
    let (mut last, mut number_of_rows) = (0, 0);
    for number in 0..file.num_row_groups() {
        let group = file.get_row_group(number).map_err(broken)?;
        let left = claimed - number_of_rows;
        let size = group.metadata().num_rows();
        if !(0..=left).contains(&size) {
            return Err("is damaged: its row groups hold more rows than it claims".to_owned());
        }
        number_of_rows += size;
        let mut columns = Vec::with_capacity(places.len());
        for (name, place) in &places {
            check_pages(&*group, &pages, name, *place, size)?;
            columns.push(Values::new(&*group, name, *place)?);
        }
        // All columns go forward together, so that besides the rows only a piece of each is in
        // memory. Within MOST_ROWS, so it fits.
        let mut left = size as usize;
        while left > 0 {
            let piece = left.min(CHUNK);
            left -= piece;
            for column in &mut columns {
                column.read(piece)?;
            }
            let [cells, of, values @ ..] = columns.as_slice() else {
                break;
            };
            let mut cells = cells.values.iter();
            if let Some(other) = cells.find(|number| **number != u64::from(cell)) {
                return Err(format!("belongs to cell {other}, not to cell {cell}"));
            }
            let mut row = 0;
            for run in of.values.chunk_by(|a, b| a == b) {
                let set = run[0];
                if set < last {
                    return Err("is damaged: its sets are not in ascending order".to_owned());
                }
                last = set;
                let of_set = usize::try_from(set)
                    .ok()
                    .and_then(|set| decoded.get_mut(set));
                let of_set = of_set.ok_or_else(|| {
                    format!("does not match cell.json: it has set {set}, counted from 0, of {sets}")
                })?;
                let end = row + run.len();
                of_set.extend((row..end).map(|row| {
                    let mut columns = values.iter();
                    R::from_values(|| columns.next().map_or(0, |column| column.values[row]))
                }));
                row = end;
            }
        }
    }
    if number_of_rows != claimed {
        return Err(format!(
            "is damaged: it claims {claimed} rows and has {number_of_rows}"
        ));
    }
    Ok(decoded)
}

/// Checks that a file of a size can have this number of rows: a file that is written can be read.
fn check_rows(rows: u64, bytes: u64) -> Result<(), String> {
    if rows > MOST_ROWS {
        return Err(format!("is too large: {rows} rows, at most {MOST_ROWS}"));
    }
    match rows <= ROWS_OF_ANY.saturating_add(bytes.saturating_mul(ROWS_OF_A_BYTE)) {
        true => Ok(()),
        false => Err(format!(
            "is damaged: it claims to have {rows} rows in {bytes} bytes"
        )),
    }
}

/// Checks that the footer is no larger than one of few columns is: it is read whole.
fn check_footer(file: &File) -> Result<(), String> {
    let end = file.len().checked_sub(8);
    let end = end.and_then(|start| file.get_bytes(start, 4).ok());
    let length = end.and_then(|end| Some(u32::from_le_bytes(end[..].try_into().ok()?)));
    match length.map(u64::from) {
        Some(length) if length > MOST_FOOTER => {
            Err(format!("is damaged: its footer has {length} bytes"))
        }
        // Of one without a footer, the reader says so.
        _ => Ok(()),
    }
}

fn schema<R: Row>() -> Result<TypePtr, ParquetError> {
    let mut fields = vec![field(CELL, Width::U32)?, field(SET, Width::U32)?];
    for column in R::COLUMNS {
        fields.push(field(column.name, column.width)?);
    }
    let table = Type::group_type_builder("table").with_fields(fields);
    Ok(Arc::new(table.build()?))
}

fn field(name: &str, width: Width) -> Result<TypePtr, ParquetError> {
    let field = Type::primitive_type_builder(name, width.physical())
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::integer(width.bits(), false)));
    Ok(Arc::new(field.build()?))
}

/// Returns how a file is written: small, or with each number in its place.
pub(super) fn properties(
    about: &[(&str, String)],
    small: bool,
) -> Result<WriterProperties, ParquetError> {
    let (compression, encoding) = match small {
        true => (
            Compression::ZSTD(ZstdLevel::try_new(1)?),
            Encoding::DELTA_BINARY_PACKED,
        ),
        false => (Compression::UNCOMPRESSED, Encoding::PLAIN),
    };
    let pair = |(key, value): &(&str, String)| KeyValue::new((*key).to_owned(), value.clone());
    let properties = WriterProperties::builder()
        .set_created_by(concat!("tare version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(compression)
        .set_encoding(encoding)
        .set_dictionary_enabled(false)
        .set_column_dictionary_enabled(CELL.into(), small)
        .set_column_dictionary_enabled(SET.into(), small)
        .set_statistics_enabled(match small {
            true => EnabledStatistics::Chunk,
            false => EnabledStatistics::None,
        })
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(about.iter().map(pair).collect()));
    Ok(properties.build())
}

/// Writes the next column. Parquet stores unsigned numbers in signed ones of the same width.
fn put<W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    width: Width,
    values: impl Iterator<Item = u64>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General(
            "the schema has too few columns".to_owned(),
        ));
    };
    match width {
        Width::U32 => {
            let values: Vec<i32> = values.map(|value| value as i32).collect();
            let column = column.typed::<Int32Type>();
            column.write_batch(&values, None, None)?;
        }
        Width::U64 => {
            let values: Vec<i64> = values.map(u64::cast_signed).collect();
            let column = column.typed::<Int64Type>();
            column.write_batch(&values, None, None)?;
        }
    }
    column.close()
}

/// Finds a column by its name and checks its type.
fn place(schema: &SchemaDescriptor, name: &str, width: Width) -> Result<usize, String> {
    let found = schema
        .columns()
        .iter()
        .position(|column| column.path().string() == name);
    let place = found.ok_or(format!("is damaged: it has no column {name}"))?;
    let column = schema.column(place);
    let right = column.physical_type() == width.physical()
        && column.logical_type_ref() == Some(&LogicalType::integer(width.bits(), false))
        && column.max_def_level() == 0
        && column.max_rep_level() == 0;
    if right {
        Ok(place)
    } else {
        let bits = width.bits();
        Err(format!(
            "is damaged: its column {name} is not of unsigned {bits}-bit numbers"
        ))
    }
}

/// A column of a row group, read piece by piece.
struct Values<'a> {
    name: &'a str,
    column: ColumnReader,
    /// The last piece.
    values: Vec<u64>,
}

impl<'a> Values<'a> {
    fn new(group: &dyn RowGroupReader, name: &'a str, place: usize) -> Result<Self, String> {
        let column = group.get_column_reader(place);
        Ok(Self {
            name,
            column: column.map_err(|error| broken_column(name, &error))?,
            values: Vec::new(),
        })
    }

    /// Reads exactly `size` values.
    fn read(&mut self, size: usize) -> Result<(), String> {
        self.values.clear();
        let read = match &mut self.column {
            ColumnReader::Int32ColumnReader(column) => {
                read(column, size, &mut self.values, |value| value as u32)
            }
            ColumnReader::Int64ColumnReader(column) => {
                read(column, size, &mut self.values, |value| value as u64)
            }
            _ => {
                let name = self.name;
                return Err(format!(
                    "is damaged: its column {name} is not of whole numbers"
                ));
            }
        };
        read.map_err(|error| broken_column(self.name, &error))?;
        match self.values.len() {
            found if found == size => Ok(()),
            found => Err(format!(
                "is damaged: its column {} has {found} values where {size} are due",
                self.name
            )),
        }
    }
}

/// Checks that the pages of a column are no larger than this number of values can be.
fn check_pages(
    group: &dyn RowGroupReader,
    file: &File,
    name: &str,
    place: usize,
    size: i64,
) -> Result<(), String> {
    let most = size as u64 * MOST_BYTES + ROOM;
    let check = |bytes: u64| match bytes <= most {
        true => Ok(()),
        false => Err(format!(
            "is damaged: its column {name} claims {bytes} bytes for {size} rows"
        )),
    };
    let (start, stored) = group.metadata().column(place).byte_range();
    check(stored)?;
    let pages = file.get_bytes(start, stored as usize).ok();
    let bytes = pages.and_then(|pages| pages::size(&pages));
    check(bytes.ok_or_else(|| format!("is damaged: its column {name} has no pages"))?)
}

fn broken_column(name: &str, error: &ParquetError) -> String {
    format!("is damaged in column {name}: {error}")
}

/// Reads up to `size` values; a page may end before.
fn read<T: DataType, V: Into<u64>>(
    column: &mut ColumnReaderImpl<T>,
    size: usize,
    values: &mut Vec<u64>,
    of: impl Fn(T::T) -> V,
) -> Result<(), ParquetError> {
    let mut chunk = Vec::with_capacity(size);
    while values.len() < size {
        column.read_records(size - values.len(), None, None, &mut chunk)?;
        if chunk.is_empty() {
            break;
        }
        values.extend(chunk.drain(..).map(|value| of(value).into()));
    }
    Ok(())
}
