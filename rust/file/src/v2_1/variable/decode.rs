//! Strings and binary: in a chunk, as a dictionary, by themselves.

use std::ops::Range;

use esker_codec::ends::Offset;
use esker_codec::gather::Number;
use esker_proto::lance::encodings21 as pb;

use crate::container::{u32_at, u64_at};
use crate::error::Result;
use crate::v2_1::builder::{Values, VariableBuilder};
use crate::v2_1::decode::{Compression, Wanted};
use crate::v2_1::page::{to_len, PageId};

/// Reads the description.
pub(crate) fn compression(at: &PageId, variable: &pb::Variable) -> Result<Compression> {
    at.no_buffer_compression(variable.values.as_ref())?;
    match Compression::new(at, variable.offsets.as_deref())? {
        Compression::Flat(bits) if bits == 32 || bits == 64 => Ok(Compression::Variable(bits)),
        other => Err(at.unsupported(format!(
            "offsets in {} cannot be read yet; a newer esker may read it",
            other.describe()
        ))),
    }
}

/// Offsets as they are stored, and the bytes that they point into.
pub(crate) struct Stored<'a> {
    offsets: Offsets<'a>,
    bytes: &'a [u8],
}

/// Offsets of one of two widths.
pub(crate) enum Offsets<'a> {
    Narrow(&'a [[u8; 4]]),
    Wide(&'a [[u8; 8]]),
}

/// Where values end, counted from where the first one starts.
pub(crate) fn ends<N: Number>(offsets: &[N]) -> impl Iterator<Item = usize> + '_ {
    let first = offsets.first().map_or(0, |first| first.place());
    offsets.iter().skip(1).map(move |end| end.place().wrapping_sub(first))
}

impl<'a> Stored<'a> {
    /// `bits` is the width of an offset, `offsets` where the offsets of `n` values start; they are counted from the start of `bytes`.
    pub(crate) fn new(at: &PageId, bits: u64, offsets: &'a [u8], bytes: &'a [u8], n: usize) -> Result<Stored<'a>> {
        let offsets = match bits {
            32 => offsets.as_chunks::<4>().0.get(..=n).map(Offsets::Narrow),
            64 => offsets.as_chunks::<8>().0.get(..=n).map(Offsets::Wide),
            _ => None,
        };
        let offsets = offsets.ok_or_else(|| at.corrupt(format!("expected {n} offsets of {bits} bits, found fewer")))?;
        Ok(Stored { offsets, bytes })
    }

    fn offset(&self, index: usize) -> u64 {
        match self.offsets {
            Offsets::Narrow(offsets) => offsets.get(index).map_or(0, |o| u64::from(u32::from_le_bytes(*o))),
            Offsets::Wide(offsets) => offsets.get(index).map_or(0, |o| u64::from_le_bytes(*o)),
        }
    }

    /// The offsets of `range`, one more than values.
    pub(crate) fn offsets_of(&self, range: Range<usize>) -> Offsets<'a> {
        match self.offsets {
            Offsets::Narrow(offsets) => Offsets::Narrow(offsets.get(range.start..=range.end).unwrap_or_default()),
            Offsets::Wide(offsets) => Offsets::Wide(offsets.get(range.start..=range.end).unwrap_or_default()),
        }
    }

    /// The bytes between two values.
    pub(crate) fn span(&self, at: &PageId, range: Range<usize>) -> Result<&'a [u8]> {
        let (from, to) = (self.offset(range.start), self.offset(range.end));
        let span = usize::try_from(from).ok().zip(usize::try_from(to).ok());
        let bytes = span.and_then(|(from, to)| self.bytes.get(from..to));
        bytes.ok_or_else(|| {
            at.corrupt(format!(
                "expected offsets within {} bytes of strings, found {from} and {to}",
                self.bytes.len()
            ))
        })
    }

    /// Appends the values of `range`.
    pub(crate) fn append<O: Offset>(
        &self,
        at: &PageId,
        range: Range<usize>,
        out: &mut VariableBuilder<O>,
    ) -> Result<()> {
        let bytes = self.span(at, range.clone())?;
        let falls = match self.offsets_of(range) {
            Offsets::Narrow(offsets) => {
                append_run(bytes, offsets.iter().map(|o| u64::from(u32::from_le_bytes(*o))), out)
            }
            Offsets::Wide(offsets) => append_run(bytes, offsets.iter().map(|o| u64::from_le_bytes(*o)), out),
        };
        if falls {
            return Err(at.corrupt("expected offsets of strings that never fall, found one below the one before it"));
        }
        Ok(())
    }
}

/// Appends values that end at all but the first of `offsets`; true where an offset falls.
fn append_run<O: Offset>(bytes: &[u8], offsets: impl Iterator<Item = u64>, out: &mut VariableBuilder<O>) -> bool {
    let mut offsets = offsets;
    let start = offsets.next().unwrap_or(0);
    let (mut previous, mut falls) = (start, false);
    let ends = offsets.map(|end| {
        falls |= end < previous;
        previous = end;
        end.wrapping_sub(start)
    });
    out.append_run(bytes, ends);
    falls
}

/// Appends the `wanted` of the `n` values of a chunk.
pub(crate) fn chunk(
    at: &PageId,
    bits: u64,
    stored: &[u8],
    n: usize,
    wanted: Wanted<'_>,
    out: &mut Values,
) -> Result<()> {
    let stored = Stored::new(at, bits, stored, stored, n)?;
    append_wanted(at, &stored, n, wanted, out)
}

fn append_wanted(at: &PageId, stored: &Stored<'_>, n: usize, wanted: Wanted<'_>, out: &mut Values) -> Result<()> {
    match out {
        Values::Variable(to) => {
            wanted.each(n, |range| stored.append(at, range, to))?;
            to.check()
        }
        Values::LargeVariable(to) => wanted.each(n, |range| stored.append(at, range, to)),
        other => Err(at.corrupt(format!("expected {}, found values of variable width", other.describe()))),
    }
}

/// The offsets and bytes of a dictionary of `n` values.
pub(crate) fn stored_block<'a>(at: &PageId, block: &'a [u8], n: usize) -> Result<Stored<'a>> {
    let short = || at.corrupt("expected a dictionary's header, found fewer bytes");
    let head = block.first_chunk::<4>().ok_or_else(short)?;
    let (bits, start, offsets) = match head {
        // Early writers kept the width in one byte and then the number of values.
        [32, rest @ ..] if rest != &[0, 0, 0] => (32, u64::from(u32_at(block, 5).ok_or_else(short)?), 9),
        [64, rest @ ..] if rest != &[0, 0, 0] => (64, u64_at(block, 9).ok_or_else(short)?, 17),
        [32, ..] => (32, u64::from(u32_at(block, 4).ok_or_else(short)?), 8),
        [64, ..] => (64, u64_at(block, 8).ok_or_else(short)?, 16),
        _ => {
            return Err(at.corrupt(format!(
                "expected a dictionary with offsets of 32 or 64 bits, found {}",
                u32::from_le_bytes(*head)
            )))
        }
    };
    let start = to_len(at, start)?;
    let parts = block.get(offsets..start).zip(block.get(start..));
    let (offsets, bytes) =
        parts.ok_or_else(|| at.corrupt("expected a dictionary's bytes after its offsets, found them elsewhere"))?;
    Stored::new(at, bits, offsets, bytes, n)
}

/// Appends the `n` values of a dictionary.
pub(crate) fn block(at: &PageId, block: &[u8], n: usize, out: &mut Values) -> Result<()> {
    let stored = stored_block(at, block, n)?;
    append_wanted(at, &stored, n, Wanted::All, out)
}

/// Appends one value.
pub(crate) fn value(at: &PageId, value: &[u8], out: &mut Values) -> Result<()> {
    match out {
        Values::Variable(to) => to.push(value),
        Values::LargeVariable(to) => to.push(value),
        other => return Err(at.corrupt(format!("expected {}, found values of variable width", other.describe()))),
    }
    Ok(())
}
