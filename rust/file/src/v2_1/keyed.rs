//! Columns as keys and values: what is asked of each row can be asked of each value once.

use std::sync::Arc;

use arrow_schema::DataType;

use super::leaf::LoadedPage;
use super::state::PageKind;
use super::tree::Leaf;

/// Values are decoded as keys where there are so many rows to a value, at least.
const ROWS_PER_ITEM: usize = 4;

/// Whether a leaf is a column of values, no blobs nor of one of Arrow's dictionary types already, that pages may have dictionaries of.
pub(super) fn may_be_keyed(leaf: &Leaf) -> bool {
    let is_plain = !leaf.data_type.is_nested() && !matches!(leaf.data_type, DataType::Dictionary(_, _));
    leaf.kinds.len() == 1 && leaf.blob.is_none() && is_plain
}

/// The leaf as one of Arrow's dictionary type, where all of its pages have dictionaries that are small beside the `rows` to read.
pub(super) fn keyed(leaf: &Arc<Leaf>, pages: &[LoadedPage], rows: u64) -> Option<Arc<Leaf>> {
    if !may_be_keyed(leaf) {
        return None;
    }
    let (mut items, mut bits) = (0_usize, 8);
    for page in pages {
        let PageKind::MiniBlock(state) = &page.state.kind else {
            return None;
        };
        let dictionary = state.dictionary.as_ref().filter(|_| page.state.blobs.is_none())?;
        if dictionary.len() == 0 {
            return None;
        }
        items = items.saturating_add(dictionary.len());
        bits = bits.max(state.values.bits()?);
    }
    if items.saturating_mul(ROWS_PER_ITEM) as u64 > rows {
        return None;
    }
    // The dictionaries of several pages become one, whose items the keys are to count.
    let key = match (bits, items) {
        (8, 0..=0x100) => DataType::UInt8,
        (8 | 16, 0..=0x1_0000) => DataType::UInt16,
        (8 | 16 | 32, _) if u32::try_from(items).is_ok() => DataType::UInt32,
        _ => return None,
    };
    Some(Arc::new(Leaf {
        data_type: DataType::Dictionary(Box::new(key), Box::new(leaf.data_type.clone())),
        ..leaf.as_ref().clone()
    }))
}
