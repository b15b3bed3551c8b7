//! A page of one value: its value and its levels, read once.

use std::ops::Range;

use bytes::Bytes;
use esker_proto::lance::encodings21 as pb;

use super::decode;
use super::runs::Runs;
use crate::error::Result;
use crate::v2_1::builder::{LeafBuilder, Values};
use crate::v2_1::decode::Compression;
use crate::v2_1::levels::decode::{row_bounds, Levels};
use crate::v2_1::levels::layers::Layers;
use crate::v2_1::page::{to_len, PageId};

/// More than the levels of any page: a page ends after some MB of values, before they are found to be constant.
const MOST_LEVELS: u64 = 1 << 27;

/// Bytes of a stored value, with where it lies, that nulls may have: to tell them apart takes longer than to copy so few.
const SHORT: usize = 48;

/// A page of one value.
#[derive(Debug)]
pub(crate) struct ConstantPage {
    pub(crate) layers: Layers,
    value: Constant,
    /// None where there are no buffers for them.
    levels: Option<Levels>,
}

#[derive(Debug)]
enum Constant {
    Null,
    Inline(Vec<u8>),
    Stored(Bytes),
}

impl ConstantPage {
    /// Reads the description of a page and its buffers, which are all there.
    pub(crate) fn new(
        at: &PageId,
        layout: &pb::ConstantLayout,
        layers: Layers,
        buffers: &[Bytes],
    ) -> Result<ConstantPage> {
        let (value, stored) = match (&layout.inline_value, buffers) {
            (Some(value), levels) => (Constant::Inline(value.to_vec()), levels),
            (None, [value, levels @ ..]) if buffers.len() % 2 == 1 => {
                (Constant::Stored(Bytes::copy_from_slice(value)), levels)
            }
            (None, levels) => (Constant::Null, levels),
        };
        let levels = match stored {
            [] => None,
            [rep, def] => {
                let rep = read(at, layout.rep_compression.as_ref(), layout.num_rep_values, rep)?;
                let def = read(at, layout.def_compression.as_ref(), layout.num_def_values, def)?;
                let len = rep.as_ref().or(def.as_ref()).map_or(0, |levels| levels.len() / 2);
                (rep.is_some() || def.is_some()).then_some(Levels { rep, def, len })
            }
            other => {
                return Err(at.corrupt(format!(
                    "expected two buffers of levels in a constant page, found {}",
                    other.len()
                )))
            }
        };
        if let Some(levels) = &levels {
            levels.check(at, &layers)?;
        }
        Ok(ConstantPage { layers, value, levels })
    }

    /// Bytes that a cached page takes.
    pub(crate) fn memory(&self) -> usize {
        let side = |levels: &Option<Vec<u8>>| levels.as_ref().map_or(0, Vec::len);
        let levels = self.levels.as_ref().map_or(0, |l| side(&l.rep) + side(&l.def));
        let value = match &self.value {
            Constant::Null => 0,
            Constant::Inline(value) => value.len(),
            Constant::Stored(value) => value.len(),
        };
        1024 + levels + value
    }

    /// Appends the levels and values of sorted `rows` of the page.
    pub(crate) fn decode(
        &self,
        at: &PageId,
        rows: &[Range<u64>],
        levels: &mut Levels,
        out: &mut LeafBuilder,
    ) -> Result<()> {
        let wanted: u64 = rows.iter().map(|r| r.end - r.start).sum();
        let wanted = to_len(at, wanted)?;
        // Without levels all are alike.
        let mut runs = Runs::new(self.levels.is_some() && self.is_costly(out));
        let values = match &self.levels {
            Some(stored) => {
                let bounds: Vec<u64> = rows.iter().flat_map(|r| [r.start, r.end]).collect();
                let places = row_bounds(stored, &self.layers, 0, &bounds);
                let mut values = 0_usize;
                for pair in places.chunks_exact(2) {
                    if let [(from, before), (to, after)] = pair {
                        levels.append(stored, *from..*to);
                        runs.append(stored, &self.layers, *from..*to);
                        values = values.saturating_add(after.saturating_sub(*before));
                    }
                }
                values
            }
            None => {
                // Without levels everything is there, or null in the innermost layer.
                if let (Constant::Null, Some(null)) = (&self.value, self.layers.layers.first().and_then(|l| l.null)) {
                    let def = levels.def.get_or_insert_with(Vec::new);
                    decode::block(&null.to_le_bytes(), wanted, def)?;
                }
                levels.len = levels.len.saturating_add(wanted);
                wanted
            }
        };
        match (out, &self.value) {
            (LeafBuilder::Plain(out), Constant::Null) => out.append_empty(values),
            (LeafBuilder::Plain(out), Constant::Inline(value)) => decode::inline(at, value, values, out),
            (LeafBuilder::Plain(out), Constant::Stored(value)) => decode::stored(at, value, values, runs.get(), out),
            (LeafBuilder::Keyed(out), value) => {
                let item_type = out.item_type().clone();
                let mut items = Values::new(&item_type)?;
                match value {
                    Constant::Null => {}
                    Constant::Inline(value) => decode::inline(at, value, 1, &mut items)?,
                    Constant::Stored(value) => decode::stored(at, value, 1, None, &mut items)?,
                }
                let items = items.finish(&at.column_name(), &item_type, None)?;
                let width = out.key_width();
                decode::block(&vec![0; width], values, out.keys().bytes())?;
                out.end_part(&items);
                Ok(())
            }
        }
    }

    /// Whether its value is of any length, and so long that a null is not to take as much.
    fn is_costly(&self, out: &LeafBuilder) -> bool {
        let is_variable = matches!(out, LeafBuilder::Plain(Values::Variable(_) | Values::LargeVariable(_)));
        is_variable && matches!(&self.value, Constant::Stored(value) if value.len() > SHORT)
    }

    /// True where the page has levels of its own.
    pub(crate) fn has_levels(&self) -> (bool, bool) {
        let levels = self.levels.as_ref();
        (
            levels.is_some_and(|levels| levels.rep.is_some()),
            levels.is_some_and(|levels| levels.def.is_some()),
        )
    }
}

/// One side of the levels; none where its buffer is empty.
fn read(at: &PageId, compression: Option<&pb::CompressiveEncoding>, n: u64, stored: &[u8]) -> Result<Option<Vec<u8>>> {
    match compression {
        None if stored.is_empty() => Ok(None),
        None => Ok(Some(stored.to_vec())),
        Some(_) if n == 0 => Ok(None),
        Some(_) if n > MOST_LEVELS => {
            Err(at.corrupt(format!("expected at most {MOST_LEVELS} levels in a page, found {n}")))
        }
        Some(encoding) => {
            let mut out = Vec::new();
            let compression = Compression::new(at, Some(encoding))?;
            compression.decode_block(at, 16, stored, to_len(at, n)?, &mut out)?;
            Ok(Some(out))
        }
    }
}
