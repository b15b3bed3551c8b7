//! Writing values of fixed width. A null is written as zero.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::DataType;

use crate::error::{FileError, Result};
use crate::v0_1::column::ColumnNode;
use crate::v0_1::encode::{with_nulls, EncodeContext, PageWriter};
use crate::v2_0::flat::decode::byte_width;
use crate::v2_0::flat::encode::fixed_width_bytes;

/// Adds the page of a column of fixed width.
pub(crate) fn encode(
    context: EncodeContext<'_>,
    node: &ColumnNode,
    arrays: &[ArrayRef],
    out: &mut PageWriter,
) -> Result<()> {
    let rows: usize = arrays.iter().map(|a| a.len()).sum();
    let position = out.position();
    let values = flatten(arrays.to_vec())?;
    let lists = arrays.iter().map(|a| a.null_count()).sum();
    context.check_loss(node, lists, "nulls", becomes(&node.data_type))?;
    let items = values.iter().map(|a| a.null_count()).sum();
    context.check_loss(node, items, "null items", "zeros")?;
    append(&values, &mut out.buffer)?;
    out.add(node.id, position, rows as u64);
    Ok(())
}

fn becomes(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "false",
        DataType::FixedSizeList(_, _) => "lists of zeros",
        DataType::FixedSizeBinary(_) => "zero bytes",
        _ => "zeros",
    }
}

/// The values inside fixed-size lists, side by side.
fn flatten(mut arrays: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
    while let Some(DataType::FixedSizeList(_, size)) = arrays.first().map(|a| a.data_type()) {
        let size = usize::try_from(*size).unwrap_or(0);
        let items = arrays.iter().map(|array| {
            let list = array.as_fixed_size_list();
            let nulls = list.nulls().map(|nulls| nulls.expand(size));
            with_nulls(list.values(), nulls.as_ref())
        });
        arrays = items.collect::<Result<_>>()?;
    }
    Ok(arrays)
}

/// Appends the bytes of values that are no lists.
pub(crate) fn append(values: &[ArrayRef], out: &mut Vec<u8>) -> Result<()> {
    if values.first().is_some_and(|a| a.data_type() == &DataType::Boolean) {
        let mut bits = BooleanBufferBuilder::new(values.iter().map(|a| a.len()).sum());
        for array in values {
            let array = array.as_boolean();
            match array.nulls() {
                Some(nulls) => bits.append_buffer(&(array.values() & nulls.inner())),
                None => bits.append_buffer(array.values()),
            }
        }
        out.extend_from_slice(bits.finish().into_inner().as_slice());
        return Ok(());
    }
    for array in values {
        let width = byte_width(array.data_type()).ok_or_else(|| {
            FileError::unsupported(format!(
                "type {} cannot be written in file version 0.1",
                array.data_type()
            ))
        })?;
        let start = out.len();
        out.extend_from_slice(fixed_width_bytes(array, width)?.as_slice());
        let Some(nulls) = array.nulls().filter(|n| n.null_count() > 0) else {
            continue;
        };
        let width = usize::try_from(width).unwrap_or(usize::MAX);
        let bytes = out.get_mut(start..).unwrap_or_default();
        for (value, valid) in bytes.chunks_exact_mut(width.max(1)).zip(nulls) {
            if !valid {
                value.fill(0);
            }
        }
    }
    Ok(())
}
