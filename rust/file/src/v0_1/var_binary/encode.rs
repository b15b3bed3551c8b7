//! Writing strings: the bytes of all values, then where each of them starts and the last one ends.

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use crate::error::{FileError, Result};
use crate::v0_1::column::ColumnNode;
use crate::v0_1::encode::{EncodeContext, PageWriter};

/// Adds the page of a column of strings.
pub(crate) fn encode(
    context: EncodeContext<'_>,
    node: &ColumnNode,
    arrays: &[ArrayRef],
    out: &mut PageWriter,
) -> Result<()> {
    let mut ends = Ends::new(out.position(), arrays);
    for array in arrays {
        match array.data_type() {
            DataType::Utf8 => ends.append::<Utf8Type>(array, &mut out.buffer),
            DataType::LargeUtf8 => ends.append::<LargeUtf8Type>(array, &mut out.buffer),
            DataType::Binary => ends.append::<BinaryType>(array, &mut out.buffer),
            DataType::LargeBinary => ends.append::<LargeBinaryType>(array, &mut out.buffer),
            other => {
                return Err(FileError::invalid(format!(
                    "expected strings or binary to write to a 0.1 file, found {other}"
                )))
            }
        }
    }
    if node.nullable {
        context.check_loss(node, ends.empty, "empty values in a nullable column", "nulls")?;
    }
    let position = out.position();
    out.buffer.extend_from_slice(&ends.stored);
    out.add(node.id, position, ends.rows);
    Ok(())
}

/// The offsets of one page, from the start of the file.
struct Ends {
    stored: Vec<u8>,
    last: u64,
    rows: u64,
    /// Values that are there and have no bytes.
    empty: usize,
}

impl Ends {
    fn new(start: u64, arrays: &[ArrayRef]) -> Ends {
        let rows: usize = arrays.iter().map(|a| a.len()).sum();
        let mut stored = Vec::with_capacity(rows.saturating_add(1).saturating_mul(8));
        stored.extend_from_slice(&start.to_le_bytes());
        Ends {
            stored,
            last: start,
            rows: rows as u64,
            empty: 0,
        }
    }

    fn push(&mut self, length: usize) {
        self.last = self.last.saturating_add(length as u64);
        self.stored.extend_from_slice(&self.last.to_le_bytes());
    }

    fn append<T: ByteArrayType>(&mut self, array: &ArrayRef, out: &mut Vec<u8>) {
        let array = array.as_bytes::<T>();
        let offsets = array.value_offsets();
        let lengths = offsets.iter().zip(offsets.iter().skip(1));
        let lengths = lengths.map(|(start, end)| end.as_usize().saturating_sub(start.as_usize()));
        match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => {
                let bounds = offsets.first().zip(offsets.last());
                let bounds = bounds.map_or(0..0, |(start, end)| start.as_usize()..end.as_usize());
                out.extend_from_slice(array.value_data().get(bounds).unwrap_or_default());
                for length in lengths {
                    self.empty += usize::from(length == 0);
                    self.push(length);
                }
            }
            // What lies at a null is left out: a null has no bytes.
            Some(nulls) => {
                for ((start, length), valid) in offsets.iter().zip(lengths).zip(nulls) {
                    let length = if valid { length } else { 0 };
                    let start = start.as_usize();
                    out.extend_from_slice(array.value_data().get(start..start + length).unwrap_or_default());
                    self.empty += usize::from(valid && length == 0);
                    self.push(length);
                }
            }
        }
    }
}
