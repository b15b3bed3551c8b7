//! Decodes the one shape of Arrow IPC file that deletion files have.
//!
//! ```text
//! "ARROW1" 2 bytes | schema | batch: metadata, body | footer (flatbuffer) | i32 footer length | "ARROW1"
//! body: a validity buffer (empty: no nulls), a buffer of u32 row offsets; each i64 raw length (-1: stored as it is) + zstd frame
//! ```
//!
//! It is read directly from the verified flatbuffers: a general IPC reader allocates what the file claims to hold, and a corrupt file may
//! claim anything.

use std::io::Read;
use std::ops::Range;

use roaring::RoaringBitmap;

use arrow_ipc::{root_as_footer, root_as_message, Block, CompressionType, Field, Footer, RecordBatch, Type};

const MAGIC: &[u8] = b"ARROW1";
const CONTINUATION: [u8; 4] = [0xff; 4];
const STORED: i64 = -1;
const WIDTH: usize = size_of::<u32>();
/// Row offsets that are decompressed at a time.
const CHUNK: usize = 16 * 1024;

type Result<T> = std::result::Result<T, String>;

/// The row offsets of a deletion file.
pub(super) fn read_offsets(data: &[u8]) -> Result<RoaringBitmap> {
    let footer = read_footer(data)?;
    let schema = footer.schema().ok_or("expected a schema in the footer, found none")?;
    let fields: Vec<Field<'_>> = schema.fields().into_iter().flatten().collect();
    match fields.as_slice() {
        [field] if is_offsets(field) => {}
        [field] => {
            return Err(format!(
                "expected a column of type uint32, found type {:?}",
                field.type_type()
            ))
        }
        _ => return Err(format!("expected one column, found {}", fields.len())),
    }
    let blocks: Vec<&Block> = footer.recordBatches().into_iter().flatten().collect();
    match blocks.as_slice() {
        [block] => read_batch(data, block),
        _ => Err(format!("expected one batch, found {}", blocks.len())),
    }
}

fn is_offsets(field: &Field<'_>) -> bool {
    let integer = field
        .type_as_int()
        .is_some_and(|int| int.bitWidth() == 32 && !int.is_signed());
    field.type_type() == Type::Int && integer && field.dictionary().is_none()
}

fn read_footer(data: &[u8]) -> Result<Footer<'_>> {
    let rest = data.strip_suffix(MAGIC).filter(|_| data.starts_with(MAGIC));
    let (rest, length) = rest
        .and_then(<[u8]>::split_last_chunk)
        .ok_or("expected an Arrow IPC file")?;
    let length = usize::try_from(i32::from_le_bytes(*length)).ok();
    let start = length
        .and_then(|length| rest.len().checked_sub(length))
        .ok_or("expected a footer within the file")?;
    let footer = rest.get(start..).unwrap_or_default();
    root_as_footer(footer).map_err(|error| format!("expected a footer, found {error}"))
}

fn range(start: i64, length: i64) -> Option<Range<usize>> {
    let start = usize::try_from(start).ok()?;
    Some(start..start.checked_add(usize::try_from(length).ok()?)?)
}

fn read_batch(data: &[u8], block: &Block) -> Result<RoaringBitmap> {
    let outside = || "expected a batch within the file".to_owned();
    let metadata = range(block.offset(), i64::from(block.metaDataLength())).ok_or_else(outside)?;
    let body = i64::try_from(metadata.end)
        .ok()
        .and_then(|start| range(start, block.bodyLength()))
        .ok_or_else(outside)?;
    let body = data.get(body).ok_or_else(outside)?;
    let metadata = data.get(metadata).ok_or_else(outside)?;
    // Files of Arrow before 0.15 have no continuation marker before the length.
    let metadata = metadata.strip_prefix(&CONTINUATION).unwrap_or(metadata);
    let message = metadata.get(WIDTH..).unwrap_or_default();
    let message = root_as_message(message).map_err(|error| format!("expected a message, found {error}"))?;
    let batch = message
        .header_as_record_batch()
        .ok_or("expected a record batch, found another message")?;
    if batch.nodes().into_iter().flatten().any(|node| node.null_count() != 0) {
        return Err("expected row offsets, found a null".into());
    }
    let rows =
        usize::try_from(batch.length()).map_err(|_| format!("expected rows, found {} of them", batch.length()))?;
    read_values(&batch, body, rows)
}

fn read_values(batch: &RecordBatch<'_>, body: &[u8], rows: usize) -> Result<RoaringBitmap> {
    let buffers: Vec<_> = batch.buffers().into_iter().flatten().collect();
    let [_validity, values] = buffers.as_slice() else {
        return Err(format!("expected 2 buffers, found {}", buffers.len()));
    };
    let values = range(values.offset(), values.length()).and_then(|range| body.get(range));
    let values = values.ok_or("expected the row offsets within the batch")?;
    let Some(compression) = batch.compression() else {
        return collect(values, rows);
    };
    if values.is_empty() {
        return collect(values, rows);
    }
    let (length, frame) = values
        .split_first_chunk()
        .ok_or("expected a length before compressed row offsets")?;
    match (i64::from_le_bytes(*length), compression.codec()) {
        (STORED, _) => collect(frame, rows),
        (_, CompressionType::ZSTD) => {
            let decoder = zstd::stream::read::Decoder::with_buffer(frame);
            collect(
                decoder.map_err(|error| format!("expected a zstd frame: {error}"))?,
                rows,
            )
        }
        (_, other) => Err(format!(
            "expected compression ZSTD, found {other:?}; rewrite the file without it"
        )),
    }
}

/// Collects the offsets chunk by chunk, without allocating for the claimed number: a small frame may unpack to any number of equal values,
/// but an offset that repeats is an error, and distinct offsets compress to little less than they take here.
fn collect(mut values: impl Read, rows: usize) -> Result<RoaringBitmap> {
    let mut found = RoaringBitmap::new();
    let mut left = rows;
    let mut chunk = vec![0; WIDTH * CHUNK.min(rows)];
    while left > 0 {
        let bytes = chunk.get_mut(..WIDTH * CHUNK.min(left)).unwrap_or_default();
        if let Err(error) = values.read_exact(bytes) {
            return Err(format!("expected {rows} row offsets, found fewer: {error}"));
        }
        for value in bytes.chunks_exact(WIDTH).filter_map(|value| value.first_chunk()) {
            let row = u32::from_le_bytes(*value);
            if !found.insert(row) {
                return Err(format!("expected each row once, found row {row} again"));
            }
        }
        left -= CHUNK.min(left);
    }
    Ok(found)
}
