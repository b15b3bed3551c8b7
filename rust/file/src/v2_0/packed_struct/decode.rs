//! Reading packed structs: the rows, taken apart into fields.

use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use esker_codec::packed_rows::gather_field;
use esker_proto::lance::encodings as pb;

use crate::error::Result;
use crate::v2_0::flat::decode::byte_width;
use crate::v2_0::page::{count, length, PageContext, Rows};

/// Bytes that a packed field takes in each row; none where the type cannot be packed.
pub(crate) fn packed_width(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::FixedSizeList(item, size) => packed_width(item.data_type())?.checked_mul(u64::try_from(*size).ok()?),
        other => byte_width(other),
    }
}

/// Decodes `rows` of a packed struct.
pub(crate) async fn decode(
    page: &PageContext<'_>,
    packed: &pb::PackedStruct,
    data_type: &DataType,
    rows: Rows<'_>,
) -> Result<ArrayData> {
    let DataType::Struct(fields) = data_type else {
        return Err(page.corrupt(format!("expected type {data_type}, found a packed struct")));
    };
    if packed.inner.len() != fields.len() {
        return Err(page.corrupt(format!(
            "expected {} packed fields, found {}",
            fields.len(),
            packed.inner.len()
        )));
    }
    let widths = fields
        .iter()
        .map(|field| {
            packed_width(field.data_type())
                .and_then(|width| usize::try_from(width).ok())
                .ok_or_else(|| {
                    page.corrupt(format!(
                        "expected packed fields of fixed width, found {}",
                        field.data_type()
                    ))
                })
        })
        .collect::<Result<Vec<_>>>()?;
    let row_width: usize = widths.iter().sum();
    let ranges = page.byte_ranges(rows, row_width as u64)?;
    let bytes = page.fetch_joined(packed.buffer.as_ref(), &ranges).await?;
    let num_values = length(count(rows))?;
    let mut children = Vec::with_capacity(fields.len());
    let mut at = 0;
    for (field, width) in fields.iter().zip(widths) {
        let values = Buffer::from_vec(gather_field(bytes.as_slice(), row_width, at, width));
        at += width;
        children.push(fixed_width_array(page, field.data_type(), num_values, values)?);
    }
    ArrayData::builder(data_type.clone())
        .len(num_values)
        .child_data(children)
        .build()
        .map_err(|e| page.corrupt(e))
}

fn fixed_width_array(page: &PageContext<'_>, data_type: &DataType, len: usize, values: Buffer) -> Result<ArrayData> {
    let builder = ArrayData::builder(data_type.clone()).len(len);
    let builder = match data_type {
        DataType::FixedSizeList(item, size) => {
            let items = len.saturating_mul(usize::try_from(*size).unwrap_or(0));
            builder.add_child_data(fixed_width_array(page, item.data_type(), items, values)?)
        }
        _ => builder.add_buffer(values).align_buffers(true),
    };
    builder.build().map_err(|e| page.corrupt(e))
}
