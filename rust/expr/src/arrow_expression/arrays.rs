//! Decodes the columns of a record batch in an Arrow IPC file and checks each buffer before making an array of it.

use std::collections::HashMap;

use arrow_array::{make_array, ArrayRef};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_ipc::{Field as IpcField, RecordBatch};
use arrow_schema::DataType;

use super::types::{arrow_field, value_type};
use crate::error::{ExprError, Result};

/// The values of dictionaries, by their ids.
pub(super) type Dictionaries = HashMap<i64, ArrayRef>;

/// Reads the columns of one batch in their order.
pub(super) struct Columns<'a> {
    body: &'a [u8],
    nodes: std::vec::IntoIter<(usize, usize)>,
    buffers: std::vec::IntoIter<(i64, i64)>,
    view_buffers: std::vec::IntoIter<i64>,
}

fn corrupt(what: &str) -> ExprError {
    ExprError::invalid(format!("expected {what} in the Arrow expression, found other bytes"))
}

impl<'a> Columns<'a> {
    pub(super) fn new(batch: &RecordBatch<'_>, body: &'a [u8]) -> Result<Self> {
        if batch.compression().is_some() {
            return Err(ExprError::unsupported(
                "expected an Arrow expression that is not compressed",
            ));
        }
        // No array has more values than its batch has bits: this bounds what a corrupt file can make us allocate.
        let most = body.len().saturating_mul(8).max(64);
        let nodes = batch.nodes().into_iter().flatten().map(|node| {
            let length = usize::try_from(node.length()).ok().filter(|length| *length <= most);
            let nulls = usize::try_from(node.null_count()).ok();
            length
                .zip(nulls)
                .ok_or_else(|| corrupt("as many values as there is room for"))
        });
        let nodes: Vec<(usize, usize)> = nodes.collect::<Result<_>>()?;
        let buffers = batch.buffers().into_iter().flatten();
        let buffers: Vec<(i64, i64)> = buffers.map(|buffer| (buffer.offset(), buffer.length())).collect();
        let view_buffers: Vec<i64> = batch.variadicBufferCounts().into_iter().flatten().collect();
        Ok(Self {
            body,
            nodes: nodes.into_iter(),
            buffers: buffers.into_iter(),
            view_buffers: view_buffers.into_iter(),
        })
    }

    /// The next column, which is that of `field`.
    pub(super) fn column(&mut self, field: &IpcField<'_>, dictionaries: &Dictionaries) -> Result<ArrayRef> {
        let data_type = arrow_field(field, 0)?.data_type().clone();
        Ok(make_array(self.array(field, &data_type, dictionaries)?))
    }

    /// The values of the dictionary of this field.
    pub(super) fn values(&mut self, field: &IpcField<'_>, dictionaries: &Dictionaries) -> Result<ArrayRef> {
        let data_type = value_type(field, 0)?;
        Ok(make_array(self.array(field, &data_type, dictionaries)?))
    }

    fn buffer(&mut self) -> Result<Buffer> {
        let found = self.buffers.next().and_then(|(offset, length)| {
            let (start, length) = (usize::try_from(offset).ok()?, usize::try_from(length).ok()?);
            self.body.get(start..start.checked_add(length)?)
        });
        // Copied, since the file's bytes may not be aligned.
        found
            .map(Buffer::from)
            .ok_or_else(|| corrupt("a buffer within the file"))
    }

    fn nulls(&mut self, length: usize, count: usize) -> Result<Option<NullBuffer>> {
        let bits = self.buffer()?;
        if count == 0 {
            return Ok(None);
        }
        if bits.len() < length.div_ceil(8) {
            return Err(corrupt("a validity bit for each value"));
        }
        Ok(Some(NullBuffer::new(BooleanBuffer::new(bits, 0, length))))
    }

    fn array(&mut self, field: &IpcField<'_>, data_type: &DataType, dictionaries: &Dictionaries) -> Result<ArrayData> {
        let (length, null_count) = self.nodes.next().ok_or_else(|| corrupt("a length for each column"))?;
        let mut data = ArrayData::builder(data_type.clone()).len(length);
        if data_type.is_null() {
            return finished(data);
        }
        data = data.nulls(self.nulls(length, null_count)?);
        match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
                let offsets = self.offsets(length, data_type)?;
                data = data.add_buffer(offsets).add_buffer(self.buffer()?);
            }
            DataType::Utf8View | DataType::BinaryView => {
                let more = self.view_buffers.next().ok_or_else(|| corrupt("a number of buffers"))?;
                data = data.add_buffer(whole(&self.buffer()?, 16));
                for _ in 0..more {
                    data = data.add_buffer(self.buffer()?);
                }
            }
            DataType::List(_) | DataType::LargeList(_) | DataType::Map(..) => {
                data = data.add_buffer(self.offsets(length, data_type)?);
                data = self.children(data, field, data_type, dictionaries)?;
            }
            DataType::FixedSizeList(..) | DataType::Struct(_) => {
                data = self.children(data, field, data_type, dictionaries)?;
            }
            DataType::Dictionary(key, _) => {
                let id = field.dictionary().map(|dictionary| dictionary.id());
                let values = id.and_then(|id| dictionaries.get(&id));
                let values = values.ok_or_else(|| corrupt("the values of a dictionary"))?;
                let keys = whole(&self.buffer()?, key.primitive_width().unwrap_or(1));
                data = data.add_buffer(keys).add_child_data(values.to_data());
            }
            _ => data = data.add_buffer(whole(&self.buffer()?, data_type.primitive_width().unwrap_or(1))),
        }
        finished(data)
    }

    /// The offsets of the values; an array without values may have none.
    fn offsets(&mut self, length: usize, data_type: &DataType) -> Result<Buffer> {
        let offsets = self.buffer()?;
        let is_large = matches!(
            data_type,
            DataType::LargeUtf8 | DataType::LargeBinary | DataType::LargeList(_)
        );
        if offsets.is_empty() && length == 0 {
            return Ok(match is_large {
                true => Buffer::from_vec(vec![0_i64]),
                false => Buffer::from_vec(vec![0_i32]),
            });
        }
        Ok(whole(&offsets, if is_large { 8 } else { 4 }))
    }

    fn children(
        &mut self,
        data: arrow_data::ArrayDataBuilder,
        field: &IpcField<'_>,
        data_type: &DataType,
        dictionaries: &Dictionaries,
    ) -> Result<arrow_data::ArrayDataBuilder> {
        let types: Vec<&DataType> = match data_type {
            DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
            DataType::List(child)
            | DataType::LargeList(child)
            | DataType::Map(child, _)
            | DataType::FixedSizeList(child, _) => vec![child.data_type()],
            _ => Vec::new(),
        };
        let mut data = data;
        for (child, child_type) in field.children().into_iter().flatten().zip(types) {
            data = data.add_child_data(self.array(&child, child_type, dictionaries)?);
        }
        Ok(data)
    }
}

/// A buffer cut to whole values: arrays require it, and a corrupt buffer may end within one.
fn whole(buffer: &Buffer, width: usize) -> Buffer {
    buffer.slice_with_length(0, buffer.len() - buffer.len() % width.max(1))
}

/// Checks lengths, offsets, keys and text.
fn finished(data: arrow_data::ArrayDataBuilder) -> Result<ArrayData> {
    data.build()
        .map_err(|error| ExprError::invalid(format!("expected values in the Arrow expression, found {error}")))
}
