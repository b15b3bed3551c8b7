//! Rows to fields.

use std::ops::Range;

use esker_codec::packed_rows::gather_field;
use esker_proto::lance::encodings21 as pb;

use crate::error::Result;
use crate::v2_1::builder::Values;
use crate::v2_1::decode::Compression;
use crate::v2_1::flat;
use crate::v2_1::page::{to_len, PageId};

/// Bytes of each field.
#[derive(Debug)]
pub(crate) struct PackedStructs {
    pub(crate) widths: Vec<usize>,
    row: usize,
}

impl PackedStructs {
    /// Reads the description.
    pub(crate) fn new(at: &PageId, packed: &pb::PackedStruct) -> Result<PackedStructs> {
        let mut widths = Vec::with_capacity(packed.bits_per_value.len());
        let mut row = 0_usize;
        for bits in &packed.bits_per_value {
            let width = to_len(at, bits / 8)?;
            row = row
                .checked_add(width)
                .filter(|_| bits % 8 == 0)
                .ok_or_else(|| at.corrupt(format!("expected packed fields of whole bytes, found {bits} bits")))?;
            widths.push(width);
        }
        match Compression::new(at, packed.values.as_deref())? {
            Compression::Flat(bits) if bits == row as u64 * 8 => Ok(PackedStructs { widths, row }),
            other => Err(at.corrupt(format!(
                "expected packed rows of {row} bytes, found {}",
                other.describe()
            ))),
        }
    }

    /// Appends the rows of `range`.
    pub(crate) fn append(&self, at: &PageId, stored: &[u8], range: Range<usize>, out: &mut Values) -> Result<()> {
        let structs = out.structs(at, self.widths.len())?;
        let bytes = range.start.checked_mul(self.row).zip(range.end.checked_mul(self.row));
        let rows = bytes.and_then(|(from, to)| stored.get(from..to)).ok_or_else(|| {
            at.corrupt(format!(
                "expected {} packed rows of {} bytes, found {} bytes",
                range.end,
                self.row,
                stored.len()
            ))
        })?;
        let mut from = 0;
        for (field, width) in structs.fields.iter_mut().zip(&self.widths) {
            let values = gather_field(rows, self.row, from, *width);
            flat::decode::append(at, *width as u64 * 8, &values, 0..range.len(), field)?;
            from += width;
        }
        structs.len = structs.len.saturating_add(range.len());
        Ok(())
    }
}
