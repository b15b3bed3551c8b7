//! Locates blobs: reads their descriptions and no byte of the blobs themselves.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::ArrayRef;
use esker_file::blob::BlobLocation;
use esker_file::schema::{BlobKind, BlobView, Field};
use futures::future::try_join_all;

use super::files::TableFiles;
use super::fragment_reader::FragmentReader;
use super::projection::Projection;
use super::rows::{count, first, live, live_lazily};
use super::scan::fragments_of;
use super::take::{live_rows_of, physical};
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::manifest::Manifest;
use crate::row_ids::Candidate;

/// What the numbers of a request mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSelection {
    /// Ids, which are addresses in a table without stable row ids.
    Ids,
    /// Numbers of live rows over all fragments, from 0.
    Indices,
    /// Addresses: fragment id << 32 | offset within the fragment.
    Addresses,
}

/// A row and the location of its blob.
#[derive(Debug, Clone)]
pub struct LocatedBlob {
    /// The row's address.
    pub address: u64,
    /// The blob's location; `None` for a null.
    pub location: Option<BlobLocation>,
}

/// The wanted rows of one fragment as sorted offsets; `numbers` are the numbers in the request.
struct Wanted {
    fragment: Fragment,
    numbers: Vec<u64>,
    rows: Vec<Range<u64>>,
}

/// The locations of the blobs of a column, in the order of `rows`, repetitions included.
pub async fn locate_blobs(
    files: Arc<TableFiles>,
    manifest: &Manifest,
    column: &str,
    selection: RowSelection,
    rows: &[u64],
) -> Result<Vec<LocatedBlob>> {
    manifest.check_readable()?;
    let schema = manifest.schema()?.with_blob_view(BlobView::Located);
    let projection = Arc::new(Projection::new(&schema, Some(&[column.to_string()]))?);
    let kind = schema.field_by_path(column).and_then(|field| field.blob_kind());
    let kind = kind.ok_or_else(|| {
        TableError::invalid(format!(
            "the column '{column}' is not a blob column; expected large_binary with lance-encoding:blob, or lance.blob.v2"
        ))
    })?;
    let moved;
    let rows = if selection == RowSelection::Ids && manifest.has_stable_row_ids() {
        moved = addresses_of(&files, manifest, rows).await?;
        &moved
    } else {
        rows
    };
    let mut numbers = rows.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let wanted = match selection {
        RowSelection::Indices => by_index(&files, manifest, &numbers).await?,
        RowSelection::Ids | RowSelection::Addresses => by_address(&files, manifest, &numbers).await?,
    };
    let tasks = wanted.into_iter().map(|wanted| {
        let (files, projection) = (files.clone(), projection.clone());
        tokio::spawn(async move { locate(&files, &projection, kind, wanted).await })
    });
    let located = try_join_all(tasks)
        .await
        .map_err(|e| TableError::task_failed("blob lookup", &e))?;
    let mut by_number = BTreeMap::new();
    for part in located {
        by_number.extend(part?);
    }
    rows.iter()
        .map(|number| {
            let found = by_number.get(number).cloned();
            found.ok_or_else(|| TableError::invalid(format!("expected a row {number}, found none")))
        })
        .collect()
}

/// The addresses of the rows with these stable ids.
async fn addresses_of(files: &Arc<TableFiles>, manifest: &Manifest, ids: &[u64]) -> Result<Vec<u64>> {
    let located = super::locate::locate(files, manifest, ids).await?;
    let address = |(id, row): (&u64, &Option<Candidate>)| {
        let found =
            row.and_then(|row| Some((located.fragments.get(&row.fragment)?.id() << 32) | u64::from(row.offset)));
        found.ok_or_else(|| TableError::invalid(format!("expected a row with id {id}, found none")))
    };
    ids.iter().zip(&located.rows).map(address).collect()
}

async fn by_index(files: &TableFiles, manifest: &Manifest, numbers: &[u64]) -> Result<Vec<Wanted>> {
    let mut out = Vec::new();
    let mut first = 0_u64;
    let mut rest = numbers;
    for fragment in fragments_of(manifest, None)? {
        if rest.is_empty() {
            break;
        }
        let live_rows = match fragment.num_rows() {
            Some(rows) => rows,
            None => live_rows_of(files, &fragment).await?,
        };
        let end = first.saturating_add(live_rows);
        let (here, later) = rest.split_at(rest.partition_point(|number| *number < end));
        if !here.is_empty() {
            let reader = FragmentReader::open(files, &fragment).await?;
            let local: Vec<u64> = here.iter().map(|number| number - first).collect();
            out.push(Wanted {
                rows: physical(&local, reader.deletions().map(AsRef::as_ref)),
                numbers: here.to_vec(),
                fragment,
            });
        }
        rest = later;
        first = end;
    }
    match rest.first() {
        Some(beyond) => Err(TableError::invalid(format!(
            "row number {beyond} is out of range, expected less than {first}"
        ))),
        None => Ok(out),
    }
}

async fn by_address(files: &TableFiles, manifest: &Manifest, addresses: &[u64]) -> Result<Vec<Wanted>> {
    let mut out: Vec<Wanted> = Vec::new();
    for chunk in addresses.chunk_by(|a, b| a >> 32 == b >> 32) {
        let id = chunk.first().copied().unwrap_or_default() >> 32;
        let fragment = manifest.fragment(id)?.ok_or_else(|| {
            TableError::invalid(format!(
                "expected addresses in fragments of version {}, found one in fragment {id}",
                manifest.version()
            ))
        })?;
        let reader = FragmentReader::open(files, &fragment).await?;
        let mut rows: Vec<Range<u64>> = Vec::new();
        for address in chunk {
            let offset = address & u64::from(u32::MAX);
            if offset >= reader.physical_rows() {
                return Err(TableError::invalid(format!(
                    "row address {address} is out of range: fragment {id} has {} rows",
                    reader.physical_rows()
                )));
            }
            let is_deleted = |deleted: &Arc<crate::deletion::DeletionVector>| {
                u32::try_from(offset).is_ok_and(|offset| deleted.rows().contains(offset))
            };
            if reader.deletions().is_some_and(is_deleted) {
                // In pylance's words, which programs look for.
                return Err(TableError::unsupported(format!(
                    "A take operation that includes row addresses must not target deleted rows: the row at address {address} is deleted; \
                     ask for live rows only"
                )));
            }
            match rows.last_mut() {
                Some(last) if last.end == offset => last.end = offset + 1,
                _ => rows.push(offset..offset + 1),
            }
        }
        out.push(Wanted {
            fragment,
            numbers: chunk.to_vec(),
            rows,
        });
    }
    Ok(out)
}

async fn locate(
    files: &TableFiles,
    projection: &Arc<Projection>,
    kind: BlobKind,
    wanted: Wanted,
) -> Result<Vec<(u64, LocatedBlob)>> {
    let reader = FragmentReader::open(files, &wanted.fragment).await?;
    let columns = reader.project(projection)?;
    let batch = columns.read(&wanted.rows).await?;
    let locations = match (columns.file_of(0), batch.columns().first()) {
        (Some(file), Some(descriptions)) => file.locate_blobs(kind, descriptions)?,
        _ => vec![None; wanted.numbers.len()],
    };
    let offsets = wanted.rows.into_iter().flatten();
    let rows = wanted.numbers.into_iter().zip(offsets).zip(locations);
    let located = rows.map(|((number, offset), location)| {
        let address = wanted.fragment.id() << 32 | offset;
        (number, LocatedBlob { address, location })
    });
    Ok(located.collect())
}

/// Rows that are sampled at each of a few places to estimate the size of blobs.
const SAMPLED_ROWS: u64 = 64;

/// An estimate of the bytes of v2 blobs per row of a fragment, from sampled descriptions; 0 if no such blobs are read.
pub(super) async fn blob_bytes_per_row(reader: &FragmentReader, columns: &Projection) -> Result<u64> {
    fn wanted(field: &Field) -> bool {
        match field.blob_kind() {
            Some(kind) => kind == BlobKind::V2 && field.blob_view == Some(BlobView::Bytes),
            None => field.children.iter().any(wanted),
        }
    }
    let rows = reader.physical_rows();
    if rows == 0 || !columns.fields().any(wanted) {
        return Ok(0);
    }
    let places = [0, rows / 4, rows / 2, rows / 4 * 3];
    let mut sample: Vec<Range<u64>> = Vec::new();
    for start in places {
        let start = start.max(sample.last().map_or(0, |last| last.end));
        let end = start.saturating_add(SAMPLED_ROWS).min(rows);
        // Of deleted rows the files may not agree, as on the lengths of lists.
        sample.extend(live(start..end, reader.deletions().map(AsRef::as_ref)));
    }
    if sample.is_empty() {
        sample.extend(first(live_lazily(0..rows, reader.deletions().cloned()), SAMPLED_ROWS));
    }
    if sample.is_empty() {
        return Ok(0);
    }
    let found = reader
        .project(&Arc::new(columns.located()))?
        .read_fields(&sample)
        .await?;
    let bytes: u64 = found.iter().map(|(field, array)| described_bytes(field, array)).sum();
    Ok(bytes / count(&sample).max(1))
}

/// The bytes of the blobs that the descriptions at or below `field` refer to.
fn described_bytes(field: &Field, array: &ArrayRef) -> u64 {
    if field.is_blob() {
        let sizes = array.as_struct_opt().and_then(|fields| fields.column_by_name("size"));
        let sizes = sizes.and_then(|sizes| sizes.as_primitive_opt::<UInt64Type>());
        return sizes.map_or(0, |sizes| {
            sizes.values().iter().fold(0, |sum, size| sum.saturating_add(*size))
        });
    }
    let items = array
        .as_list_opt::<i32>()
        .map(|list| list.values())
        .or_else(|| array.as_list_opt::<i64>().map(|list| list.values()));
    if let (Some(items), Some(item)) = (items, field.children.first()) {
        return described_bytes(item, items);
    }
    let Some(fields) = array.as_struct_opt() else { return 0 };
    let children = field.children.iter().zip(fields.columns());
    children.fold(0, |sum, (child, array)| {
        sum.saturating_add(described_bytes(child, array))
    })
}
