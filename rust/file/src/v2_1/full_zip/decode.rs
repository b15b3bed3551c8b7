//! Decodes full-zip entries to levels and values.

use bytes::Bytes;

use super::page::{FullZipPage, ZippedValues};
use crate::error::Result;
use crate::v2_1::builder::Values;
use crate::v2_1::decode::Compression;
use crate::v2_1::flat;
use crate::v2_1::levels::decode::Levels;
use crate::v2_1::page::{to_len, PageId};

/// The most that values are expected to expand, relative to their bytes in the file, when memory is reserved.
const MOST_TIMES: usize = 32;

/// Memory that is reserved for values that say that they expand more than that.
const MOST_BEYOND: usize = 32 << 20;

/// Values of fixed width that lie by themselves.
#[derive(Debug)]
pub(crate) struct FixedValues {
    compression: Compression,
    /// Bytes of one value, its validity included.
    pub(crate) width: usize,
}

impl FixedValues {
    /// `bits` is what the page says of the width.
    pub(crate) fn new(at: &PageId, compression: Compression, bits: u64) -> Result<FixedValues> {
        let width = match &compression {
            Compression::Flat(bits) if bits % 8 == 0 => Some(to_len(at, bits / 8)?),
            Compression::Constant(_) => Some(0),
            Compression::FixedSizeList(lists) => lists.bytes_per_value(),
            _ => None,
        };
        match width {
            Some(width) if width as u64 * 8 == bits || width == 0 => Ok(FixedValues { compression, width }),
            _ => Err(at.unsupported(format!(
                "values of {bits} bits in {} that lie by themselves cannot be read; a newer esker may read it",
                compression.describe()
            ))),
        }
    }

    /// Appends `n` values that lie one after the other.
    pub(crate) fn append(&self, at: &PageId, stored: &[u8], n: usize, out: &mut Values) -> Result<()> {
        match &self.compression {
            Compression::FixedSizeList(lists) => lists.append_values(at, stored, n, out),
            Compression::Constant(value) => {
                let mut bytes = Vec::new();
                crate::v2_1::constant::decode::block(value, n, &mut bytes)?;
                flat::decode::append(at, value.len() as u64 * 8, &bytes, 0..n, out)
            }
            _ => flat::decode::append(at, self.width as u64 * 8, stored, 0..n, out),
        }
    }

    /// Appends `n` values that lie one after the other; no copy where they are the first of their column.
    pub(crate) fn append_shared(&self, at: &PageId, stored: Bytes, n: usize, out: &mut Values) -> Result<()> {
        let is_plain = match &self.compression {
            Compression::FixedSizeList(lists) => lists.is_plain(),
            Compression::Flat(_) => true,
            _ => false,
        };
        let fits = n.checked_mul(self.width) == Some(stored.len());
        if is_plain && fits && share(stored.clone(), n, out) {
            return Ok(());
        }
        self.append(at, &stored, n, out)
    }
}

/// Makes `stored` the memory of `n` values, where they are bytes of that width.
fn share(stored: Bytes, n: usize, out: &mut Values) -> bool {
    match out {
        Values::Fixed(values) if n.checked_mul(values.width) == Some(stored.len()) => {
            values.append_shared(stored);
            true
        }
        Values::FixedList(lists) => {
            let Some(items) = n.checked_mul(lists.size) else {
                return false;
            };
            let shared = share(stored, items, &mut lists.items);
            if shared {
                lists.len = lists.len.saturating_add(n);
                lists.item_validity.append_valid(items);
            }
            shared
        }
        _ => false,
    }
}

impl FullZipPage {
    /// Appends the entries of `rows` rows that lie one after the other.
    pub(crate) fn decode(
        &self,
        at: &PageId,
        stored: Bytes,
        rows: u64,
        levels: &mut Levels,
        out: &mut Values,
    ) -> Result<()> {
        match &self.values {
            ZippedValues::Fixed(values) if self.word_size == 0 => {
                let n = to_len(at, rows)?;
                if values.width == 0 {
                    out.append_empty(n)?;
                } else {
                    values.append_shared(at, stored, n, out)?;
                }
                levels.len = levels.len.saturating_add(n);
                Ok(())
            }
            ZippedValues::Fixed(values) => {
                let mut rest: &[u8] = &stored;
                while !rest.is_empty() {
                    let (_, def) = self.take_levels(at, &mut rest, levels)?;
                    if def <= self.max_visible {
                        let value = take(at, &mut rest, values.width)?;
                        values.append(at, value, 1, out)?;
                    }
                }
                Ok(())
            }
            ZippedValues::Variable(width, compression) => {
                let (n, bytes) = self.room(*width, compression, &stored);
                out.check_room(bytes)?;
                // No more than some times what is stored, and a little.
                let most = stored.len().saturating_mul(MOST_TIMES).saturating_add(MOST_BEYOND);
                out.make_room(n, bytes.min(most));
                let mut rest: &[u8] = &stored;
                while !rest.is_empty() {
                    let (_, def) = self.take_levels(at, &mut rest, levels)?;
                    if def == 0 {
                        let length = take(at, &mut rest, *width)?;
                        let value = take(at, &mut rest, to_len(at, little(length))?)?;
                        compression.decode_value(at, value, out)?;
                    } else if def <= self.max_visible {
                        out.append_empty(1)?;
                    }
                }
                out.check()
            }
        }
    }

    /// How many values of any length there are and how many bytes they become, as far as they say: memory that grows bit by bit is copied
    /// each time.
    fn room(&self, width: usize, compression: &Compression, stored: &[u8]) -> (usize, usize) {
        let mut rest = stored;
        let (mut n, mut bytes) = (0_usize, 0_usize);
        while let Some((word, after)) = rest.split_at_checked(self.word_size).filter(|_| !rest.is_empty()) {
            let def = little(word) & u64::from(!(u32::MAX << self.bits_def));
            rest = after;
            if def > 0 {
                n += usize::from(def <= u64::from(self.max_visible));
                continue;
            }
            let Some((length, after)) = rest.split_at_checked(width) else {
                break;
            };
            let Some((value, after)) = usize::try_from(little(length))
                .ok()
                .and_then(|length| after.split_at_checked(length))
            else {
                break;
            };
            n += 1;
            bytes = bytes.saturating_add(compression.value_bytes(value));
            rest = after;
        }
        (n, bytes)
    }

    fn take_levels(&self, at: &PageId, rest: &mut &[u8], levels: &mut Levels) -> Result<(u16, u16)> {
        if self.word_size == 0 {
            levels.len = levels.len.saturating_add(1);
            return Ok((0, 0));
        }
        let word = take(at, rest, self.word_size)?;
        let word = word.iter().rev().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
        let low = |word: u32| u16::try_from(word & 0xffff).unwrap_or(0);
        let rep = low(word >> self.bits_def);
        let def = low(word & !(u32::MAX << self.bits_def));
        levels.push(rep, def);
        Ok((rep, def))
    }
}

/// A little-endian number.
fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// The next `n` bytes.
fn take<'a>(at: &PageId, rest: &mut &'a [u8], n: usize) -> Result<&'a [u8]> {
    let (head, tail) = rest
        .split_at_checked(n)
        .ok_or_else(|| at.corrupt(format!("expected {n} more bytes of a row, found {}", rest.len())))?;
    *rest = tail;
    Ok(head)
}
