//! Writing packed structs.

use std::ops::Range;

use arrow_buffer::Buffer;
use esker_codec::packed_rows::scatter_field;
use esker_proto::lance::encodings21 as pb;

use super::super::flat::encode::FlatChunks;
use super::super::message;
use super::super::mini_block::encode::{ChunkBuffers, ChunkEncoder};
use super::super::values::LeafValues;
use crate::error::{FileError, Result};

/// Rows in chunks.
pub(crate) struct RowChunks {
    field_bits: Vec<u64>,
    rows: FlatChunks,
}

impl RowChunks {
    /// Puts fields of fixed width together; `name` is the column's, for errors.
    pub(crate) fn new(name: &str, fields: &[LeafValues]) -> Result<RowChunks> {
        let fixed = fields.iter().map(|field| match field {
            LeafValues::Fixed(values) if values.bits.is_multiple_of(8) => Ok(values),
            _ => Err(FileError::unsupported(format!(
                "column '{name}': a packed struct holds fields of whole bytes and fixed width only; leave it unpacked"
            ))),
        });
        let fixed = fixed.collect::<Result<Vec<_>>>()?;
        let len = fixed.first().map_or(0, |field| field.len);
        let row_bits: usize = fixed.iter().map(|field| field.bits).sum();
        let mut rows = vec![0; len.saturating_mul(row_bits / 8)];
        let mut at = 0;
        for field in &fixed {
            let width = field.bits / 8;
            scatter_field(field.contiguous().as_slice(), width, &mut rows, row_bits / 8, at);
            at += width;
        }
        Ok(RowChunks {
            field_bits: fixed.iter().map(|field| field.bits as u64).collect(),
            rows: FlatChunks {
                bits: row_bits,
                bytes: Buffer::from_vec(rows),
            },
        })
    }
}

impl ChunkEncoder for RowChunks {
    fn encoding(&self) -> pb::CompressiveEncoding {
        message::packed_struct(self.field_bits.clone())
    }

    fn chunk_len(&self, at: usize, left: usize) -> usize {
        self.rows.chunk_len(at, left)
    }

    fn encode(&self, values: Range<usize>, out: &mut ChunkBuffers) -> Result<()> {
        self.rows.encode(values, out)
    }
}
