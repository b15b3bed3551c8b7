//! Writing packed structs with fields of any width.

use std::borrow::Cow;

use arrow_buffer::Buffer;
use esker_proto::lance::encodings21 as pb;
use esker_proto::lance::encodings21::variable_packed_struct::field_encoding::Layout;

use super::super::fixed_size_list::encode as fixed_size_list;
use super::super::flat::encode::value_bytes;
use super::super::message;
use super::super::values::{LeafValues, VariableWidth};
use crate::error::{FileError, Result};

/// Rows, and what describes them.
pub(crate) struct Rows {
    pub(crate) values: VariableWidth,
    pub(crate) encoding: pb::CompressiveEncoding,
}

/// A field while rows are put together.
enum Column<'a> {
    Fixed { bits: usize, bytes: Buffer },
    Variable(Cow<'a, VariableWidth>),
}

/// Codes the values of a field, each by itself, and describes them; nothing where they stay as they are.
pub(crate) type Coded<'a> = &'a dyn Fn(&VariableWidth) -> Result<Option<(VariableWidth, pb::CompressiveEncoding)>>;

/// Puts fields of any width together, row by row; `name` is the column's, for errors.
pub(crate) fn rows(name: &str, fields: &[LeafValues], coded: Coded) -> Result<Rows> {
    let mut columns = Vec::with_capacity(fields.len());
    let mut encodings = Vec::with_capacity(fields.len());
    for field in fields {
        let (column, value, layout) = match field {
            LeafValues::Fixed(values) if values.bits.is_multiple_of(8) => {
                let (bits, bytes) = (values.bits, values.contiguous());
                let layout = Layout::BitsPerValue(bits as u64);
                (Column::Fixed { bits, bytes }, message::flat(bits as u64), layout)
            }
            LeafValues::FixedSizeList(lists) => {
                let bits = fixed_size_list::zipped_width(lists).saturating_mul(8);
                let bytes = fixed_size_list::zip_validity(lists)?;
                let layout = Layout::BitsPerValue(bits as u64);
                (Column::Fixed { bits, bytes }, fixed_size_list::encoding(lists), layout)
            }
            LeafValues::Variable(values) => {
                let bits = values.offset_bits() as u64;
                let (values, value) = match coded(values)? {
                    Some((values, value)) => (Cow::Owned(values), value),
                    None => (Cow::Borrowed(values), message::variable(bits)),
                };
                (Column::Variable(values), value, Layout::BitsPerLength(bits))
            }
            _ => {
                return Err(FileError::unsupported(format!(
                    "column '{name}': a packed struct holds fields of whole bytes, strings and binary only; leave it unpacked"
                )))
            }
        };
        columns.push(column);
        encodings.push((value, layout));
    }
    let len = fields.first().map_or(0, LeafValues::len);
    let mut bytes = Vec::new();
    let mut offsets = Vec::with_capacity(len + 1);
    offsets.push(0);
    for row in 0..len {
        for column in &columns {
            match column {
                Column::Fixed { bits, bytes: values } => {
                    bytes.extend_from_slice(value_bytes(values.as_slice(), *bits, row..row + 1)?);
                }
                Column::Variable(values) => {
                    let value = values.get(row);
                    let length = (value.len() as u64).to_le_bytes();
                    bytes.extend_from_slice(length.get(..values.offset_bits() / 8).unwrap_or_default());
                    bytes.extend_from_slice(value);
                }
            }
        }
        offsets.push(bytes.len());
    }
    Ok(Rows {
        values: VariableWidth {
            large: false,
            offsets,
            bytes: Buffer::from_vec(bytes),
        },
        encoding: message::variable_packed_struct(encodings),
    })
}
