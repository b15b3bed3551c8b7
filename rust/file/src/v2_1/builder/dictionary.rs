//! Values of a leaf, or keys and the dictionaries of the pages that they come from.

use std::sync::Arc;

use arrow_array::{new_empty_array, Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_data::ArrayData;
use arrow_schema::DataType;

use super::values::ColumnName;
use super::{FixedBuilder, Values};
use crate::dictionaries;
use crate::error::{FileError, Result};
use crate::room::Room;
use crate::v2_0::flat::decode::byte_width;

/// All values of one leaf.
#[derive(Debug)]
pub(crate) enum LeafBuilder {
    /// The values themselves.
    Plain(Values),
    /// Arrow's dictionary type.
    Keyed(KeyedBuilder),
}

/// Keys, and for each run of them the values that they point at.
#[derive(Debug)]
pub(crate) struct KeyedBuilder {
    keys: FixedBuilder,
    item_type: DataType,
    parts: Vec<KeyedPart>,
}

#[derive(Debug)]
struct KeyedPart {
    end: usize,
    items: ArrayRef,
}

impl LeafBuilder {
    /// An empty builder for values of `data_type`.
    pub(crate) fn new(data_type: &DataType) -> Result<LeafBuilder> {
        match data_type {
            DataType::Dictionary(key, item) => {
                let width = byte_width(key).and_then(|width| usize::try_from(width).ok());
                let width = width.ok_or_else(|| FileError::invalid(format!("expected integer keys, found {key}")))?;
                Ok(LeafBuilder::Keyed(KeyedBuilder {
                    keys: FixedBuilder::new(width),
                    item_type: item.as_ref().clone(),
                    parts: Vec::new(),
                }))
            }
            other => Ok(LeafBuilder::Plain(Values::new(other)?)),
        }
    }

    /// Makes room for `n` values that lie in `bytes` bytes of the file. A wish, not a need.
    pub(crate) fn expect(&mut self, n: usize, bytes: usize) {
        match self {
            LeafBuilder::Plain(values) => values.expect(n, bytes),
            LeafBuilder::Keyed(keyed) => keyed.keys.expect(n),
        }
    }

    /// Makes room for what `total` bytes of the file will become, as `done` of them became what is here. A wish, not a need.
    pub(crate) fn foresee(&mut self, done: usize, total: usize) {
        match self {
            LeafBuilder::Plain(Values::Variable(values)) => values.foresee(done, total),
            LeafBuilder::Plain(Values::LargeVariable(values)) => values.foresee(done, total),
            _ => {}
        }
    }

    /// Bytes that the values take.
    pub(crate) fn memory(&self) -> usize {
        match self {
            LeafBuilder::Plain(values) => values.memory(),
            LeafBuilder::Keyed(keyed) => keyed.keys.as_slice().len(),
        }
    }

    /// Values of any length may take what there is of `room`.
    pub(crate) fn allow(&mut self, room: &Arc<Room>) {
        match self {
            LeafBuilder::Plain(Values::Variable(values)) => values.allow(room),
            LeafBuilder::Plain(Values::LargeVariable(values)) => values.allow(room),
            _ => {}
        }
    }

    /// Values so far.
    pub(crate) fn len(&self) -> usize {
        match self {
            LeafBuilder::Plain(values) => values.len(),
            LeafBuilder::Keyed(keyed) => keyed.keys.len(),
        }
    }

    /// The values as an array of `data_type`.
    pub(crate) fn finish(
        self,
        column: &ColumnName,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        match (self, data_type) {
            (LeafBuilder::Plain(values), _) => values.finish(column, data_type, nulls),
            (LeafBuilder::Keyed(keyed), DataType::Dictionary(key, value)) => {
                keyed.finish(column, data_type, key, value, nulls)
            }
            _ => Err(FileError::invalid(format!(
                "expected a dictionary type, found {data_type}"
            ))),
        }
    }
}

impl KeyedBuilder {
    /// Bytes of a key.
    pub(crate) fn key_width(&self) -> usize {
        self.keys.width
    }

    /// The type of what the keys point at.
    pub(crate) fn item_type(&self) -> &DataType {
        &self.item_type
    }

    /// The memory to append keys to; [`Self::end_part`] names their values.
    pub(crate) fn keys(&mut self) -> &mut FixedBuilder {
        &mut self.keys
    }

    /// All keys since the last part point into `items`.
    pub(crate) fn end_part(&mut self, items: &ArrayRef) {
        let end = self.keys.len();
        match self.parts.last_mut() {
            Some(last) if Arc::ptr_eq(&last.items, items) => last.end = end,
            Some(last) if last.end >= end => {}
            _ => self.parts.push(KeyedPart {
                end,
                items: items.clone(),
            }),
        }
    }

    fn finish(
        self,
        column: &ColumnName,
        data_type: &DataType,
        key: &DataType,
        value: &DataType,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let len = self.keys.len();
        let keys = ArrayData::builder(key.clone())
            .len(len)
            .add_buffer(self.keys.finish())
            .align_buffers(true)
            .nulls(nulls)
            .build()
            .map_err(|e| column.corrupt(e))?;
        let part = |from: usize, to: usize, items: ArrayRef| -> Result<ArrayRef> {
            let keys = keys.slice(from, to.saturating_sub(from));
            let array = ArrayData::builder(data_type.clone())
                .len(keys.len())
                .offset(keys.offset())
                .buffers(keys.buffers().to_vec())
                .nulls(keys.nulls().cloned())
                .add_child_data(items.to_data())
                .build();
            let array = arrow_array::make_array(array.map_err(|e| column.corrupt(e))?);
            Ok(array)
        };
        let mut arrays = Vec::with_capacity(self.parts.len());
        let mut from = 0;
        for KeyedPart { end, items } in self.parts {
            arrays.push(part(from, end, items)?);
            from = end;
        }
        match arrays.len() {
            0 => part(0, len, new_empty_array(value)),
            1 => Ok(arrays.remove(0)),
            _ => dictionaries::join(&arrays)
                .map_err(|e| dictionaries::too_many(data_type, &format!("column {}", column.column), &e)),
        }
    }
}
