//! Pages of one value.

use arrow_buffer::BooleanBuffer;
use bytes::Bytes;

use crate::v2_1::levels::serialize::Levels;
use crate::v2_1::values::{LeafValues, VariableWidth};

/// The value that all have, if they have.
pub(super) fn constant_of(levels: &Levels, values: &LeafValues) -> Option<Bytes> {
    let of_values = levels.of_values();
    let mut valid: Box<dyn Iterator<Item = bool>> = match &of_values {
        Some(levels) => Box::new(levels.iter().map(|level| *level == 0)),
        None => Box::new(std::iter::repeat(true)),
    };
    match values {
        LeafValues::Fixed(fixed) if fixed.bits == 1 => {
            let bits = BooleanBuffer::new(fixed.contiguous(), 0, fixed.len);
            let mut there = bits.iter().zip(valid).filter(|(_, valid)| *valid).map(|(bit, _)| bit);
            let first = there.next()?;
            there
                .all(|bit| bit == first)
                .then(|| Bytes::copy_from_slice(&[u8::from(first)]))
        }
        LeafValues::Fixed(fixed) if fixed.bits.is_multiple_of(8) => {
            let bytes = fixed.contiguous();
            let width = (fixed.bits / 8).max(1);
            match of_values {
                None => repeated(bytes.as_slice(), width),
                Some(_) => same(bytes.chunks_exact(width), &mut *valid),
            }
        }
        LeafValues::Variable(variable) => match of_values {
            None => repeated_text(variable),
            Some(_) => same(variable.iter(), &mut *valid),
        },
        _ => None,
    }
}

/// The first `width` bytes, if the others repeat them: if the bytes are equal to themselves `width` bytes on. One comparison, not one a value.
fn repeated(bytes: &[u8], width: usize) -> Option<Bytes> {
    let first = bytes.get(..width)?;
    let before = bytes.get(..bytes.len().checked_sub(width)?)?;
    (bytes.get(width..)? == before).then(|| Bytes::copy_from_slice(first))
}

fn repeated_text(values: &VariableWidth) -> Option<Bytes> {
    let mut lengths = values.offsets.windows(2).map(|ends| match ends {
        [start, end] => end.saturating_sub(*start),
        _ => 0,
    });
    let width = lengths.next()?;
    if !lengths.all(|length| length == width) {
        return None;
    }
    let bytes = values.bytes.get(*values.offsets.first()?..*values.offsets.last()?)?;
    match width {
        0 => Some(Bytes::new()),
        _ => repeated(bytes, width),
    }
}

fn same<'a>(values: impl Iterator<Item = &'a [u8]>, valid: &mut dyn Iterator<Item = bool>) -> Option<Bytes> {
    let mut first = None;
    for (value, valid) in values.zip(valid) {
        if valid && *first.get_or_insert(value) != value {
            return None;
        }
    }
    first.map(Bytes::copy_from_slice)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(all: &[Vec<u8>]) -> VariableWidth {
        let mut offsets = vec![2];
        all.iter()
            .for_each(|text| offsets.push(offsets.last().unwrap() + text.len()));
        VariableWidth {
            large: false,
            offsets,
            bytes: [b"--".to_vec(), all.concat()].concat().into(),
        }
    }

    proptest! {
        #[test]
        fn test_values_that_repeat_are_found_at_once_as_one_by_one(
            one in prop::collection::vec(0..2_u8, 0..3),
            times in 0_usize..6,
            others in prop::collection::vec(prop::collection::vec(0..2_u8, 0..3), 0..3),
        ) {
            let all = [vec![one; times], others].concat();
            let by_one = same(all.iter().map(Vec::as_slice), &mut std::iter::repeat(true));
            prop_assert_eq!(repeated_text(&texts(&all)), by_one.clone());
            for width in 1..4 {
                if !all.is_empty() && all.iter().all(|value| value.len() == width) {
                    prop_assert_eq!(repeated(&all.concat(), width), by_one.clone());
                }
            }
        }
    }
}
