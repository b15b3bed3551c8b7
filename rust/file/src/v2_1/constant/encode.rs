//! Writing pages of one value or of none.

use bytes::Bytes;
use esker_proto::lance::encodings21 as pb;
use esker_proto::lance::encodings21::page_layout::Layout;
use esker_proto::lance::encodings21::RepDefLayer;

use super::super::levels::encode::{layer_numbers, plain, LevelEncoder};
use super::super::levels::serialize::Levels;
use super::super::message::page_layout;
use super::super::mini_block::encode::EncodedPage;
use crate::error::Result;

/// The widest value that stands in the page's description.
const MAX_INLINE: usize = 32;

/// A page in which no value is there. `compressed`: levels may be.
pub(crate) fn encode_all_null(levels: &Levels, compressed: bool) -> Result<EncodedPage> {
    // The items of a column that has no other layer are null: nothing is left to say.
    if levels.layers.len() == 1 && levels.max_rep == 0 {
        let layout = pb::ConstantLayout {
            layers: vec![RepDefLayer::RepdefNullableItem.into()],
            ..Default::default()
        };
        return Ok(page(Vec::new(), layout));
    }
    let mut layout = pb::ConstantLayout {
        layers: layer_numbers(&levels.layers),
        ..Default::default()
    };
    let mut buffers = Vec::new();
    add_levels(levels, compressed, &mut layout, &mut buffers)?;
    Ok(page(buffers, layout))
}

/// A page of version 2.2 in which all values that are there are the same. `offset_bits`: those of a value of any length. The levels are
/// plain: readers expect them so beside a value.
pub(crate) fn encode_constant(levels: &Levels, value: Bytes, offset_bits: Option<usize>) -> Result<EncodedPage> {
    let mut layout = pb::ConstantLayout {
        layers: layer_numbers(&levels.layers),
        ..Default::default()
    };
    let mut buffers = Vec::new();
    if let Some(offset_bits) = offset_bits {
        // An Arrow array of one value: how many buffers, the bytes of each, offsets, the value.
        let width = offset_bits / 8;
        let size = value.len() as u64;
        let mut scalar = Vec::with_capacity(12 + 2 * width + value.len());
        for number in [2, 2 * width as u64, size] {
            scalar.extend_from_slice(number.to_le_bytes().get(..4).unwrap_or_default());
        }
        for offset in [0, size] {
            scalar.extend_from_slice(offset.to_le_bytes().get(..width).unwrap_or_default());
        }
        scalar.extend_from_slice(&value);
        buffers.push(vec![Bytes::from(scalar)]);
    } else if value.len() > MAX_INLINE {
        let mut scalar = Vec::with_capacity(8 + value.len());
        for number in [1, value.len() as u64] {
            scalar.extend_from_slice(number.to_le_bytes().get(..4).unwrap_or_default());
        }
        scalar.extend_from_slice(&value);
        buffers.push(vec![Bytes::from(scalar)]);
    } else {
        layout.inline_value = Some(value);
    }
    if levels.rep.is_some() || levels.def.is_some() {
        add_levels(levels, false, &mut layout, &mut buffers)?;
    }
    Ok(page(buffers, layout))
}

fn add_levels(
    levels: &Levels,
    compressed: bool,
    layout: &mut pb::ConstantLayout,
    buffers: &mut Vec<Vec<Bytes>>,
) -> Result<()> {
    let add = |levels: Option<&[u16]>, max: u16, buffers: &mut Vec<Vec<Bytes>>| -> Result<_> {
        let mut bytes = plain(levels);
        let mut described = None;
        if let Some(levels) = levels.filter(|levels| compressed && !levels.is_empty()) {
            let encoder = LevelEncoder::new(levels, max, levels.len(), true);
            let mut smaller = Vec::new();
            encoder.encode(0..levels.len(), &mut smaller)?;
            if smaller.len() < bytes.len() {
                bytes = smaller;
                described = Some((encoder.encoding(), levels.len() as u64));
            }
        }
        buffers.push(if bytes.is_empty() {
            Vec::new()
        } else {
            vec![Bytes::from(bytes)]
        });
        Ok(described)
    };
    if let Some((encoding, count)) = add(levels.rep.as_deref(), levels.max_rep, buffers)? {
        layout.rep_compression = Some(encoding);
        layout.num_rep_values = count;
    }
    if let Some((encoding, count)) = add(levels.def.as_deref(), levels.max_def, buffers)? {
        layout.def_compression = Some(encoding);
        layout.num_def_values = count;
    }
    Ok(())
}

fn page(buffers: Vec<Vec<Bytes>>, layout: pb::ConstantLayout) -> EncodedPage {
    EncodedPage {
        buffers,
        layout: page_layout(Layout::ConstantLayout(layout)),
    }
}
