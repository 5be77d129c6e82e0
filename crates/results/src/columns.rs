//! Derived tables as Parquet: columns of texts, numbers and times, each of which may be missing.
//!
//! This one is for tables that others read and tare does not read back: whole columns of several
//! types, with nulls. The samples of cells have a stricter form: unsigned numbers, streamed, without
//! nulls, checked when they are read (`samples/table.rs`). A writer of both would need the sum of
//! the two.

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

/// A column, one entry a row; `None` is null.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Texts.
    Text(Vec<Option<String>>),
    /// Floating-point numbers.
    Real(Vec<Option<f64>>),
    /// Whole numbers.
    Whole(Vec<Option<u32>>),
    /// Moments, in µs since 1970, UTC.
    Time(Vec<Option<i64>>),
    /// Yes or no.
    Truth(Vec<bool>),
}

impl Column {
    fn field(&self, name: &str) -> Result<Type, ParquetError> {
        let (physical, logical) = match self {
            Self::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Real(_) => (Physical::DOUBLE, None),
            Self::Whole(_) => (Physical::INT32, Some(LogicalType::integer(32, false))),
            Self::Time(_) => (
                Physical::INT64,
                Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
            ),
            Self::Truth(_) => (Physical::BOOLEAN, None),
        };
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
    }
}

/// Encodes a table; all columns have as many rows.
///
/// # Errors
///
/// Those of the Parquet library, in words.
pub fn encode(columns: &[(&str, Column)]) -> Result<Vec<u8>, String> {
    write(columns).map_err(|error| error.to_string())
}

fn write(columns: &[(&str, Column)]) -> Result<Vec<u8>, ParquetError> {
    let fields = columns
        .iter()
        .map(|(name, column)| Ok(Arc::new(column.field(name)?)))
        .collect::<Result<_, ParquetError>>()?;
    let schema = Type::group_type_builder("table")
        .with_fields(fields)
        .build()?;
    let properties = WriterProperties::builder()
        .set_created_by(concat!("tare version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?));
    let mut content = Vec::new();
    let properties = Arc::new(properties.build());
    let mut file = SerializedFileWriter::new(&mut content, Arc::new(schema), properties)?;
    let mut group = file.next_row_group()?;
    for (_, column) in columns {
        let Some(mut to) = group.next_column()? else {
            break;
        };
        match column {
            Column::Text(all) => {
                put::<ByteArrayType>(&mut to, all.iter().map(|it| it.as_deref().map(Into::into)))?;
            }
            Column::Real(all) => put::<DoubleType>(&mut to, all.iter().copied())?,
            Column::Whole(all) => {
                put::<Int32Type>(&mut to, all.iter().map(|it| it.map(u32::cast_signed)))?;
            }
            Column::Time(all) => put::<Int64Type>(&mut to, all.iter().copied())?,
            Column::Truth(all) => put::<BoolType>(&mut to, all.iter().copied().map(Some))?,
        }
        to.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(content)
}

/// Writes what is there of a column, and for each entry whether it is.
fn put<T: DataType>(
    to: &mut SerializedColumnWriter<'_>,
    entries: impl Iterator<Item = Option<T::T>> + Clone,
) -> Result<(), ParquetError> {
    let levels = entries.clone().map(|entry| i16::from(entry.is_some()));
    let (levels, values): (Vec<_>, Vec<_>) = (levels.collect(), entries.flatten().collect());
    to.typed::<T>()
        .write_batch(&values, Some(&levels), None)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    #[test]
    fn other_programs_see_values_and_nulls() {
        let content = encode(&[
            ("name", Column::Text(vec![Some("a".to_owned()), None])),
            ("value", Column::Real(vec![None, Some(0.5)])),
            ("runs", Column::Whole(vec![Some(6), None])),
            (
                "created",
                Column::Time(vec![Some(1_700_000_000_000_000), None]),
            ),
            ("emulated", Column::Truth(vec![true, false])),
        ])
        .unwrap();
        let file = SerializedFileReader::new(Bytes::from(content)).unwrap();
        let rows: Vec<Vec<Field>> = file
            .get_row_iter(None)
            .unwrap()
            .map(|row| {
                row.unwrap()
                    .get_column_iter()
                    .map(|(_, field)| field.clone())
                    .collect()
            })
            .collect();
        assert_eq!(rows[0][0], Field::Str("a".to_owned()));
        assert_eq!(rows[0][2], Field::UInt(6));
        assert_eq!(rows[0][3], Field::TimestampMicros(1_700_000_000_000_000));
        assert_eq!(rows[1][..2], [Field::Null, Field::Double(0.5)]);
        assert_eq!(rows[1][4], Field::Bool(false));
    }
}
