//! Writing full-zip pages.

use arrow_buffer::Buffer;
use bytes::Bytes;
use esker_proto::lance::encodings21 as pb;
use esker_proto::lance::encodings21::full_zip_layout::Details;
use esker_proto::lance::encodings21::page_layout::Layout;

use super::super::levels::encode::layer_numbers;
use super::super::levels::serialize::Levels;
use super::super::message::page_layout;
use super::super::mini_block::encode::EncodedPage;
use super::super::values::VariableWidth;
use crate::error::{FileError, Result};
use crate::v2_0::encode::share;

/// Writes an entry's levels in one word.
struct ControlWords<'a> {
    rep: Option<&'a [u16]>,
    def: Option<&'a [u16]>,
    bits_rep: u32,
    bits_def: u32,
    max_rep: u16,
    max_visible: u16,
}

/// What an entry is.
struct Entry {
    begins_row: bool,
    visible: bool,
    valid: bool,
}

fn bits_of(level: u16) -> u32 {
    u16::BITS - level.leading_zeros()
}

impl<'a> ControlWords<'a> {
    fn new(levels: &'a Levels) -> Self {
        ControlWords {
            rep: levels.rep.as_deref(),
            def: levels.def.as_deref(),
            bits_rep: bits_of(levels.max_rep),
            bits_def: bits_of(levels.max_def),
            max_rep: levels.max_rep,
            max_visible: levels.max_visible,
        }
    }

    fn width(&self) -> usize {
        match self.bits_rep + self.bits_def {
            0 => 0,
            1..=8 => 1,
            9..=16 => 2,
            _ => 4,
        }
    }

    fn put(&self, at: usize, out: &mut Vec<u8>) -> Entry {
        let rep = self.rep.and_then(|rep| rep.get(at)).copied();
        let def = self.def.and_then(|def| def.get(at)).copied().unwrap_or(0);
        let word = (u32::from(rep.unwrap_or(0)) << self.bits_def) | u32::from(def);
        out.extend_from_slice(word.to_le_bytes().get(..self.width()).unwrap_or_default());
        Entry {
            begins_row: rep.is_none_or(|rep| rep == self.max_rep),
            visible: def <= self.max_visible,
            valid: def == 0,
        }
    }
}

/// Values of `width` bytes each.
pub(crate) fn encode_fixed(
    levels: &Levels,
    pieces: Vec<Buffer>,
    width: usize,
    encoding: pb::CompressiveEncoding,
) -> Result<EncodedPage> {
    let words = ControlWords::new(levels);
    let bits = width.saturating_mul(8) as u64;
    let bits = u32::try_from(bits).map_err(|_| FileError::invalid("a value cannot be larger than 512 MiB"))?;
    let layout = layout(levels, &words, Details::BitsPerValue(bits), encoding)?;
    if words.width() == 0 {
        // The values are their own page.
        return Ok(EncodedPage {
            buffers: vec![pieces.into_iter().map(share).collect()],
            layout,
        });
    }
    let size: usize = pieces.iter().map(|piece| piece.len()).sum();
    if size != levels.num_visible.saturating_mul(width) {
        return Err(FileError::invalid(format!(
            "expected {} values of {width} bytes, found {size} bytes; the arrays are malformed",
            levels.num_visible
        )));
    }
    let mut out = Vec::with_capacity(size + levels.num_entries.saturating_mul(words.width()));
    let mut values = pieces.iter().flat_map(|piece| piece.chunks_exact(width.max(1)));
    let mut starts = levels.rep.is_some().then(Vec::new);
    for at in 0..levels.num_entries {
        let start = out.len();
        let entry = words.put(at, &mut out);
        if let Some(starts) = starts.as_mut().filter(|_| entry.begins_row) {
            starts.push(start);
        }
        if entry.visible {
            out.extend_from_slice(values.next().unwrap_or_default());
        }
    }
    Ok(finish(vec![Bytes::from(out)], starts, layout))
}

/// Values of at least so many bytes on average are written from where they lie.
const SHARED_VALUE: usize = 16 * 1024;

/// The bytes of a page: what is copied, and values that are not.
struct Zipped {
    shares: bool,
    pieces: Vec<Bytes>,
    copied: Vec<u8>,
    /// Bytes of the pieces.
    before: usize,
}

impl Zipped {
    fn len(&self) -> usize {
        self.before + self.copied.len()
    }

    fn value(&mut self, values: &Buffer, at: usize, value: &[u8]) {
        if !self.shares || value.len() < SHARED_VALUE {
            self.copied.extend_from_slice(value);
            return;
        }
        self.end_piece();
        self.before += value.len();
        self.pieces.push(share(values.slice_with_length(at, value.len())));
    }

    fn end_piece(&mut self) {
        if !self.copied.is_empty() {
            self.before += self.copied.len();
            self.pieces.push(Bytes::from(std::mem::take(&mut self.copied)));
        }
    }
}

/// Values of any length, a null without bytes.
pub(crate) fn encode_variable(
    levels: &Levels,
    values: &VariableWidth,
    encoding: pb::CompressiveEncoding,
) -> Result<EncodedPage> {
    let words = ControlWords::new(levels);
    let length_bits = if values.large { 64 } else { 32 };
    let layout = layout(levels, &words, Details::BitsPerOffset(length_bits), encoding)?;
    let shares = values.bytes.len() / values.len().max(1) >= SHARED_VALUE;
    let per_entry = words.width() + values.offset_bits() / 8;
    let copied = if shares {
        Vec::new()
    } else {
        Vec::with_capacity(values.bytes.len() + levels.num_entries.saturating_mul(per_entry))
    };
    let mut out = Zipped {
        shares,
        pieces: Vec::new(),
        copied,
        before: 0,
    };
    let mut starts = Vec::with_capacity(levels.num_entries);
    let mut rest = values.iter().zip(&values.offsets);
    for at in 0..levels.num_entries {
        let start = out.len();
        let entry = words.put(at, &mut out.copied);
        if entry.begins_row {
            starts.push(start);
        }
        if entry.visible {
            let (value, place) = rest.next().ok_or_else(|| {
                FileError::invalid(format!(
                    "expected {} values, found {}; the arrays are malformed",
                    levels.num_visible,
                    values.len()
                ))
            })?;
            if entry.valid {
                put_length(values.large, value.len(), &mut out.copied)?;
                out.value(&values.bytes, *place, value);
            }
        }
    }
    out.end_piece();
    Ok(finish(out.pieces, Some(starts), layout))
}

fn put_length(large: bool, length: usize, out: &mut Vec<u8>) -> Result<()> {
    if large {
        out.extend_from_slice(&(length as u64).to_le_bytes());
    } else {
        let length = u32::try_from(length).map_err(|_| {
            FileError::invalid("a value of 4 GiB and more needs a large type; cast the column to large_binary")
        })?;
        out.extend_from_slice(&length.to_le_bytes());
    }
    Ok(())
}

fn layout(
    levels: &Levels,
    words: &ControlWords,
    details: Details,
    encoding: pb::CompressiveEncoding,
) -> Result<pb::PageLayout> {
    let count = |count: usize| {
        u32::try_from(count).map_err(|_| FileError::invalid("a page cannot hold 2^32 values; ask for smaller pages"))
    };
    Ok(page_layout(Layout::FullZipLayout(pb::FullZipLayout {
        bits_rep: words.bits_rep,
        bits_def: words.bits_def,
        details: Some(details),
        num_items: count(levels.num_entries)?,
        num_visible_items: count(levels.num_visible)?,
        value_compression: Some(encoding),
        layers: layer_numbers(&levels.layers),
    })))
}

fn finish(out: Vec<Bytes>, starts: Option<Vec<usize>>, layout: pb::PageLayout) -> EncodedPage {
    let index = starts.map(|mut starts| {
        starts.push(out.iter().map(Bytes::len).sum());
        byte_packed(&starts)
    });
    let mut buffers = vec![out];
    buffers.extend(index.map(|index| vec![Bytes::from(index)]));
    EncodedPage { buffers, layout }
}

/// Numbers in as few whole bytes as the largest, the last, needs: 1, 2, 4 or 8.
fn byte_packed(numbers: &[usize]) -> Vec<u8> {
    let width = match numbers.last().copied().unwrap_or(0) as u64 {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    let mut out = Vec::with_capacity(numbers.len().saturating_mul(width));
    for number in numbers {
        out.extend_from_slice((*number as u64).to_le_bytes().get(..width).unwrap_or_default());
    }
    out
}
