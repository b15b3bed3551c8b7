//! Writing blobs as they come: payloads go to the file at once, their descriptions to the pages.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericListArray, LargeBinaryArray, OffsetSizeTrait, StructArray, UInt64Array};
use arrow_buffer::{ArrowNativeType, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field as ArrowField, Fields};
use futures::future::BoxFuture;
use futures::FutureExt;

use crate::container::ContainerWriter;
use crate::error::{FileError, Result};
use crate::schema::{retyped, BlobKind, Field};
use crate::v2_0::encode::share;
use crate::version::FileVersion;

/// Writes the payloads of all blobs at `field` or below it; the same array comes back with descriptions in their place.
pub(crate) fn store_payloads<'a>(
    out: &'a mut ContainerWriter,
    field: &'a Field,
    array: &'a ArrayRef,
) -> BoxFuture<'a, Result<ArrayRef>> {
    async move {
        if !field.has_blobs() {
            return Ok(array.clone());
        }
        if field.is_blob() {
            return describe(out, field, array).await;
        }
        match array.data_type() {
            DataType::Struct(fields) => {
                let parent = array.as_struct();
                let mut children = Vec::with_capacity(fields.len());
                for (child, values) in field.children.iter().zip(parent.columns()) {
                    children.push(store_payloads(out, child, values).await?);
                }
                let retyped = fields.iter().zip(&children).map(|(f, c)| retyped(f, c.data_type()));
                let fields: Fields = retyped.collect();
                let array = StructArray::try_new(fields, children, parent.nulls().cloned()).map_err(wrong(field))?;
                Ok(Arc::new(array) as ArrayRef)
            }
            DataType::List(item) => in_list::<i32>(out, field, item, array).await,
            DataType::LargeList(item) => in_list::<i64>(out, field, item, array).await,
            other => Err(FileError::invalid(format!(
                "column '{}': expected a struct or a list around blobs, found {other}",
                field.name
            ))),
        }
    }
    .boxed()
}

fn wrong(field: &Field) -> impl Fn(arrow_schema::ArrowError) -> FileError + '_ {
    |e| FileError::invalid(format!("column '{}': {e}", field.name))
}

async fn in_list<O: OffsetSizeTrait>(
    out: &mut ContainerWriter,
    field: &Field,
    item: &Arc<ArrowField>,
    array: &ArrayRef,
) -> Result<ArrayRef> {
    let list = array.as_list::<O>();
    let first = list.value_offsets().first().copied().unwrap_or_default();
    let last = list.value_offsets().last().copied().unwrap_or_default();
    let spanned = list
        .values()
        .slice(first.as_usize(), last.as_usize() - first.as_usize());
    let items = store_payloads(out, field.item()?, &spanned).await?;
    let offsets = list.value_offsets().iter().map(|offset| *offset - first);
    let offsets = OffsetBuffer::new(ScalarBuffer::from_iter(offsets));
    let item = retyped(item, items.data_type());
    let array = GenericListArray::<O>::try_new(item, offsets, items, list.nulls().cloned()).map_err(wrong(field))?;
    Ok(Arc::new(array))
}

async fn describe(out: &mut ContainerWriter, field: &Field, array: &ArrayRef) -> Result<ArrayRef> {
    let Some(values) = array.as_binary_opt::<i64>() else {
        return Err(FileError::UnsupportedColumn {
            column: field.name.clone(),
            data_type: array.data_type().to_string(),
            version: out.version(),
            what: "it as a blob; use large_binary".into(),
        });
    };
    let (positions, sizes) = write_values(out, values).await?;
    // 2.0 keeps no validity for descriptions: nulls are positions. Later versions do.
    let nulls = values.nulls().filter(|_| out.version() != FileVersion::V2_0).cloned();
    let columns: Vec<ArrayRef> = vec![Arc::new(positions), Arc::new(sizes)];
    let array = StructArray::try_new(BlobKind::V1.description().clone(), columns, nulls).map_err(wrong(field))?;
    Ok(Arc::new(array))
}

async fn write_values(out: &mut ContainerWriter, values: &LargeBinaryArray) -> Result<(UInt64Array, UInt64Array)> {
    let mut positions = Vec::with_capacity(values.len());
    let mut sizes = Vec::with_capacity(values.len());
    for (row, ends) in values.value_offsets().windows(2).enumerate() {
        let &[start, end] = ends else { continue };
        if values.is_null(row) || start == end {
            positions.push(u64::from(values.is_null(row)));
            sizes.push(0);
            continue;
        }
        let (start, end) = (start.as_usize(), end.as_usize());
        let bytes = share(values.values().slice_with_length(start, end - start));
        sizes.push(bytes.len() as u64);
        positions.push(out.write_payload(bytes).await?);
    }
    Ok((positions.into(), sizes.into()))
}
