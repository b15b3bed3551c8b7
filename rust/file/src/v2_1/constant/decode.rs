//! One value, as often as it is wanted.

use crate::container::u32_at;
use crate::error::Result;
use crate::v2_1::builder::{too_many, Values};
use crate::v2_1::flat;
use crate::v2_1::page::{to_len, PageId};
use crate::v2_1::variable::decode::Stored;

/// Appends a value `n` times.
pub(crate) fn block(value: &[u8], n: usize, out: &mut Vec<u8>) -> Result<()> {
    let size = n.checked_mul(value.len()).ok_or_else(|| too_many(n))?;
    out.try_reserve(size).map_err(|_| too_many(n))?;
    if value.iter().all(|byte| *byte == 0) {
        out.resize(out.len().saturating_add(size), 0);
    } else {
        for _ in 0..n {
            out.extend_from_slice(value);
        }
    }
    Ok(())
}

/// Appends a value that a page's description holds `n` times.
pub(crate) fn inline(at: &PageId, value: &[u8], n: usize, out: &mut Values) -> Result<()> {
    match out {
        Values::Bits(bits) => {
            let set = value
                .first()
                .ok_or_else(|| at.corrupt("expected a constant, found no bytes"))?
                & 1
                == 1;
            bits.append_n(n, set);
            Ok(())
        }
        _ => {
            let bits = value.len() as u64 * 8;
            let mut bytes = Vec::new();
            match out {
                Values::Fixed(to) if to.width == value.len() => block(value, n, to.bytes()),
                _ => {
                    block(value, n, &mut bytes)?;
                    flat::decode::append(at, bits, &bytes, 0..n, out)
                }
            }
        }
    }
}

/// Appends a value that has a buffer of the page `n` times.
pub(crate) fn stored(at: &PageId, stored: &[u8], n: usize, out: &mut Values) -> Result<()> {
    let short = || at.corrupt("expected the buffers of a constant, found fewer bytes");
    let count = to_len(at, u64::from(u32_at(stored, 0).ok_or_else(short)?))?;
    if count == 0 || count > 8 {
        return Err(at.corrupt(format!("expected a constant of a few buffers, found {count}")));
    }
    let mut rest = stored.get((1 + count) * 4..).ok_or_else(short)?;
    let mut buffers = Vec::with_capacity(count);
    for index in 0..count {
        let size = to_len(at, u64::from(u32_at(stored, (1 + index) * 4).ok_or_else(short)?))?;
        let (buffer, after) = rest.split_at_checked(size).ok_or_else(short)?;
        buffers.push(buffer);
        rest = after;
    }
    let text = |bits: u64| -> Result<&[u8]> {
        let [offsets, bytes] = buffers.as_slice() else {
            return Err(at.corrupt(format!(
                "expected offsets and bytes of a constant, found {count} buffers"
            )));
        };
        Stored::new(at, bits, offsets, bytes, 1)?.span(at, 0..1)
    };
    match out {
        Values::Variable(to) => {
            let value = text(32)?;
            to.try_reserve(n, value.len())?;
            (0..n).for_each(|_| to.push(value));
            to.check()
        }
        Values::LargeVariable(to) => {
            let value = text(64)?;
            to.try_reserve(n, value.len())?;
            (0..n).for_each(|_| to.push(value));
            Ok(())
        }
        _ => match buffers.as_slice() {
            [value] => inline(at, value, n, out),
            other => Err(at.corrupt(format!("expected a constant of one buffer, found {}", other.len()))),
        },
    }
}
