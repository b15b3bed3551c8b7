//! Pages of one value.

use arrow_buffer::BooleanBuffer;
use bytes::Bytes;

use crate::v2_1::levels::serialize::Levels;
use crate::v2_1::values::LeafValues;

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
            same(bytes.chunks_exact((fixed.bits / 8).max(1)), &mut *valid)
        }
        LeafValues::Variable(variable) => same(variable.iter(), &mut *valid),
        _ => None,
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
