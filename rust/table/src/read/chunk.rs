//! A chunk of a scan: some rows of one fragment, filtered (late materialisation), as batches.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::FilterBuilder;
use esker_expr::Predicate;
use esker_file::Decoding;

use super::by_value::{self, plain, plain_bytes};
use super::chunking::{Weight, Weights};
use super::covering::{uncovered, DECODED, RUN_COST};
use super::fragment_reader::FragmentProjection;
use super::page_ends::PageEnds;
use super::parts::Part;
use super::rows::{count, groups_by, intersect, mask_of, select};
use super::steps::{order, Step};
use super::system::{RowPlaces, SystemColumn};
use super::views::viewed;
use crate::error::{Result, TableError};

/// The rows of a piece: what is decoded of a few columns is still in the processor's cache when the filter looks at it.
const PIECE_ROWS: u64 = 64 * 1024;

/// The most bytes in memory of the filter's columns of a piece.
const PIECE_BYTES: u64 = 8 * 1024 * 1024;

/// Of values that are longer than was expected so large a part of what a read may take is not joined with what would follow: that would
/// take as much again.
const JOINED_PART: usize = 4;

/// Pieces end where pages' own units do.
const PIECE_UNIT: u64 = 4096;

/// Pieces are joined while a filter keeps fewer rows than one in so many.
const FEW: u64 = 16;

/// The most bytes of what a filter has read of the rows that it keeps that wait for the other columns; more is read again.
const KEPT_BYTES: usize = 1024 * 1024;

/// Where an output column comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Output {
    /// One of the filter's columns.
    Filter(usize),
    /// Read only for the rows that the filter keeps.
    Other(usize),
    /// Not in any file.
    System(SystemColumn),
}

/// What all chunks of a scan share.
#[derive(Debug)]
pub(super) struct ChunkPlan {
    /// The schema of the batches that come out.
    pub(super) schema: SchemaRef,
    /// The same with texts as views, where they are asked for.
    pub(super) views: Option<SchemaRef>,
    /// The filter; none if all rows are wanted.
    pub(super) filter: Option<Predicate>,
    /// The filter in steps.
    pub(super) steps: Vec<Step>,
    /// All columns of files that the filter reads.
    pub(super) tested: SchemaRef,
    /// The system columns that the filter reads.
    pub(super) filter_system: Vec<SystemColumn>,
    pub(super) outputs: Vec<Output>,
    pub(super) batch_size: Option<usize>,
    /// Whether the filter may be asked piece by piece: not where each piece has its own requests, or its own dictionaries.
    pub(super) in_pieces: bool,
    /// What rows take in memory.
    pub(super) weights: Arc<Weights>,
    /// The most bytes that what is read of a chunk at once may take.
    pub(super) most_bytes: usize,
}

impl ChunkPlan {
    /// Whether a column of the filter is needed again once a step was asked: by the last step, which may read what others did, or as an
    /// output.
    fn needs(&self, place: usize) -> bool {
        self.steps.iter().any(Step::may_fail) && self.steps.len() > 1 || self.is_output(place)
    }

    /// Whether a column of the filter comes out.
    fn is_output(&self, place: usize) -> bool {
        let mut outputs = self.outputs.iter();
        outputs.any(|output| matches!(output, Output::Filter(at) if *at == place))
    }
}

/// The columns of one fragment that a scan reads.
#[derive(Debug)]
pub(super) struct ChunkSource {
    pub(super) places: RowPlaces,
    /// The columns of each step of the filter.
    pub(super) filter_columns: Vec<FragmentProjection>,
    /// The output columns that the filter does not read already.
    pub(super) other_columns: FragmentProjection,
    /// An estimate of the bytes per row of blobs outside of the fragment's own files.
    pub(super) blob_bytes_per_row: u64,
    /// Where columns are decoded: in the chunk's own task, where there are chunks enough.
    pub(super) decoding: Decoding,
    /// Where the pages of columns end that are read at once, of which a chunk reads a few.
    pub(super) page_ends: PageEnds,
    /// Short runs of rows are read with what is between them: with so many times as many rows at most.
    pub(super) spread: u64,
}

impl ChunkSource {
    /// So many rows between two that are kept are skipped, whatever else is kept, as they cost more than one more run of rows.
    pub(super) fn worth_skipping(&self) -> u64 {
        let columns = &self.other_columns;
        let run = columns.num_columns().max(1).saturating_mul(RUN_COST);
        run.div_ceil(columns.bytes_per_row().max(1)).saturating_mul(2)
    }
}

/// How rows are read.
#[derive(Debug, Clone, Copy)]
struct How {
    decoding: Decoding,
    /// Whether values may come as keys.
    by_value: bool,
    /// How many bytes may come.
    most: usize,
    /// See [`ChunkSource::spread`].
    spread: u64,
}

impl How {
    fn of(source: &ChunkSource, most: usize) -> How {
        How {
            decoding: source.decoding,
            by_value: false,
            most,
            spread: source.spread,
        }
    }
}

/// What a filter left of a chunk.
struct Tested {
    /// The filter's columns that were read, by their places; of the rows that are left.
    columns: Vec<Option<ArrayRef>>,
    /// The rows that are left.
    kept: Vec<Range<u64>>,
    /// Which of the chunk's rows are left, where they were left out in one go.
    mask: Mask,
    /// The most bytes of the filter's columns that were in memory at once.
    bytes: u64,
}

/// Batches of a chunk, or what else was asked of it, and how many bytes of it were in memory at once.
pub(super) type Weighed<T> = Result<(T, u64)>;

/// Which rows of a chunk are left.
enum Mask {
    All,
    Some(BooleanBuffer),
    /// As `Tested::kept` says.
    ByRanges,
}

/// What came of reading rows of a chunk.
pub(super) enum Chunked {
    Read {
        batches: Vec<RecordBatch>,
        /// How many bytes were in memory at once.
        bytes: u64,
        /// The rows of which the filter was not asked, as those before them are in memory.
        rest: Option<Part>,
    },
    /// What the filter keeps takes so many times the memory that it may. Rows behind it were not asked.
    TooLarge(Part, u64, Option<Part>),
}

/// Reads rows of a chunk, of which about `most` bytes may be in memory. The filter is asked of about `piece` rows at once.
pub(super) async fn read_chunk(
    plan: &ChunkPlan,
    source: &ChunkSource,
    rows: &[Range<u64>],
    piece: u64,
    most: usize,
) -> Result<Chunked> {
    if plan.steps.is_empty() {
        let columns = (&source.other_columns, &plan.weights.others);
        let (others, bytes) = read_rows(columns, 0, How::of(source, most), rows).await?;
        let batches = split(plan, combine(plan, source, rows, &[], &others)?)?;
        let rest = None;
        return Ok(Chunked::Read { batches, bytes, rest });
    }
    let (tested, rest) = test(plan, source, rows, piece, Hold::Most(most)).await?;
    if tested.kept.is_empty() {
        let (batches, bytes) = (Vec::new(), tested.bytes);
        return Ok(Chunked::Read { batches, bytes, rest });
    }
    let rows = match rest.as_ref().and_then(|rest| rest.rows.first()) {
        Some(first) => intersect(rows, std::slice::from_ref(&(0..first.start))),
        None => rows.to_vec(),
    };
    let (others, bytes) = match read_others(plan, source, &rows, &tested, most).await {
        Err(error) => match error.too_large() {
            Some(times) => {
                let kept = Kept::of(plan, tested);
                return Ok(Chunked::TooLarge(Part::of(rows, Some(kept)), times, rest));
            }
            None => return Err(error),
        },
        read => read?,
    };
    let batch = combine(plan, source, &tested.kept, &tested.columns, &others)?;
    Ok(Chunked::Read {
        batches: split(plan, batch)?,
        bytes: tested.bytes.saturating_add(bytes),
        rest,
    })
}

/// What a filter keeps of some rows.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) rows: Vec<Range<u64>>,
    /// The filter's columns that come out, by their places; of the rows that are kept. None where they are read again.
    pub(super) columns: Vec<Option<ArrayRef>>,
}

impl Kept {
    fn of(plan: &ChunkPlan, tested: Tested) -> Kept {
        let kept = count(&tested.kept);
        let mut room = KEPT_BYTES;
        let columns = tested.columns.into_iter().enumerate().map(|(place, column)| {
            let array = column.filter(|array| plan.is_output(place) && array.len() as u64 == kept)?;
            room = room.checked_sub(plain_bytes(&array))?;
            Some(array)
        });
        Kept {
            columns: columns.collect(),
            rows: tested.kept,
        }
    }

    /// The same of some of the rows: those after the first `skipped` ones.
    pub(super) fn part(&self, rows: Vec<Range<u64>>, skipped: u64) -> Kept {
        let place = usize::try_from(skipped).unwrap_or(usize::MAX);
        let len = usize::try_from(count(&rows)).unwrap_or(usize::MAX);
        let slice = |array: &ArrayRef| {
            let fits = place.checked_add(len).is_some_and(|end| end <= array.len());
            fits.then(|| array.slice(place, len))
        };
        Kept {
            rows,
            columns: self
                .columns
                .iter()
                .map(|column| column.as_ref().and_then(slice))
                .collect(),
        }
    }
}

/// The rows that the filter keeps.
pub(super) async fn kept_rows(plan: &ChunkPlan, source: &ChunkSource, rows: &[Range<u64>]) -> Result<Kept> {
    let (tested, _) = test(plan, source, rows, u64::MAX, Hold::Little).await?;
    Ok(Kept::of(plan, tested))
}

/// Reads the rows of a chunk that the filter keeps, where that is known already: about `most` bytes.
pub(super) async fn read_tested(
    plan: &ChunkPlan,
    source: &ChunkSource,
    rows: &[Range<u64>],
    kept: Kept,
    most: usize,
) -> Result<Chunked> {
    let mut tested = Tested {
        columns: kept.columns,
        mask: if kept.rows == rows { Mask::All } else { Mask::ByRanges },
        kept: kept.rows,
        bytes: 0,
    };
    let steps = plan.steps.iter().zip(&source.filter_columns).zip(&plan.weights.steps);
    for ((step, columns), weight) in steps {
        let is_there = |place: &usize| matches!(tested.columns.get(*place), Some(Some(_)));
        let mut outputs = step.places.iter().filter(|place| plan.is_output(**place));
        if outputs.all(is_there) {
            continue;
        }
        let how = How::of(source, most);
        let (batch, bytes) = read_kept((columns, weight), 0, how, rows, &tested).await?;
        tested.bytes = tested.bytes.saturating_add(bytes);
        for (place, array) in step.places.iter().zip(batch.columns()) {
            if let Some(column) = tested.columns.get_mut(*place) {
                *column = Some(array.clone());
            }
        }
    }
    let (others, bytes) = read_others(plan, source, rows, &tested, most).await?;
    let batch = combine(plan, source, &tested.kept, &tested.columns, &others)?;
    Ok(Chunked::Read {
        batches: split(plan, batch)?,
        bytes: tested.bytes.saturating_add(bytes),
        rest: None,
    })
}

/// How many rows of a chunk the filter keeps.
pub(super) async fn count_chunk(plan: &ChunkPlan, source: &ChunkSource, rows: Vec<Range<u64>>) -> Weighed<u64> {
    if plan.steps.is_empty() {
        return Ok((count(&rows), 0));
    }
    let (tested, _) = test(plan, source, &rows, u64::MAX, Hold::Little).await?;
    Ok((count(&tested.kept), tested.bytes))
}

/// What a filter has read of its columns that waits for the others.
#[derive(Debug, Clone, Copy)]
enum Hold {
    /// About so many bytes: then the rows behind are left.
    Most(usize),
    /// A little: more is read again.
    Little,
}

/// Asks the filter of all rows, piece by piece where it keeps few of them or its columns are large; `piece` is what is known of how many
/// rows may be asked at once. Rows that are left come second.
async fn test(
    plan: &ChunkPlan,
    source: &ChunkSource,
    rows: &[Range<u64>],
    piece: u64,
    hold: Hold,
) -> Result<(Tested, Option<Part>)> {
    if !plan.in_pieces {
        return Ok((test_piece(plan, source, rows, usize::MAX).await?, None));
    }
    let mut all: Vec<Tested> = Vec::new();
    // Of what is longer than was expected: how many rows have fitted.
    let (mut fits, mut held) = (piece, 0_usize);
    let mut left = pieces_of(rows.to_vec(), PIECE_UNIT, piece_rows(plan));
    while let Some(piece) = left.pop() {
        let rows = count(&piece);
        if rows / 2 > fits {
            left.extend(pieces_of(piece, 1, fits.saturating_mul(2)));
            continue;
        }
        let most = match hold {
            Hold::Most(usize::MAX) => usize::MAX,
            _ if rows == 1 => usize::MAX,
            _ => plan.most_bytes,
        };
        let mut tested = match test_piece(plan, source, &piece, most).await {
            Err(error) => match error.too_large().filter(|_| most < usize::MAX) {
                Some(times) => {
                    fits = fewer(rows, times);
                    left.extend(pieces_of(piece, 1, fits));
                    continue;
                }
                None => return Err(error),
            },
            tested => tested?,
        };
        for (place, column) in tested.columns.iter_mut().enumerate() {
            *column = column.take().filter(|_| plan.is_output(place));
        }
        let columns = tested.columns.iter().flatten();
        let bytes = columns.fold(0_usize, |sum, column| sum.saturating_add(plain_bytes(column)));
        let is_enough = match hold {
            Hold::Little => {
                if held.saturating_add(bytes) > KEPT_BYTES {
                    let columns = all
                        .iter_mut()
                        .chain([&mut tested])
                        .flat_map(|tested| &mut tested.columns);
                    columns.for_each(|column| *column = None);
                }
                false
            }
            Hold::Most(most_held) => {
                let most = most.min(most_held);
                if bytes > most && rows > 1 {
                    // What is small as keys and values is to come out as values.
                    fits = fewer(rows, (bytes / most.max(1)) as u64);
                    left.extend(pieces_of(piece, 1, fits));
                    continue;
                }
                let part = if fits < u64::MAX { JOINED_PART } else { 1 };
                held.saturating_add(bytes) > most_held / part
            }
        };
        held = held.saturating_add(bytes);
        all.push(tested);
        if fits < u64::MAX {
            fits = fits.max(rows);
        }
        if is_enough {
            break;
        }
    }
    let rest: Vec<Range<u64>> = left.into_iter().rev().flatten().collect();
    let rest = (!rest.is_empty()).then_some(Part {
        rows: rest,
        kept: None,
        piece: fits,
    });
    let only = if all.len() == 1 { all.pop() } else { None };
    match only {
        Some(tested) => Ok((tested, rest)),
        None => Ok((Tested::joined(plan, all)?, rest)),
    }
}

/// Of how many rows the filter is asked at once.
fn piece_rows(plan: &ChunkPlan) -> u64 {
    let weight: u64 = plan.weights.steps.iter().map(Weight::bytes_per_row).sum();
    let fitting = (PIECE_BYTES / weight.max(1)).max(1);
    if weight.saturating_mul(2 * PIECE_UNIT) > plan.most_bytes as u64 {
        return fitting;
    }
    let keeps_few = plan.steps.iter().any(|step| step.keeps_at_most(FEW));
    let most = if keeps_few { PIECE_ROWS } else { u64::MAX };
    fitting.max(PIECE_UNIT).min(most)
}

/// How many of some rows fit that take so many times the memory that they may: about half as many as would, as values are not of one length.
fn fewer(rows: u64, times: u64) -> u64 {
    rows.div_ceil(times.saturating_mul(2).max(2)).max(1)
}

/// Rows in pieces of `most` and what is left to a multiple of `unit`, the last one first. What is cut to be smaller has units of one row: to
/// the next multiple there may be as many rows as before.
fn pieces_of(rows: Vec<Range<u64>>, unit: u64, most: u64) -> Vec<Vec<Range<u64>>> {
    let mut pieces: Vec<Vec<Range<u64>>> = groups_by(rows, unit, || most).collect();
    pieces.reverse();
    pieces
}

/// Asks the filter's steps, each of the rows that those before it left.
async fn test_piece(plan: &ChunkPlan, source: &ChunkSource, rows: &[Range<u64>], most: usize) -> Result<Tested> {
    let bytes: Vec<u64> = source
        .filter_columns
        .iter()
        .map(FragmentProjection::bytes_per_row)
        .collect();
    let mut tested = Tested {
        columns: vec![None; plan.tested.fields().len()],
        kept: rows.to_vec(),
        mask: Mask::All,
        bytes: 0,
    };
    // What was asked of `tested.kept` already: rows that are to be left out, but not yet.
    let mut pending: Option<BooleanBuffer> = None;
    for number in order(&plan.steps, &bytes) {
        let (Some(step), Some(columns), Some(weight)) = (
            plan.steps.get(number),
            source.filter_columns.get(number),
            plan.weights.steps.get(number),
        ) else {
            return Err(TableError::invalid(
                "expected the filter's columns to be planned, found none",
            ));
        };
        // Rows are left out where it costs less than to ask all of them, or where a step may fail.
        if pending
            .as_ref()
            .is_some_and(|mask| step.may_fail() || is_worth(mask, step, columns, weight))
        {
            tested.narrow(plan, pending.take())?;
            if tested.kept.is_empty() {
                return Ok(tested);
            }
        }
        let how = How {
            by_value: step.is_by_value(),
            ..How::of(source, most)
        };
        let (batch, bytes) = read_kept((columns, weight), 0, how, rows, &tested).await?;
        tested.bytes = tested.bytes.saturating_add(bytes);
        for (place, array) in step.places.iter().zip(batch.columns()) {
            if let Some(column) = tested.columns.get_mut(*place) {
                *column = Some(array.clone());
            }
        }
        let mask = match by_value::mask(step, &batch, &plan.tested)? {
            Some(mask) => mask,
            None => truths(
                &step
                    .predicate
                    .evaluate(&tested.batch(plan, source, step, batch.num_rows())?)?,
            ),
        };
        step.note(&mask);
        pending = Some(match pending {
            Some(before) => &before & &mask,
            None => mask,
        });
    }
    tested.narrow(plan, pending)?;
    Ok(tested)
}

/// Whether a step costs less if only the rows for which `mask` is true are read, run by run, and asked.
fn is_worth(mask: &BooleanBuffer, step: &Step, columns: &FragmentProjection, weight: &Weight) -> bool {
    let left = mask.count_set_bits() as u64;
    let of_a_row = cost_of_a_row(columns, weight).saturating_add(step.cost());
    let saved = (mask.len() as u64 - left).saturating_mul(of_a_row);
    left.saturating_mul(columns.num_columns()).saturating_mul(RUN_COST) < saved
}

/// What it costs to read a row among many, in bytes of files that could be read in the same time.
fn cost_of_a_row(columns: &FragmentProjection, weight: &Weight) -> u64 {
    columns.bytes_per_row().max(weight.bytes_per_row() / DECODED)
}

/// Where a mask is true, and not null.
fn truths(mask: &BooleanArray) -> BooleanBuffer {
    match mask.nulls() {
        None => mask.values().clone(),
        Some(nulls) => mask.values() & nulls.inner(),
    }
}

impl Tested {
    /// What is left of pieces that follow one another.
    fn joined(plan: &ChunkPlan, pieces: Vec<Tested>) -> Result<Tested> {
        let is_all = pieces.iter().all(|piece| matches!(piece.mask, Mask::All));
        let mut kept: Vec<Range<u64>> = Vec::new();
        for range in pieces.iter().flat_map(|piece| &piece.kept) {
            match kept.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => kept.push(range.clone()),
            }
        }
        let column = |place: usize| {
            let left = pieces.iter().filter(|piece| !piece.kept.is_empty());
            let parts = left.map(|piece| piece.columns.get(place)?.clone());
            let parts = parts
                .collect::<Option<Vec<ArrayRef>>>()
                .filter(|parts| plan.is_output(place) && !parts.is_empty());
            let Some((parts, field)) = parts.zip(plan.tested.fields().get(place)) else {
                return Ok(None);
            };
            let parts = parts.iter().map(|part| plain(part, field.data_type()));
            let parts = parts.collect::<Result<Vec<_>>>()?;
            let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
            let joined = arrow_select::concat::concat(&parts);
            joined.map(Some).map_err(|e| TableError::invalid(e.to_string()))
        };
        let columns = (0..plan.tested.fields().len()).map(column);
        Ok(Tested {
            columns: columns.collect::<Result<_>>()?,
            kept,
            bytes: pieces.iter().map(|piece| piece.bytes).max().unwrap_or(0),
            mask: if is_all { Mask::All } else { Mask::ByRanges },
        })
    }

    /// Leaves out the rows for which `mask` is false.
    fn narrow(&mut self, plan: &ChunkPlan, mask: Option<BooleanBuffer>) -> Result<()> {
        let Some(mask) = mask.filter(|mask| mask.count_set_bits() < mask.len()) else {
            return Ok(());
        };
        let mask = BooleanArray::new(mask, None);
        self.kept = select(&self.kept, &mask);
        let filter = FilterBuilder::new(&mask).optimize().build();
        for (place, column) in self.columns.iter_mut().enumerate() {
            if let Some(array) = column {
                // A column that nothing needs any more is dropped.
                *column = match self.kept.is_empty() || !plan.needs(place) {
                    true => None,
                    false => Some(
                        filter
                            .filter(array.as_ref())
                            .map_err(|e| TableError::invalid(e.to_string()))?,
                    ),
                };
            }
        }
        self.mask = match self.mask {
            Mask::All => Mask::Some(mask.values().clone()),
            Mask::Some(_) | Mask::ByRanges => Mask::ByRanges,
        };
        Ok(())
    }

    /// What was read so far of the columns that a step reads, and the system columns that the filter reads.
    fn batch(&self, plan: &ChunkPlan, source: &ChunkSource, step: &Step, rows: usize) -> Result<RecordBatch> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (array, field) in self.columns.iter().zip(plan.tested.fields()) {
            if let Some(array) = array
                .as_ref()
                .filter(|_| step.predicate.columns().contains(field.name()))
            {
                fields.push(field.clone());
                arrays.push(plain(array, field.data_type())?);
            }
        }
        for column in &plan.filter_system {
            fields.push(column.field());
            arrays.push(source.places.values(*column, &self.kept));
        }
        batch_of(Arc::new(Schema::new(fields)), arrays, rows)
    }
}

/// Reads the columns of what is left of `rows` that the filter did not read.
async fn read_others(
    plan: &ChunkPlan,
    source: &ChunkSource,
    rows: &[Range<u64>],
    tested: &Tested,
    most: usize,
) -> Weighed<RecordBatch> {
    let columns = (&source.other_columns, &plan.weights.others);
    let expected = rows
        .first()
        .map_or(0, |range| source.page_ends.bytes_per_row(range.start));
    read_kept(columns, expected, How::of(source, most), rows, tested).await
}

/// Reads rows, short runs with what is between them. `expected` are the bytes of a row in memory as far as its place tells.
async fn read_rows(
    (columns, weight): (&FragmentProjection, &Weight),
    expected: u64,
    how: How,
    rows: &[Range<u64>],
) -> Weighed<RecordBatch> {
    let in_memory = weight.bytes_per_row().max(expected);
    let covering = match rows.len() {
        0 | 1 => None,
        _ => columns.row_cost(in_memory).covering(rows, how.spread),
    };
    let read = covering.as_deref().unwrap_or(rows);
    let batch = match how.by_value {
        true => columns.read_by_value(read, how.decoding, how.most).await,
        false => columns.read_within(read, how.decoding, how.most).await,
    }?;
    let bytes = weight.see(&batch);
    match covering {
        Some(covering) => Ok((uncovered(&batch, &covering, rows)?, bytes)),
        None => Ok((batch, bytes)),
    }
}

/// Reads what is left of `rows`: that alone, or all of `rows` where that costs less. The rest is as for [`read_rows`].
async fn read_kept(
    (columns, weight): (&FragmentProjection, &Weight),
    expected: u64,
    how: How,
    rows: &[Range<u64>],
    tested: &Tested,
) -> Weighed<RecordBatch> {
    let read = async |rows: &[Range<u64>]| read_rows((columns, weight), expected, how, rows).await;
    let kept = tested.kept.as_slice();
    let of_a_row = cost_of_a_row(columns, weight).max(expected / DECODED);
    let saved = (count(rows) - count(kept)).saturating_mul(of_a_row);
    let cost = (kept.len() as u64)
        .saturating_mul(columns.num_columns())
        .saturating_mul(RUN_COST);
    if cost < saved || kept == rows {
        return read(kept).await;
    }
    let (all, bytes) = read(rows).await?;
    if all.num_columns() == 0 {
        return read(kept).await;
    }
    let mask = match &tested.mask {
        Mask::All => return Ok((all, bytes)),
        Mask::Some(mask) => mask.clone(),
        Mask::ByRanges => mask_of(rows, kept),
    };
    let mask = BooleanArray::new(mask, None);
    let left = arrow_select::filter::filter_record_batch(&all, &mask);
    Ok((left.map_err(|e| TableError::invalid(e.to_string()))?, bytes))
}

fn combine(
    plan: &ChunkPlan,
    source: &ChunkSource,
    rows: &[Range<u64>],
    tested: &[Option<ArrayRef>],
    others: &RecordBatch,
) -> Result<RecordBatch> {
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(plan.outputs.len());
    for (output, field) in plan.outputs.iter().zip(plan.schema.fields()) {
        arrays.extend(match output {
            Output::Filter(place) => {
                let column = tested.get(*place).and_then(Option::as_ref);
                column.map(|column| plain(column, field.data_type())).transpose()?
            }
            Output::Other(place) => others.columns().get(*place).cloned(),
            Output::System(column) => Some(source.places.values(*column, rows)),
        });
    }
    batch_of(plan.schema.clone(), arrays, others.num_rows())
}

fn batch_of(schema: SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, arrays, &options).map_err(|e| TableError::invalid(e.to_string()))
}

fn split(plan: &ChunkPlan, batch: RecordBatch) -> Result<Vec<RecordBatch>> {
    let batch = match &plan.views {
        Some(schema) => viewed(batch, schema)?,
        None => batch,
    };
    let Some(size) = plan.batch_size.filter(|size| *size < batch.num_rows()) else {
        return Ok(vec![batch]);
    };
    let starts = (0..batch.num_rows()).step_by(size.max(1));
    Ok(starts
        .map(|start| batch.slice(start, size.min(batch.num_rows() - start)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_what_is_cut_has_fewer_rows_wherever_it_starts() {
        for start in [0, 1, 4095, 8193] {
            for rows in [2, 3, 4097, 8191, 8194, 20_000] {
                let range = start..start + rows;
                for most in [fewer(rows, 0), fewer(rows, 1), fewer(rows, 3), (rows - 1).div_ceil(2)] {
                    let pieces = pieces_of(std::iter::once(range.clone()).collect(), 1, most);
                    assert!(
                        pieces.iter().all(|piece| count(piece) <= most && count(piece) < rows),
                        "{range:?}"
                    );
                    assert_eq!(pieces.iter().map(|piece| count(piece)).sum::<u64>(), rows);
                }
            }
        }
        // Pages' own units are for what is not cut.
        let whole = pieces_of(std::iter::once(1..8192).collect(), PIECE_UNIT, 4096);
        assert_eq!(whole.len(), 1);
    }
}
