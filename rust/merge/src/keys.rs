//! Encodes keys so that equal keys have equal encodings.
//!
//! Numbers are equal if their bits are: NaN equals itself, and 0.0 does not equal -0.0. A key with a null column equals no key, not even
//! itself; a null within a struct or a list is an ordinary value. A single column of fixed width is its own key; all others become
//! comparable bytes.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, NullBuffer, ScalarBuffer};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, DataType};
use twox_hash::XxHash64;

use crate::error::{MergeError, Result};

/// Encodes columns as keys.
#[derive(Debug)]
pub enum KeyEncoder {
    /// One column whose values take so many bytes, at most 8.
    Fixed(usize),
    /// Any other columns.
    Bytes(RowConverter),
}

/// The keys of some rows.
#[derive(Debug)]
pub struct Keys {
    values: Values,
    nulls: Option<NullBuffer>,
}

#[derive(Debug)]
enum Values {
    Fixed(ScalarBuffer<u64>),
    Bytes(Rows),
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key<'a> {
    /// The bits of a number.
    Fixed(u64),
    /// Comparable bytes.
    Bytes(&'a [u8]),
}

fn failed(error: ArrowError) -> MergeError {
    MergeError::invalid(format!("the key columns cannot be compared: {error}"))
}

impl KeyEncoder {
    /// For key columns of these names and types.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, DataType)>) -> Result<Self> {
        let mut fields = Vec::new();
        let mut widths = Vec::new();
        for (name, data_type) in columns {
            widths.push(data_type.primitive_width().filter(|width| *width <= 8));
            let field = SortField::new(data_type);
            if !RowConverter::supports_fields(std::slice::from_ref(&field)) {
                return Err(MergeError::unsupported(format!(
                    "column '{name}' cannot be a key of merge_insert, expected a type whose values can be compared"
                )));
            }
            fields.push(field);
        }
        match widths.as_slice() {
            [Some(width)] => Ok(Self::Fixed(*width)),
            _ => Ok(Self::Bytes(RowConverter::new(fields).map_err(failed)?)),
        }
    }

    /// The keys of the rows of these columns.
    pub fn encode(&self, columns: &[ArrayRef]) -> Result<Keys> {
        let values = match (self, columns) {
            (Self::Fixed(width), [column]) => Values::Fixed(bits(column, *width)?),
            (Self::Fixed(_), _) => {
                return Err(MergeError::invalid(
                    "expected one key column, found another number of them",
                ))
            }
            (Self::Bytes(converter), columns) => Values::Bytes(converter.convert_columns(columns).map_err(failed)?),
        };
        let nulls = null_keys(columns);
        Ok(Keys { values, nulls })
    }
}

/// The values' bits, widened to u64.
fn bits(column: &ArrayRef, width: usize) -> Result<ScalarBuffer<u64>> {
    let data = column.to_data();
    let buffer = data.buffers().first();
    let buffer = buffer.filter(|buffer| buffer.len() >= (data.offset() + data.len()).saturating_mul(width));
    let buffer = buffer.ok_or_else(|| {
        MergeError::invalid(format!(
            "expected a key column of numbers, found {}",
            column.data_type()
        ))
    })?;
    let (offset, length) = (data.offset(), data.len());
    fn wide<T: ArrowNativeType + Into<u64>>(values: ScalarBuffer<T>) -> ScalarBuffer<u64> {
        values.iter().map(|value| (*value).into()).collect()
    }
    Ok(match width {
        1 => wide(ScalarBuffer::<u8>::new(buffer.clone(), offset, length)),
        2 => wide(ScalarBuffer::<u16>::new(buffer.clone(), offset, length)),
        4 => wide(ScalarBuffer::<u32>::new(buffer.clone(), offset, length)),
        _ => ScalarBuffer::new(buffer.clone(), offset, length),
    })
}

/// Where a key is null: where any of its columns is.
pub fn null_keys(columns: &[ArrayRef]) -> Option<NullBuffer> {
    let nulls = columns.iter().fold(None, |nulls, column| {
        NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
    });
    nulls.filter(|nulls| nulls.null_count() > 0)
}

impl Keys {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Fixed(values) => values.len(),
            Values::Bytes(rows) => rows.num_rows(),
        }
    }

    /// The keys as numbers, if they are of fixed width; null keys have arbitrary numbers.
    pub fn fixed(&self) -> Option<&[u64]> {
        match &self.values {
            Values::Fixed(values) => Some(values),
            Values::Bytes(_) => None,
        }
    }

    /// A key; `None` if it is null.
    pub fn get(&self, row: usize) -> Option<Key<'_>> {
        if row >= self.len() || self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        match &self.values {
            Values::Fixed(values) => values.get(row).copied().map(Key::Fixed),
            Values::Bytes(rows) => Some(Key::Bytes(rows.row(row).data())),
        }
    }
}

impl Key<'_> {
    /// The hash for look-ups and partitioning.
    #[inline]
    pub fn hash(self) -> u64 {
        /// The multiplier of the hash: 2^64 divided by the golden ratio.
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        match self {
            Self::Fixed(value) => {
                let mixed = (value ^ (value >> 32)).wrapping_mul(MIX);
                (mixed ^ (mixed >> 29)).wrapping_mul(MIX.rotate_left(17) | 1)
            }
            Self::Bytes(bytes) => XxHash64::oneshot(0, bytes),
        }
    }
}
