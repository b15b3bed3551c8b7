//! One value, as often as it is wanted.

use esker_codec::ends::Offset;

use super::runs::Run;
use crate::container::u32_at;
use crate::error::Result;
use crate::v2_1::builder::{too_many, Values, VariableBuilder};
use crate::v2_1::flat;
use crate::v2_1::page::{to_len, PageId};
use crate::v2_1::variable::decode::Stored;

/// So many bytes are copied at a time from those that were written last: they are in the nearest cache.
const NEAR: usize = 16 * 1024;

/// Appends a value `n` times.
pub(crate) fn block(value: &[u8], n: usize, out: &mut Vec<u8>) -> Result<()> {
    let size = n.checked_mul(value.len()).ok_or_else(|| too_many(n))?;
    out.try_reserve(size).map_err(|_| too_many(n))?;
    if value.iter().all(|byte| *byte == 0) {
        out.resize(out.len().saturating_add(size), 0);
    } else if n > 0 {
        let start = out.len();
        let end = start.saturating_add(size);
        out.extend_from_slice(value);
        // Whole values, as all that was written is.
        let most = NEAR.next_multiple_of(value.len()).min(size);
        while out.len() < end {
            let written = out.len() - start;
            out.extend_from_within(start..start + written.min(most).min(end - out.len()));
        }
    }
    Ok(())
}

/// Appends a text `n` times.
fn repeat<O: Offset>(value: &[u8], n: usize, to: &mut VariableBuilder<O>) -> Result<()> {
    to.check_room(n.saturating_mul(value.len()))?;
    to.try_reserve(n, value.len())?;
    let start = to.as_bytes().len();
    let (bytes, ends) = to.parts(n);
    block(value, n, bytes)?;
    ends.extend((1..=n).map(|nth| O::from_u64((start as u64).wrapping_add(nth as u64 * value.len() as u64))));
    to.look_for_ascii(start);
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

/// Appends a text for each value among nulls, which are empty.
fn repeat_among<O: Offset>(value: &[u8], runs: &[Run], to: &mut VariableBuilder<O>) -> Result<()> {
    let all: usize = runs.iter().map(|run| run.values).sum();
    let nulls: usize = runs.iter().map(|run| run.nulls).sum();
    to.check_room(all.saturating_mul(value.len()))?;
    to.try_reserve(all, value.len())?;
    to.try_reserve(all.saturating_add(nulls), 0)?;
    runs.iter().try_for_each(|run| {
        repeat(value, run.values, to)?;
        to.append_empty(run.nulls);
        Ok(())
    })
}

/// Appends a value that has a buffer of the page `n` times, or, if `runs` are known, once for each value among them: nulls of texts are empty.
pub(crate) fn stored(at: &PageId, stored: &[u8], n: usize, runs: Option<&[Run]>, out: &mut Values) -> Result<()> {
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
            match runs {
                Some(runs) => repeat_among(value, runs, to)?,
                None => repeat(value, n, to)?,
            }
            to.check()
        }
        Values::LargeVariable(to) => {
            let value = text(64)?;
            match runs {
                Some(runs) => repeat_among(value, runs, to),
                None => repeat(value, n, to),
            }
        }
        _ => match buffers.as_slice() {
            [value] => inline(at, value, n, out),
            other => Err(at.corrupt(format!("expected a constant of one buffer, found {}", other.len()))),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn test_a_block_is_its_value_over_and_over(
            before in prop::collection::vec(any::<u8>(), 0..9),
            value in prop_oneof![prop::collection::vec(any::<u8>(), 0..40), Just(vec![0; 8]), prop::collection::vec(any::<u8>(), 20_000)],
            n in prop_oneof![0_usize..5, 0_usize..3_000],
        ) {
            let n = n.min(200_000 / value.len().max(1));
            let mut out = before.clone();
            block(&value, n, &mut out).unwrap();
            prop_assert_eq!(out, [before, value.repeat(n)].concat());
        }

        #[test]
        fn test_a_text_that_is_repeated_equals_one_that_is_pushed_as_often(
            first in "\\PC{0,5}", value in "\\PC{0,9}", n in 0_usize..300,
        ) {
            let mut one = VariableBuilder::<i32>::new(true);
            one.push(first.as_bytes());
            one.look_for_ascii(0);
            let mut other = VariableBuilder::<i32>::new(true);
            other.push(first.as_bytes());
            other.look_for_ascii(0);
            (0..n).for_each(|_| one.push(value.as_bytes()));
            repeat(value.as_bytes(), n, &mut other).unwrap();
            let ((offsets, bytes, _), (wanted, all, _)) = (other.finish().unwrap(), one.finish().unwrap());
            prop_assert_eq!(offsets, wanted);
            prop_assert_eq!(bytes, all);
        }
    }
}
