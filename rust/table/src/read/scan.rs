//! Scans: fragments are cut into chunks, chunks are read ahead concurrently, batches come out in order.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use esker_expr::{ColumnRanges, Predicate};
use esker_file::schema::{BlobView, Field, Schema};
use esker_file::Decoding;
use futures::future::{self, FutureExt};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::blobs::blob_bytes_per_row;
use super::chunk::{count_chunk, ChunkPlan, ChunkSource, Kept, Output};
use super::chunking::{chunk_size, readahead, threads, Ahead, Decoded, Ramp, Weight, Weights};
use super::covering::{FAR_SPREAD, NEAR_SPREAD};
use super::files::TableFiles;
use super::fragment_reader::FragmentReader;
use super::order::{ordered, Cut, OrderKey};
use super::page_ends::{PageEnds, MOST_COLUMNS};
use super::parts::{read_part, Left, Part};
use super::projection::Projection;
use super::rows::{clip, count, groups_within, live, Most};
use super::statistics::{rule_out, GroupCounts};
use super::steps::{steps_of, Step};
use super::strict::strict;
use super::system::{read_lineage, rows_before, RowPlaces, SystemColumn};
use super::tested_first::tested_first;
use super::top_fields::TopFields;
use super::views::with_views;
use super::wanted::Wanted;
use crate::deletion::DeletionVector;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::manifest::Manifest;
use crate::row_ids::LineageParts;

/// Fragments whose files are open or being opened, including the one that is being read: behind a network, and elsewhere, where there are more.
const FILES_AHEAD: usize = 16;
const NEAR_FILES_AHEAD: usize = 8;

/// A scan's parameters.
#[derive(Debug, Clone, Default)]
pub struct ScanRequest {
    /// Columns and dotted paths in output order; `None` for all columns.
    pub columns: Option<Vec<String>>,
    /// Keep only rows for which it is true.
    pub filter: Option<Predicate>,
    /// At most so many rows, after filter and offset.
    pub limit: Option<u64>,
    /// Rows to skip at the start, after the filter.
    pub offset: Option<u64>,
    /// The most rows in a batch.
    pub batch_size: Option<usize>,
    /// Whether all batches but the last have exactly `batch_size` rows.
    pub strict_batch_size: bool,
    /// Only these fragments, in this order.
    pub fragment_ids: Option<Vec<u64>>,
    /// Only these physical rows of each fragment.
    pub row_range: Option<Range<u64>>,
    /// Adds `_rowid`.
    pub with_row_id: bool,
    /// Adds `_rowaddr`.
    pub with_row_address: bool,
    /// Batches may come as they are ready.
    pub unordered: bool,
    /// Whether deleted rows are included, as far as their fragment still exists; their `_rowid` and `_rowaddr` are null.
    pub include_deleted_rows: bool,
    /// Disables pruning by statistics.
    pub ignore_statistics: bool,
    /// How blob columns come out.
    pub blobs: BlobView,
    /// Whether texts come out as views.
    pub string_view: bool,
    /// The order of the rows, before offset and limit; the table's own if there is no key. The result is held in memory.
    pub order_by: Vec<OrderKey>,
}

/// Batches as they are read, and their schema.
pub struct BatchStream {
    /// The schema of all batches.
    pub schema: SchemaRef,
    /// The batches.
    pub batches: BoxStream<'static, Result<RecordBatch>>,
    /// The groups of rows seen and pruned so far.
    pub groups: Arc<GroupCounts>,
}

struct Planned {
    fragments: Vec<Fragment>,
    plan: Arc<ChunkPlan>,
    /// The columns of each step of the filter.
    filter_columns: Vec<Arc<Projection>>,
    other_columns: Arc<Projection>,
    rows_before: Option<BTreeMap<u64, u64>>,
    lineage: LineageParts,
    include_deleted_rows: bool,
    ignore_statistics: bool,
    groups: Arc<GroupCounts>,
    decoded: Decoded,
}

pub(super) struct Chunk {
    pub(super) source: Arc<ChunkSource>,
    pub(super) rows: Vec<Range<u64>>,
    /// Those of them that are to be left out first: every other one of millions would be as many ranges in the hands of one thread.
    pub(super) deleted: Option<Arc<DeletionVector>>,
    /// What the filter keeps of them, where it was asked before.
    pub(super) kept: Option<Kept>,
    /// About what it takes of its files.
    pub(super) bytes: u64,
    /// Whether it is the only one of the scan: it is read where it is waited for, as no other one could be read meanwhile.
    pub(super) is_alone: bool,
}

impl Chunk {
    /// Its rows without those that are deleted.
    fn live(rows: Vec<Range<u64>>, deleted: Option<&DeletionVector>) -> Vec<Range<u64>> {
        match deleted {
            Some(_) => rows.into_iter().flat_map(|range| live(range, deleted)).collect(),
            None => rows,
        }
    }
}

/// A fragment that is open, with what is known of its rows.
struct Opened {
    reader: FragmentReader,
    source: ChunkSource,
    /// Offsets of groups of rows, and the bounds of the filter's columns in each.
    groups: Vec<(Vec<u64>, ColumnRanges)>,
}

/// The fragments of `manifest` that `ids` names, in that order; all if there is no list.
pub(crate) fn fragments_of(manifest: &Manifest, ids: Option<&[u64]>) -> Result<Vec<Fragment>> {
    let Some(ids) = ids else {
        return manifest.fragments().collect();
    };
    ids.iter()
        .map(|id| {
            manifest.fragment(*id)?.ok_or_else(|| {
                TableError::invalid(format!(
                    "expected a fragment of version {}, found id {id}",
                    manifest.version()
                ))
            })
        })
        .collect()
}

/// The names of the output columns.
fn output_names(schema: &Schema, request: &ScanRequest) -> Vec<String> {
    let mut names = match &request.columns {
        Some(columns) => columns.clone(),
        None => schema.fields.iter().map(|field| field.name.clone()).collect(),
    };
    let asked = [
        (request.with_row_id, SystemColumn::RowId),
        (request.with_row_address, SystemColumn::RowAddress),
    ];
    names.extend(
        asked
            .iter()
            .filter(|(wanted, _)| *wanted)
            .map(|(_, column)| column.name().to_string()),
    );
    names
}

fn plan(manifest: &Manifest, request: &ScanRequest, is_far: bool) -> Result<Planned> {
    manifest.check_readable()?;
    let schema = manifest.schema()?.with_blob_view(request.blobs);
    let names = output_names(&schema, request);
    let known = TopFields::of(&schema, names.len());
    let is_own = |name: &str| known.get(name).is_some();
    // A column of the table shadows a system column of the same name.
    let system = |name: &str| SystemColumn::named(name).filter(|_| !is_own(name));

    let read_by_filter = request
        .filter
        .as_ref()
        .map(|f| f.columns().to_vec())
        .unwrap_or_default();
    let filter_system: Vec<SystemColumn> = read_by_filter.iter().filter_map(|name| system(name)).collect();
    let tested: Vec<String> = read_by_filter
        .into_iter()
        .filter(|name| system(name).is_none())
        .collect();
    let mut others: Vec<String> = Vec::new();
    let outputs: Vec<Output> = names
        .iter()
        .map(|name| {
            if let Some(column) = system(name) {
                return Output::System(column);
            }
            let has_blobs = known.by_path(name).is_some_and(Field::has_blobs);
            if let Some(place) = tested.iter().position(|t| t == name && !has_blobs) {
                return Output::Filter(place);
            }
            others.push(name.clone());
            Output::Other(others.len() - 1)
        })
        .collect();
    let dictionaries = manifest.dictionaries()?;
    let steps = match &request.filter {
        None => Vec::new(),
        // Steps wait for one another, and for the network each time.
        Some(filter) => steps_of(filter, &tested, is_far || !filter_system.is_empty())?,
    };
    // A filter can test whether a blob is null, or its size; it never reads its bytes.
    let located = schema.with_blob_view(BlobView::Located);
    let all_tested = Projection::new(&located, Some(&tested))?;
    let in_pieces = !is_far && !all_tested.has_dictionaries();
    let tested_schema = all_tested.schema().clone();
    let columns_of = |step: &Step| {
        let names: Vec<String> = step
            .places
            .iter()
            .filter_map(|place| tested.get(*place).cloned())
            .collect();
        let projection = Projection::new(&located, Some(&names))?;
        Ok(Arc::new(projection.with_dictionaries(dictionaries.clone())))
    };
    let filter_columns = steps.iter().map(columns_of).collect::<Result<Vec<_>>>()?;
    let other_columns = Arc::new(Projection::new(&schema, Some(&others))?.with_dictionaries(dictionaries));
    let fields = outputs.iter().filter_map(|output| match output {
        Output::System(column) => Some(column.field()),
        Output::Filter(place) => tested_schema.fields().get(*place).cloned(),
        Output::Other(place) => other_columns.schema().fields().get(*place).cloned(),
    });
    let metadata = other_columns.schema().metadata().clone();
    let out_schema = Arc::new(ArrowSchema::new_with_metadata(fields.collect::<Vec<_>>(), metadata));
    let views = request.string_view.then(|| with_views(&out_schema));

    let weights = Arc::new(Weights {
        steps: filter_columns
            .iter()
            .map(|columns| Weight::of(columns.schema()))
            .collect(),
        others: Weight::of(other_columns.schema()),
    });
    let every = tested_schema.fields().iter().chain(other_columns.schema().fields());
    let every = ArrowSchema::new(every.cloned().collect::<Vec<_>>());
    let decoded = Decoded::of(&every, weights.clone());
    let in_use = outputs.iter().filter_map(|output| match output {
        Output::System(column) => Some(*column),
        _ => None,
    });
    let in_use: Vec<SystemColumn> = in_use.chain(filter_system.iter().copied()).collect();
    let numbered = in_use.contains(&SystemColumn::RowOffset);
    Ok(Planned {
        fragments: fragments_of(manifest, request.fragment_ids.as_deref())?,
        plan: Arc::new(ChunkPlan {
            schema: out_schema,
            views,
            filter: request.filter.clone(),
            steps,
            tested: tested_schema,
            filter_system,
            outputs,
            batch_size: request.batch_size,
            in_pieces,
            weights,
            most_bytes: decoded.most_of_a_read(is_far),
        }),
        filter_columns,
        other_columns,
        rows_before: if numbered { Some(rows_before(manifest)?) } else { None },
        lineage: SystemColumn::lineage_of(in_use, manifest),
        include_deleted_rows: request.include_deleted_rows,
        ignore_statistics: request.ignore_statistics,
        groups: Arc::default(),
        decoded,
    })
}

async fn source_of(files: &TableFiles, planned: &Planned, fragment: &Fragment) -> Result<Opened> {
    let reader = FragmentReader::open(files, fragment).await?;
    let filter_columns = planned.filter_columns.iter().map(|columns| reader.project(columns));
    let filter_columns = filter_columns.collect::<Result<Vec<_>>>()?;
    let other_columns = reader.project(&planned.other_columns)?;
    let blob_bytes_per_row = blob_bytes_per_row(&reader, &planned.other_columns).await?;
    let mut groups: Vec<(Vec<u64>, ColumnRanges)> = Vec::new();
    for columns in filter_columns.iter().filter(|_| !planned.ignore_statistics) {
        for (offsets, ranges) in columns.group_ranges().await? {
            match groups.iter_mut().find(|(known, _)| *known == offsets) {
                Some((_, known)) => known.extend(ranges),
                None => groups.push((offsets, ranges)),
            }
        }
    }
    // Behind a network the requests count.
    let by_pages = !files.store().is_far() && !planned.decoded.is_fixed();
    let mut page_ends = Vec::new();
    for columns in filter_columns.iter().chain([&other_columns]).filter(|_| by_pages) {
        page_ends.extend(columns.page_ends(MOST_COLUMNS)?);
    }
    let source = ChunkSource {
        page_ends: PageEnds::new(page_ends),
        blob_bytes_per_row,
        decoding: Decoding::SideBySide,
        // Nobody knows how long the values are that are left out, and behind a network all of them are in memory at once.
        spread: match files.store().is_far() {
            true if !planned.decoded.is_fixed() => 0,
            true => FAR_SPREAD,
            false => NEAR_SPREAD,
        },
        places: RowPlaces {
            fragment_id: reader.id(),
            rows_before: planned
                .rows_before
                .as_ref()
                .and_then(|rows| rows.get(&reader.id()).copied()),
            deletions: reader.deletions().cloned(),
            lineage: read_lineage(files, fragment, reader.physical_rows(), planned.lineage).await?,
        },
        filter_columns,
        other_columns,
    };
    Ok(Opened { reader, source, groups })
}

/// The same for the fragment at an index of the plan.
async fn source_at(files: &TableFiles, planned: &Planned, place: usize) -> Result<Opened> {
    let fragment = planned.fragments.get(place);
    let fragment = fragment.ok_or_else(|| TableError::invalid(format!("no fragment at place {place}")))?;
    source_of(files, planned, fragment).await
}

/// The chunks of all fragments in scan order, planned lazily.
fn chunks(files: Arc<TableFiles>, planned: Arc<Planned>, request: &ScanRequest) -> BoxStream<'static, Result<Chunk>> {
    // With a filter, offset and limit apply after it, not to the chunks.
    let clips = request.filter.is_none();
    let skip = if clips { request.offset.unwrap_or(0) } else { 0 };
    let keep = if clips {
        request.limit.unwrap_or(u64::MAX)
    } else {
        u64::MAX
    };
    let row_range = request.row_range.clone();
    let batch_size = request.batch_size;
    // A scan of all rows will need the next files, too, which are opened ahead.
    let wants_all = request.limit.is_none() && request.offset.is_none();
    let ahead = match files.store().is_far() {
        true if wants_all => FILES_AHEAD,
        false if wants_all && planned.fragments.len() > NEAR_FILES_AHEAD => NEAR_FILES_AHEAD,
        _ => 1,
    };
    let ramped = few_may_do(request);
    let ramp = Ramp::new(ramped);
    let state = (0_usize, skip, keep, VecDeque::new(), ramp);
    let per_fragment = stream::try_unfold(state, move |(next, mut skip, mut keep, mut opening, mut ramp)| {
        let (files, planned, row_range) = (files.clone(), planned.clone(), row_range.clone());
        async move {
            let mut next = next;
            loop {
                let Some(fragment) = planned.fragments.get(next).filter(|_| keep > 0) else {
                    return Ok::<_, TableError>(None);
                };
                next += 1;
                if let (None, Some(rows)) = (&row_range, fragment.num_rows()) {
                    if rows <= skip && skip > 0 && !planned.include_deleted_rows {
                        skip -= rows;
                        continue;
                    }
                }
                let Opened {
                    reader,
                    mut source,
                    groups,
                } = if ahead == 1 {
                    source_of(&files, &planned, fragment).await?
                } else {
                    // The fragments from this one on are being opened.
                    let from = next - 1 + opening.len();
                    opening.extend((from..planned.fragments.len().min(next - 1 + ahead)).map(|at| {
                        let (files, planned) = (files.clone(), planned.clone());
                        tokio::spawn(async move { source_at(&files, &planned, at).await })
                    }));
                    match opening.pop_front() {
                        Some(task) => joined(task).await?,
                        None => source_of(&files, &planned, fragment).await?,
                    }
                };
                let wanted = row_range.clone().unwrap_or(0..reader.physical_rows());
                let wanted = wanted.start..wanted.end.min(reader.physical_rows()).max(wanted.start);
                let hidden = reader.deletions().filter(|_| !planned.include_deleted_rows).cloned();
                let ranges = match &planned.plan.filter {
                    Some(filter) => rule_out(filter, groups, vec![wanted], &planned.groups),
                    None => vec![wanted],
                };
                let wanted = Wanted::new(ranges, hidden, &mut skip, &mut keep);
                let is_far = files.store().is_far();
                let size = chunk_size(&source, reader.physical_rows(), batch_size, is_far, &planned.decoded);
                let rest = planned.fragments.len().saturating_sub(next) as u64;
                if wanted.num_chunks(size.rows).saturating_add(rest) >= threads().saturating_mul(2) {
                    source.decoding = Decoding::Here;
                }
                let source = Arc::new(source);
                // Few: at most one for each power of two, before all are full.
                let mut sizes = Vec::new();
                let mut left = wanted.num_rows();
                while left > 0 && sizes.last() != Some(&size.rows) {
                    let rows = ramp.next(size);
                    left = left.saturating_sub(rows);
                    sizes.push(rows);
                }
                let mut sizes = sizes.into_iter();
                // Batches and requests are counted in rows that live.
                let in_spans = !is_far && batch_size.is_none();
                let spread = Wanted::spread(in_spans);
                let (decoded, known) = (planned.decoded.clone(), planned.decoded.clone());
                let bytes_of = move |rows: u64| {
                    // Behind a network the requests count, of which as many are to be under way as there can be.
                    let in_memory = if is_far { 0 } else { decoded.bytes_per_row() };
                    rows.saturating_mul(size.bytes_per_row.max(in_memory))
                };
                if size.tested_rows > 0 {
                    let plan = planned.plan.clone();
                    let next_size = move || known.bounded(sizes.next().unwrap_or(size.rows), size, batch_size, is_far);
                    let few = planned.decoded.clone();
                    let most = move || few.bounded(size.few_rows, size, batch_size, is_far);
                    let is_alone = planned.fragments.len() == 1;
                    let near = move |_| Most {
                        spread,
                        ..Most::default()
                    };
                    let pieces = groups_within(wanted.rows(), size.unit, size.tested_pieces(ramped), near);
                    let chunks = tested_first(plan, source, pieces, size.unit, next_size, most, bytes_of, is_alone);
                    return Ok(Some((chunks, (next, skip, keep, opening, ramp))));
                }
                let is_alone =
                    planned.fragments.len() == 1 && planned.decoded.is_known() && wanted.among() <= size.rows;
                let whole = batch_size.filter(|_| !is_far).map(|batch| wanted.whole_batches(batch));
                let next_size = move || {
                    let rows = sizes.next().unwrap_or(size.rows);
                    let rows = if known.keeps_few() {
                        rows.max(size.few_rows)
                    } else {
                        rows
                    };
                    let rows = known.bounded(rows, size, batch_size, is_far);
                    whole.as_ref().map_or(rows, |whole| whole(rows))
                };
                let ends = source.clone();
                let most = move |start| Most {
                    spread,
                    ..ends.page_ends.most(start, batch_size)
                };
                let times_read = wanted.times_read();
                let (groups, deleted) = wanted.groups(size.unit, next_size, most, in_spans);
                let chunks = groups.map(move |(rows, live)| {
                    Ok(Chunk {
                        source: source.clone(),
                        // Those that are left out are in memory for a while.
                        bytes: bytes_of(match &deleted {
                            Some(_) => count(&rows),
                            None => live.saturating_mul(times_read),
                        }),
                        rows,
                        deleted: deleted.clone(),
                        kept: None,
                        is_alone,
                    })
                });
                return Ok(Some((stream::iter(chunks).boxed(), (next, skip, keep, opening, ramp))));
            }
        }
    });
    per_fragment.try_flatten().boxed()
}

/// Whether a scan may have enough before it has read all.
fn few_may_do(request: &ScanRequest) -> bool {
    request.filter.is_some() && request.limit.is_some()
}

/// Runs what would be waited for at once in the task that waits: to hand it to another thread, and to be woken by it, may take longer.
pub(super) async fn here<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(result) => result,
        Err(_) => Err(TableError::task_failed("scan", &"it panicked")),
    }
}

pub(super) async fn joined<T: Send + 'static>(task: tokio::task::JoinHandle<Result<T>>) -> Result<T> {
    match task.await {
        Ok(result) => result,
        Err(error) => Err(TableError::task_failed("scan", &error)),
    }
}

/// Scans a version of a table. Runs on the tokio runtime that polls the stream.
pub fn scan(files: Arc<TableFiles>, manifest: &Manifest, request: &ScanRequest) -> Result<BatchStream> {
    let stream = match request.order_by.as_slice() {
        [] => scan_as_stored(files, manifest, request),
        keys => scan_ordered(files, manifest, request, keys),
    }?;
    Ok(match request.batch_size.filter(|_| request.strict_batch_size) {
        Some(size) => strict(stream, size),
        None => stream,
    })
}

fn scan_as_stored(files: Arc<TableFiles>, manifest: &Manifest, request: &ScanRequest) -> Result<BatchStream> {
    let is_far = files.store().is_far();
    let planned = Arc::new(plan(manifest, request, is_far)?);
    let schema = planned.plan.views.as_ref().unwrap_or(&planned.plan.schema).clone();
    let plan = planned.plan.clone();
    let groups = planned.groups.clone();
    let decoded = planned.decoded.clone();
    let (read_on, seen) = (plan.clone(), decoded.clone());
    let (readahead, ahead) = (readahead(is_far), Ahead::new(is_far, few_may_do(request)));
    let tasks = chunks(files, planned, request).and_then(move |chunk| {
        let (plan, ahead, decoded) = (plan.clone(), ahead.clone(), decoded.clone());
        async move {
            let permit = ahead.admit(chunk.bytes).await;
            // The second chunk is cut by what the first one took.
            let is_awaited = chunk.is_alone || (!is_far && !decoded.is_known());
            let Chunk {
                source,
                rows,
                deleted,
                kept,
                ..
            } = chunk;
            let work = async move {
                let rows = Chunk::live(rows, deleted.as_deref());
                let left = Left::of(Part::of(rows, kept));
                let (batches, left) = read_part(&plan, &source, &decoded, left).await?;
                Ok((batches, left, source, permit))
            };
            Ok(match is_awaited {
                true => future::ready(here(work).await).left_future(),
                false => joined(tokio::spawn(work)).right_future(),
            })
        }
    });
    let batches = if request.unordered {
        tasks.try_buffer_unordered(readahead).boxed()
    } else {
        tasks.try_buffered(readahead).boxed()
    };
    let batches = batches
        .map_ok(move |(batches, left, source, permit)| {
            let (plan, decoded) = (read_on.clone(), seen.clone());
            let more = (!left.is_empty()).then(|| the_rest(plan, source, decoded, left));
            let batches = stream::iter(batches.into_iter().map(Ok));
            batches.chain(stream::iter(more).flatten()).inspect(move |_| {
                // Held until the chunk's last batch is out.
                let _held = &permit;
            })
        })
        .try_flatten();
    let batches = if request.filter.is_some() && (request.limit.is_some() || request.offset.is_some()) {
        clip_batches(
            batches.boxed(),
            request.offset.unwrap_or(0),
            request.limit.unwrap_or(u64::MAX),
        )
    } else {
        batches.boxed()
    };
    Ok(BatchStream {
        schema,
        batches,
        groups,
    })
}

/// What is left of a chunk, read as it is asked for.
fn the_rest(
    plan: Arc<ChunkPlan>,
    source: Arc<ChunkSource>,
    decoded: Decoded,
    left: Left,
) -> BoxStream<'static, Result<RecordBatch>> {
    let batches = stream::try_unfold(left, move |left| {
        let (plan, source, decoded) = (plan.clone(), source.clone(), decoded.clone());
        async move {
            if left.is_empty() {
                return Ok::<_, TableError>(None);
            }
            let work = async move { read_part(&plan, &source, &decoded, left).await };
            let (batches, left) = joined(tokio::spawn(work)).await?;
            Ok(Some((stream::iter(batches.into_iter().map(Ok)), left)))
        }
    });
    batches.try_flatten().boxed()
}

/// A sorted scan: it reads the same rows, with the key columns after the output columns.
fn scan_ordered(
    files: Arc<TableFiles>,
    manifest: &Manifest,
    request: &ScanRequest,
    keys: &[OrderKey],
) -> Result<BatchStream> {
    let mut names = output_names(manifest.schema()?.as_ref(), request);
    let width = names.len();
    let mut places = Vec::with_capacity(keys.len());
    for key in keys {
        let known = names.iter().position(|name| *name == key.column);
        places.push(known.unwrap_or(names.len()));
        if known.is_none() {
            names.push(key.column.clone());
        }
    }
    let unordered = ScanRequest {
        columns: Some(names),
        order_by: Vec::new(),
        limit: request.limit.filter(|limit| *limit == 0),
        offset: None,
        batch_size: None,
        with_row_id: false,
        with_row_address: false,
        // Rows with equal keys stay in the table's order.
        unordered: false,
        ..request.clone()
    };
    let cut = Cut {
        offset: request.offset.unwrap_or(0),
        limit: request.limit,
        batch_size: request.batch_size,
    };
    ordered(
        scan(files, manifest, &unordered)?,
        &request.order_by,
        places,
        width,
        cut,
    )
}

/// Applies offset and limit after a filter; stops reading once the limit is reached.
fn clip_batches(
    batches: BoxStream<'static, Result<RecordBatch>>,
    skip: u64,
    keep: u64,
) -> BoxStream<'static, Result<RecordBatch>> {
    let clipped = stream::try_unfold((batches, skip, keep), |(mut batches, mut skip, mut keep)| async move {
        while keep > 0 {
            let Some(batch) = batches.try_next().await? else {
                return Ok::<_, TableError>(None);
            };
            let mut parts = clip(vec![0..batch.num_rows() as u64], &mut skip, &mut keep);
            if let Some(part) = parts.pop() {
                let start = usize::try_from(part.start).unwrap_or(0);
                let size = usize::try_from(part.end - part.start).unwrap_or(0);
                return Ok(Some((batch.slice(start, size), (batches, skip, keep))));
            }
        }
        Ok(None)
    });
    clipped.boxed()
}

/// How many groups of rows have statistics, and how many of them the request's filter rules out, without reading any row.
pub async fn ruled_out(files: Arc<TableFiles>, manifest: &Manifest, request: &ScanRequest) -> Result<Arc<GroupCounts>> {
    // Without columns that are large beside the filter's no filter is asked to make chunks.
    let request = &ScanRequest {
        columns: Some(Vec::new()),
        with_row_id: false,
        with_row_address: false,
        ..request.clone()
    };
    let planned = Arc::new(plan(manifest, request, files.store().is_far())?);
    let groups = planned.groups.clone();
    let mut chunks = chunks(files, planned, request);
    while chunks.try_next().await?.is_some() {}
    Ok(groups)
}

/// How many rows the request's filter keeps. Only the filter's columns are read.
pub async fn count_rows(files: Arc<TableFiles>, manifest: &Manifest, request: &ScanRequest) -> Result<u64> {
    let request = ScanRequest {
        columns: Some(Vec::new()),
        ..request.clone()
    };
    let is_far = files.store().is_far();
    let planned = Arc::new(plan(manifest, &request, is_far)?);
    let (plan, decoded) = (planned.plan.clone(), planned.decoded.clone());
    let (readahead, ahead) = (readahead(is_far), Ahead::new(is_far, false));
    let tasks = chunks(files, planned, &request).and_then(move |chunk| {
        let (plan, ahead, decoded) = (plan.clone(), ahead.clone(), decoded.clone());
        async move {
            let permit = ahead.admit(chunk.bytes).await;
            let is_awaited = chunk.is_alone || (!is_far && !decoded.is_known());
            let work = async move {
                let live = Chunk::live(chunk.rows, chunk.deleted.as_deref());
                let rows = count(&live);
                let (kept, bytes) = count_chunk(&plan, &chunk.source, live).await?;
                // Nothing is handed out.
                decoded.see(rows, 0, bytes);
                drop(permit);
                Ok(kept)
            };
            Ok(match is_awaited {
                true => future::ready(here(work).await).left_future(),
                false => joined(tokio::spawn(work)).right_future(),
            })
        }
    });
    tasks
        .try_buffer_unordered(readahead)
        .try_fold(0_u64, |sum, n| async move { Ok(sum + n) })
        .await
}
