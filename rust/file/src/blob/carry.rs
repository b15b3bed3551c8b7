//! Carries blobs from one data file to another, a few at a time; large ones in pieces.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericListArray, OffsetSizeTrait, StructArray, UInt64Array};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field as ArrowField, Fields};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use futures::FutureExt;

use super::describe::{place, Descriptions, Thresholds};
use super::fetch;
use super::location::{BlobLocation, BlobObject, DEDICATED, EXTERNAL, INLINE};
use super::sidecar::pieces;
use super::write::{wrong, BlobWriter};
use crate::container::ContainerWriter;
use crate::error::{FileError, Result};
use crate::reader::FileReader;
use crate::schema::{retyped, BlobKind, Field};
use crate::version::FileVersion;

/// Bytes of blobs that are read at a time; a blob that is larger is copied in pieces of it.
const AT_ONCE: u64 = 8 * 1024 * 1024;

/// So many reads are under way while blobs are written.
const READS: usize = 2;

impl BlobWriter {
    /// Writes the payloads of all blobs at or below `field`, which `array` locates in `source`; returns the array with their new
    /// descriptions. Without a source, all are null.
    pub(crate) fn carry<'a>(
        &'a mut self,
        out: &'a mut ContainerWriter,
        field: &'a Field,
        array: &'a ArrayRef,
        source: Option<&'a FileReader>,
    ) -> BoxFuture<'a, Result<ArrayRef>> {
        async move {
            if !field.has_blobs() {
                return Ok(array.clone());
            }
            if let Some(kind) = field.blob_kind() {
                let located = match source {
                    Some(source) => source.locate_blobs(kind, array)?,
                    None => vec![None; array.len()],
                };
                return match kind {
                    BlobKind::V1 => self.carry_v1(out, field, &located).await,
                    BlobKind::V2 => self.carry_v2(out, field, &located).await,
                };
            }
            match array.data_type() {
                DataType::Struct(fields) => {
                    let parent = array.as_struct();
                    let mut children = Vec::with_capacity(fields.len());
                    for (child, values) in field.children.iter().zip(parent.columns()) {
                        children.push(self.carry(out, child, values, source).await?);
                    }
                    let retyped = fields.iter().zip(&children).map(|(f, c)| retyped(f, c.data_type()));
                    let fields: Fields = retyped.collect();
                    let array = StructArray::try_new(fields, children, parent.nulls().cloned());
                    Ok(Arc::new(array.map_err(wrong(field))?) as ArrayRef)
                }
                DataType::List(item) => self.carry_list::<i32>(out, field, item, array, source).await,
                DataType::LargeList(item) => self.carry_list::<i64>(out, field, item, array, source).await,
                other => Err(FileError::invalid(format!(
                    "column '{}': expected a struct or a list around blobs, found {other}",
                    field.name
                ))),
            }
        }
        .boxed()
    }

    async fn carry_list<O: OffsetSizeTrait>(
        &mut self,
        out: &mut ContainerWriter,
        field: &Field,
        item: &Arc<ArrowField>,
        array: &ArrayRef,
        source: Option<&FileReader>,
    ) -> Result<ArrayRef> {
        let list = array.as_list::<O>();
        let first = list.value_offsets().first().copied().unwrap_or_default();
        let last = list.value_offsets().last().copied().unwrap_or_default();
        let spanned = list
            .values()
            .slice(first.as_usize(), last.as_usize() - first.as_usize());
        let items = self.carry(out, field.item()?, &spanned, source).await?;
        let offsets = list.value_offsets().iter().map(|offset| *offset - first);
        let offsets = OffsetBuffer::new(ScalarBuffer::from_iter(offsets));
        let item = retyped(item, items.data_type());
        let array = GenericListArray::<O>::try_new(item, offsets, items, list.nulls().cloned());
        Ok(Arc::new(array.map_err(wrong(field))?))
    }

    async fn carry_v1(
        &mut self,
        out: &mut ContainerWriter,
        field: &Field,
        located: &[Option<BlobLocation>],
    ) -> Result<ArrayRef> {
        let mut positions = Vec::with_capacity(located.len());
        let mut sizes = Vec::with_capacity(located.len());
        let home = self.home.clone();
        let mut reads = stream::iter(runs(located))
            .map(|run| read(&home, located, run))
            .buffered(READS);
        while let Some(run) = reads.next().await {
            match run? {
                Run::Pieces(path, range) => {
                    sizes.push(range.end - range.start);
                    let mut start = None;
                    for piece in pieces(range, AT_ONCE) {
                        for bytes in home.get_ranges(&path, &[piece]).await? {
                            match start {
                                None => start = Some(out.write_payload(bytes).await?),
                                Some(_) => out.append_payload(bytes).await?,
                            }
                        }
                    }
                    positions.push(start.unwrap_or(0));
                }
                Run::Bytes(_, blobs) => {
                    for blob in blobs {
                        match blob {
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
                }
            }
        }
        // 2.0 keeps no validity for descriptions: nulls are positions. Later versions do.
        let nulls = validity(located).filter(|_| out.version() != FileVersion::V2_0);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(positions)),
            Arc::new(UInt64Array::from(sizes)),
        ];
        let array = StructArray::try_new(BlobKind::V1.description().clone(), columns, nulls);
        Ok(Arc::new(array.map_err(wrong(field))?))
    }

    async fn carry_v2(
        &mut self,
        out: &mut ContainerWriter,
        field: &Field,
        located: &[Option<BlobLocation>],
    ) -> Result<ArrayRef> {
        let thresholds = Thresholds::of(field);
        let mut descriptions = Descriptions::default();
        let home = self.home.clone();
        let mut reads = stream::iter(runs(located))
            .map(|run| read(&home, located, run))
            .buffered(READS);
        while let Some(run) = reads.next().await {
            match run? {
                Run::Pieces(path, range) if range.end - range.start > thresholds.dedicated => {
                    let size = range.end - range.start;
                    let id = self.sidecars.copy_alone(&home, &path, range, AT_ONCE).await?;
                    descriptions.push(DEDICATED, 0, size, id, "");
                }
                Run::Pieces(path, range) => {
                    let bytes = home.get_ranges(&path, &[range]).await?.pop().unwrap_or_default();
                    place(self, out, field.id, thresholds, bytes, &mut descriptions).await?;
                }
                Run::Bytes(rows, blobs) => {
                    for (location, bytes) in located.get(rows).unwrap_or_default().iter().zip(blobs) {
                        match (location, bytes) {
                            (Some(location), None) => {
                                let (id, uri) = match &location.object {
                                    BlobObject::External(uri) => (0, uri),
                                    BlobObject::Based(id, path) => (*id, path),
                                    BlobObject::Stored(_) => continue,
                                };
                                let size = location.size.unwrap_or(0);
                                descriptions.push(EXTERNAL, location.start, size, id, uri);
                            }
                            (_, Some(bytes)) => {
                                place(self, out, field.id, thresholds, bytes, &mut descriptions).await?;
                            }
                            (None, None) => descriptions.push(INLINE, 0, 0, 0, ""),
                        }
                    }
                }
            }
        }
        let columns = descriptions.columns();
        let array = StructArray::try_new(BlobKind::V2.description().clone(), columns, validity(located));
        Ok(Arc::new(array.map_err(wrong(field))?))
    }
}

/// Some of the blobs, on their way.
enum Run {
    /// The bytes of the blobs at these places, `None` for nulls and for those outside of the table.
    Bytes(Range<usize>, Vec<Option<Bytes>>),
    /// A large one, which is not read yet.
    Pieces(Arc<str>, Range<u64>),
}

fn is_external(blob: &BlobLocation) -> bool {
    !matches!(blob.object, BlobObject::Stored(_))
}

/// Bytes to read for a blob.
fn size(blob: Option<&BlobLocation>) -> u64 {
    blob.filter(|blob| !is_external(blob))
        .and_then(|blob| blob.size)
        .unwrap_or(0)
}

/// Blobs that are read together: a few, or one that is larger than [`AT_ONCE`].
fn runs(located: &[Option<BlobLocation>]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut sum = u64::MAX;
    for (place, blob) in located.iter().enumerate() {
        let bytes = size(blob.as_ref());
        sum = sum.saturating_add(bytes);
        match out.last_mut() {
            Some(last) if sum <= AT_ONCE => last.end = place + 1,
            _ => {
                sum = bytes;
                out.push(place..place + 1);
            }
        }
    }
    out
}

async fn read(home: &esker_store::StoreRef, located: &[Option<BlobLocation>], run: Range<usize>) -> Result<Run> {
    let blobs = located.get(run.clone()).unwrap_or_default();
    if let [Some(blob)] = blobs {
        let bytes = size(Some(blob));
        if let (BlobObject::Stored(path), true) = (&blob.object, bytes > AT_ONCE) {
            return Ok(Run::Pieces(path.clone(), blob.start..blob.start.saturating_add(bytes)));
        }
    }
    let own: Vec<Option<BlobLocation>> = blobs
        .iter()
        .map(|blob| blob.clone().filter(|blob| !is_external(blob)))
        .collect();
    Ok(Run::Bytes(run, fetch(home, &own).await?))
}

fn validity(located: &[Option<BlobLocation>]) -> Option<NullBuffer> {
    let nulls = NullBuffer::from_iter(located.iter().map(Option::is_some));
    Some(nulls).filter(|nulls| nulls.null_count() > 0)
}
