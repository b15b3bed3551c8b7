//! Reads the metadata at the file's end, the manifest with the schema, and the page tables.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use esker_proto::lance::{file as pb, table};
use prost::Message;

use super::page::PageTable;
use crate::container::FileTail;
use crate::error::{FileError, Result};
use crate::schema::Schema;

/// Length of the footer in bytes.
const FOOTER: u64 = 16;

/// The schema of a file's statistics and where their pages lie.
#[derive(Debug)]
pub(crate) struct StatisticsMeta {
    /// A struct a field, named by the field's id.
    pub(crate) schema: Schema,
    pub(crate) page_table: Range<u64>,
    /// Pages that each value stands for: the number of groups.
    pub(crate) num_groups: u64,
}

/// The metadata of a file.
#[derive(Debug)]
pub(crate) struct FileMeta {
    pub(crate) schema: Schema,
    /// Fields whose encoding is not read, by id.
    pub(crate) refused: BTreeMap<i32, &'static str>,
    pub(crate) table: PageTable,
    pub(crate) statistics: Option<StatisticsMeta>,
}

/// The end of a file while it is opened.
struct Opening<'a> {
    tail: &'a FileTail,
}

impl Opening<'_> {
    fn corrupt(&self, message: impl std::fmt::Display) -> FileError {
        FileError::corrupt(&self.tail.path, message.to_string())
    }

    /// Bytes in front of the footer, from the tail if it holds them.
    async fn fetch(&self, start: u64, size: u64, what: &str) -> Result<Bytes> {
        let limit = self.tail.size.saturating_sub(FOOTER);
        let end = start.checked_add(size).filter(|end| *end <= limit);
        let end = end.ok_or_else(|| {
            self.corrupt(format!(
                "expected {what} of {size} bytes before byte {limit}, found it at {start}"
            ))
        })?;
        let range = start..end;
        if let Some(bytes) = self.tail.slice(&range) {
            return Ok(bytes);
        }
        let mut parts = self.tail.store.get_ranges(&self.tail.path, &[range]).await?;
        Ok(parts.pop().unwrap_or_default())
    }

    /// A message behind its length.
    async fn message<M: Message + Default>(&self, position: u64, what: &str) -> Result<M> {
        let length = self.fetch(position, 4, what).await?;
        let length = length
            .first_chunk::<4>()
            .map(|b| u32::from_le_bytes(*b))
            .unwrap_or_default();
        let at = position.saturating_add(4);
        let bytes = self.fetch(at, u64::from(length), what).await?;
        M::decode(bytes).map_err(|e| {
            self.corrupt(format!(
                "expected {what} at byte {position}, found bytes that do not decode ({e})"
            ))
        })
    }
}

/// Where a page table of `num_fields` fields lies.
fn table_range(position: u64, num_fields: u64, num_groups: u64) -> Option<Range<u64>> {
    let length = PageTable::encoded_len(num_fields, num_groups)?;
    Some(position..position.checked_add(length)?)
}

fn group_offsets(offsets: &[i32]) -> Option<Vec<u64>> {
    if offsets.is_empty() {
        return Some(vec![0]);
    }
    let mut previous = 0;
    offsets
        .iter()
        .enumerate()
        .map(|(group, offset)| {
            let offset = u64::try_from(*offset).ok()?;
            let ordered = if group == 0 { offset == 0 } else { offset >= previous };
            previous = offset;
            ordered.then_some(offset)
        })
        .collect()
}

/// How many ids there are from the lowest to the highest.
fn id_span(ids: impl Iterator<Item = i32> + Clone) -> Option<(i32, u64)> {
    let (lowest, highest) = (ids.clone().min()?, ids.max()?);
    let span = i64::from(highest) - i64::from(lowest) + 1;
    Some((lowest, u64::try_from(span).ok()?))
}

/// Reads the file's metadata; in most files the tail holds all of it.
pub(crate) async fn read_metadata(tail: &FileTail) -> Result<FileMeta> {
    let opening = Opening { tail };
    let size = tail.bytes.len();
    let position = size
        .checked_sub(16)
        .and_then(|at| tail.bytes.get(at..)?.first_chunk::<8>().map(|b| u64::from_le_bytes(*b)))
        .ok_or_else(|| opening.corrupt("expected a footer of 16 bytes, found fewer; the file is cut short"))?;
    let metadata: pb::Metadata = opening.message(position, "the file's metadata").await?;
    let (fields, refused, schema) = read_schema(&opening, metadata.manifest_position).await?;
    let group_offsets = group_offsets(&metadata.batch_offsets)
        .ok_or_else(|| opening.corrupt("expected group offsets from 0 up that never fall, found others"))?;
    let num_groups = group_offsets.len().saturating_sub(1) as u64;

    let (first_field, num_fields) = id_span(fields.iter().map(|f| f.id)).unwrap_or((0, 0));
    let range = table_range(metadata.page_table_position, num_fields, num_groups)
        .ok_or_else(|| opening.corrupt("expected a page table within 2^64 bytes, found it beyond"))?;
    let bytes = opening
        .fetch(range.start, range.end - range.start, "the page table")
        .await?;
    let table = PageTable::decode(&bytes, first_field, group_offsets)
        .ok_or_else(|| opening.corrupt("expected pages at positions and of lengths from 0 up, found negative ones"))?;
    let statistics = metadata.statistics.and_then(|s| statistics(&s, num_groups));
    Ok(FileMeta {
        schema,
        refused,
        table,
        statistics,
    })
}

async fn read_schema(
    opening: &Opening<'_>,
    position: u64,
) -> Result<(Vec<pb::Field>, BTreeMap<i32, &'static str>, Schema)> {
    if position == 0 {
        return Err(FileError::unsupported(format!(
            "file {}: expected a manifest with the file's schema in it, found none; files of 0.1 without one cannot be read",
            opening.tail.path
        )));
    }
    let manifest: table::Manifest = opening.message(position, "the file's manifest").await?;
    let schema = Schema::from_protos(&manifest.fields, &manifest.schema_metadata).map_err(|e| opening.corrupt(e))?;
    let rle = manifest
        .fields
        .iter()
        .filter(|f| f.encoding == i32::from(pb::Encoding::Rle));
    let refused = rle.map(|f| (f.id, "rle")).collect();
    Ok((manifest.fields, refused, schema))
}

/// The statistics' metadata; invalid ones are ignored, as statistics are optional.
fn statistics(meta: &pb::metadata::StatisticsMetadata, num_groups: u64) -> Option<StatisticsMeta> {
    let schema = Schema::from_protos(&meta.schema, &BTreeMap::new()).ok()?;
    let highest = u64::try_from(*meta.fields.iter().max()?).ok()?;
    Some(StatisticsMeta {
        schema,
        page_table: table_range(meta.page_table_position, highest.checked_add(1)?, 1)?,
        num_groups,
    })
}
