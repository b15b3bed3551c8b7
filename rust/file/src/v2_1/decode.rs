//! Parses a description of compressions and dispatches to their decoders.
//!
//! A compression occurs in three places: in a mini-block *chunk*, whose buffers hold values of which some are wanted; as a *block* (levels,
//! dictionaries, parts of other compressions), one buffer of which all values are wanted; and *per value*, in full zip.

use std::ops::Range;

use esker_proto::lance::encodings21 as pb;
use esker_proto::lance::encodings21::compressive_encoding::Compression as Kind;

use super::builder::Values;
use super::fixed_size_list::decode::FixedSizeLists;
use super::fsst::decode::Fsst;
use super::general::decode::General;
use super::packed_struct::decode::PackedStructs;
use super::page::PageId;
use super::run_length::decode::RunLength;
use super::variable_packed_struct::decode::VariablePackedStructs;
use super::{byte_stream_split, constant, flat, inline_bitpacking, out_of_line_bitpacking, variable};
use crate::error::Result;

/// How values are compressed, read from a page's description once.
#[derive(Debug)]
pub(crate) enum Compression {
    /// Values of so many bits as they are.
    Flat(u64),
    /// Offsets of so many bits, and bytes.
    Variable(u64),
    /// One value throughout.
    Constant(Vec<u8>),
    /// Blocks of 1024 values, the width before each; the unpacked bits.
    InlineBitpacking(u64),
    /// The unpacked and the packed bits.
    OutOfLineBitpacking(u64, u64),
    Fsst(Box<Fsst>),
    RunLength(Box<RunLength>),
    ByteStreamSplit(u64),
    General(Box<General>),
    FixedSizeList(FixedSizeLists),
    PackedStruct(PackedStructs),
    VariablePackedStruct(VariablePackedStructs),
}

/// Which values of a chunk are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// All of them.
    All,
    /// Sorted ranges within the chunk.
    Ranges(&'a [Range<usize>]),
}

/// From so many ranges on it may cost less to decode what lies between them, too.
const MANY: usize = 4;

/// Of split values, one in so many may cost less to gather by itself than all cost to join.
const FEW: usize = 16;

impl Wanted<'_> {
    /// How many values are wanted; `usize::MAX` where all are.
    fn count(&self) -> usize {
        match self {
            Wanted::All => usize::MAX,
            Wanted::Ranges(ranges) => ranges
                .iter()
                .fold(0_usize, |sum, range| sum.saturating_add(range.len())),
        }
    }

    /// Where many ranges lie close together: from where to where.
    pub(crate) fn dense_span(&self) -> Option<Range<usize>> {
        let Wanted::Ranges(ranges @ [first, .., last]) = self else {
            return None;
        };
        let span = first.start..last.end;
        let wanted = ranges
            .iter()
            .fold(0_usize, |sum, range| sum.saturating_add(range.len()));
        (ranges.len() > MANY && wanted >= span.len() / 2).then_some(span)
    }

    /// Calls `each` for every wanted range of a chunk of `n` values.
    pub(crate) fn each(&self, n: usize, mut each: impl FnMut(Range<usize>) -> Result<()>) -> Result<()> {
        match self {
            Wanted::All => each(0..n),
            Wanted::Ranges(ranges) => ranges.iter().try_for_each(|range| each(range.clone())),
        }
    }
}

impl Compression {
    /// Reads the description of a compression.
    pub(crate) fn new(at: &PageId, encoding: Option<&pb::CompressiveEncoding>) -> Result<Compression> {
        let kind = encoding.and_then(|encoding| encoding.compression.as_ref());
        let kind = kind.ok_or_else(|| at.corrupt("expected a compression, found none or one of a newer version"))?;
        Ok(match kind {
            Kind::Flat(flat) => {
                at.no_buffer_compression(flat.data.as_ref())?;
                Compression::Flat(flat.bits_per_value)
            }
            Kind::Variable(variable) => variable::decode::compression(at, variable)?,
            Kind::Constant(constant) => Compression::Constant(constant.value.clone().unwrap_or_default().into()),
            Kind::OutOfLineBitpacking(packed) => out_of_line_bitpacking::decode::compression(at, packed)?,
            Kind::InlineBitpacking(packed) => {
                at.no_buffer_compression(packed.values.as_ref())?;
                Compression::InlineBitpacking(packed.uncompressed_bits_per_value)
            }
            Kind::Fsst(fsst) => Compression::Fsst(Box::new(Fsst::new(at, fsst)?)),
            Kind::Rle(rle) => Compression::RunLength(Box::new(RunLength::new(at, rle)?)),
            Kind::ByteStreamSplit(split) => byte_stream_split::decode::compression(at, split)?,
            Kind::General(general) => Compression::General(Box::new(General::new(at, general)?)),
            Kind::FixedSizeList(list) => Compression::FixedSizeList(FixedSizeLists::new(at, list)?),
            Kind::PackedStruct(packed) => Compression::PackedStruct(PackedStructs::new(at, packed)?),
            Kind::VariablePackedStruct(packed) => {
                Compression::VariablePackedStruct(VariablePackedStructs::new(at, packed)?)
            }
            Kind::Dictionary(_) => {
                return Err(at.unsupported(
                    "a dictionary among the compressions, which no known writer puts there; a newer esker may read it",
                ))
            }
        })
    }

    /// Bits of a value, if it has a fixed width without any lists around it.
    pub(crate) fn bits(&self) -> Option<u64> {
        match self {
            Compression::Flat(bits)
            | Compression::InlineBitpacking(bits)
            | Compression::OutOfLineBitpacking(bits, _)
            | Compression::ByteStreamSplit(bits) => Some(*bits),
            Compression::Constant(value) => Some(value.len() as u64 * 8),
            Compression::RunLength(rle) => rle.bits(),
            Compression::General(general) => general.values.bits(),
            _ => None,
        }
    }

    /// Appends the `wanted` of the `n` values of a chunk.
    pub(crate) fn decode_chunk(
        &self,
        at: &PageId,
        buffers: &[&[u8]],
        n: usize,
        wanted: Wanted<'_>,
        out: &mut Values,
    ) -> Result<()> {
        match self {
            Compression::Flat(bits) => {
                let buffer = first(at, buffers)?;
                wanted.each(n, |range| flat::decode::append(at, *bits, buffer, range, out))
            }
            Compression::Variable(bits) => variable::decode::chunk(at, *bits, first(at, buffers)?, n, wanted, out),
            Compression::InlineBitpacking(bits) => {
                inline_bitpacking::decode::chunk(at, *bits, first(at, buffers)?, n, wanted, out)
            }
            Compression::Fsst(fsst) => fsst.decode_chunk(at, first(at, buffers)?, n, wanted, out),
            Compression::General(general) => general.decode_chunk(at, buffers, n, wanted, out),
            Compression::FixedSizeList(lists) => wanted.each(n, |range| lists.append_chunk(at, buffers, n, range, out)),
            Compression::PackedStruct(packed) => {
                let buffer = first(at, buffers)?;
                wanted.each(n, |range| packed.append(at, buffer, range, out))
            }
            Compression::RunLength(_)
            | Compression::ByteStreamSplit(_)
            | Compression::OutOfLineBitpacking(_, _)
            | Compression::Constant(_) => self.decode_whole_chunk(at, buffers, n, wanted, out),
            Compression::VariablePackedStruct(_) => {
                Err(at.corrupt("expected values that lie in chunks, found variable packed structs"))
            }
        }
    }

    /// Compressions of a fixed width that are undone as a whole, even where few values are wanted.
    fn decode_whole_chunk(
        &self,
        at: &PageId,
        buffers: &[&[u8]],
        n: usize,
        wanted: Wanted<'_>,
        out: &mut Values,
    ) -> Result<()> {
        let bits = self.bits().unwrap_or(0);
        let decode = |bytes: &mut Vec<u8>| match self {
            Compression::RunLength(rle) => rle.decode_chunk(at, buffers, n, bytes),
            Compression::ByteStreamSplit(bits) => {
                byte_stream_split::decode::block(at, *bits, first(at, buffers)?, n, bytes)
            }
            other => other.decode_block(at, bits, buffers.first().copied().unwrap_or_default(), n, bytes),
        };
        match (wanted, &mut *out) {
            (Wanted::All, Values::Fixed(_)) => decode(out.fixed(at, bits)?.bytes()),
            (Wanted::Ranges(ranges), Values::Fixed(_))
                if matches!(self, Compression::ByteStreamSplit(_)) && wanted.count() <= n / FEW =>
            {
                let (stored, out) = (first(at, buffers)?, out.fixed(at, bits)?.bytes());
                ranges
                    .iter()
                    .try_for_each(|range| byte_stream_split::decode::range(at, bits, stored, n, range.clone(), out))
            }
            _ => {
                let mut bytes = Vec::new();
                decode(&mut bytes)?;
                wanted.each(n, |range| flat::decode::append(at, bits, &bytes, range, out))
            }
        }
    }

    /// Appends the `n` values of a block, `bits` bits each, as they lie in memory.
    pub(crate) fn decode_block(&self, at: &PageId, bits: u64, block: &[u8], n: usize, out: &mut Vec<u8>) -> Result<()> {
        if self.bits() != Some(bits) {
            return Err(at.corrupt(format!(
                "expected a block of values of {bits} bits, found {}",
                self.describe()
            )));
        }
        match self {
            Compression::Flat(_) => flat::decode::block(at, bits, block, n, out),
            Compression::Constant(value) => constant::decode::block(value, n, out),
            Compression::InlineBitpacking(_) => inline_bitpacking::decode::block(at, bits, block, n, out),
            Compression::OutOfLineBitpacking(_, packed) => {
                out_of_line_bitpacking::decode::block(at, bits, *packed, block, n, out)
            }
            Compression::RunLength(rle) => rle.decode_block(at, block, n, out),
            Compression::ByteStreamSplit(_) => byte_stream_split::decode::block(at, bits, block, n, out),
            Compression::General(general) => general.decode_block(at, bits, block, n, out),
            _ => Err(at.corrupt(format!("expected a block, found {}", self.describe()))),
        }
    }

    /// Appends the `n` values of a dictionary.
    pub(crate) fn decode_dictionary(&self, at: &PageId, block: &[u8], n: usize, out: &mut Values) -> Result<()> {
        match self {
            Compression::Variable(_) => variable::decode::block(at, block, n, out),
            Compression::General(general) if general.values.bits().is_none() => {
                let raw = general.decompress(at, block, usize::MAX)?;
                general.values.decode_dictionary(at, &raw, n, out)
            }
            Compression::Fsst(fsst) => fsst.decode_dictionary(at, block, n, out),
            Compression::FixedSizeList(lists) => lists.append_chunk(at, &[block], n, 0..n, out),
            _ => {
                let bits = self.bits().unwrap_or(0);
                let mut bytes = Vec::new();
                self.decode_block(at, bits, block, n, &mut bytes)?;
                flat::decode::append(at, bits, &bytes, 0..n, out)
            }
        }
    }

    /// Bytes of a value that lies by itself, or a guess.
    pub(crate) fn value_bytes(&self, value: &[u8]) -> usize {
        match self {
            Compression::General(general) => general.value_bytes(value),
            Compression::Fsst(_) => value.len().saturating_mul(2),
            _ => value.len(),
        }
    }

    /// Appends one value of variable width that lies by itself.
    pub(crate) fn decode_value(&self, at: &PageId, value: &[u8], out: &mut Values) -> Result<()> {
        match self {
            Compression::Variable(_) => variable::decode::value(at, value, out),
            Compression::Fsst(fsst) => fsst.decode_value(at, value, out),
            Compression::General(general) => general.decode_value(at, value, out),
            Compression::VariablePackedStruct(packed) => packed.decode_value(at, value, out),
            _ => Err(at.corrupt(format!("expected values of variable width, found {}", self.describe()))),
        }
    }
}

/// The first buffer of a chunk.
pub(crate) fn first<'a>(at: &PageId, buffers: &[&'a [u8]]) -> Result<&'a [u8]> {
    buffers
        .first()
        .copied()
        .ok_or_else(|| at.corrupt("expected a buffer of values in a chunk, found none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_ranges_are_decoded_in_one_go_where_they_are_many_and_close() {
        let every_tenth_is_missing: Vec<_> = (0..100).map(|i| i * 10..i * 10 + 9).collect();
        assert_eq!(Wanted::Ranges(&every_tenth_is_missing).dense_span(), Some(0..999));
        let few_are_wanted: Vec<_> = (0..100).map(|i| i * 10..i * 10 + 2).collect();
        assert_eq!(Wanted::Ranges(&few_are_wanted).dense_span(), None);
        assert_eq!(Wanted::Ranges(&every_tenth_is_missing[..4]).dense_span(), None);
        assert_eq!(Wanted::Ranges(&[]).dense_span(), None);
        assert_eq!(Wanted::All.dense_span(), None);
    }
}
