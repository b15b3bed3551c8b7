//! Encodes keys as the bytes that a `KeyExistenceFilter` hashes.
//!
//! | type | bytes |
//! |---|---|
//! | integers | 8, little-endian |
//! | text, binary | their bytes |
//! | any other | `arrow_row`'s comparable bytes; pylance puts no such keys into its filters |
//!
//! In a key of several columns, each is followed by a zero byte. Keys with a null match nothing, so they are left out.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, LargeBinaryArray, UInt64Array};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, DataType};

use super::key_filter::KeyFilter;
use crate::error::{Result, TableError};
use esker_merge::null_keys;

enum Column {
    Signed(Int64Array),
    Unsigned(UInt64Array),
    Bytes(LargeBinaryArray),
    Comparable(Rows),
}

fn failed(error: ArrowError) -> TableError {
    TableError::invalid(format!("the key columns cannot be hashed: {error}"))
}

impl Column {
    fn new(array: &ArrayRef) -> Result<Self> {
        use DataType as T;
        if let T::Dictionary(_, values) = array.data_type() {
            return Self::new(&arrow_cast::cast(array, values).map_err(failed)?);
        }
        let cast = |to: &DataType| arrow_cast::cast(array, to).map_err(failed);
        Ok(match array.data_type() {
            T::Int8 | T::Int16 | T::Int32 | T::Int64 => {
                Self::Signed(cast(&T::Int64)?.as_primitive::<Int64Type>().clone())
            }
            T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => {
                Self::Unsigned(cast(&T::UInt64)?.as_primitive::<UInt64Type>().clone())
            }
            T::Utf8 | T::LargeUtf8 | T::Binary | T::LargeBinary => {
                Self::Bytes(cast(&T::LargeBinary)?.as_binary::<i64>().clone())
            }
            other => {
                let converter = RowConverter::new(vec![SortField::new(other.clone())]).map_err(failed)?;
                Self::Comparable(converter.convert_columns(std::slice::from_ref(array)).map_err(failed)?)
            }
        })
    }

    fn extend(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Signed(values) => out.extend(values.value(row).to_le_bytes()),
            Self::Unsigned(values) => out.extend(values.value(row).to_le_bytes()),
            Self::Bytes(values) => out.extend(values.value(row)),
            Self::Comparable(rows) => out.extend(rows.row(row).data()),
        }
    }
}

/// Adds the keys of all rows of these key columns to a filter.
pub(super) fn add_keys(filter: &mut KeyFilter, columns: &[ArrayRef]) -> Result<()> {
    let nulls = null_keys(columns);
    let rows = columns.first().map_or(0, |column| column.len());
    let columns = columns.iter().map(Column::new).collect::<Result<Vec<_>>>()?;
    let mut key = Vec::new();
    for row in (0..rows).filter(|row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row))) {
        key.clear();
        for column in &columns {
            column.extend(row, &mut key);
            if columns.len() > 1 {
                key.push(0);
            }
        }
        filter.insert(&key);
    }
    Ok(())
}
