//! The parts of one chunk.

use crate::container::{u16_at, u32_at};
use crate::error::Result;
use crate::v2_1::page::{to_len, PageId};

/// A chunk's parts, not decoded.
#[derive(Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) num_levels: usize,
    pub(crate) rep: &'a [u8],
    pub(crate) def: &'a [u8],
    pub(crate) buffers: Vec<&'a [u8]>,
}

impl<'a> Chunk<'a> {
    /// Takes a chunk apart.
    pub(crate) fn new(
        at: &PageId,
        bytes: &'a [u8],
        has_rep: bool,
        has_def: bool,
        num_buffers: usize,
        is_large: bool,
    ) -> Result<Chunk<'a>> {
        let mut reader = Reader { bytes, position: 0 };
        let short = || at.corrupt("expected a chunk's header, found its end");
        let num_levels = reader.small().ok_or_else(short)?;
        let rep = if has_rep { reader.small().ok_or_else(short)? } else { 0 };
        let def = if has_def { reader.small().ok_or_else(short)? } else { 0 };
        let mut sizes = Vec::with_capacity(num_buffers);
        for _ in 0..num_buffers {
            let size = if is_large {
                to_len(at, u64::from(reader.large().ok_or_else(short)?))?
            } else {
                reader.small().ok_or_else(short)?
            };
            sizes.push(size);
        }
        let mut part = |size: usize| {
            reader.part(size).ok_or_else(|| {
                at.corrupt(format!(
                    "expected a part of {size} bytes within a chunk of {}, found the chunk's end",
                    bytes.len()
                ))
            })
        };
        let rep = if has_rep { part(rep)? } else { &[] };
        let def = if has_def { part(def)? } else { &[] };
        let buffers = sizes.into_iter().map(part).collect::<Result<_>>()?;
        Ok(Chunk {
            num_levels,
            rep,
            def,
            buffers,
        })
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    fn small(&mut self) -> Option<usize> {
        let value = u16_at(self.bytes, self.position)?;
        self.position += 2;
        Some(usize::from(value))
    }

    fn large(&mut self) -> Option<u32> {
        let value = u32_at(self.bytes, self.position)?;
        self.position += 4;
        Some(value)
    }

    /// The next part, which starts at a multiple of 8.
    fn part(&mut self, size: usize) -> Option<&'a [u8]> {
        self.position = self.position.next_multiple_of(8);
        let end = self.position.checked_add(size)?;
        let part = self.bytes.get(self.position..end)?;
        self.position = end;
        Some(part)
    }
}
