//! Strings and binary as Arrow's arrays, and the offsets of lists, checked once: what Arrow requires of them is looked at here, with vector
//! instructions (where most text is ASCII), and not a second time by Arrow. Text that was found to be UTF-8 while it was decoded, or in the
//! dictionary that it comes from, is not looked at again.
#![allow(unsafe_code)]

use arrow_array::{make_array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

/// An array of `data_type`, the strings or binary of offsets of type `O`; what is wrong with them otherwise. The first `known` of the bytes
/// are known to be values each of which is UTF-8.
pub(super) fn array<O: ArrowNativeType + PartialOrd>(
    data_type: &DataType,
    offsets: Vec<O>,
    bytes: Vec<u8>,
    known: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, String> {
    let len = offsets.len().saturating_sub(1);
    let is_text = match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => true,
        DataType::Binary | DataType::LargeBinary => false,
        other => return Err(format!("expected strings or binary, found {other}")),
    };
    let width = match data_type {
        DataType::Utf8 | DataType::Binary => 4,
        _ => 8,
    };
    if width != size_of::<O>() || nulls.as_ref().is_some_and(|nulls| nulls.len() != len) {
        return Err(format!(
            "expected offsets of {width} bytes and a flag for each value, found others"
        ));
    }
    check_offsets(&offsets, bytes.len())?;
    if is_text {
        check_text(&offsets, &bytes, known)?;
    }
    let data = ArrayData::builder(data_type.clone())
        .len(len)
        .nulls(nulls)
        .add_buffer(Buffer::from_vec(offsets))
        .add_buffer(Buffer::from_vec(bytes));
    // SAFETY: Arrow asks of these types: one offset more than values, of the type's width (checked above), none of them negative, falling
    // or beyond the bytes (`check_offsets`), aligned as they come from a vector of them; text that is UTF-8 between any two offsets
    // (`check_text`, which is told of the bytes that `VariableBuilder` knows to be UTF-8); a bitmap of as many flags as there are values (above).
    Ok(make_array(unsafe { data.build_unchecked() }))
}

/// The offsets of lists; what is wrong with them otherwise.
pub(crate) fn list_offsets<O: OffsetSizeTrait>(offsets: Vec<O>) -> Result<OffsetBuffer<O>, String> {
    check_offsets(&offsets, usize::MAX)?;
    // SAFETY: Arrow asks for one offset at least, and that none of them is negative or falls (`check_offsets`).
    Ok(unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets)) })
}

fn check_offsets<O: ArrowNativeType + PartialOrd>(offsets: &[O], bytes: usize) -> Result<(), String> {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return Err("expected an offset for the first value, found none".into());
    };
    // All pairs, without an exit, so that many are compared at a time.
    let pairs = offsets.iter().zip(offsets.iter().skip(1));
    let rises = pairs.fold(true, |rises, (offset, next)| rises & (offset <= next));
    let ends = last.to_usize();
    if rises && *first >= O::default() && ends.is_some_and(|end| end <= bytes) {
        return Ok(());
    }
    Err(format!(
        "expected offsets that rise from 0 to at most {bytes}, found others up to {last:?}"
    ))
}

/// Checks that the text between any two offsets is UTF-8. The offsets are those of `check_offsets`.
fn check_text<O: ArrowNativeType>(offsets: &[O], bytes: &[u8], known: usize) -> Result<(), String> {
    let first = offsets.first().map_or(0, |at| at.as_usize());
    let end = offsets.last().map_or(0, |at| at.as_usize());
    // A character ends where known values do.
    let first = first.max(known.min(end));
    let text = bytes.get(first..end).unwrap_or_default();
    if text.is_ascii() {
        return Ok(());
    }
    if let Err(error) = simdutf8::compat::from_utf8(text) {
        let at = first + error.valid_up_to();
        return Err(format!("expected UTF-8, found other bytes at {at} of {}", bytes.len()));
    }
    // A byte that continues a character is no place to cut.
    let is_within = |at: &O| {
        let at = at.as_usize();
        at < end && bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80)
    };
    match offsets.iter().find(|at| is_within(at)) {
        None => Ok(()),
        Some(at) => Err(format!("expected UTF-8, found a character that is cut at {at:?}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn test_arrow_finds_the_same_fault_or_none(
            pieces in prop::collection::vec(prop_oneof![
                "[a-z]{0,40}".prop_map(String::into_bytes),
                "\\PC{0,6}".prop_map(String::into_bytes),
                prop::collection::vec(any::<u8>(), 0..4),
            ], 0..12),
            moved in prop::option::of((any::<prop::sample::Index>(), -3_i32..4)),
            is_text in any::<bool>(),
            known in any::<prop::sample::Index>(),
        ) {
            let bytes = pieces.concat();
            let mut offsets = vec![0_i32];
            for piece in &pieces {
                offsets.push(offsets.last().unwrap() + piece.len() as i32);
            }
            if let Some((place, by)) = moved {
                let place = place.index(offsets.len());
                offsets[place] += by;
            }
            let data_type = if is_text { DataType::Utf8 } else { DataType::Binary };
            let strict = ArrayData::builder(data_type.clone())
                .len(offsets.len() - 1)
                .add_buffer(Buffer::from_vec(offsets.clone()))
                .add_buffer(Buffer::from_vec(bytes.clone()))
                .build();
            // As far as each value is text; of ASCII any part may be known.
            let is_text = |pair: &&[i32]| {
                let value = usize::try_from(pair[0]).ok().zip(usize::try_from(pair[1]).ok());
                let value = value.and_then(|(start, end)| bytes.get(start..end));
                value.is_some_and(|value| std::str::from_utf8(value).is_ok())
            };
            let ascii = bytes.iter().take_while(|byte| byte.is_ascii()).count();
            let mut ends = vec![known.index(ascii + 1)];
            if offsets[0] == 0 {
                ends.extend(offsets.windows(2).take_while(is_text).map(|pair| pair[1] as usize));
            }
            let known = ends[known.index(ends.len())];
            let found = array(&data_type, offsets, bytes, known, None);
            match strict {
                Ok(data) => prop_assert_eq!(&found.unwrap().to_data(), &data),
                Err(error) => prop_assert!(found.is_err(), "{error}"),
            }
        }
    }

    #[test]
    fn test_other_types_and_flags_are_refused() {
        assert!(array(&DataType::Int32, vec![0_i32], Vec::new(), 0, None).is_err());
        assert!(array(&DataType::LargeUtf8, vec![0_i32], Vec::new(), 0, None).is_err());
        assert!(array(&DataType::Utf8, Vec::<i32>::new(), Vec::new(), 0, None).is_err());
        let nulls = Some(NullBuffer::new_null(2));
        assert!(array(&DataType::Utf8, vec![0_i32, 1], vec![b'a'], 0, nulls).is_err());
        let nulls = Some(NullBuffer::new_null(1));
        assert_eq!(
            array(&DataType::LargeBinary, vec![0_i64, 1], vec![0xff], 0, nulls)
                .unwrap()
                .null_count(),
            1
        );
    }
}
