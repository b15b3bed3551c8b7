//! How a scan is cut into chunks, and how many of them are in memory at a time.
//!
//! A chunk ends where the pages' own units end: pages are packed in blocks of 1,024 values and cut into mini-blocks of up to 4,096. A block
//! that lies in two chunks is unpacked twice, which costs most in wide tables, where a chunk has few rows.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Schema};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::chunk::ChunkSource;
use super::fragment_reader::FragmentProjection;

/// The target size of a chunk in bytes of its files, in large fragments. Behind a network each chunk is a request, at least; elsewhere larger
/// ones are no faster, and text takes several times as much in memory.
const FAR_CHUNK_BYTES: u64 = 8 * 1024 * 1024;
const NEAR_CHUNK_BYTES: u64 = 2 * 1024 * 1024;

/// The bytes of each column that the chunks of wide tables are to have, and the most of all: what a page needs is looked up for each chunk, and
/// the items of its dictionary are far away again after the other columns.
const COLUMN_BYTES: u64 = 128 * 1024;
const WIDE_CHUNK_BYTES: u64 = 16 * 1024 * 1024;

/// The target size of a chunk in small fragments: the least that is worth a task of its own.
const SMALL_CHUNK_BYTES: u64 = 1024 * 1024;

/// The same in bytes in memory, where the types tell them: values may take many times those of the files.
const SMALL_DECODED_BYTES: u64 = 2 * 1024 * 1024;

/// The most bytes that each column of a chunk is to take in memory, where the types tell them. Chunks of all tables have blocks of about as many
/// then, of which those of one are good for the next.
const BLOCK_BYTES: u64 = 1024 * 1024;

/// The most bytes of a chunk that is larger than its target for the sake of the pages' units.
const LARGEST_CHUNK_BYTES: u64 = 32 * 1024 * 1024;

/// While a filter keeps fewer rows than one in so many, the other columns are hardly read, and chunks may be larger.
const FEW_KEPT: u64 = 64;

/// How many times as many rows such chunks have at most, where a row's other columns have this many times the bytes of the filter's.
const TIMES_FEW: u64 = 16;

/// The most rows that a filter is asked of before there are chunks, and how many times the rows of a chunk they are at least.
const TESTED_ROWS: u64 = 64 * 1024;
const TIMES_TESTED: u64 = 4;

/// Chunks per thread in a fragment, so that threads finish at nearly the same time.
const CHUNKS_PER_THREAD: u64 = 4;

/// The most rows in a chunk.
const CHUNK_ROWS: u64 = 1 << 20;

/// The units that chunks are made of, the larger ones first.
const UNITS: [u64; 2] = [4096, 1024];

/// The most bytes of a unit of a column: there are few values in a block of long ones, and those of vectors and long texts lie by themselves.
const UNIT_BYTES: u64 = 256 * 1024;

/// The least number of chunks that are read concurrently from a store behind a network.
const FAR_CHUNKS: usize = 16;

/// The most bytes of chunks that are read concurrently, on such a store and on others.
const FAR_BYTES: u64 = 256 * 1024 * 1024;
const NEAR_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes of a permit to read ahead.
const PERMIT_BYTES: u64 = 64 * 1024;

/// The most bytes that the columns of a chunk are to take in memory, unless a single batch takes more; behind a network, and elsewhere.
const FAR_DECODED_BYTES: u64 = 64 * 1024 * 1024;
const NEAR_DECODED_BYTES: u64 = 16 * 1024 * 1024;

/// The same for each column of wide tables whose values have one length each, up to twice as many in all.
const COLUMN_DECODED_BYTES: u64 = 320 * 1024;

/// The same for values of any length, which files may hold in few bytes: so many times the bytes of the chunk in its files, from these on.
const TIMES_DECODED: u64 = 3;
const VARIABLE_DECODED_BYTES: u64 = 6 * 1024 * 1024;

/// The most bytes that are read of a chunk at once where values turn out to be longer than was expected.
const MOST_OF_A_READ: usize = 20 * 1024 * 1024;

/// How many times as many bytes the columns may take if a filter keeps all rows of a chunk, where it kept few of those before.
const TIMES_WHOLE: u64 = 4;

/// What rows are expected to take falls by one part in so many, of what it is above that of the last chunk.
const FALL: u64 = 4;

/// The most rows of the first chunk, where nobody knows how long values are that the files hold in few bytes.
const UNKNOWN_ROWS: u64 = 8 * 1024;

/// The same behind a network, where each request takes long.
const FAR_UNKNOWN_ROWS: u64 = 256 * 1024;

/// The part of a chunk that the first one has where few rows may be enough.
const FIRST_PART: u64 = 8;

/// The size of a fragment's chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkSize {
    pub(super) rows: u64,
    /// The same while the filter keeps few rows.
    pub(super) few_rows: u64,
    /// How many rows the filter is asked of before there are chunks; 0 where each chunk asks it.
    pub(super) tested_rows: u64,
    /// A chunk ends at a multiple of it.
    pub(super) unit: u64,
    pub(super) bytes_per_row: u64,
}

impl ChunkSize {
    /// The same where the types tell what rows take in memory: threads share a small fragment evenly, and blocks are no larger than others.
    fn in_blocks(self, physical_rows: u64, decoded: &Decoded, batch_size: Option<usize>, threads: u64) -> ChunkSize {
        let in_memory = decoded.bytes_per_row().max(1);
        let share = physical_rows.saturating_mul(in_memory) / threads.saturating_mul(CHUNKS_PER_THREAD).max(1);
        let narrow = decoded.columns.saturating_mul(BLOCK_BYTES).min(NEAR_DECODED_BYTES);
        let wide = decoded.columns.saturating_mul(COLUMN_DECODED_BYTES);
        let most = share.min(narrow.max(wide)).max(SMALL_DECODED_BYTES) / in_memory;
        let step = batch_size.map_or(self.unit, |size| size.max(1) as u64);
        let most = most.max(1).next_multiple_of(step);
        ChunkSize {
            rows: self.rows.min(most),
            few_rows: self.few_rows.min(most),
            ..self
        }
    }

    /// Of how many rows the filter is asked at a time: of few at first where they may be enough.
    pub(super) fn tested_pieces(self, few_may_do: bool) -> impl FnMut() -> u64 + Send + 'static {
        let mut next = if few_may_do { self.few_rows } else { self.tested_rows };
        move || {
            let rows = next.min(self.tested_rows);
            next = next.saturating_mul(TIMES_TESTED);
            rows
        }
    }
}

pub(super) fn chunk_size(
    source: &ChunkSource,
    physical_rows: u64,
    batch_size: Option<usize>,
    is_far: bool,
    decoded: &Decoded,
) -> ChunkSize {
    let tested: u64 = source
        .filter_columns
        .iter()
        .map(FragmentProjection::bytes_per_row)
        .sum();
    let bytes = tested.saturating_add(source.other_columns.bytes_per_row());
    let bytes = bytes.saturating_add(source.blob_bytes_per_row).max(1);
    let columns = source.filter_columns.iter().map(FragmentProjection::num_columns).sum();
    let columns = source.other_columns.num_columns().saturating_add(columns);
    let target = target_bytes(columns, is_far);
    // Behind a network a larger chunk is one request.
    let value = if is_far { 0 } else { bytes / columns.max(1) };
    let mut size = size_of(bytes, value, physical_rows, batch_size, threads(), target);
    if !is_far && decoded.is_fixed() {
        size = size.in_blocks(physical_rows, decoded, batch_size, threads());
    }
    with_few(size, tested, target)
}

/// The target size of a chunk of so many columns.
fn target_bytes(columns: u64, is_far: bool) -> u64 {
    match is_far {
        true => FAR_CHUNK_BYTES,
        false => columns
            .saturating_mul(COLUMN_BYTES)
            .clamp(NEAR_CHUNK_BYTES, WIDE_CHUNK_BYTES),
    }
}

/// The same with larger chunks for filters that keep few rows, where rows are wide beside the filter's columns: a chunk of a few blobs would
/// hardly be worth its task.
fn with_few(size: ChunkSize, tested: u64, target: u64) -> ChunkSize {
    let others = size.bytes_per_row.saturating_sub(tested);
    if others < tested.max(1).saturating_mul(TIMES_FEW) {
        return size;
    }
    let most = (target / tested.max(1)).min(LARGEST_CHUNK_BYTES / size.bytes_per_row.max(1));
    let times = (most / size.rows.max(1)).clamp(1, TIMES_FEW);
    let at_once = (target / tested.max(1)).min(TESTED_ROWS);
    ChunkSize {
        few_rows: size.rows.saturating_mul(times),
        tested_rows: if tested > 0 && at_once / TIMES_TESTED >= size.rows {
            at_once
        } else {
            0
        },
        ..size
    }
}

/// The size of chunks of rows that have so many bytes in the files, of which a value has so many.
fn size_of(
    bytes: u64,
    value: u64,
    physical_rows: u64,
    batch_size: Option<usize>,
    threads: u64,
    target: u64,
) -> ChunkSize {
    let share = physical_rows.saturating_mul(bytes) / threads.saturating_mul(CHUNKS_PER_THREAD).max(1);
    let rows = (share.clamp(SMALL_CHUNK_BYTES, target) / bytes).clamp(1, CHUNK_ROWS);
    let fits =
        |unit: &&u64| unit.saturating_mul(bytes) <= LARGEST_CHUNK_BYTES && unit.saturating_mul(value) <= UNIT_BYTES;
    let unit = UNITS.iter().find(fits).copied().unwrap_or(1);
    let rows = rows.next_multiple_of(unit);
    match batch_size.map(|size| size.max(1) as u64) {
        // A multiple of the batch size, so that no batch is cut at the end of a chunk.
        Some(size) => ChunkSize {
            rows: rows.div_ceil(size).saturating_mul(size),
            few_rows: rows.div_ceil(size).saturating_mul(size),
            tested_rows: 0,
            unit: 1,
            bytes_per_row: bytes,
        },
        None => ChunkSize {
            rows,
            few_rows: rows,
            tested_rows: 0,
            unit,
            bytes_per_row: bytes,
        },
    }
}

/// The sizes of the chunks of a scan one after the other: all full, or rising where few rows may be enough.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ramp {
    divisor: u64,
}

impl Ramp {
    pub(super) fn new(few_may_do: bool) -> Self {
        Ramp {
            divisor: if few_may_do { FIRST_PART } else { 1 },
        }
    }

    /// The rows of the next chunk.
    pub(super) fn next(&mut self, size: ChunkSize) -> u64 {
        let rows = (size.rows / self.divisor)
            .max(1)
            .next_multiple_of(size.unit)
            .min(size.rows);
        self.divisor = (self.divisor / 2).max(1);
        rows
    }
}

/// How many bytes a row of some columns takes in memory: of values of any length about what was read lately.
#[derive(Debug)]
pub(super) struct Weight {
    bytes_per_row: AtomicU64,
    is_fixed: bool,
}

impl Weight {
    /// Of such columns, of which nothing was read yet.
    pub(super) fn of(schema: &Schema) -> Weight {
        let (bytes_per_row, is_fixed) = width_of(schema);
        Weight {
            bytes_per_row: AtomicU64::new(bytes_per_row),
            is_fixed,
        }
    }

    pub(super) fn bytes_per_row(&self) -> u64 {
        self.bytes_per_row.load(Relaxed)
    }

    /// Takes in rows that were read, and returns their bytes.
    pub(super) fn see(&self, batch: &RecordBatch) -> u64 {
        let rows = batch.num_rows() as u64;
        if self.is_fixed {
            return rows.saturating_mul(self.bytes_per_row());
        }
        let bytes = memory_of(batch);
        if rows > 0 {
            follow(&self.bytes_per_row, bytes.div_ceil(rows));
        }
        bytes
    }
}

/// Takes in what was found: rises to it at once, and falls to it little by little, as a few long values say nothing of all that follow.
fn follow(known: &AtomicU64, found: u64) {
    let next = |known: u64| Some(found.max(known - known.saturating_sub(found).div_ceil(FALL)));
    let _ = known.fetch_update(Relaxed, Relaxed, next);
}

/// The weights of what the chunks of a scan read.
#[derive(Debug)]
pub(super) struct Weights {
    /// Of the columns of each step of the filter.
    pub(super) steps: Vec<Weight>,
    /// Of the other columns.
    pub(super) others: Weight,
}

impl Weights {
    /// Of a row that is read whole.
    fn bytes_per_row(&self) -> u64 {
        let steps: u64 = self.steps.iter().map(Weight::bytes_per_row).sum();
        steps.saturating_add(self.others.bytes_per_row())
    }
}

/// How many bytes a row takes in memory, which may be many times those that it takes in the files: chunks are cut by what others took.
#[derive(Debug, Clone)]
pub(super) struct Decoded {
    weights: Arc<Weights>,
    /// About that of a row in the last chunks: of rows that were left out, only what the filter read.
    bytes_per_row: Arc<AtomicU64>,
    /// Whether a chunk was seen, or the types tell.
    is_known: Arc<AtomicBool>,
    /// Whether the types tell all, so that nothing has to be seen.
    is_fixed: bool,
    columns: u64,
    /// Rows of the chunks that were read, and those of them that came out.
    rows: Arc<AtomicU64>,
    kept: Arc<AtomicU64>,
}

impl Decoded {
    /// Of rows with such columns.
    pub(super) fn of(schema: &Schema, weights: Arc<Weights>) -> Decoded {
        let (bytes_per_row, is_fixed) = width_of(schema);
        Decoded {
            weights,
            bytes_per_row: Arc::new(AtomicU64::new(bytes_per_row)),
            is_known: Arc::new(AtomicBool::new(is_fixed)),
            is_fixed,
            columns: schema.fields().len() as u64,
            rows: Arc::default(),
            kept: Arc::default(),
        }
    }

    /// Whether the types tell what rows take.
    pub(super) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// The most bytes that a read of a chunk may take: some times those that it is to take, so that no chunk is read twice for a little.
    /// Behind a network it may take any, as rows that are read again are requests.
    pub(super) fn most_of_a_read(&self, is_far: bool) -> usize {
        match self.is_fixed || is_far {
            true => usize::MAX,
            false => MOST_OF_A_READ,
        }
    }

    /// Whether few rows of the chunks that were read came out.
    pub(super) fn keeps_few(&self) -> bool {
        let (rows, kept) = (self.rows.load(Relaxed), self.kept.load(Relaxed));
        rows > 0 && kept.saturating_mul(FEW_KEPT) <= rows
    }

    /// Takes in a chunk that was read: so many rows, of which some came out, and what was in memory of them at once.
    pub(super) fn see(&self, rows: u64, kept: u64, bytes: u64) {
        self.count(rows, kept);
        self.weigh(rows, bytes);
    }

    /// Takes in rows that were read, of which some came out.
    pub(super) fn count(&self, rows: u64, kept: u64) {
        self.rows.fetch_add(rows, Relaxed);
        self.kept.fetch_add(kept, Relaxed);
    }

    /// Takes in what all rows of a chunk take in memory.
    pub(super) fn weigh(&self, rows: u64, bytes: u64) {
        if rows == 0 || self.is_fixed {
            return;
        }
        follow(&self.bytes_per_row, bytes.div_ceil(rows));
        self.is_known.store(true, Relaxed);
    }

    /// Whether a chunk was seen, or the types tell what one takes.
    pub(super) fn is_known(&self) -> bool {
        self.is_known.load(Relaxed)
    }

    /// Bytes of a row in memory, as far as that is known.
    pub(super) fn bytes_per_row(&self) -> u64 {
        self.bytes_per_row.load(Relaxed)
    }

    /// The rows of the next chunk, of `size.rows` at most: a multiple of its unit or of `batch_size`, one of them at least.
    pub(super) fn bounded(&self, rows: u64, size: ChunkSize, batch_size: Option<usize>, is_far: bool) -> u64 {
        let bytes = match is_far {
            true => FAR_DECODED_BYTES,
            false if self.is_fixed => self
                .columns
                .saturating_mul(COLUMN_DECODED_BYTES)
                .clamp(NEAR_DECODED_BYTES, 2 * NEAR_DECODED_BYTES),
            false => {
                let in_files = size.rows.saturating_mul(size.bytes_per_row);
                let most = in_files.saturating_mul(TIMES_DECODED);
                // Who asks for batches of a few rows wants little in memory.
                let least = VARIABLE_DECODED_BYTES / if batch_size.is_some() { 2 } else { 1 };
                most.clamp(least, NEAR_DECODED_BYTES)
            }
        };
        let whole = bytes.saturating_mul(TIMES_WHOLE) / self.weights.bytes_per_row().max(1);
        let most = (bytes / self.bytes_per_row().max(1)).min(whole);
        let most = match self.is_known() {
            true => most,
            false if is_far => most.min(FAR_UNKNOWN_ROWS),
            // No fewer bytes than in the files.
            false => most.min(UNKNOWN_ROWS).min(bytes / size.bytes_per_row.max(1)),
        };
        if rows <= most {
            return rows;
        }
        let step = match batch_size {
            Some(size) => size.max(1) as u64,
            None if self.is_fixed => size.unit,
            // Long values are in no units, and a few of them are enough.
            None => {
                let mut units = UNITS.into_iter().filter(|unit| *unit <= size.unit);
                units.find(|unit| *unit <= most).unwrap_or(1)
            }
        };
        (most / step).max(1).saturating_mul(step).min(rows)
    }
}

/// The bytes that rows take in memory, without the items of dictionaries, which they share. Types whose memory Arrow cannot tell count nothing.
pub(crate) fn memory_of(batch: &RecordBatch) -> u64 {
    let columns = batch.columns().iter().map(|column| column.to_data());
    let bytes = columns.map(|column| slice_memory(&column).saturating_sub(items_memory(&column)) as u64);
    bytes.fold(0, u64::saturating_add)
}

fn slice_memory(data: &ArrayData) -> usize {
    data.get_slice_memory_size().unwrap_or(0)
}

/// What the items of dictionaries take, wherever in an array they are.
fn items_memory(data: &ArrayData) -> usize {
    let children = data.child_data().iter();
    match data.data_type() {
        DataType::Dictionary(_, _) => children.map(slice_memory).sum(),
        _ => children.map(items_memory).sum(),
    }
}

/// Bytes of a row of the columns whose values take as many each, and whether those are all.
fn width_of(schema: &Schema) -> (u64, bool) {
    let widths: Vec<Option<u64>> = schema.fields().iter().map(|field| width(field.data_type())).collect();
    (widths.iter().flatten().sum(), widths.iter().all(Option::is_some))
}

/// Bytes of a value, if all of the type take as many.
pub(super) fn width(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::Null => Some(0),
        DataType::Boolean => Some(1),
        DataType::FixedSizeBinary(size) => u64::try_from(*size).ok(),
        DataType::FixedSizeList(item, size) => width(item.data_type())?.checked_mul(u64::try_from(*size).ok()?),
        DataType::Struct(fields) => fields.iter().map(|field| width(field.data_type())).sum(),
        other => other.primitive_width().map(|width| width as u64),
    }
}

pub(super) fn threads() -> u64 {
    esker_store::cores() as u64
}

/// The number of chunks that are read concurrently: two per thread, and more behind a network, where most of the time is spent waiting.
pub(super) fn readahead(is_far: bool) -> usize {
    let least = if is_far { FAR_CHUNKS } else { 2 };
    usize::try_from(threads().saturating_mul(2)).unwrap_or(2).max(least)
}

/// Bounds what is read ahead by its bytes, and by a number of chunks that rises where few rows may be enough.
#[derive(Debug, Clone)]
pub(super) struct Ahead {
    bytes: Arc<Semaphore>,
    most: u32,
    /// The chunks that may be read ahead now; each one that came out brings another.
    chunks: Option<Arc<Semaphore>>,
}

/// Held while a chunk is in memory.
#[derive(Debug)]
pub(super) struct Permit {
    _bytes: Option<OwnedSemaphorePermit>,
    chunks: Option<Arc<Semaphore>>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(chunks) = &self.chunks {
            // The chunk's own place, and another one.
            chunks.add_permits(2);
        }
    }
}

impl Ahead {
    pub(super) fn new(is_far: bool, few_may_do: bool) -> Self {
        let most = permits(if is_far { FAR_BYTES } else { NEAR_BYTES });
        let first = usize::try_from(threads()).unwrap_or(1);
        Ahead {
            bytes: Arc::new(Semaphore::new(most as usize)),
            most,
            chunks: few_may_do.then(|| Arc::new(Semaphore::new(first))),
        }
    }

    /// Waits until a chunk of so many bytes may be read.
    pub(super) async fn admit(&self, bytes: u64) -> Permit {
        let wanted = permits(bytes).min(self.most);
        // Neither is ever closed.
        let taken = self.bytes.clone().acquire_many_owned(wanted).await.ok();
        if let Some(chunks) = &self.chunks {
            if let Ok(place) = chunks.acquire().await {
                place.forget();
            }
        }
        Permit {
            _bytes: taken,
            chunks: self.chunks.clone(),
        }
    }
}

fn permits(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a scan of such columns without a filter.
    fn known(fields: Vec<arrow_schema::Field>) -> Decoded {
        let schema = Schema::new(fields);
        let others = Weight::of(&schema);
        let steps = Vec::new();
        Decoded::of(&schema, Arc::new(Weights { steps, others }))
    }

    #[test]
    fn test_chunks_are_bounded_by_what_they_take_in_memory() {
        let field = |kind| arrow_schema::Field::new("c", kind, true);
        let of = |kinds: &[DataType]| known(kinds.iter().cloned().map(field).collect());
        let size = ChunkSize {
            rows: 1 << 20,
            few_rows: 1 << 20,
            tested_rows: 0,
            unit: 4096,
            bytes_per_row: 1,
        };
        let numbers = of(&vec![DataType::Int64; 32]);
        assert_eq!(numbers.bytes_per_row(), 256);
        assert_eq!(numbers.bounded(size.rows, size, None, false), 64 * 1024);
        assert_eq!(numbers.bounded(size.rows, size, None, true), 256 * 1024);
        assert_eq!(numbers.bounded(1000, size, None, false), 1000);
        assert_eq!(numbers.bounded(size.rows, size, Some(30_000), false), 60_000);
        assert_eq!(numbers.bounded(size.rows, size, Some(100_000), false), 100_000);
        // Of more columns at most twice as many bytes.
        let wide = of(&vec![DataType::Int64; 128]);
        assert_eq!(wide.bounded(size.rows, size, None, false), 32 * 1024);
        // Wide rows that are blocks all the same: one unit at least.
        assert_eq!(
            of(&vec![DataType::Int64; 4000]).bounded(size.rows, size, None, false),
            4096
        );
        let text = of(&[DataType::Utf8, DataType::Int32]);
        assert_eq!(text.bounded(size.rows, size, None, false), UNKNOWN_ROWS);
        assert_eq!(text.bounded(size.rows, size, None, true), FAR_UNKNOWN_ROWS);
        let long = "x".repeat(1 << 12);
        let seen = RecordBatch::try_from_iter([(
            "c",
            Arc::new(arrow_array::StringArray::from(vec![long.as_str(); 64])) as arrow_array::ArrayRef,
        )]);
        let seen = seen.unwrap();
        assert!(!text.is_known());
        let bytes = text.weights.others.see(&seen);
        text.see(64, 64, bytes);
        assert!(text.is_known());
        let narrow = ChunkSize { rows: 1 << 20, ..size };
        let fits = VARIABLE_DECODED_BYTES / text.bytes_per_row();
        assert_eq!(text.bounded(size.rows, narrow, None, false), fits / 1024 * 1024);
        // The more a chunk has in its files, the more it may have in memory.
        let wide = ChunkSize {
            bytes_per_row: 8,
            ..size
        };
        assert_eq!(
            text.bounded(size.rows, wide, None, false),
            NEAR_DECODED_BYTES / text.bytes_per_row() / 1024 * 1024
        );
        // Rows that were left out took nothing, but those that follow may be kept.
        let filtered = of(&[DataType::Utf8]);
        filtered.weights.others.see(&seen);
        filtered.see(1 << 20, 1, 1 << 13);
        let whole = TIMES_WHOLE * VARIABLE_DECODED_BYTES / filtered.weights.bytes_per_row();
        assert_eq!(filtered.bounded(size.rows, narrow, None, false), whole / 4096 * 4096);
        // Values that are longer than that: as many as fit, and one at least.
        let huge = of(&[DataType::Utf8]);
        huge.see(1, 1, 100 << 10);
        assert_eq!(huge.bounded(size.rows, narrow, None, false), 61);
        huge.see(1, 1, 100 << 20);
        assert_eq!(huge.bounded(size.rows, narrow, None, false), 1);
        assert!((4096..4112).contains(&text.bytes_per_row()), "{}", text.bytes_per_row());
        text.see(0, 0, 0);
        assert_eq!(of(&[DataType::Utf8]).bounded(100, size, None, false), 100);
    }

    #[test]
    fn test_chunks_are_made_of_the_pages_units_while_they_stay_small() {
        let size = |bytes, rows| size_of(bytes, 0, rows, None, 2, FAR_CHUNK_BYTES);
        // Few columns: the target in bytes decides.
        assert_eq!((size(8, 100_000_000).rows, size(8, 100_000_000).unit), (1 << 20, 4096));
        // 250 columns of 8 bytes: the units are whole.
        let wide = size(2000, 4_000_000);
        assert_eq!((wide.rows, wide.unit), (8192, 4096));
        // 4,000 columns: a unit of 1,024 rows has 32 MB.
        let wider = size(32_000, 250_000);
        assert_eq!((wider.rows, wider.unit), (1024, 1024));
        // A megabyte a row: no unit fits.
        let blobs = size(1 << 20, 1000);
        assert_eq!((blobs.rows, blobs.unit), (8, 1));
        let batches = size_of(8, 0, 100_000_000, Some(1000), 2, NEAR_CHUNK_BYTES);
        assert_eq!((batches.rows % 1000, batches.unit), (0, 1));
    }

    #[test]
    fn test_small_fragments_are_shared_by_what_they_take_in_memory() {
        let numbers = |columns: usize| {
            let field = |_| arrow_schema::Field::new("c", DataType::Int64, true);
            known((0..columns).map(field).collect())
        };
        // A column that takes next to nothing in the file is no chunk of its own.
        let size = size_of(1, 1, 1_000_000, None, 2, NEAR_CHUNK_BYTES);
        assert_eq!(size.rows, 1 << 20);
        assert_eq!(size.in_blocks(1_000_000, &numbers(1), None, 2).rows, 1 << 18);
        // Three columns, an eighth of the rows each time.
        let size = size_of(6, 2, 1_000_000, None, 2, NEAR_CHUNK_BYTES);
        let shared = size.in_blocks(1_000_000, &numbers(3), None, 2);
        assert_eq!((shared.rows, shared.few_rows, shared.unit), (126_976, 126_976, 4096));
        // Large ones have blocks of a mebibyte.
        let size = size_of(3, 1, 100_000_000, None, 2, NEAR_CHUNK_BYTES);
        assert_eq!(size.in_blocks(100_000_000, &numbers(3), None, 2).rows, 1 << 17);
        let batches = size_of(3, 1, 100_000_000, Some(1000), 2, NEAR_CHUNK_BYTES);
        assert_eq!(batches.in_blocks(100_000_000, &numbers(3), Some(1000), 2).rows, 132_000);
        // Wide tables keep to their own rule.
        let size = size_of(800, 8, 10_000_000, None, 2, target_bytes(100, false));
        assert_eq!(size.in_blocks(10_000_000, &numbers(100), None, 2).rows, size.rows);
    }

    #[test]
    fn test_long_values_are_in_no_units() {
        let of = |bytes, value| size_of(bytes, value, 1_000_000, None, 2, NEAR_CHUNK_BYTES);
        assert_eq!((of(3072, 3072).rows, of(3072, 3072).unit), (682, 1));
        assert_eq!((of(128, 128).rows, of(128, 128).unit), (16_384, 1024));
        // Rows of many columns.
        assert_eq!(of(8000, 8).unit, 4096);
        // Behind a network.
        assert_eq!(size_of(3072, 0, 1_000_000, None, 2, FAR_CHUNK_BYTES).rows, 4096);
    }

    #[test]
    fn test_chunks_of_many_columns_are_larger() {
        assert_eq!(target_bytes(1, false), NEAR_CHUNK_BYTES);
        assert_eq!(target_bytes(100, false), 100 * COLUMN_BYTES);
        assert_eq!(target_bytes(u64::MAX, false), WIDE_CHUNK_BYTES);
        assert_eq!(target_bytes(1, true), FAR_CHUNK_BYTES);
    }

    #[test]
    fn test_chunks_of_wide_rows_grow_while_a_filter_keeps_few() {
        // A key of 8 bytes beside blobs.
        let blobs = with_few(
            size_of(100_008, 0, 4000, None, 2, NEAR_CHUNK_BYTES),
            8,
            NEAR_CHUNK_BYTES,
        );
        assert_eq!((blobs.rows, blobs.few_rows), (20, 320));
        // The key alone is read of all rows first.
        assert_eq!(blobs.tested_rows, TESTED_ROWS);
        let huge = with_few(
            size_of(10 << 20, 0, 4000, None, 2, NEAR_CHUNK_BYTES),
            8,
            NEAR_CHUNK_BYTES,
        );
        assert_eq!((huge.rows, huge.few_rows), (1, 3));
        let batches = with_few(
            size_of(100_008, 0, 4000, Some(7), 2, NEAR_CHUNK_BYTES),
            8,
            NEAR_CHUNK_BYTES,
        );
        assert_eq!((batches.rows % 7, batches.few_rows % 7), (0, 0));
        // Numbers only.
        let numbers = with_few(
            size_of(48, 0, 4_000_000, None, 2, NEAR_CHUNK_BYTES),
            8,
            NEAR_CHUNK_BYTES,
        );
        assert_eq!((numbers.rows, numbers.tested_rows), (numbers.few_rows, 0));
        let decoded = known(vec![arrow_schema::Field::new("c", DataType::Int64, true)]);
        assert!(!decoded.keeps_few());
        decoded.see(20, 0, 0);
        assert!(decoded.keeps_few());
        decoded.see(20, 20, 160);
        assert!(!decoded.keeps_few());
    }

    #[test]
    fn test_first_chunks_are_small_where_few_rows_may_do() {
        let size = size_of(8, 0, 100_000_000, None, 2, FAR_CHUNK_BYTES);
        let mut ramp = Ramp::new(true);
        let rows: Vec<u64> = (0..5).map(|_| ramp.next(size)).collect();
        assert_eq!(rows, [1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 20]);
        assert_eq!(Ramp::new(false).next(size), 1 << 20);
    }
}
