//! From a leaf's arrays to a page: the one place that decides its layout and its compression.
//!
//! | the values | the page |
//! |---|---|
//! | none is there | constant: no value, only levels |
//! | of 256 bytes and more | full zip |
//! | all others | mini-block |

use arrow_array::ArrayRef;

use super::constant::encode::encode_all_null;
use super::fixed_size_list::encode as fixed_size_list;
use super::flat::encode::FlatChunks;
use super::full_zip::encode as full_zip;
use super::levels::serialize::{shred, Levels, Shredded};
use super::message;
use super::mini_block::encode::{self as mini_block, EncodedPage};
use super::path::Leaf;
use super::values::{gather, FixedWidth, LeafValues, VariableWidth};
use super::variable::encode::VariableChunks;
use crate::error::{FileError, Result};
use crate::version::FileVersion;

/// Values of so many bytes lie by themselves rather than in chunks.
const WIDE_VALUE: usize = 256;

/// Encodes the values of one page of a leaf; each array holds the way to the leaf and nothing else.
pub(crate) fn encode(arrays: &[ArrayRef], leaf: &Leaf, version: FileVersion, alone: bool) -> Result<EncodedPage> {
    let Shredded { levels, leaves } = shred(arrays, &leaf.path, alone)?;
    if levels.num_valid == 0 {
        return Ok(encode_all_null(&levels));
    }
    let values = gather(&leaf.name, &leaves, &leaf.data_type)?;
    encode_values(&levels, values, leaf, version)
}

fn encode_values(levels: &Levels, values: LeafValues, leaf: &Leaf, version: FileVersion) -> Result<EncodedPage> {
    let large = version == FileVersion::V2_2;
    let num_values = values.len();
    match values {
        LeafValues::Fixed(fixed) => encode_fixed(levels, fixed, large),
        LeafValues::Variable(variable) => encode_variable(levels, &variable, large),
        LeafValues::FixedSizeList(lists) => {
            let width = fixed_size_list::zipped_width(&lists);
            let whole_bytes = lists
                .items_per_list()
                .saturating_mul(lists.items.bits)
                .is_multiple_of(8);
            if width < WIDE_VALUE || !whole_bytes {
                let chunks = fixed_size_list::FixedSizeListChunks::new(&lists);
                if let Some(page) = mini_block::encode(levels, &chunks, num_values, None, large)? {
                    return Ok(page);
                }
            }
            if !whole_bytes {
                return Err(FileError::unsupported(format!(
                    "column '{}': lists of {} bits are neither small nor whole bytes; make their size a multiple of 8",
                    leaf.name,
                    lists.items_per_list()
                )));
            }
            let encoding = fixed_size_list::encoding(&lists);
            let pieces = if lists.layers.iter().all(|layer| layer.validity.is_none()) {
                lists.items.pieces
            } else {
                vec![fixed_size_list::zip_validity(&lists)?]
            };
            full_zip::encode_fixed(levels, pieces, width, encoding)
        }
        LeafValues::Nothing(_) => Ok(encode_all_null(levels)),
        LeafValues::Packed(_) | LeafValues::Dictionary(_, _) => Err(FileError::unsupported(format!(
            "column '{}': type {} cannot be written in version {version} yet",
            leaf.name, leaf.data_type
        ))),
    }
}

fn encode_fixed(levels: &Levels, fixed: FixedWidth, large: bool) -> Result<EncodedPage> {
    let num_values = fixed.len;
    if fixed.bits < WIDE_VALUE * 8 {
        let chunks = FlatChunks {
            bits: fixed.bits,
            bytes: fixed.contiguous(),
        };
        if let Some(page) = mini_block::encode(levels, &chunks, num_values, None, large)? {
            return Ok(page);
        }
    }
    let encoding = message::flat(fixed.bits as u64);
    full_zip::encode_fixed(levels, fixed.pieces, fixed.bits / 8, encoding)
}

fn encode_variable(levels: &Levels, values: &VariableWidth, large: bool) -> Result<EncodedPage> {
    let average = values.bytes.len() / values.len().max(1);
    if average < WIDE_VALUE {
        let chunks = VariableChunks { values };
        if let Some(page) = mini_block::encode(levels, &chunks, values.len(), None, large)? {
            return Ok(page);
        }
    }
    full_zip::encode_variable(levels, values, message::variable(values.offset_bits() as u64))
}
