//! Writes blobs: payloads are written to files immediately, their descriptions go to the pages.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericListArray, LargeBinaryArray, OffsetSizeTrait, StructArray, UInt64Array};
use arrow_buffer::{ArrowNativeType, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field as ArrowField, Fields};
use bytes::Bytes;
use esker_store::store::StoreRef;
use futures::future::BoxFuture;
use futures::FutureExt;

use super::describe;
use super::prepared;
use super::sidecar::{Pack, Sidecars};
use crate::container::ContainerWriter;
use crate::error::{FileError, Result};
use crate::schema::{retyped, BlobKind, Field, Schema};
use crate::v2_0::encode::share;
use crate::version::FileVersion;
use crate::writer::{ExternalBlobs, WriteOptions};

/// The state of writing a file's blobs.
pub(crate) struct BlobWriter {
    pub(super) home: StoreRef,
    pub(super) sidecars: Sidecars,
    /// The shared file of each column that has one open.
    pub(super) packs: BTreeMap<i32, Option<Pack>>,
    pub(super) external: ExternalBlobs,
    /// Whether columns say where their bytes lie.
    is_prepared: bool,
}

impl BlobWriter {
    pub(crate) fn new(store: &StoreRef, data_file: &str, schema: &Schema, options: &WriteOptions) -> BlobWriter {
        let is_prepared = options.prepared_blobs && schema.fields.iter().any(prepared::has_prepared);
        BlobWriter {
            home: store.clone(),
            sidecars: Sidecars::new(store, data_file, is_prepared),
            packs: BTreeMap::new(),
            external: options.external_blobs,
            is_prepared,
        }
    }

    /// Makes the files beside the data file visible and returns their paths.
    pub(crate) async fn finish(&mut self) -> Result<Vec<String>> {
        for pack in std::mem::take(&mut self.packs).into_values() {
            self.sidecars.finish_pack(pack).await?;
        }
        Ok(self.sidecars.done().to_vec())
    }

    /// Removes what was written.
    pub(crate) async fn abort(self) -> Result<()> {
        let packs = self.packs.into_values().flatten().collect();
        self.sidecars.abort(packs).await
    }

    /// Writes the payloads of all blobs at or below `field`; returns the array with descriptions in their place.
    pub(crate) fn store<'a>(
        &'a mut self,
        out: &'a mut ContainerWriter,
        field: &'a Field,
        array: &'a ArrayRef,
    ) -> BoxFuture<'a, Result<ArrayRef>> {
        async move {
            if !field.has_blobs() {
                return Ok(array.clone());
            }
            match field.blob_kind() {
                Some(BlobKind::V1) => return describe_v1(out, field, array).await,
                Some(BlobKind::V2) if self.is_prepared && prepared::is_prepared(array.data_type()) => {
                    return prepared::describe(out, field, array).await;
                }
                Some(BlobKind::V2) => return describe::describe_v2(self, out, field, array).await,
                None => {}
            }
            match array.data_type() {
                DataType::Struct(fields) => {
                    let parent = array.as_struct();
                    let mut children = Vec::with_capacity(fields.len());
                    for (child, values) in field.children.iter().zip(parent.columns()) {
                        children.push(self.store(out, child, values).await?);
                    }
                    let retyped = fields.iter().zip(&children).map(|(f, c)| retyped(f, c.data_type()));
                    let fields: Fields = retyped.collect();
                    let array = StructArray::try_new(fields, children, parent.nulls().cloned());
                    Ok(Arc::new(array.map_err(wrong(field))?) as ArrayRef)
                }
                DataType::List(item) => self.store_in_list::<i32>(out, field, item, array).await,
                DataType::LargeList(item) => self.store_in_list::<i64>(out, field, item, array).await,
                other => Err(FileError::invalid(format!(
                    "column '{}': expected a struct or a list around blobs, found {other}",
                    field.name
                ))),
            }
        }
        .boxed()
    }

    async fn store_in_list<O: OffsetSizeTrait>(
        &mut self,
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
        let items = self.store(out, field.item()?, &spanned).await?;
        let offsets = list.value_offsets().iter().map(|offset| *offset - first);
        let offsets = OffsetBuffer::new(ScalarBuffer::from_iter(offsets));
        let item = retyped(item, items.data_type());
        let array = GenericListArray::<O>::try_new(item, offsets, items, list.nulls().cloned());
        Ok(Arc::new(array.map_err(wrong(field))?))
    }
}

/// An Arrow error with the column's name.
pub(super) fn wrong(field: &Field) -> impl Fn(arrow_schema::ArrowError) -> FileError + '_ {
    |e| FileError::invalid(format!("column '{}': {e}", field.name))
}

/// One value of a binary array; its memory is shared.
pub(super) fn value(values: &LargeBinaryArray, row: usize) -> Option<Bytes> {
    if values.is_null(row) {
        return None;
    }
    let (start, end) = (values.value_offsets().get(row)?, values.value_offsets().get(row + 1)?);
    let (start, end) = (start.as_usize(), end.as_usize());
    Some(share(values.values().slice_with_length(start, end - start)))
}

async fn describe_v1(out: &mut ContainerWriter, field: &Field, array: &ArrayRef) -> Result<ArrayRef> {
    let Some(values) = array.as_binary_opt::<i64>() else {
        return Err(FileError::invalid(format!(
            "column '{}': expected blobs as large_binary, found {}",
            field.name,
            array.data_type()
        )));
    };
    let mut positions = Vec::with_capacity(values.len());
    let mut sizes = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        match value(values, row) {
            Some(bytes) if !bytes.is_empty() => {
                sizes.push(bytes.len() as u64);
                positions.push(out.write_payload(bytes).await?);
            }
            found => {
                positions.push(u64::from(found.is_none()));
                sizes.push(0);
            }
        }
    }
    // 2.0 keeps no validity for descriptions: nulls are positions. Later versions do.
    let nulls = values.nulls().filter(|_| out.version() != FileVersion::V2_0).cloned();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from(positions)),
        Arc::new(UInt64Array::from(sizes)),
    ];
    let array = StructArray::try_new(BlobKind::V1.description().clone(), columns, nulls);
    Ok(Arc::new(array.map_err(wrong(field))?))
}
