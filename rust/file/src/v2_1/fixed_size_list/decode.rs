//! Items of lists of one length, with the validity that lies beside them.
//!
//! In a chunk each validity is a buffer, outermost first, and the items are the last buffer. Where each value lies by itself, its bits of
//! validity come first, each layer's in whole bytes, and then its items.

use std::ops::Range;

use esker_proto::lance::encodings21 as pb;

use crate::error::Result;
use crate::v2_1::builder::Values;
use crate::v2_1::decode::Compression;
use crate::v2_1::flat;
use crate::v2_1::page::{to_len, PageId};

/// Lists in one another around flat values.
#[derive(Debug)]
pub(crate) struct FixedSizeLists {
    /// Outermost first.
    pub(crate) layers: Vec<ListLayer>,
    /// Bits of an innermost item; 0 where all are null.
    pub(crate) item_bits: u64,
}

/// One layer of lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListLayer {
    pub(crate) size: usize,
    /// The items of this layer have a validity.
    pub(crate) has_validity: bool,
}

impl FixedSizeLists {
    /// Reads the description.
    pub(crate) fn new(at: &PageId, list: &pb::FixedSizeList) -> Result<FixedSizeLists> {
        let layer = ListLayer {
            size: to_len(at, list.items_per_value)?,
            has_validity: list.has_validity,
        };
        match Compression::new(at, list.values.as_deref())? {
            Compression::Flat(item_bits) => Ok(FixedSizeLists {
                layers: vec![layer],
                item_bits,
            }),
            // Items that are all null have no bytes.
            Compression::Constant(value) if value.is_empty() => Ok(FixedSizeLists {
                layers: vec![layer],
                item_bits: 0,
            }),
            Compression::FixedSizeList(mut inner) => {
                inner.layers.insert(0, layer);
                Ok(inner)
            }
            other => Err(at.unsupported(format!(
                "fixed-size lists of {} cannot be read yet; a newer esker may read it",
                other.describe()
            ))),
        }
    }

    /// Appends the lists of `range` out of the `n` of a chunk.
    pub(crate) fn append_chunk(
        &self,
        at: &PageId,
        buffers: &[&[u8]],
        n: usize,
        range: Range<usize>,
        out: &mut Values,
    ) -> Result<()> {
        let Some((items, validity)) = buffers.split_last() else {
            return Err(at.corrupt("expected a buffer of list items, found none"));
        };
        let parts = Parts { items, validity };
        self.append_layer(at, 0, parts, n, range, out)
    }

    fn append_layer(
        &self,
        at: &PageId,
        depth: usize,
        parts: Parts<'_>,
        n: usize,
        range: Range<usize>,
        out: &mut Values,
    ) -> Result<()> {
        let Some(layer) = self.layers.get(depth) else {
            return match self.item_bits {
                0 => out.append_empty(range.len()),
                bits => flat::decode::append(at, bits, parts.items, range, out),
            };
        };
        let lists = out.lists(at, layer.size)?;
        let items = range
            .start
            .checked_mul(layer.size)
            .zip(range.end.checked_mul(layer.size));
        let (Some((start, end)), Some(n)) = (items, n.checked_mul(layer.size)) else {
            return Err(at.corrupt(format!(
                "expected lists that fit in memory, found {n} of {} items",
                layer.size
            )));
        };
        let mut parts = parts;
        if layer.has_validity {
            let (bits, rest) = parts
                .validity
                .split_first()
                .filter(|(bits, _)| bits.len().saturating_mul(8) >= n)
                .ok_or_else(|| at.corrupt(format!("expected validity of {n} list items, found less")))?;
            lists.item_validity.append_packed(start..end, bits);
            parts.validity = rest;
        } else {
            lists.item_validity.append_valid(end.saturating_sub(start));
        }
        self.append_layer(at, depth + 1, parts, n, start..end, &mut lists.items)?;
        lists.len = lists.len.saturating_add(range.len());
        Ok(())
    }

    /// Bytes of a list that lies by itself; none where it does not end with a byte.
    pub(crate) fn bytes_per_value(&self) -> Option<usize> {
        let (mut items, mut bytes) = (1_usize, 0_usize);
        for layer in &self.layers {
            items = items.checked_mul(layer.size)?;
            if layer.has_validity {
                bytes = bytes.checked_add(items.div_ceil(8))?;
            }
        }
        let bits = usize::try_from(self.item_bits).ok()?.checked_mul(items)?;
        bits.is_multiple_of(8).then(|| bytes.checked_add(bits / 8))?
    }

    /// True if the lists are their items and nothing else.
    pub(crate) fn is_plain(&self) -> bool {
        !self.layers.iter().any(|layer| layer.has_validity)
    }

    /// Appends `n` lists that lie one after the other, each by itself.
    pub(crate) fn append_values(&self, at: &PageId, stored: &[u8], n: usize, out: &mut Values) -> Result<()> {
        if self.is_plain() {
            return self.append_chunk(at, &[stored], n, 0..n, out);
        }
        let size = self.bytes_per_value().filter(|size| *size > 0);
        let size = size.ok_or_else(|| at.corrupt("expected lists of whole bytes, found others"))?;
        let mut buffers = Vec::with_capacity(self.layers.len() + 1);
        for value in stored.chunks_exact(size).take(n) {
            buffers.clear();
            let (mut rest, mut items) = (value, 1_usize);
            for layer in &self.layers {
                items = items.saturating_mul(layer.size);
                if layer.has_validity {
                    let (bits, after) = rest.split_at_checked(items.div_ceil(8)).unwrap_or_default();
                    buffers.push(bits);
                    rest = after;
                }
            }
            buffers.push(rest);
            self.append_chunk(at, &buffers, 1, 0..1, out)?;
        }
        Ok(())
    }
}

/// The buffers of a chunk that are left for the inner layers.
#[derive(Clone, Copy)]
struct Parts<'a> {
    items: &'a [u8],
    validity: &'a [&'a [u8]],
}
