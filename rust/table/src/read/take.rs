//! Takes rows by number or by id: each distinct row is read once, whatever the order and repetitions of the request.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use esker_file::dictionaries::concat_batches;
use esker_file::schema::BlobView;
use esker_file::Decoding;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt};
use tokio::task::JoinHandle;

use super::chunking::threads;
use super::files::TableFiles;
use super::fragment_reader::FragmentReader;
use super::locate::locate;
use super::projection::Projection;
use super::rows::live;
use super::scan::fragments_of;
use super::system::{read_lineage, rows_before, RowPlaces, SystemColumn};
use crate::deletion::DeletionVector;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::manifest::Manifest;
use crate::row_ids::{Candidate, LineageParts};

/// About what is fetched for one value of a scattered row: the chunk around it.
const BYTES_A_VALUE: u64 = 8 * 1024;

/// About the most bytes that are fetched for a part of the rows, of few columns and of many, and the fewest ranges of rows in a part. Each part
/// looks up the pages of all columns.
const PART_BYTES: u64 = 8 * 1024 * 1024;
const LARGEST_PART_BYTES: u64 = 32 * 1024 * 1024;
const COLUMN_BYTES: u64 = 32 * 1024;
const PART_ROWS: u64 = 32;

/// What a take returns.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'a> {
    /// Columns, paths and system columns; `None` for all columns.
    pub columns: Option<&'a [String]>,
    /// Whether paths leave their structs and lists in place, with only the fields asked for, as in Lance. Else a path is a column.
    pub in_structs: bool,
    /// What blob columns are returned as.
    pub blobs: BlobView,
}

/// Takes rows by number, in the order of the request, repetitions included. Numbers count live rows from 0 over all fragments, or over
/// those of `fragment_ids`.
pub async fn take(
    files: Arc<TableFiles>,
    manifest: &Manifest,
    indices: &[u64],
    taken: Taken<'_>,
    fragment_ids: Option<&[u64]>,
) -> Result<RecordBatch> {
    manifest.check_readable()?;
    let wanted_columns = Arc::new(TakeColumns::new(manifest, taken)?);
    let mut wanted: Vec<u64> = indices.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let mut tasks = Vec::new();
    let mut first = 0_u64;
    let mut rest = wanted.as_slice();
    for fragment in fragments_of(manifest, fragment_ids)? {
        let (Some(lowest), false) = (rest.first(), rest.is_empty()) else {
            break;
        };
        let live_rows = match fragment.num_rows() {
            Some(rows) => rows,
            None => live_rows_of(&files, &fragment).await?,
        };
        let end = first.saturating_add(live_rows);
        if *lowest >= end {
            first = end;
            continue;
        }
        let (here, later) = rest.split_at(rest.partition_point(|index| *index < end));
        let local = Rows::Live(here.iter().map(|index| index - first).collect());
        let (files, columns) = (files.clone(), wanted_columns.clone());
        tasks.push(tokio::spawn(async move {
            take_fragment(&files, &fragment, &columns, &local).await
        }));
        rest = later;
        first = end;
    }
    if let Some(beyond) = rest.first() {
        return Err(TableError::invalid(format!(
            "row number {beyond} is out of range, expected less than {first}"
        )));
    }
    let batch = joined(tasks, &wanted_columns.schema).await?;
    in_order(batch, &wanted, indices)
}

/// Takes rows by id (stable row id if the table has them, else row address), in the order of the request, repetitions included. Ids that
/// no row has are left out.
pub async fn take_ids(
    files: Arc<TableFiles>,
    manifest: &Manifest,
    ids: &[u64],
    taken: Taken<'_>,
) -> Result<RecordBatch> {
    manifest.check_readable()?;
    let wanted_columns = Arc::new(TakeColumns::new(manifest, taken)?);
    let mut located = locate(&files, manifest, ids).await?;
    let rows: Vec<Candidate> = located.rows.into_iter().flatten().collect();
    let mut wanted = rows.clone();
    wanted.sort_unstable();
    wanted.dedup();
    let mut tasks = Vec::new();
    for here in wanted.chunk_by(|a, b| a.fragment == b.fragment) {
        let fragment = here.first().and_then(|row| located.fragments.remove(&row.fragment));
        let Some(fragment) = fragment else { continue };
        let offsets = Rows::Physical(here.iter().map(|row| u64::from(row.offset)).collect());
        let (files, columns) = (files.clone(), wanted_columns.clone());
        tasks.push(tokio::spawn(async move {
            take_fragment(&files, &fragment, &columns, &offsets).await
        }));
    }
    let batch = joined(tasks, &wanted_columns.schema).await?;
    in_order(batch, &wanted, &rows)
}

pub(super) async fn joined(tasks: Vec<JoinHandle<Result<RecordBatch>>>, schema: &SchemaRef) -> Result<RecordBatch> {
    let batches = try_join_all(tasks)
        .await
        .map_err(|e| TableError::task_failed("take", &e))?;
    let batches = batches.into_iter().collect::<Result<Vec<_>>>()?;
    match batches.as_slice() {
        [only] => Ok(only.clone()),
        all => concat_batches(schema, all).map_err(|e| TableError::invalid(e.to_string())),
    }
}

/// Reorders the rows of `batch`, which are those of the sorted `wanted`, to the order of `asked`.
pub(super) fn in_order<T: Ord>(batch: RecordBatch, wanted: &[T], asked: &[T]) -> Result<RecordBatch> {
    if wanted == asked {
        return Ok(batch);
    }
    if batch.num_columns() == 0 {
        let options = RecordBatchOptions::new().with_row_count(Some(asked.len()));
        let counted = RecordBatch::try_new_with_options(batch.schema(), Vec::new(), &options);
        return counted.map_err(|e| TableError::invalid(e.to_string()));
    }
    let places = asked.iter().map(|row| wanted.partition_point(|w| w < row) as u64);
    let places = UInt64Array::from_iter_values(places);
    arrow_select::take::take_record_batch(&batch, &places).map_err(|e| TableError::invalid(e.to_string()))
}

/// Sorted rows of one fragment.
pub(super) enum Rows {
    /// Numbers among the rows that are not deleted.
    Live(Vec<u64>),
    /// Offsets in the files.
    Physical(Vec<u64>),
}

pub(super) async fn live_rows_of(files: &TableFiles, fragment: &Fragment) -> Result<u64> {
    let reader = FragmentReader::open(files, fragment).await?;
    Ok(reader
        .physical_rows()
        .saturating_sub(reader.deletions().map_or(0, |deletions| deletions.len())))
}

/// The rows of a fragment, deleted ones included, and which of them live.
pub(crate) async fn live_rows(files: &TableFiles, fragment: &Fragment) -> Result<(u64, Vec<Range<u64>>)> {
    let reader = FragmentReader::open(files, fragment).await?;
    let rows = reader.physical_rows();
    Ok((rows, live(0..rows, reader.deletions().map(AsRef::as_ref))))
}

/// The columns of a take: those of files, and system columns.
#[derive(Debug)]
pub(super) struct TakeColumns {
    projection: Arc<Projection>,
    /// For each output column its index among the columns read, or its system column.
    outputs: Vec<std::result::Result<usize, SystemColumn>>,
    schema: SchemaRef,
    rows_before: Option<BTreeMap<u64, u64>>,
    lineage: LineageParts,
}

impl TakeColumns {
    pub(super) fn new(manifest: &Manifest, taken: Taken<'_>) -> Result<TakeColumns> {
        let schema = manifest.schema()?.with_blob_view(taken.blobs);
        let names = match taken.columns {
            Some(columns) => columns.to_vec(),
            None => schema.fields.iter().map(|field| field.name.clone()).collect(),
        };
        let mut read = Vec::new();
        let mut outputs = Vec::with_capacity(names.len());
        for name in names {
            match SystemColumn::named(&name).filter(|_| schema.field(&name).is_none()) {
                Some(column) => outputs.push(Err(column)),
                None => {
                    read.push(name);
                    outputs.push(Ok(read.len() - 1));
                }
            }
        }
        let projection = if taken.in_structs {
            let selected = schema.select_in_order(&read)?;
            // Several paths may lie in one column: it stands where the first of them is named.
            let places = selected.places_of(&read);
            let mut seen = vec![false; selected.fields.len()];
            outputs = outputs
                .into_iter()
                .filter_map(|output| match output {
                    Ok(at) => {
                        let place = places.get(at).copied()?;
                        let seen = seen.get_mut(place)?;
                        (!std::mem::replace(seen, true)).then_some(Ok(place))
                    }
                    system => Some(system),
                })
                .collect();
            Projection::new(&selected, None)?
        } else {
            Projection::new(&schema, Some(&read))?
        };
        let projection = Arc::new(projection.with_dictionaries(manifest.dictionaries()?));
        let fields = outputs.iter().filter_map(|output| match output {
            Ok(place) => projection.schema().fields().get(*place).cloned(),
            Err(column) => Some(column.field()),
        });
        let metadata = projection.schema().metadata().clone();
        let schema = Arc::new(ArrowSchema::new_with_metadata(fields.collect::<Vec<_>>(), metadata));
        let numbered = outputs.contains(&Err(SystemColumn::RowOffset));
        let rows_before = if numbered { Some(rows_before(manifest)?) } else { None };
        let system = outputs.iter().filter_map(|output| output.err());
        Ok(TakeColumns {
            lineage: SystemColumn::lineage_of(system, manifest),
            projection,
            outputs,
            schema,
            rows_before,
        })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn places(&self, files: &TableFiles, fragment: &Fragment, reader: &FragmentReader) -> Result<RowPlaces> {
        let rows_before = self.rows_before.as_ref();
        Ok(RowPlaces {
            fragment_id: fragment.id(),
            rows_before: rows_before.and_then(|rows| rows.get(&fragment.id()).copied()),
            deletions: reader.deletions().cloned(),
            lineage: read_lineage(files, fragment, reader.physical_rows(), self.lineage).await?,
        })
    }
}

pub(super) async fn take_fragment(
    files: &TableFiles,
    fragment: &Fragment,
    columns: &TakeColumns,
    rows: &Rows,
) -> Result<RecordBatch> {
    let reader = FragmentReader::open(files, fragment).await?;
    let rows = match rows {
        Rows::Live(numbers) => physical(numbers, reader.deletions().map(AsRef::as_ref)),
        Rows::Physical(offsets) => physical(offsets, None),
    };
    let read = read_rows(files, &reader, &columns.projection, &rows).await?;
    let places = columns.places(files, fragment, &reader).await?;
    let arrays = columns.outputs.iter().filter_map(|output| match output {
        Ok(place) => read.columns().get(*place).cloned(),
        Err(column) => Some(places.values(*column, &rows)),
    });
    let options = RecordBatchOptions::new().with_row_count(Some(read.num_rows()));
    RecordBatch::try_new_with_options(columns.schema.clone(), arrays.collect(), &options)
        .map_err(|e| TableError::invalid(e.to_string()))
}

/// Reads scattered rows in parts side by side, so that all cores fetch and decode, and no more than some parts are in memory as they lie in
/// the file. Behind a network, where each part would have its own requests, they are read together.
async fn read_rows(
    files: &TableFiles,
    reader: &FragmentReader,
    projection: &Arc<Projection>,
    rows: &[Range<u64>],
) -> Result<RecordBatch> {
    let columns = reader.project(projection)?;
    let schema = projection.schema();
    // Parts of a column of a dictionary type would each have a dictionary.
    let is_whole = files.store().is_far() || projection.has_dictionaries();
    let bytes = (rows.len() as u64)
        .saturating_mul(columns.num_columns())
        .saturating_mul(BYTES_A_VALUE)
        .min(reader.file_bytes());
    let part_bytes = columns.num_columns().saturating_mul(COLUMN_BYTES);
    let part_bytes = part_bytes.clamp(PART_BYTES, LARGEST_PART_BYTES);
    let parts = match is_whole {
        true => 1,
        false => (bytes / part_bytes).max(threads()).min(rows.len() as u64 / PART_ROWS),
    };
    if parts < 2 {
        return columns.read(rows).await;
    }
    let size = rows.len().div_ceil(usize::try_from(parts).unwrap_or(1)).max(1);
    let columns = Arc::new(columns);
    let parts: Vec<Vec<Range<u64>>> = rows.chunks(size).map(<[_]>::to_vec).collect();
    let read = stream::iter(parts)
        .map(|rows| {
            let columns = columns.clone();
            tokio::spawn(async move { columns.read_by(&rows, Decoding::Here).await })
        })
        .buffered(usize::try_from(threads()).unwrap_or(1).max(1));
    let read: Vec<_> = read.collect().await;
    let batches = read
        .into_iter()
        .map(|batch| batch.map_err(|e| TableError::task_failed("take", &e))?)
        .collect::<Result<Vec<_>>>()?;
    concat_batches(schema, &batches).map_err(|e| TableError::invalid(e.to_string()))
}

/// Sorted live row numbers as ranges of physical offsets.
pub(super) fn physical(live: &[u64], deletions: Option<&DeletionVector>) -> Vec<Range<u64>> {
    let mut deleted = deletions
        .map(|d| d.rows().iter())
        .into_iter()
        .flatten()
        .map(u64::from)
        .peekable();
    let mut shift = 0_u64;
    let mut out: Vec<Range<u64>> = Vec::new();
    for number in live {
        while deleted.next_if(|d| *d <= number + shift).is_some() {
            shift += 1;
        }
        let offset = number + shift;
        match out.last_mut() {
            Some(last) if last.end == offset => last.end = offset + 1,
            _ => out.push(offset..offset + 1),
        }
    }
    out
}
