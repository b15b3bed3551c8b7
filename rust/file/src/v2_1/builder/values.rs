//! The builder of a leaf's values, without their validity.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{make_array, new_null_array, ArrayRef, FixedSizeListArray, NullArray, StructArray};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use super::strings;
use super::{FixedBuilder, ValidityBuilder, VariableBuilder};
use crate::error::{FileError, Result};
use crate::v2_0::flat::decode::byte_width;
use crate::v2_1::page::PageId;

/// Values of one type; a null takes a place with an arbitrary value.
#[derive(Debug)]
pub(crate) enum Values {
    /// Nothing but nulls, structs without fields, and values of no bytes.
    Nothing(usize),
    /// Bits.
    Bits(BooleanBufferBuilder),
    /// Bytes of one width.
    Fixed(FixedBuilder),
    /// Strings and binary with offsets of 32 bits.
    Variable(VariableBuilder<i32>),
    /// Strings and binary with offsets of 64 bits.
    LargeVariable(VariableBuilder<i64>),
    /// Lists of one length.
    FixedList(Box<FixedListBuilder>),
    /// Structs that lie row by row in the file.
    Struct(StructBuilder),
    /// Values of a type that pages can store only as nulls.
    Unstored(usize),
}

/// Lists of one length.
#[derive(Debug)]
pub(crate) struct FixedListBuilder {
    pub(crate) size: usize,
    pub(crate) len: usize,
    pub(crate) item_validity: ValidityBuilder,
    pub(crate) items: Values,
}

/// Structs, field by field.
#[derive(Debug)]
pub(crate) struct StructBuilder {
    pub(crate) len: usize,
    pub(crate) fields: Vec<Values>,
}

impl Values {
    /// An empty builder for values of `data_type`.
    pub(crate) fn new(data_type: &DataType) -> Result<Values> {
        Ok(match data_type {
            DataType::Null => Values::Nothing(0),
            DataType::Boolean => Values::Bits(BooleanBufferBuilder::new(0)),
            DataType::Utf8 => Values::Variable(VariableBuilder::new(true)),
            DataType::Binary => Values::Variable(VariableBuilder::new(false)),
            DataType::LargeUtf8 => Values::LargeVariable(VariableBuilder::new(true)),
            DataType::LargeBinary => Values::LargeVariable(VariableBuilder::new(false)),
            DataType::FixedSizeList(item, size) => Values::FixedList(Box::new(FixedListBuilder {
                size: usize::try_from(*size).unwrap_or(0),
                len: 0,
                item_validity: ValidityBuilder::default(),
                items: Values::new(item.data_type())?,
            })),
            DataType::Struct(fields) if fields.is_empty() => Values::Nothing(0),
            DataType::Struct(fields) => Values::Struct(StructBuilder {
                len: 0,
                fields: fields
                    .iter()
                    .map(|f| Values::new(f.data_type()))
                    .collect::<Result<_>>()?,
            }),
            other => match byte_width(other).and_then(|width| usize::try_from(width).ok()) {
                Some(0) => Values::Nothing(0),
                Some(width) => Values::Fixed(FixedBuilder::new(width)),
                None => Values::Unstored(0),
            },
        })
    }

    /// Values so far.
    pub(crate) fn len(&self) -> usize {
        match self {
            Values::Nothing(len) | Values::Unstored(len) => *len,
            Values::Bits(bits) => bits.len(),
            Values::Fixed(values) => values.len(),
            Values::Variable(values) => values.len(),
            Values::LargeVariable(values) => values.len(),
            Values::FixedList(lists) => lists.len,
            Values::Struct(structs) => structs.len,
        }
    }

    /// Makes room for `n` values that lie in `bytes` bytes of the file. A wish, not a need.
    pub(crate) fn expect(&mut self, n: usize, bytes: usize) {
        match self {
            Values::Fixed(values) => values.expect(n),
            Values::Variable(values) => values.expect(n, bytes),
            Values::LargeVariable(values) => values.expect(n, bytes),
            Values::FixedList(lists) => lists.items.expect(n.saturating_mul(lists.size), bytes),
            Values::Struct(structs) => structs.fields.iter_mut().for_each(|field| field.expect(n, 0)),
            Values::Bits(_) | Values::Nothing(_) | Values::Unstored(_) => {}
        }
    }

    /// Makes room for the next `n` values of any length, of `bytes` bytes together. A wish, not a need.
    pub(crate) fn make_room(&mut self, n: usize, bytes: usize) {
        match self {
            Values::Variable(values) => values.make_room(n, bytes),
            Values::LargeVariable(values) => values.make_room(n, bytes),
            _ => {}
        }
    }

    /// Whether `more` bytes of values of any length may follow.
    pub(crate) fn check_room(&self, more: usize) -> Result<()> {
        match self {
            Values::Variable(values) => values.check_room(more),
            Values::LargeVariable(values) => values.check_room(more),
            _ => Ok(()),
        }
    }

    /// What the values are, for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Values::Nothing(_) => "nulls".into(),
            Values::Bits(_) => "values of 1 bit".into(),
            Values::Fixed(values) => format!("values of {} bits", values.width.saturating_mul(8)),
            Values::Variable(_) | Values::LargeVariable(_) => "values of variable width".into(),
            Values::FixedList(lists) => format!("lists of {} items", lists.size),
            Values::Unstored(_) => "nulls of a type that is not stored".into(),
            Values::Struct(structs) => format!("packed structs of {} fields", structs.fields.len()),
        }
    }

    /// The builder of values of `bits` bits, where they are that.
    pub(crate) fn fixed(&mut self, at: &PageId, bits: u64) -> Result<&mut FixedBuilder> {
        let expected = match &*self {
            Values::Fixed(values) if values.width as u64 * 8 == bits => None,
            other => Some(other.describe()),
        };
        match (self, expected) {
            (Values::Fixed(values), None) => Ok(values),
            (_, expected) => Err(at.corrupt(format!(
                "expected {}, found values of {bits} bits",
                expected.unwrap_or_default()
            ))),
        }
    }

    /// The builder of packed structs of `fields` fields, where they are that.
    pub(crate) fn structs(&mut self, at: &PageId, fields: usize) -> Result<&mut StructBuilder> {
        let expected = match &*self {
            Values::Struct(structs) if structs.fields.len() == fields => None,
            other => Some(other.describe()),
        };
        match (self, expected) {
            (Values::Struct(structs), None) => Ok(structs),
            (_, expected) => Err(at.corrupt(format!(
                "expected {}, found packed structs of {fields} fields",
                expected.unwrap_or_default()
            ))),
        }
    }

    /// The builder of lists of `size` items, where they are that.
    pub(crate) fn lists(&mut self, at: &PageId, size: usize) -> Result<&mut FixedListBuilder> {
        let expected = match &*self {
            Values::FixedList(lists) if lists.size == size => None,
            other => Some(other.describe()),
        };
        match (self, expected) {
            (Values::FixedList(lists), None) => Ok(lists),
            (_, expected) => Err(at.corrupt(format!(
                "expected {}, found lists of {size} items",
                expected.unwrap_or_default()
            ))),
        }
    }

    /// Adds `n` values that mean nothing.
    pub(crate) fn append_empty(&mut self, n: usize) -> Result<()> {
        match self {
            Values::Nothing(len) | Values::Unstored(len) => *len = len.saturating_add(n),
            Values::Bits(bits) => bits.append_n(n, false),
            Values::Fixed(values) => {
                let bytes = n.checked_mul(values.width).ok_or_else(|| too_many(n))?;
                let out = values.bytes();
                out.try_reserve(bytes).map_err(|_| too_many(n))?;
                out.resize(out.len().saturating_add(bytes), 0);
            }
            Values::Variable(values) => values.append_empty(n),
            Values::LargeVariable(values) => values.append_empty(n),
            Values::FixedList(lists) => {
                let items = n.checked_mul(lists.size).ok_or_else(|| too_many(n))?;
                lists.len = lists.len.saturating_add(n);
                lists.item_validity.append_valid(items);
                lists.items.append_empty(items)?;
            }
            Values::Struct(structs) => {
                structs.len = structs.len.saturating_add(n);
                for field in &mut structs.fields {
                    field.append_empty(n)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the values of `range` of another builder for the same type.
    pub(crate) fn append_range(&mut self, other: &Values, range: Range<usize>) -> Result<()> {
        if range.end > other.len() {
            return Err(beyond(&range, other.len()));
        }
        match (self, other) {
            (Values::Nothing(len), Values::Nothing(_)) | (Values::Unstored(len), Values::Unstored(_)) => {
                *len = len.saturating_add(range.len());
            }
            (Values::Bits(to), Values::Bits(from)) => to.append_packed_range(range, from.as_slice()),
            (Values::Fixed(to), Values::Fixed(from)) if to.width == from.width => to.append_range(from, range)?,
            (Values::Variable(to), Values::Variable(from)) => to.append_range(from, range)?,
            (Values::LargeVariable(to), Values::LargeVariable(from)) => to.append_range(from, range)?,
            (Values::FixedList(to), Values::FixedList(from)) if to.size == from.size => {
                let items = range.start.saturating_mul(to.size)..range.end.saturating_mul(to.size);
                to.len = to.len.saturating_add(range.len());
                to.item_validity.append_range(&from.item_validity, items.clone());
                to.items.append_range(&from.items, items)?;
            }
            (Values::Struct(to), Values::Struct(from)) if to.fields.len() == from.fields.len() => {
                to.len = to.len.saturating_add(range.len());
                for (to, from) in to.fields.iter_mut().zip(&from.fields) {
                    to.append_range(from, range.clone())?;
                }
            }
            (to, from) => {
                return Err(FileError::invalid(format!(
                    "expected {}, found {}",
                    to.describe(),
                    from.describe()
                )))
            }
        }
        Ok(())
    }

    /// Bytes that the values take.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Values::Nothing(_) | Values::Unstored(_) => 0,
            Values::Bits(bits) => bits.len() / 8,
            Values::Fixed(values) => values.as_slice().len(),
            Values::Variable(values) => values.as_bytes().len().saturating_add(values.len().saturating_mul(4)),
            Values::LargeVariable(values) => values.as_bytes().len().saturating_add(values.len().saturating_mul(8)),
            Values::FixedList(lists) => lists.items.memory().saturating_add(lists.item_validity.len() / 8),
            Values::Struct(structs) => structs.fields.iter().map(Values::memory).sum(),
        }
    }

    /// Refuses more bytes than Arrow's offsets can count.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Values::Variable(values) => values.check(),
            Values::LargeVariable(values) => values.check(),
            Values::Struct(structs) => structs.fields.iter().try_for_each(Values::check),
            _ => Ok(()),
        }
    }

    /// The values as an array of `data_type`. `column` names it in errors.
    pub(crate) fn finish(
        self,
        column: &ColumnName,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let len = self.len();
        if nulls.as_ref().is_some_and(|nulls| nulls.len() != len) {
            return Err(column.corrupt(format!(
                "expected levels of {len} values, found {}",
                nulls.map_or(0, |nulls| nulls.len())
            )));
        }
        let data = ArrayData::builder(data_type.clone()).len(len);
        let data = match (self, data_type) {
            (Values::Nothing(len), DataType::Struct(_)) => {
                return Ok(Arc::new(StructArray::new_empty_fields(len, nulls)))
            }
            (Values::Unstored(len), _) => return Ok(new_null_array(data_type, len)),
            (Values::Nothing(_), DataType::FixedSizeBinary(_)) => data.add_buffer(Buffer::from_vec(Vec::<u8>::new())),
            (Values::Nothing(len), _) => return Ok(Arc::new(NullArray::new(len))),
            (Values::Bits(mut bits), _) => data.add_buffer(bits.finish().into_inner()),
            (Values::Fixed(values), _) => data.add_buffer(values.finish()).align_buffers(true),
            (Values::Variable(values), _) => {
                let (offsets, bytes, known) = values.finish()?;
                return strings::array(data_type, offsets, bytes, known, nulls).map_err(|e| column.corrupt(e));
            }
            (Values::LargeVariable(values), _) => {
                let (offsets, bytes, known) = values.finish()?;
                return strings::array(data_type, offsets, bytes, known, nulls).map_err(|e| column.corrupt(e));
            }
            (Values::FixedList(lists), DataType::FixedSizeList(item, size)) => {
                let items = lists
                    .items
                    .finish(column, item.data_type(), lists.item_validity.finish())?;
                let array = FixedSizeListArray::try_new_with_length(item.clone(), *size, items, nulls, len);
                return Ok(Arc::new(array.map_err(|e| column.corrupt(e))?));
            }
            (Values::Struct(structs), DataType::Struct(fields)) => {
                let columns = structs.fields.into_iter().zip(fields);
                let columns = columns.map(|(values, field)| values.finish(column, field.data_type(), None));
                let columns = columns.collect::<Result<Vec<_>>>()?;
                let array = StructArray::try_new_with_length(fields.clone(), columns, nulls, len);
                return Ok(Arc::new(array.map_err(|e| column.corrupt(e))?));
            }
            _ => return Err(FileError::invalid(format!("expected values of type {data_type}"))),
        };
        let data = data.nulls(nulls).build().map_err(|e| column.corrupt(e))?;
        Ok(make_array(data))
    }
}

/// A column's place, for errors.
#[derive(Debug, Clone)]
pub(crate) struct ColumnName {
    pub(crate) path: Arc<str>,
    pub(crate) column: usize,
}

impl ColumnName {
    pub(crate) fn corrupt(&self, message: impl std::fmt::Display) -> FileError {
        FileError::corrupt(&self.path, format!("column {}: {message}", self.column))
    }
}

/// Values that another builder was said to have, and has not.
pub(super) fn beyond(range: &Range<usize>, len: usize) -> FileError {
    FileError::invalid(format!("expected values up to {}, found {len}", range.end))
}

/// The error for a number of values that memory cannot hold.
pub(crate) fn too_many(n: usize) -> FileError {
    FileError::invalid(format!("{n} values do not fit in memory; read fewer rows at a time"))
}
