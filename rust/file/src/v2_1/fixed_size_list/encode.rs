//! Writing fixed-size lists.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, Buffer};
use esker_proto::lance::encodings21 as pb;

use super::super::flat::encode::value_bytes;
use super::super::message;
use super::super::mini_block::encode::{fixed_chunk_len, ChunkBuffers, ChunkEncoder};
use super::super::values::FixedSizeLists;
use crate::error::Result;

/// Fixed-size lists in chunks.
pub(crate) struct FixedSizeListChunks<'a> {
    lists: &'a FixedSizeLists,
    items: Buffer,
}

impl<'a> FixedSizeListChunks<'a> {
    pub(crate) fn new(lists: &'a FixedSizeLists) -> Self {
        FixedSizeListChunks {
            lists,
            items: lists.items.contiguous(),
        }
    }

    fn row_bits(&self) -> usize {
        self.lists.items_per_list().saturating_mul(self.lists.items.bits)
    }
}

/// How the lists are described, around flat items.
pub(crate) fn encoding(lists: &FixedSizeLists) -> pb::CompressiveEncoding {
    let items = match lists.items.bits {
        0 => message::nothing(),
        bits => message::flat(bits as u64),
    };
    lists.layers.iter().rev().fold(items, |items, layer| {
        message::fixed_size_list(layer.size as u64, layer.validity.is_some(), items)
    })
}

/// The bits `range`, from the first bit of a byte on.
fn bit_bytes(bits: &BooleanBuffer, range: Range<usize>) -> Buffer {
    bits.slice(range.start, range.len()).sliced()
}

impl ChunkEncoder for FixedSizeListChunks<'_> {
    fn encoding(&self) -> pb::CompressiveEncoding {
        encoding(self.lists)
    }

    fn num_buffers(&self) -> usize {
        1 + self
            .lists
            .layers
            .iter()
            .filter(|layer| layer.validity.is_some())
            .count()
    }

    fn chunk_len(&self, _at: usize, left: usize) -> usize {
        let mut validity_bits = 0;
        let mut items: usize = 1;
        for layer in &self.lists.layers {
            items = items.saturating_mul(layer.size);
            if layer.validity.is_some() {
                validity_bits += items.next_multiple_of(8);
            }
        }
        let len = fixed_chunk_len(self.row_bits() + validity_bits, left);
        if !self.row_bits().is_multiple_of(8) {
            // Chunks end at whole bytes.
            len.max(8).min(left)
        } else {
            len
        }
    }

    fn encode(&self, values: Range<usize>, out: &mut ChunkBuffers) -> Result<()> {
        let mut items: usize = 1;
        for layer in &self.lists.layers {
            items = items.saturating_mul(layer.size);
            let Some(validity) = &layer.validity else { continue };
            let range = values.start.saturating_mul(items)..values.end.saturating_mul(items);
            out.add(|data| {
                data.extend_from_slice(bit_bytes(validity, range).as_slice());
                Ok(())
            })?;
        }
        let bytes = value_bytes(self.items.as_slice(), self.row_bits(), values)?;
        out.add(|data| {
            data.extend_from_slice(bytes);
            Ok(())
        })
    }
}

/// Bytes of one list and its items' validity, each layer's bits in whole bytes.
pub(crate) fn zipped_width(lists: &FixedSizeLists) -> usize {
    let mut items: usize = 1;
    let mut bytes = 0;
    for layer in &lists.layers {
        items = items.saturating_mul(layer.size);
        if layer.validity.is_some() {
            bytes += items.div_ceil(8);
        }
    }
    bytes + items.saturating_mul(lists.items.bits).div_ceil(8)
}

/// The lists' bytes with their items' validity before each.
pub(crate) fn zip_validity(lists: &FixedSizeLists) -> Result<Buffer> {
    let items = lists.items.contiguous();
    if lists.layers.iter().all(|layer| layer.validity.is_none()) {
        return Ok(items);
    }
    let row_bits = lists.items_per_list().saturating_mul(lists.items.bits);
    let mut out = Vec::with_capacity(zipped_width(lists).saturating_mul(lists.len));
    for row in 0..lists.len {
        let mut per_row: usize = 1;
        for layer in &lists.layers {
            per_row = per_row.saturating_mul(layer.size);
            if let Some(validity) = &layer.validity {
                let range = row.saturating_mul(per_row)..(row + 1).saturating_mul(per_row);
                out.extend_from_slice(bit_bytes(validity, range).as_slice());
            }
        }
        out.extend_from_slice(value_bytes(items.as_slice(), row_bits, row..row + 1)?);
    }
    Ok(Buffer::from_vec(out))
}
