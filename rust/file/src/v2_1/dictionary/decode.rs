//! A page's dictionary, and values looked up in it.

use std::sync::OnceLock;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use esker_codec::gather::{check, gather_words, Number};
use esker_proto::lance::encodings21 as pb;

use super::look_up::LookUp;
use crate::error::Result;
use crate::v2_1::builder::{FixedBuilder, KeyedBuilder, LeafBuilder, Values};
use crate::v2_1::decode::{Compression, Wanted};
use crate::v2_1::page::{to_len, PageId};

/// What is moved into the processor's cache at once, in bytes.
const LINE: usize = 64;

/// Fewer bytes of items are brought near by the values themselves.
const COLD_BYTES: usize = 64 * 1024;

/// The values of a page's dictionary.
#[derive(Debug)]
pub(crate) struct Dictionary {
    items: Values,
    item_type: DataType,
    look_up: LookUp,
    /// The values as an array: those of columns of a dictionary type, and others once a filter asks for them.
    array: OnceLock<ArrayRef>,
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
            item_type: item_type.clone(),
            array: OnceLock::new(),
            len: count,
        };
        if is_keyed {
            let items = std::mem::replace(&mut dictionary.items, Values::Nothing(0));
            dictionary.array = items.finish(&at.column_name(), item_type, None)?.into();
        }
        Ok(dictionary)
    }

    /// Bytes that the dictionary takes, roughly, with the array that a filter may make of it.
    pub(crate) fn memory(&self) -> usize {
        let array = self
            .array
            .get()
            .map_or(self.bytes, |array| array.get_array_memory_size());
        self.bytes
            .saturating_add(self.look_up.memory(self.len))
            .saturating_add(array)
    }

    /// Brings the items into the processor's cache one after the other, where so many values are looked up that each part of them is needed:
    /// where other columns were read since, each of them would be waited for. Texts have a table of their own.
    pub(crate) fn warm(&self, values: usize) {
        let Values::Fixed(items) = &self.items else { return };
        let bytes = items.as_slice();
        if bytes.len() < COLD_BYTES || bytes.len() / LINE > values {
            return;
        }
        let sum = bytes
            .iter()
            .step_by(LINE)
            .fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        std::hint::black_box(sum);
    }

    /// How many values it has.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The values as an array.
    fn array(&self, at: &PageId) -> Result<&ArrayRef> {
        if let Some(array) = self.array.get() {
            return Ok(array);
        }
        let mut items = Values::new(&self.item_type)?;
        items.append_range(&self.items, 0..self.len)?;
        let array = items.finish(&at.column_name(), &self.item_type, None)?;
        Ok(self.array.get_or_init(|| array))
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
        if let LeafBuilder::Keyed(out) = &mut *out {
            let items = self.array(at)?;
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
            1 => self.look_up(at, keys.as_chunks::<1>().0, out),
            2 => self.look_up(at, keys.as_chunks::<2>().0, out),
            4 => self.look_up(at, keys.as_chunks::<4>().0, out),
            _ => self.look_up(at, keys.as_chunks::<8>().0, out),
        }
    }

    fn look_up<N: Number>(&self, at: &PageId, keys: &[N], out: &mut LeafBuilder) -> Result<()> {
        if let LeafBuilder::Keyed(out) = out {
            // Keys of nulls mean nothing, and a page of nulls alone may have a dictionary without items.
            if self.len > 0 || keys.iter().any(|key| key.place() > 0) {
                check(keys, self.len).map_err(|e| at.kernel(e))?;
            }
            return self.append_keys(at, keys, out);
        }
        let LeafBuilder::Plain(out) = out else { return Ok(()) };
        if self.len == 0 && keys.iter().all(|key| key.place() == 0) {
            return out.append_empty(keys.len());
        }
        match (out, &self.items) {
            (Values::Variable(out), Values::Variable(items)) => {
                self.look_up.append(at, keys, items, out)?;
                out.check()
            }
            (Values::LargeVariable(out), Values::LargeVariable(items)) => self.look_up.append(at, keys, items, out),
            (Values::Fixed(out), Values::Fixed(items)) if out.width == items.width => {
                append_fixed(at, keys, items, out)
            }
            (out, items) => {
                check(keys, items.len()).map_err(|e| at.kernel(e))?;
                keys.iter()
                    .map(|key| key.place())
                    .try_for_each(|key| out.append_range(items, key..key.saturating_add(1)))
            }
        }
    }

    /// Keys of another width than those of the column's type.
    fn append_keys<N: Number>(&self, at: &PageId, keys: &[N], out: &mut KeyedBuilder) -> Result<()> {
        let width = out.key_width();
        let largest = keys.iter().fold(0, |largest: usize, key| largest.max(key.place()));
        if width < size_of::<usize>() && largest >> (width * 8) != 0 {
            return Err(at.corrupt(format!("expected keys of {width} bytes, found {largest}")));
        }
        let to = out.keys().bytes();
        match width {
            1 => append_words::<N, 1>(keys, to),
            2 => append_words::<N, 2>(keys, to),
            4 => append_words::<N, 4>(keys, to),
            _ => append_words::<N, 8>(keys, to),
        }
        out.end_part(self.array(at)?);
        Ok(())
    }
}

/// Appends the low bytes of each key.
fn append_words<N: Number, const WIDTH: usize>(keys: &[N], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start.saturating_add(keys.len().saturating_mul(WIDTH)), 0);
    let words = out.get_mut(start..).unwrap_or_default().as_chunks_mut().0;
    for (word, key) in words.iter_mut().zip(keys) {
        let bytes = (key.place() as u64).to_le_bytes();
        *word = bytes.first_chunk().copied().unwrap_or([0; WIDTH]);
    }
}

/// More than any writer puts into one page.
const MOST_ITEMS: u64 = 1 << 28;

fn append_fixed<N: Number>(at: &PageId, keys: &[N], items: &FixedBuilder, out: &mut FixedBuilder) -> Result<()> {
    let (width, items, out) = (out.width, items.as_slice(), out.bytes());
    let gathered = match width {
        1 => gather_words(keys, items.as_chunks::<1>().0, out),
        2 => gather_words(keys, items.as_chunks::<2>().0, out),
        4 => gather_words(keys, items.as_chunks::<4>().0, out),
        8 => gather_words(keys, items.as_chunks::<8>().0, out),
        16 => gather_words(keys, items.as_chunks::<16>().0, out),
        _ => check(keys, items.len().checked_div(width).unwrap_or(0)).map(|()| {
            for key in keys {
                let start = key.place().saturating_mul(width);
                let value = items.get(start..start.saturating_add(width));
                out.extend_from_slice(value.unwrap_or_default());
            }
        }),
    };
    gathered.map_err(|e| at.kernel(e))
}
