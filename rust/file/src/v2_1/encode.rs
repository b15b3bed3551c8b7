//! From a leaf's arrays to a page, in the way that [`super::choose`] finds best.

use arrow_array::ArrayRef;
use arrow_buffer::Buffer;
use arrow_schema::{DataType, Fields};
use esker_proto::lance::encodings21 as pb;

use super::blob;
use super::choose::{
    asked_scheme, candidates, choice, encode_items, fixed_chunks, index_candidates, index_plan, single_candidates,
    values_bytes, zips_lists, Candidate, Coding, PlannedDictionary, Target, Way,
};
use super::constant::encode::{encode_all_null, encode_constant};
use super::fixed_size_list::encode as fixed_size_list;
use super::fsst::encode::CodedChunks;
use super::full_zip::encode as full_zip;
use super::general::encode::{compress_values, Around, GeneralChunks};
use super::levels::serialize::{shred, Levels, Shredded};
use super::message;
use super::mini_block::encode::{self as mini_block, ChunkEncoder, EncodedDictionary, EncodedPage};
use super::packed_struct::encode::RowChunks;
use super::values::{gather, gather_all, FixedSizeLists, LeafValues, VariableWidth};
use super::variable::encode::VariableChunks;
use super::variable_packed_struct::encode as variable_packed_struct;
use crate::error::{FileError, Result};
use crate::schema::BlobKind;

/// One way to write a page, and whether it was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// What it is called.
    pub name: String,
    /// Bytes of the values, counted or estimated; levels come on top of each.
    pub bytes: u64,
    /// About how long it takes to decode them on one core.
    pub nanoseconds: u64,
    /// It was taken.
    pub chosen: bool,
    /// Why it was taken or not.
    pub reason: String,
}

/// A page, or why it cannot be one.
pub(crate) enum Encoded {
    Page(Box<EncodedPage>),
    /// So many lists are null or empty one after the other that no chunk can say so. These are the values; each of several pages may hold some.
    TooManyLists(Vec<ArrayRef>),
}

impl Encoded {
    fn page(page: EncodedPage) -> Encoded {
        Encoded::Page(Box::new(page))
    }
}

/// The most entries without a value in a row of a page that has others, fewer than a chunk can count with its values.
const MOST_MISSING: usize = 60_000;

/// Encodes the values of one page of a leaf; each array holds the way to the leaf and nothing else. `alone`: the column has no other page.
///
/// The arrays are given up: the page is as large as they are, and so are the copies that it is made from.
pub(crate) fn encode(arrays: Vec<ArrayRef>, target: Target, alone: bool) -> Result<Encoded> {
    let Target { leaf, version, .. } = target;
    if leaf.field.blob_kind() == Some(BlobKind::V1) {
        return blob::encode::encode(&arrays, leaf, version, alone).map(Encoded::page);
    }
    let Shredded { levels, leaves } = shred(&arrays, &leaf.path, alone)?;
    let rows: usize = arrays.iter().map(|array| array.len()).sum();
    if levels.num_valid > 0 && rows > 1 && levels.has_gap_beyond(MOST_MISSING) {
        return Ok(Encoded::TooManyLists(arrays));
    }
    drop(arrays);
    encode_leaves(&levels, leaves, target).map(Encoded::page)
}

fn encode_leaves(levels: &Levels, leaves: Vec<ArrayRef>, target: Target) -> Result<EncodedPage> {
    let Target { leaf, version, .. } = target;
    if leaf.data_type == DataType::Struct(Fields::empty()) && levels.num_valid < levels.num_entries {
        return Err(FileError::UnsupportedColumn {
            column: leaf.name.clone(),
            data_type: leaf.data_type.to_string(),
            version,
            what: "a null where a struct has no fields; give it a field".to_string(),
        });
    }
    if levels.num_valid == 0 {
        return encode_all_null(levels, target.large());
    }
    let values = gather_all(&leaf.name, leaves, &leaf.data_type)?;
    encode_values(levels, filled(values, levels), target)
}

/// What the page could have been written as, and what was chosen.
pub(crate) fn explain(arrays: &[ArrayRef], target: Target) -> Result<Vec<Alternative>> {
    let leaf = target.leaf;
    let Shredded { levels, leaves } = shred(arrays, &leaf.path, true)?;
    let only = |name: &str, bytes: u64, reason: &str| {
        vec![Alternative {
            name: name.into(),
            bytes,
            nanoseconds: 0,
            chosen: true,
            reason: reason.into(),
        }]
    };
    if levels.num_valid == 0 {
        return Ok(only("constant", 0, "no value is there"));
    }
    let values = filled(gather(&leaf.name, &leaves, &leaf.data_type)?, &levels);
    let candidates = match &values {
        LeafValues::Nothing(_) => return Ok(only("constant", 0, "the type has no bytes")),
        LeafValues::FixedSizeList(lists) => {
            let width = fixed_size_list::zipped_width(lists);
            let bytes = width.saturating_mul(lists.len) as u64;
            return Ok(match zips_lists(lists, target) {
                true => only("full zip", bytes, "lists of 256 bytes and more"),
                false => only("flat", bytes, "lists of less than 256 bytes"),
            });
        }
        LeafValues::Packed(fields) => {
            let bytes = fields.iter().map(values_bytes).sum::<usize>() as u64;
            return Ok(only("packed struct", bytes, "asked for by the field's metadata"));
        }
        LeafValues::Dictionary(keys, _) => index_candidates(keys, target)?,
        LeafValues::Fixed(_) | LeafValues::Variable(_) => candidates(&levels, &values, target)?,
    };
    let chosen = choice(&candidates, &values, target);
    let bytes = |candidate: &Candidate| candidate.price.bytes;
    let least = candidates.iter().map(bytes).min().unwrap_or(0);
    let taken = chosen.and_then(|index| candidates.get(index)).map_or(0, bytes);
    Ok(candidates
        .into_iter()
        .enumerate()
        .map(|(index, candidate)| Alternative {
            bytes: candidate.price.bytes as u64,
            nanoseconds: candidate.price.picos / 1000,
            chosen: chosen == Some(index),
            reason: match (candidate.barred, candidate.asked, chosen == Some(index)) {
                (Some(why), _, _) | (None, Some(why), _) => why,
                (None, None, true) if candidate.price.bytes == least => "the smallest".into(),
                (None, None, true) => "the smallest that may be taken".into(),
                (None, None, false) if candidate.price.bytes < taken => "slower to read".into(),
                (None, None, false) => "larger".into(),
            },
            name: candidate.name,
        })
        .collect())
}

/// The values in one piece each, with nulls that cost nothing.
fn filled(values: LeafValues, levels: &Levels) -> LeafValues {
    match (values, levels.of_values()) {
        (LeafValues::Fixed(fixed), Some(levels)) => LeafValues::Fixed(fixed.filled(&levels).joined()),
        (LeafValues::Fixed(fixed), None) => LeafValues::Fixed(fixed.joined()),
        (LeafValues::Dictionary(keys, items), Some(levels)) => LeafValues::Dictionary(keys.filled(&levels), items),
        (other, _) => other,
    }
}

fn encode_values(levels: &Levels, values: LeafValues, target: Target) -> Result<EncodedPage> {
    if values.len() != levels.num_visible {
        return Err(FileError::invalid(format!(
            "column '{}': expected {} values, found {}; the arrays are malformed",
            target.leaf.name,
            levels.num_visible,
            values.len()
        )));
    }
    match &values {
        LeafValues::Nothing(_) => encode_all_null(levels, target.large()),
        LeafValues::FixedSizeList(lists) => encode_lists(levels, lists, target),
        LeafValues::Packed(fields) if !fields.iter().all(|field| matches!(field, LeafValues::Fixed(_))) => {
            let coded = |values: &VariableWidth| encode_singly(levels, values, target);
            let rows = variable_packed_struct::rows(&target.leaf.name, fields, &coded)?;
            full_zip::encode_variable(levels, &rows.values, rows.encoding)
        }
        LeafValues::Packed(fields) => {
            let rows = RowChunks::new(&target.leaf.name, fields)?;
            let around = asked_scheme(&rows, values.len(), target)?;
            let page = in_chunks(levels, &rows, values.len(), around, None, target)?;
            page.ok_or_else(|| too_large(target, "packed rows"))
        }
        LeafValues::Dictionary(keys, items) => {
            let items = encode_items(items, keys.len, target)?;
            let plan = index_plan(keys, 0, target)?;
            let dictionary = PlannedDictionary {
                indices: keys.clone(),
                coding: plan.coding,
                around: plan.around,
                items,
            };
            encode_dictionary(levels, dictionary, target)?.ok_or_else(|| too_large(target, "values"))
        }
        LeafValues::Fixed(_) | LeafValues::Variable(_) => {
            let mut candidates = candidates(levels, &values, target)?;
            let way = match choice(&candidates, &values, target) {
                Some(index) => candidates.swap_remove(index).way,
                None => Way::Zip,
            };
            drop(candidates);
            match encode_way(levels, &values, way, target)? {
                Some(page) => Ok(page),
                // Levels or values that no chunk can hold.
                None => encode_way(levels, &values, Way::Zip, target)?.ok_or_else(|| too_large(target, "values")),
            }
        }
    }
}

/// Values of any length in the best way that leaves each of them by itself; nothing where that is as they are.
fn encode_singly(
    levels: &Levels,
    values: &VariableWidth,
    target: Target,
) -> Result<Option<(VariableWidth, pb::CompressiveEncoding)>> {
    let mut candidates = single_candidates(levels, values, target)?;
    let chosen = choice(&candidates, &LeafValues::Variable(values.clone()), target);
    Ok(match chosen.map(|index| candidates.swap_remove(index).way) {
        Some(Way::ZipSymbols(trained)) => {
            let coded = trained.encode(values);
            let encoding = coded.encoding();
            Some((coded.values, encoding))
        }
        Some(Way::ZipCompressed(scheme)) => {
            let encoding = scheme.encoding(message::variable(values.offset_bits() as u64));
            Some((compress_values(scheme, values)?, encoding))
        }
        _ => None,
    })
}

fn too_large(target: Target, what: &str) -> FileError {
    FileError::unsupported(format!(
        "column '{}' of type {}: file version {} cannot hold {what} of it that large, or 65,536 null and empty lists one after the other within a \
         row; write these rows in parts, each a fragment",
        target.leaf.name, target.leaf.data_type, target.version
    ))
}

/// A page of indices and items; nothing if no chunk can hold its levels.
fn encode_dictionary(levels: &Levels, planned: PlannedDictionary, target: Target) -> Result<Option<EncodedPage>> {
    let chunks = fixed_chunks(&planned.indices, &planned.coding);
    let (len, around, items) = (planned.indices.len, planned.around, planned.items);
    in_chunks(levels, &*chunks, len, around, Some(items), target)
}

/// A mini-block page, with general compression around each chunk where there is a scheme.
fn in_chunks(
    levels: &Levels,
    chunks: &dyn ChunkEncoder,
    len: usize,
    around: Option<Around>,
    items: Option<EncodedDictionary>,
    target: Target,
) -> Result<Option<EncodedPage>> {
    match around {
        Some(around) => {
            let compressed = GeneralChunks { around, inner: chunks };
            mini_block::encode(levels, &compressed, len, items, target.large())
        }
        None => mini_block::encode(levels, chunks, len, items, target.large()),
    }
}

/// Writes a page in one way; nothing if it cannot be.
fn encode_way(levels: &Levels, values: &LeafValues, way: Way, target: Target) -> Result<Option<EncodedPage>> {
    match (way, values) {
        (Way::Constant(value), values) => {
            let offset_bits = match values {
                LeafValues::Variable(variable) => Some(variable.offset_bits()),
                _ => None,
            };
            encode_constant(levels, value, offset_bits).map(Some)
        }
        (Way::Dictionary(planned), _) => encode_dictionary(levels, *planned, target),
        (Way::Chunks(coding, around), LeafValues::Fixed(fixed)) => {
            in_chunks(levels, &*fixed_chunks(fixed, &coding), fixed.len, around, None, target)
        }
        (Way::Chunks(Coding::Symbols(trained), around), LeafValues::Variable(values)) => {
            let coded = trained.encode(values);
            in_chunks(
                levels,
                &CodedChunks { coded: &coded },
                values.len(),
                around,
                None,
                target,
            )
        }
        (Way::Chunks(_, around), LeafValues::Variable(values)) => {
            in_chunks(levels, &VariableChunks { values }, values.len(), around, None, target)
        }
        (_, LeafValues::Fixed(fixed)) => {
            if !fixed.bits.is_multiple_of(8) {
                return Ok(None);
            }
            let encoding = message::flat(fixed.bits as u64);
            full_zip::encode_fixed(levels, fixed.pieces.clone(), fixed.bits / 8, encoding).map(Some)
        }
        (Way::ZipSymbols(trained), LeafValues::Variable(values)) => {
            let coded = trained.encode(values);
            full_zip::encode_variable(levels, &coded.values, coded.encoding()).map(Some)
        }
        (Way::ZipCompressed(scheme), LeafValues::Variable(values)) => {
            let encoding = scheme.encoding(message::variable(values.offset_bits() as u64));
            full_zip::encode_variable(levels, &compress_values(scheme, values)?, encoding).map(Some)
        }
        (_, LeafValues::Variable(values)) => {
            let encoding = message::variable(values.offset_bits() as u64);
            full_zip::encode_variable(levels, values, encoding).map(Some)
        }
        _ => Ok(None),
    }
}

fn encode_lists(levels: &Levels, lists: &FixedSizeLists, target: Target) -> Result<EncodedPage> {
    if !zips_lists(lists, target) {
        let chunks = fixed_size_list::FixedSizeListChunks::new(lists);
        if let Some(page) = mini_block::encode(levels, &chunks, lists.len, None, target.large())? {
            return Ok(page);
        }
    }
    if lists.items.bits == 1 {
        return Err(too_large(target, "lists of bits"));
    }
    let encoding = fixed_size_list::encoding(lists);
    let bare = lists.layers.iter().all(|layer| layer.validity.is_none());
    let pieces: Vec<Buffer> = if bare {
        lists.items.pieces.clone()
    } else {
        vec![fixed_size_list::zip_validity(lists)?]
    };
    full_zip::encode_fixed(levels, pieces, fixed_size_list::zipped_width(lists), encoding)
}
