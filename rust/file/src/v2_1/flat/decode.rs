//! Flat values: a copy of their bytes.

use std::ops::Range;

use crate::error::Result;
use crate::v2_1::builder::Values;
use crate::v2_1::page::PageId;

/// Appends the values of `range` out of values of `bits` bits that lie one after the other.
pub(crate) fn append(at: &PageId, bits: u64, stored: &[u8], range: Range<usize>, out: &mut Values) -> Result<()> {
    match out {
        // Where values lie by themselves, a bit has a byte.
        Values::Bits(to) if bits == 8 => {
            let bytes = stored
                .get(range.clone())
                .ok_or_else(|| short(at, bits, range.end, stored))?;
            bytes.iter().for_each(|byte| to.append(byte & 1 == 1));
            Ok(())
        }
        Values::Bits(to) => {
            if bits != 1 || range.end > stored.len().saturating_mul(8) {
                return Err(short(at, bits, range.end, stored));
            }
            to.append_packed_range(range, stored);
            Ok(())
        }
        Values::Fixed(to) => {
            let width = to.width;
            let bytes = range.start.checked_mul(width).zip(range.end.checked_mul(width));
            let values = bytes.and_then(|(from, to)| stored.get(from..to));
            match values {
                Some(values) if width as u64 * 8 == bits => {
                    to.bytes().extend_from_slice(values);
                    Ok(())
                }
                Some(_) => out.fixed(at, bits).map(|_| ()),
                None => Err(short(at, bits, range.end, stored)),
            }
        }
        Values::FixedList(lists) => {
            let size = lists.size as u64;
            let items = range
                .start
                .checked_mul(lists.size)
                .zip(range.end.checked_mul(lists.size));
            let (Some(bits), Some((from, to))) = (bits.checked_div(size), items) else {
                return Err(short(at, bits, range.end, stored));
            };
            append(at, bits, stored, from..to, &mut lists.items)?;
            lists.len = lists.len.saturating_add(range.len());
            lists.item_validity.append_valid(to.saturating_sub(from));
            Ok(())
        }
        Values::Nothing(len) => {
            *len = len.saturating_add(range.len());
            Ok(())
        }
        other => Err(at.corrupt(format!("expected {}, found values of {bits} bits", other.describe()))),
    }
}

fn short(at: &PageId, bits: u64, n: usize, stored: &[u8]) -> crate::error::FileError {
    at.corrupt(format!(
        "expected {n} values of {bits} bits, found {} bytes",
        stored.len()
    ))
}

/// Appends the `n` values of a block.
pub(crate) fn block(at: &PageId, bits: u64, stored: &[u8], n: usize, out: &mut Vec<u8>) -> Result<()> {
    let size = usize::try_from(bits).ok().and_then(|bits| bits.checked_mul(n));
    let values = size.and_then(|size| stored.get(..size.div_ceil(8)));
    out.extend_from_slice(values.ok_or_else(|| short(at, bits, n, stored))?);
    Ok(())
}
