//! Writing values of any length.

use std::ops::Range;

use esker_proto::lance::encodings21 as pb;

use super::super::message;
use super::super::mini_block::encode::{ChunkBuffers, ChunkEncoder, MAX_CHUNK_VALUES};
use super::super::values::VariableWidth;
use crate::error::{FileError, Result};

/// The most bytes that a chunk aims at.
const CHUNK_BYTES: usize = 4 * 1024;

/// What fills the last offset's width.
const FILL: u8 = 72;

/// Values of any length in chunks.
pub(crate) struct VariableChunks<'a> {
    pub(crate) values: &'a VariableWidth,
}

fn short() -> FileError {
    FileError::invalid("expected offsets within the values' bytes, found others; the array is malformed")
}

/// Appends an offset.
fn put_offset(large: bool, offset: usize, out: &mut Vec<u8>) -> Result<()> {
    put_offsets(large, std::iter::once(offset), 1, out)
}

/// Appends `count` offsets, of which none is larger than the last.
fn put_offsets(large: bool, offsets: impl Iterator<Item = usize>, count: usize, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    if large {
        out.resize(start + count * 8, 0);
        let (places, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut();
        for (place, offset) in places.iter_mut().zip(offsets) {
            *place = (offset as u64).to_le_bytes();
        }
    } else {
        out.resize(start + count * 4, 0);
        let (places, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut();
        let mut beyond = 0;
        for (place, offset) in places.iter_mut().zip(offsets) {
            let [a, b, c, d, high @ ..] = (offset as u64).to_le_bytes();
            *place = [a, b, c, d];
            beyond |= u32::from_le_bytes(high);
        }
        if beyond > 0 {
            return Err(FileError::invalid(
                "4 GiB and more of strings in one page need a large type; cast the column to large_string or large_binary",
            ));
        }
    }
    Ok(())
}

impl ChunkEncoder for VariableChunks<'_> {
    fn encoding(&self) -> pb::CompressiveEncoding {
        message::variable(self.values.offset_bits() as u64)
    }

    fn chunk_len(&self, at: usize, left: usize) -> usize {
        let width = self.values.offset_bits() / 8;
        let offset = |index: usize| self.values.offsets.get(index).copied().unwrap_or(usize::MAX);
        let fits = |len: usize| offset(at + len) - offset(at) + (len + 1) * width <= CHUNK_BYTES;
        let mut len = 2;
        while len < MAX_CHUNK_VALUES && len < left && (len * 2 <= left) && fits(len * 2) {
            len *= 2;
        }
        if left <= 2 * len && left <= MAX_CHUNK_VALUES && fits(left) {
            left
        } else {
            len
        }
    }

    fn encode(&self, values: Range<usize>, out: &mut ChunkBuffers) -> Result<()> {
        let large = self.values.large;
        let width = self.values.offset_bits() / 8;
        let offsets = self.values.offsets.get(values.start..=values.end).ok_or_else(short)?;
        let (first, last) = offsets.first().zip(offsets.last()).ok_or_else(short)?;
        let bytes = self.values.bytes.get(*first..*last).ok_or_else(short)?;
        let bytes_at = offsets.len() * width;
        out.add(|data| {
            let start = data.len();
            put_offsets(
                large,
                offsets.iter().map(|offset| offset - first + bytes_at),
                offsets.len(),
                data,
            )?;
            data.extend_from_slice(bytes);
            let padded = (data.len() - start).next_multiple_of(width);
            data.resize(start + padded, FILL);
            Ok(())
        })
    }
}

/// All values in one buffer, as dictionaries are written.
pub(crate) fn encode_block(values: &VariableWidth) -> Result<Vec<u8>> {
    let width = values.offset_bits() / 8;
    let bytes_at = (2 + values.offsets.len()) * width;
    let mut out = Vec::with_capacity(bytes_at + values.bytes.len());
    put_offset(values.large, values.offset_bits(), &mut out)?;
    put_offset(values.large, bytes_at, &mut out)?;
    put_offsets(
        values.large,
        values.offsets.iter().copied(),
        values.offsets.len(),
        &mut out,
    )?;
    out.extend_from_slice(values.bytes.as_slice());
    Ok(out)
}
