//! Codes to strings. The symbol table is read once a page.

use std::ops::Range;

use esker_codec::ends::Offset;
use esker_codec::fsst::Decoder;
use esker_proto::lance::encodings21 as pb;

use crate::error::Result;
use crate::v2_1::builder::{Values, VariableBuilder};
use crate::v2_1::decode::{Compression, Wanted};
use crate::v2_1::page::PageId;
use crate::v2_1::variable::decode::{ends, stored_block, Offsets, Stored};

/// A symbol table, and the offsets below it.
#[derive(Debug)]
pub(crate) struct Fsst {
    decoder: Decoder,
    pub(crate) values: Compression,
}

impl Fsst {
    /// Reads the description.
    pub(crate) fn new(at: &PageId, fsst: &pb::Fsst) -> Result<Fsst> {
        let decoder = Decoder::new(&fsst.symbol_table).map_err(|e| at.kernel(e))?;
        let values = Compression::new(at, fsst.values.as_deref())?;
        Ok(Fsst { decoder, values })
    }

    fn append<O: Offset>(&self, at: &PageId, codes: &[u8], out: &mut VariableBuilder<O>) -> Result<()> {
        self.decoder.decode(codes, out.bytes()).map_err(|e| at.kernel(e))?;
        out.end_value();
        Ok(())
    }

    /// Appends one value.
    fn append_to(&self, at: &PageId, codes: &[u8], out: &mut Values) -> Result<()> {
        match out {
            Values::Variable(to) => self.append(at, codes, to),
            Values::LargeVariable(to) => self.append(at, codes, to),
            other => Err(at.corrupt(format!("expected {}, found values of variable width", other.describe()))),
        }
    }

    fn append_wanted(
        &self,
        at: &PageId,
        stored: &Stored<'_>,
        n: usize,
        wanted: Wanted<'_>,
        out: &mut Values,
    ) -> Result<()> {
        match out {
            Values::Variable(to) => {
                self.append_ranges(at, stored, n, wanted, to)?;
                to.check()
            }
            Values::LargeVariable(to) => self.append_ranges(at, stored, n, wanted, to),
            other => Err(at.corrupt(format!("expected {}, found values of variable width", other.describe()))),
        }
    }

    fn append_ranges<O: Offset>(
        &self,
        at: &PageId,
        stored: &Stored<'_>,
        n: usize,
        wanted: Wanted<'_>,
        out: &mut VariableBuilder<O>,
    ) -> Result<()> {
        let Some(span) = wanted.dense_span() else {
            return wanted.each(n, |range| self.append_range(at, stored, range, out));
        };
        // What lies between is decoded, too: that costs less than to begin anew so many times.
        let mut all = out.another();
        self.append_range(at, stored, span.clone(), &mut all)?;
        wanted.each(n, |range| {
            out.append_range(&all, range.start - span.start..range.end - span.start)
        })
    }

    fn append_range<O: Offset>(
        &self,
        at: &PageId,
        stored: &Stored<'_>,
        range: Range<usize>,
        out: &mut VariableBuilder<O>,
    ) -> Result<()> {
        let codes = stored.span(at, range.clone())?;
        let start = out.as_bytes().len();
        let (bytes, offsets) = out.parts(range.len());
        let end = |end: usize| offsets.push(O::from_u64(end as u64));
        let decoded = match stored.offsets_of(range) {
            Offsets::Narrow(offsets) => self.decoder.decode_values(codes, ends(offsets), bytes, end),
            Offsets::Wide(offsets) => self.decoder.decode_values(codes, ends(offsets), bytes, end),
        };
        let only_symbols = decoded.map_err(|e| at.kernel(e))?;
        if only_symbols && self.decoder.is_ascii() {
            out.note_text(start);
        } else {
            out.look_for_ascii(start);
        }
        Ok(())
    }

    /// Appends the `wanted` of the `n` values of a chunk.
    pub(crate) fn decode_chunk(
        &self,
        at: &PageId,
        buffer: &[u8],
        n: usize,
        wanted: Wanted<'_>,
        out: &mut Values,
    ) -> Result<()> {
        match &self.values {
            Compression::Variable(bits) => {
                let stored = Stored::new(at, *bits, buffer, buffer, n)?;
                self.append_wanted(at, &stored, n, wanted, out)
            }
            Compression::General(general) => match &general.values {
                Compression::Variable(bits) => {
                    let raw = general.decompress(at, buffer, usize::MAX)?;
                    let stored = Stored::new(at, *bits, &raw, &raw, n)?;
                    self.append_wanted(at, &stored, n, wanted, out)
                }
                other => Err(below(at, other)),
            },
            other => Err(below(at, other)),
        }
    }

    /// Appends the `n` values of a dictionary.
    pub(crate) fn decode_dictionary(&self, at: &PageId, block: &[u8], n: usize, out: &mut Values) -> Result<()> {
        match &self.values {
            Compression::Variable(_) => {
                let stored = stored_block(at, block, n)?;
                self.append_wanted(at, &stored, n, Wanted::All, out)
            }
            other => Err(below(at, other)),
        }
    }

    /// Appends one value that lies by itself.
    pub(crate) fn decode_value(&self, at: &PageId, value: &[u8], out: &mut Values) -> Result<()> {
        match &self.values {
            Compression::Variable(_) => self.append_to(at, value, out),
            Compression::General(general) => {
                let raw = general.decompress(at, value, usize::MAX)?;
                self.append_to(at, &raw, out)
            }
            other => Err(below(at, other)),
        }
    }
}

fn below(at: &PageId, found: &Compression) -> crate::error::FileError {
    at.corrupt(format!("expected codes of variable width, found {}", found.describe()))
}
