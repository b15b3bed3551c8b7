//! The values of a page's leaf, as input of the compressions: of fixed or variable width, without levels.

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{make_array, Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, BooleanBufferBuilder, Buffer, MutableBuffer};
use arrow_schema::DataType;
use arrow_select::dictionary::garbage_collect_any_dictionary;
use esker_codec::bitpack::BLOCK;

use crate::dictionaries;
use crate::error::{FileError, Result};
use crate::nulls::hides_bytes;
use crate::v2_0::flat::decode::byte_width;
use crate::v2_0::flat::encode::fixed_width_bytes;

/// Values without the nulls and lists around them; a null has a place and no meaning.
#[derive(Debug, Clone)]
pub(crate) enum LeafValues {
    /// Nothing to store: nulls.
    Nothing(usize),
    /// Values of one width.
    Fixed(FixedWidth),
    /// Strings and binary.
    Variable(VariableWidth),
    /// Lists of one length, in one another.
    FixedSizeList(FixedSizeLists),
    /// Structs row by row.
    Packed(Vec<LeafValues>),
    /// Indices into the values of a dictionary.
    Dictionary(FixedWidth, Box<LeafValues>),
}

/// Values of one width.
#[derive(Debug, Clone)]
pub(crate) struct FixedWidth {
    /// 1, or a multiple of 8.
    pub(crate) bits: usize,
    pub(crate) len: usize,
    /// Their memory, piece by piece; a single piece where a value has 1 bit.
    pub(crate) pieces: Vec<Buffer>,
}

/// Values of any length.
#[derive(Debug, Clone)]
pub(crate) struct VariableWidth {
    /// Offsets of 64 bits rather than 32.
    pub(crate) large: bool,
    /// Where each value starts in `bytes`, and where the last one ends.
    pub(crate) offsets: Vec<usize>,
    pub(crate) bytes: Buffer,
}

/// Lists of one length, in one another, around values of one width.
#[derive(Debug, Clone)]
pub(crate) struct FixedSizeLists {
    /// Outer to inner.
    pub(crate) layers: Vec<FixedSizeLayer>,
    /// The innermost values.
    pub(crate) items: FixedWidth,
    pub(crate) len: usize,
}

/// One layer of fixed-size lists.
#[derive(Debug, Clone)]
pub(crate) struct FixedSizeLayer {
    /// Items of each list.
    pub(crate) size: usize,
    /// Which items are there, if some are not.
    pub(crate) validity: Option<BooleanBuffer>,
}

impl LeafValues {
    /// Values, null or not.
    pub(crate) fn len(&self) -> usize {
        match self {
            LeafValues::Nothing(len) => *len,
            LeafValues::Fixed(values) | LeafValues::Dictionary(values, _) => values.len,
            LeafValues::Variable(values) => values.len(),
            LeafValues::FixedSizeList(values) => values.len,
            LeafValues::Packed(fields) => fields.first().map_or(0, LeafValues::len),
        }
    }
}

impl FixedWidth {
    /// The values in one piece of memory; no copy where they are already.
    pub(crate) fn contiguous(&self) -> Buffer {
        if let [piece] = self.pieces.as_slice() {
            let align = if matches!(self.bits, 16 | 32 | 64) {
                self.bits / 8
            } else {
                1
            };
            if piece.as_ptr().align_offset(align) == 0 {
                return piece.clone();
            }
        }
        let mut bytes = MutableBuffer::with_capacity(self.pieces.iter().map(|piece| piece.len()).sum());
        self.pieces
            .iter()
            .for_each(|piece| bytes.extend_from_slice(piece.as_slice()));
        bytes.into()
    }

    /// The same values in one piece of memory. Each piece is given up once it is copied.
    pub(crate) fn joined(self) -> FixedWidth {
        let FixedWidth { bits, len, pieces } = self;
        if pieces.len() < 2 {
            let found = FixedWidth { bits, len, pieces };
            let pieces = vec![found.contiguous()];
            return FixedWidth { bits, len, pieces };
        }
        let mut bytes = MutableBuffer::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
        for piece in pieces {
            bytes.extend_from_slice(piece.as_slice());
        }
        let pieces = vec![bytes.into()];
        FixedWidth { bits, len, pieces }
    }

    /// The same values, with one in the place of each null that costs the least: the one before it in the same block of 1,024, or else
    /// the next one, or zero. `levels` has 0 for those that are there.
    pub(crate) fn filled(self, levels: &[u16]) -> FixedWidth {
        let fill = match self.bits {
            8 => fill::<1>,
            16 => fill::<2>,
            32 => fill::<4>,
            64 => fill::<8>,
            128 => fill::<16>,
            256 => fill::<32>,
            _ => return self,
        };
        let mut bytes = MutableBuffer::with_capacity(self.pieces.iter().map(|piece| piece.len()).sum());
        for piece in self.pieces {
            bytes.extend_from_slice(piece.as_slice());
        }
        fill(bytes.as_slice_mut(), levels);
        FixedWidth {
            bits: self.bits,
            len: self.len,
            pieces: vec![bytes.into()],
        }
    }
}

fn fill<const WIDTH: usize>(bytes: &mut [u8], levels: &[u16]) {
    let (words, _) = bytes.as_chunks_mut::<WIDTH>();
    for (block, levels) in words.chunks_mut(BLOCK).zip(levels.chunks(BLOCK)) {
        // The first that is there stands for those before it.
        let first = levels.iter().position(|level| *level == 0);
        let mut last = first.and_then(|first| block.get(first)).copied().unwrap_or([0; WIDTH]);
        for (word, level) in block.iter_mut().zip(levels) {
            if *level == 0 {
                last = *word;
            }
            *word = last;
        }
    }
}

impl VariableWidth {
    pub(crate) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// One value; empty where there is none.
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let span = self.offsets.get(index).zip(self.offsets.get(index + 1));
        span.and_then(|(start, end)| self.bytes.get(*start..*end))
            .unwrap_or_default()
    }

    /// About `bytes` bytes of the values: runs of them from all over, or all.
    pub(crate) fn some(&self, bytes: usize) -> VariableWidth {
        const RUNS: usize = 12;
        let len = self.len();
        let size = self.bytes.len() + len * (self.offset_bits() / 8);
        if size <= bytes || len <= RUNS {
            return self.clone();
        }
        let run = usize::try_from(len as u128 * bytes as u128 / size as u128).unwrap_or(len) / RUNS + 1;
        let (mut offsets, mut out) = (vec![0], MutableBuffer::new(bytes));
        for start in (0..len).step_by(len / RUNS) {
            for index in start..(start + run).min(len) {
                out.extend_from_slice(self.get(index));
                offsets.push(out.len());
            }
        }
        VariableWidth {
            large: self.large,
            offsets,
            bytes: out.into(),
        }
    }

    /// The values one after the other.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = self.bytes.as_slice();
        let ends = self.offsets.iter().skip(1);
        let spans = self.offsets.iter().zip(ends);
        spans.map(move |(start, end)| bytes.get(*start..*end).unwrap_or_default())
    }

    /// Bits of an offset.
    pub(crate) fn offset_bits(&self) -> usize {
        if self.large {
            64
        } else {
            32
        }
    }
}

impl FixedSizeLists {
    /// Innermost values of one list.
    pub(crate) fn items_per_list(&self) -> usize {
        self.layers.iter().map(|layer| layer.size).product()
    }
}

/// Takes the values of arrays of one type, each of which is given up once its values are copied, where they are. `name` is the column's, for
/// errors.
pub(crate) fn gather_all(name: &str, arrays: Vec<ArrayRef>, data_type: &DataType) -> Result<LeafValues> {
    Ok(match data_type {
        DataType::Utf8 => LeafValues::Variable(variable::<Utf8Type>(name, arrays)?),
        DataType::Binary => LeafValues::Variable(variable::<BinaryType>(name, arrays)?),
        DataType::LargeUtf8 => LeafValues::Variable(variable::<LargeUtf8Type>(name, arrays)?),
        DataType::LargeBinary => LeafValues::Variable(variable::<LargeBinaryType>(name, arrays)?),
        _ => gather(name, &arrays, data_type)?,
    })
}

/// Takes the values of arrays of one type. `name` is the column's, for errors.
pub(crate) fn gather(name: &str, arrays: &[ArrayRef], data_type: &DataType) -> Result<LeafValues> {
    let len = arrays.iter().map(|array| array.len()).sum();
    Ok(match data_type {
        DataType::Null => LeafValues::Nothing(len),
        DataType::Struct(fields) if fields.is_empty() => LeafValues::Nothing(len),
        DataType::Utf8 => LeafValues::Variable(variable::<Utf8Type>(name, arrays.to_vec())?),
        DataType::Binary => LeafValues::Variable(variable::<BinaryType>(name, arrays.to_vec())?),
        DataType::LargeUtf8 => LeafValues::Variable(variable::<LargeUtf8Type>(name, arrays.to_vec())?),
        DataType::LargeBinary => LeafValues::Variable(variable::<LargeBinaryType>(name, arrays.to_vec())?),
        DataType::FixedSizeList(_, _) => LeafValues::FixedSizeList(fixed_size_lists(name, arrays, data_type, len)?),
        DataType::Dictionary(_, _) => dictionary(name, arrays)?,
        DataType::Struct(fields) => {
            let gathered = fields.iter().enumerate().map(|(index, field)| {
                let columns = arrays.iter().filter_map(|array| array.as_struct().columns().get(index));
                let columns: Vec<ArrayRef> = columns.cloned().collect();
                if arrays.iter().zip(&columns).any(|(row, field)| hides_null(row, field)) {
                    return Err(FileError::unsupported(format!(
                        "column '{name}': a packed struct cannot hold nulls in its fields, found some in '{}'; leave it unpacked",
                        field.name()
                    )));
                }
                gather(&format!("{name}.{}", field.name()), &columns, field.data_type())
            });
            LeafValues::Packed(gathered.collect::<Result<_>>()?)
        }
        _ => LeafValues::Fixed(fixed(name, arrays, data_type, len)?),
    })
}

/// True if a field is null in a row that is there.
fn hides_null(row: &ArrayRef, field: &ArrayRef) -> bool {
    match (field.nulls(), row.nulls()) {
        (None, _) => false,
        (Some(field), None) => field.null_count() > 0,
        (Some(field), Some(row)) => field.iter().zip(row.iter()).any(|(field, row)| row && !field),
    }
}

/// Batches bring a dictionary each; a page has one.
fn dictionary(name: &str, arrays: &[ArrayRef]) -> Result<LeafValues> {
    let failed = |e: arrow_schema::ArrowError| {
        FileError::invalid(format!(
            "column '{name}': the dictionaries of the batches do not fit into one ({e}); use a wider key type or plain values"
        ))
    };
    let mut joined = dictionaries::join(arrays).map_err(failed)?;
    if joined.as_any_dictionary().values().len() > joined.len() {
        // Drops items that no value of this page uses.
        joined = garbage_collect_any_dictionary(joined.as_any_dictionary()).map_err(failed)?;
    }
    let any = joined.as_any_dictionary();
    let keys = make_array(any.keys().to_data());
    let items = any.values().clone();
    let keys = fixed(name, std::slice::from_ref(&keys), &keys.data_type().clone(), keys.len())?;
    let items = gather(name, std::slice::from_ref(&items), &items.data_type().clone())?;
    Ok(LeafValues::Dictionary(keys, Box::new(items)))
}

fn fixed(name: &str, arrays: &[ArrayRef], data_type: &DataType, len: usize) -> Result<FixedWidth> {
    if data_type == &DataType::Boolean {
        let mut bits = BooleanBufferBuilder::new(len);
        for array in arrays {
            bits.append_buffer(array.as_boolean().values());
        }
        return Ok(FixedWidth {
            bits: 1,
            len,
            pieces: vec![bits.finish().into_inner()],
        });
    }
    if data_type == &DataType::Null {
        return Ok(FixedWidth {
            bits: 0,
            len,
            pieces: Vec::new(),
        });
    }
    let width = byte_width(data_type).and_then(|width| usize::try_from(width).ok());
    let width = width.ok_or_else(|| {
        FileError::unsupported(format!(
            "column '{name}': values of type {data_type} cannot be written; cast the column first"
        ))
    })?;
    let pieces = arrays
        .iter()
        .map(|array| fixed_width_bytes(array, width as u64))
        .collect::<Result<Vec<_>>>()?;
    Ok(FixedWidth {
        bits: width.saturating_mul(8),
        len,
        pieces,
    })
}

/// Takes strings or binary; offsets lie in order and within the bytes ever after.
fn variable<T: ByteArrayType>(name: &str, arrays: Vec<ArrayRef>) -> Result<VariableWidth> {
    let at = |offset: Option<&T::Offset>| offset.map_or(0, |offset| offset.as_usize());
    let spanned = |ends: &[T::Offset]| (at(ends.first()), at(ends.last()));
    let len: usize = arrays.iter().map(|array| array.len()).sum();
    let mut offsets: Vec<usize> = Vec::with_capacity(len + 1);
    offsets.push(0);
    let shared = side_by_side::<T>(&arrays);
    let total = arrays
        .iter()
        .map(|array| spanned(array.as_bytes::<T>().value_offsets()));
    let total: usize = total.map(|(first, last)| last.saturating_sub(first)).sum();
    let mut bytes = MutableBuffer::new(if shared.is_some() { 0 } else { total });
    for array in arrays {
        let array = array.as_bytes::<T>();
        let ends = array.value_offsets();
        let (first, last) = spanned(ends);
        if shared.is_some() {
            let base = offsets.last().copied().unwrap_or(0);
            let rise = |end: &T::Offset| base.wrapping_add(end.as_usize().wrapping_sub(first));
            offsets.extend(ends.iter().skip(1).map(rise));
            continue;
        }
        if hides_bytes(array) {
            // The bytes below nulls are dropped.
            for value in array {
                bytes.extend_from_slice(value.map_or(&[][..], |value| value.as_ref()));
                offsets.push(bytes.len());
            }
            continue;
        }
        let base = bytes.len();
        offsets.extend(ends.iter().skip(1).map(|end| base + (end.as_usize() - first)));
        let values = array.values().slice_with_length(first, last - first);
        bytes.extend_from_slice(values.as_slice());
    }
    let bytes = shared.unwrap_or_else(|| bytes.into());
    if !offsets.is_sorted() || offsets.last().is_some_and(|last| *last > bytes.len()) {
        return Err(FileError::invalid(format!(
            "column '{name}': expected offsets in order, within {} bytes of values; the array is malformed",
            bytes.len()
        )));
    }
    Ok(VariableWidth {
        large: T::Offset::IS_LARGE,
        offsets,
        bytes,
    })
}

/// The bytes of all values, where they lie side by side in one piece of memory, as those of a table do that was cut into batches; `None` where
/// they do not, or where bytes lie below nulls.
fn side_by_side<T: ByteArrayType>(arrays: &[ArrayRef]) -> Option<Buffer> {
    let (mut start, mut end) = (None, 0);
    let whole = arrays.last()?.as_bytes::<T>().values();
    for array in arrays {
        let array = array.as_bytes::<T>();
        let (first, last) = match array.value_offsets() {
            [only] => (only.as_usize(), only.as_usize()),
            [first, .., last] => (first.as_usize(), last.as_usize()),
            [] => return None,
        };
        if hides_bytes(array) || array.values().as_ptr() != whole.as_ptr() || start.is_some_and(|_| first != end) {
            return None;
        }
        start.get_or_insert(first);
        end = last;
    }
    let start = start?;
    (start <= end && end <= whole.len()).then(|| whole.slice_with_length(start, end - start))
}

fn fixed_size_lists(name: &str, arrays: &[ArrayRef], data_type: &DataType, len: usize) -> Result<FixedSizeLists> {
    let mut layers = Vec::new();
    let mut arrays = arrays.to_vec();
    let mut data_type = data_type;
    let mut items_len = len;
    while let DataType::FixedSizeList(item, size) = data_type {
        let size = usize::try_from(*size).unwrap_or(0);
        arrays = arrays
            .iter()
            .map(|array| array.as_fixed_size_list().values().clone())
            .collect();
        items_len = items_len.saturating_mul(size);
        layers.push(FixedSizeLayer {
            size,
            validity: validity(&arrays, items_len),
        });
        data_type = item.data_type();
    }
    Ok(FixedSizeLists {
        layers,
        items: fixed(name, &arrays, data_type, items_len)?,
        len,
    })
}

fn validity(arrays: &[ArrayRef], len: usize) -> Option<BooleanBuffer> {
    if arrays.first().is_some_and(|array| array.data_type() == &DataType::Null) {
        return Some(BooleanBuffer::new_unset(len));
    }
    if arrays.iter().all(|array| array.null_count() == 0) {
        return None;
    }
    let mut bits = BooleanBufferBuilder::new(len);
    for array in arrays {
        match array.nulls() {
            Some(nulls) => bits.append_buffer(nulls.inner()),
            None => bits.append_n(array.len(), true),
        }
    }
    Some(bits.finish())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringArray;
    use proptest::prelude::*;

    use super::*;

    fn taken(arrays: Vec<ArrayRef>) -> (Vec<Vec<u8>>, Buffer) {
        let values = variable::<Utf8Type>("s", arrays).unwrap();
        (values.iter().map(<[u8]>::to_vec).collect(), values.bytes)
    }

    proptest! {
        #[test]
        fn test_values_of_a_table_that_was_cut_are_those_of_its_pieces(
            texts in prop::collection::vec(prop::option::weighted(0.9, "[a-z]{0,9}"), 0..60),
            cuts in prop::collection::vec(0_usize..60, 0..5),
            skips: bool,
        ) {
            let whole = StringArray::from(texts.clone());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(texts.len())).collect();
            cuts.sort_unstable();
            let mut pieces: Vec<ArrayRef> = Vec::new();
            let mut wanted: Vec<Vec<u8>> = Vec::new();
            for (number, pair) in cuts.windows(2).enumerate() {
                if let ([from, to], false) = (pair, skips && number == 1) {
                    pieces.push(Arc::new(whole.slice(*from, to - from)));
                    wanted.extend(texts[*from..*to].iter().map(|text| text.clone().unwrap_or_default().into_bytes()));
                }
            }
            let copied: Vec<ArrayRef> = pieces.iter().map(|piece| {
                let texts: Vec<Option<String>> = piece.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect();
                Arc::new(StringArray::from(texts)) as ArrayRef
            }).collect();
            prop_assert_eq!(&taken(copied).0, &wanted);
            let (found, bytes) = taken(pieces);
            prop_assert_eq!(&found, &wanted);
            // Where nothing is left out between them nothing is copied.
            if !skips && !bytes.is_empty() {
                let memory = whole.values().as_ptr() as usize..whole.values().as_ptr() as usize + whole.values().len();
                prop_assert!(memory.contains(&(bytes.as_ptr() as usize)));
            }
        }

        #[test]
        fn test_nulls_are_filled_with_what_stands_before_them(
            values in prop::collection::vec(prop::option::of(any::<u32>()), 0..3000),
            cut: usize,
        ) {
            let stored: Vec<u8> = values.iter().flat_map(|value| value.unwrap_or(0).to_le_bytes()).collect();
            let (first, second) = stored.split_at(cut % (values.len() + 1) * 4);
            let pieces = vec![Buffer::from(first), Buffer::from(second)];
            let levels: Vec<u16> = values.iter().map(|value| u16::from(value.is_none())).collect();
            let filled = FixedWidth { bits: 32, len: values.len(), pieces }.filled(&levels).contiguous();
            let found: Vec<u32> = filled.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
            let mut wanted = Vec::new();
            for block in values.chunks(BLOCK) {
                let mut last = block.iter().flatten().next().copied().unwrap_or(0);
                wanted.extend(block.iter().map(|value| {
                    last = value.unwrap_or(last);
                    last
                }));
            }
            prop_assert_eq!(found, wanted);
        }
    }
}
