//! Taking rows by number: each wanted row is read once, whatever the order and repetition of the request.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use esker_file::schema::BlobView;
use futures::future::try_join_all;

use super::files::TableFiles;
use super::fragment_reader::FragmentReader;
use super::projection::Projection;
use super::scan::fragments_of;
use super::system::{rows_before, RowPlaces, SystemColumn};
use crate::deletion::DeletionVector;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::manifest::Manifest;

/// Rows by number, in the order asked for and as often as asked for. Numbers count live rows from 0 over all fragments, or over those of
/// `fragment_ids`.
pub async fn take(
    files: Arc<TableFiles>,
    manifest: &Manifest,
    indices: &[u64],
    columns: Option<&[String]>,
    fragment_ids: Option<&[u64]>,
    blobs: BlobView,
) -> Result<RecordBatch> {
    manifest.check_readable()?;
    let wanted_columns = Arc::new(TakeColumns::new(manifest, columns, blobs)?);
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
        let local: Vec<u64> = here.iter().map(|index| index - first).collect();
        let (files, columns, places) = (files.clone(), wanted_columns.clone(), wanted_columns.places(&fragment));
        tasks.push(tokio::spawn(async move {
            take_fragment(&files, &fragment, &columns, places, &local).await
        }));
        rest = later;
        first = end;
    }
    if let Some(beyond) = rest.first() {
        return Err(TableError::invalid(format!(
            "row number {beyond} is out of range, expected less than {first}"
        )));
    }
    let batches = try_join_all(tasks)
        .await
        .map_err(|e| TableError::task_failed("take", &e))?;
    let batches = batches.into_iter().collect::<Result<Vec<_>>>()?;
    let failed = |e: arrow_schema::ArrowError| TableError::invalid(e.to_string());
    let batch = match batches.as_slice() {
        [only] => only.clone(),
        all => arrow_select::concat::concat_batches(&wanted_columns.schema, all).map_err(failed)?,
    };
    if wanted == indices {
        return Ok(batch);
    }
    let places = indices.iter().map(|index| wanted.partition_point(|w| w < index) as u64);
    let places = UInt64Array::from_iter_values(places);
    arrow_select::take::take_record_batch(&batch, &places).map_err(failed)
}

pub(super) async fn live_rows_of(files: &TableFiles, fragment: &Fragment) -> Result<u64> {
    let reader = FragmentReader::open(files, fragment).await?;
    Ok(reader
        .physical_rows()
        .saturating_sub(reader.deletions().map_or(0, DeletionVector::len)))
}

/// The columns of a take: what files hold and what is made from where a row lies.
struct TakeColumns {
    projection: Arc<Projection>,
    /// For each output column its place among the columns read, or the system column that it is.
    outputs: Vec<std::result::Result<usize, SystemColumn>>,
    schema: SchemaRef,
    rows_before: Option<BTreeMap<u64, u64>>,
}

impl TakeColumns {
    fn new(manifest: &Manifest, columns: Option<&[String]>, blobs: BlobView) -> Result<TakeColumns> {
        let schema = manifest.schema()?.with_blob_view(blobs);
        let names = match columns {
            Some(columns) => columns.to_vec(),
            None => schema.fields.iter().map(|field| field.name.clone()).collect(),
        };
        let mut read = Vec::new();
        let mut outputs = Vec::with_capacity(names.len());
        for name in names {
            match SystemColumn::named(&name).filter(|_| schema.field(&name).is_none()) {
                Some(column) => {
                    column.check(manifest)?;
                    outputs.push(Err(column));
                }
                None => {
                    read.push(name);
                    outputs.push(Ok(read.len() - 1));
                }
            }
        }
        let projection = Arc::new(Projection::new(&schema, Some(&read))?.with_dictionaries(manifest.dictionaries()?));
        let fields = outputs.iter().filter_map(|output| match output {
            Ok(place) => projection.schema().fields().get(*place).cloned(),
            Err(column) => Some(column.field()),
        });
        let metadata = projection.schema().metadata().clone();
        let schema = Arc::new(ArrowSchema::new_with_metadata(fields.collect::<Vec<_>>(), metadata));
        let numbered = outputs.contains(&Err(SystemColumn::RowOffset));
        let rows_before = if numbered { Some(rows_before(manifest)?) } else { None };
        Ok(TakeColumns {
            projection,
            outputs,
            schema,
            rows_before,
        })
    }

    fn places(&self, fragment: &Fragment) -> RowPlaces {
        RowPlaces {
            fragment_id: fragment.id(),
            rows_before: self
                .rows_before
                .as_ref()
                .and_then(|rows| rows.get(&fragment.id()).copied()),
            deletions: None,
        }
    }
}

async fn take_fragment(
    files: &TableFiles,
    fragment: &Fragment,
    columns: &TakeColumns,
    places: RowPlaces,
    live: &[u64],
) -> Result<RecordBatch> {
    let reader = FragmentReader::open(files, fragment).await?;
    let rows = physical(live, reader.deletions());
    let read = reader.project(&columns.projection)?.read(&rows).await?;
    let places = RowPlaces {
        deletions: reader.deletions().cloned(),
        ..places
    };
    let arrays = columns.outputs.iter().filter_map(|output| match output {
        Ok(place) => read.columns().get(*place).cloned(),
        Err(column) => Some(places.values(*column, &rows)),
    });
    let options = RecordBatchOptions::new().with_row_count(Some(read.num_rows()));
    RecordBatch::try_new_with_options(columns.schema.clone(), arrays.collect(), &options)
        .map_err(|e| TableError::invalid(e.to_string()))
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
