//! Writes blob columns: levels are stored in the descriptions, inside a page whose own levels are all valid.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use esker_proto::lance::encodings21 as pb;
use esker_proto::lance::encodings21::page_layout::Layout;

use super::super::levels::encode::layer_numbers;
use super::super::levels::serialize::{shred, Levels, Shredded};
use super::super::message::page_layout;
use super::super::mini_block::encode::{self as mini_block, EncodedPage};
use super::super::packed_struct::encode::RowChunks;
use super::super::path::Leaf;
use super::super::values::{FixedWidth, LeafValues};
use crate::error::{FileError, Result};
use crate::version::FileVersion;

/// Encodes the descriptions of one page of blobs of the first kind.
pub(crate) fn encode(arrays: &[ArrayRef], leaf: &Leaf, version: FileVersion, alone: bool) -> Result<EncodedPage> {
    let Shredded { levels, leaves } = shred(arrays, &leaf.path, alone)?;
    if levels.rep.is_some() {
        return Err(FileError::unsupported(format!(
            "column '{}': lists of blobs cannot be written in version {version}; use 2.0, or lance.blob.v2 in 2.2",
            leaf.name
        )));
    }
    let (positions, sizes) = numbers(&leaves, &levels)?;
    let len = positions.len();
    let field = |numbers: Vec<u64>| {
        LeafValues::Fixed(FixedWidth {
            bits: 64,
            len,
            pieces: vec![Buffer::from_vec(numbers)],
        })
    };
    let rows = RowChunks::new(&leaf.name, &[field(positions), field(sizes)])?;
    let bare = shred(&[Arc::new(arrow_array::NullArray::new(0))], &[], true)?.levels;
    let bare = Levels {
        num_entries: len,
        num_visible: len,
        num_valid: len,
        ..bare
    };
    let page = mini_block::encode(&bare, &rows, len, None, version == FileVersion::V2_2)?;
    let page = page.ok_or_else(|| FileError::invalid("expected descriptions that fit in chunks"))?;
    Ok(EncodedPage {
        buffers: page.buffers,
        layout: page_layout(Layout::BlobLayout(Box::new(pb::BlobLayout {
            inner_layout: Some(Box::new(page.layout)),
            layers: layer_numbers(&levels.layers),
        }))),
    })
}

/// Position and size of each value, with the definition level of what is not there in place of its position.
fn numbers(leaves: &[ArrayRef], levels: &Levels) -> Result<(Vec<u64>, Vec<u64>)> {
    let mut positions = Vec::with_capacity(levels.num_entries);
    let mut sizes = Vec::with_capacity(levels.num_entries);
    for leaf in leaves {
        let fields = leaf.as_struct_opt();
        let column = |index: usize| fields?.columns().get(index)?.as_primitive_opt::<UInt64Type>();
        let (Some(starts), Some(lengths)) = (column(0), column(1)) else {
            return Err(FileError::invalid(format!(
                "expected descriptions of blobs, found {}",
                leaf.data_type()
            )));
        };
        positions.extend_from_slice(starts.values());
        sizes.extend_from_slice(lengths.values());
    }
    let missing = levels.def.iter().flatten();
    for ((position, size), level) in positions.iter_mut().zip(&mut sizes).zip(missing) {
        if *level > 0 {
            *position = u64::from(*level) << 16;
            *size = 0;
        }
    }
    Ok((positions, sizes))
}
