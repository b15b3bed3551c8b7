//! A page's dictionary, and values looked up in it.

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use esker_proto::lance::encodings21 as pb;

use super::look_up::LookUp;
use crate::error::Result;
use crate::v2_1::builder::{FixedBuilder, KeyedBuilder, LeafBuilder, Values};
use crate::v2_1::decode::{Compression, Wanted};
use crate::v2_1::page::{to_len, PageId};

/// The values of a page's dictionary.
#[derive(Debug)]
pub(crate) struct Dictionary {
    items: Values,
    look_up: LookUp,
    /// The values as an array, for columns of a dictionary type.
    array: Option<ArrayRef>,
    len: usize,
    bytes: usize,
}

impl Dictionary {
    /// Reads the dictionary of a column of `data_type`.
    pub(crate) fn new(
        at: &PageId,
        layout: &pb::MiniBlockLayout,
        data_type: &DataType,
        stored: &[u8],
    ) -> Result<Dictionary> {
        let compression = Compression::new(at, layout.dictionary.as_ref())?;
        // No writer makes an item that no value uses.
        let count = layout.num_dictionary_items;
        if count > MOST_ITEMS {
            return Err(at.corrupt(format!(
                "expected at most {MOST_ITEMS} items in a page's dictionary, found {count}"
            )));
        }
        let count = to_len(at, count)?;
        let (item_type, is_keyed) = match data_type {
            DataType::Dictionary(_, item) => (item.as_ref(), true),
            other => (other, false),
        };
        let mut items = Values::new(item_type)?;
        compression.decode_dictionary(at, stored, count, &mut items)?;
        if items.len() != count {
            return Err(at.corrupt(format!("expected {count} items in a dictionary, found {}", items.len())));
        }
        let mut dictionary = Dictionary {
            look_up: match &items {
                Values::Variable(items) => LookUp::new(items),
                Values::LargeVariable(items) => LookUp::new(items),
                _ => LookUp::default(),
            },
            bytes: items.memory(),
            items,
            array: None,
            len: count,
        };
        if is_keyed {
            let items = std::mem::replace(&mut dictionary.items, Values::Nothing(0));
            dictionary.array = Some(items.finish(&at.column_name(), item_type, None)?);
        }
        Ok(dictionary)
    }

    /// Bytes that the dictionary takes, roughly.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.saturating_add(self.look_up.memory(self.len))
            + self.array.as_ref().map_or(0, |array| array.get_array_memory_size())
    }

    /// Appends the `wanted` of the `n` values of a chunk, whose indices are compressed as `indices`.
    pub(crate) fn append(
        &self,
        at: &PageId,
        indices: &Compression,
        buffers: &[&[u8]],
        n: usize,
        wanted: Wanted<'_>,
        out: &mut LeafBuilder,
    ) -> Result<()> {
        let bits = indices.bits().filter(|bits| matches!(bits, 8 | 16 | 32 | 64));
        let bits = bits.ok_or_else(|| {
            at.corrupt(format!(
                "expected dictionary indices of 8, 16, 32 or 64 bits, found {}",
                indices.describe()
            ))
        })?;
        let width = to_len(at, bits / 8)?;
        if let (LeafBuilder::Keyed(out), Some(items)) = (&mut *out, &self.array) {
            if out.key_width() == width {
                let mut keys = Values::Fixed(std::mem::replace(out.keys(), FixedBuilder::new(width)));
                let decoded = indices.decode_chunk(at, buffers, n, wanted, &mut keys);
                if let Values::Fixed(keys) = keys {
                    *out.keys() = keys;
                }
                decoded?;
                out.end_part(items);
                return Ok(());
            }
        }
        let mut keys = Values::Fixed(FixedBuilder::new(width));
        indices.decode_chunk(at, buffers, n, wanted, &mut keys)?;
        let Values::Fixed(keys) = &keys else { return Ok(()) };
        let keys = keys.as_slice();
        match width {
            1 => self.look_up(at, keys.iter().map(|k| u64::from(*k)), out),
            2 => self.look_up(
                at,
                keys.as_chunks::<2>()
                    .0
                    .iter()
                    .map(|k| u64::from(u16::from_le_bytes(*k))),
                out,
            ),
            4 => self.look_up(
                at,
                keys.as_chunks::<4>()
                    .0
                    .iter()
                    .map(|k| u64::from(u32::from_le_bytes(*k))),
                out,
            ),
            _ => self.look_up(at, keys.as_chunks::<8>().0.iter().map(|k| u64::from_le_bytes(*k)), out),
        }
    }

    fn look_up(
        &self,
        at: &PageId,
        keys: impl ExactSizeIterator<Item = u64> + Clone,
        out: &mut LeafBuilder,
    ) -> Result<()> {
        let largest = keys.clone().fold(0, u64::max);
        // Keys of nulls mean nothing, and a page of nulls alone may have a dictionary without items.
        if keys.len() > 0 && largest >= self.len as u64 && !(largest == 0 && self.len == 0) {
            return Err(at.corrupt(format!(
                "expected dictionary indices below {}, found {largest}",
                self.len
            )));
        }
        match (out, &self.items) {
            (LeafBuilder::Keyed(out), _) => self.append_keys(at, keys, out),
            (LeafBuilder::Plain(Values::Variable(out)), Values::Variable(items)) => {
                self.look_up.append(keys, items, out);
                out.check()
            }
            (LeafBuilder::Plain(Values::LargeVariable(out)), Values::LargeVariable(items)) => {
                self.look_up.append(keys, items, out);
                Ok(())
            }
            (LeafBuilder::Plain(Values::Fixed(out)), Values::Fixed(items)) if out.width == items.width => {
                append_fixed(keys, items, out);
                Ok(())
            }
            (LeafBuilder::Plain(out), items) => {
                for key in keys {
                    let key = to_len(at, key)?;
                    if key < items.len() {
                        out.append_range(items, key..key + 1)?;
                    } else {
                        out.append_empty(1)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Keys of another width than those of the column's type.
    fn append_keys(&self, at: &PageId, keys: impl Iterator<Item = u64>, out: &mut KeyedBuilder) -> Result<()> {
        let width = out.key_width();
        for key in keys {
            let bytes = key.to_le_bytes();
            let (low, high) = bytes.split_at_checked(width).unwrap_or_default();
            if high.iter().any(|byte| *byte != 0) {
                return Err(at.corrupt(format!("expected keys of {width} bytes, found {key}")));
            }
            out.keys().bytes().extend_from_slice(low);
        }
        if let Some(items) = &self.array {
            out.end_part(items);
        }
        Ok(())
    }
}

/// More than any writer puts into one page.
const MOST_ITEMS: u64 = 1 << 28;

fn append_fixed(keys: impl ExactSizeIterator<Item = u64>, items: &FixedBuilder, out: &mut FixedBuilder) {
    match out.width {
        2 => append_words::<2>(keys, items, out),
        4 => append_words::<4>(keys, items, out),
        8 => append_words::<8>(keys, items, out),
        16 => append_words::<16>(keys, items, out),
        width => {
            let (items, out) = (items.as_slice(), out.bytes());
            for key in keys {
                let start = usize::try_from(key).ok().and_then(|key| key.checked_mul(width));
                let value = start.and_then(|start| items.get(start..start.checked_add(width)?));
                match value {
                    Some(value) => out.extend_from_slice(value),
                    None => out.resize(out.len().saturating_add(width), 0),
                }
            }
        }
    }
}

fn append_words<const N: usize>(
    keys: impl ExactSizeIterator<Item = u64>,
    items: &FixedBuilder,
    out: &mut FixedBuilder,
) {
    let items = items.as_slice().as_chunks::<N>().0;
    let bytes = out.bytes();
    let start = bytes.len();
    bytes.resize(start.saturating_add(keys.len().saturating_mul(N)), 0);
    let room = bytes.get_mut(start..).unwrap_or_default();
    for (to, key) in room.as_chunks_mut::<N>().0.iter_mut().zip(keys) {
        if let Some(item) = usize::try_from(key).ok().and_then(|key| items.get(key)) {
            *to = *item;
        }
    }
}
