//! Runs to values.
//!
//! In a chunk values and lengths are buffers of their own; in a block they follow each other, the size of the values before them (u64).

use esker_codec::rle;
use esker_proto::lance::encodings21 as pb;

use crate::container::u64_at;
use crate::error::Result;
use crate::v2_1::decode::Compression;
use crate::v2_1::page::{to_len, PageId};

/// How the values of the runs and their lengths are compressed.
#[derive(Debug)]
pub(crate) struct RunLength {
    pub(crate) values: Compression,
    pub(crate) lengths: Compression,
}

impl RunLength {
    /// Reads the description.
    pub(crate) fn new(at: &PageId, rle: &pb::Rle) -> Result<RunLength> {
        Ok(RunLength {
            values: Compression::new(at, rle.values.as_deref())?,
            lengths: Compression::new(at, rle.run_lengths.as_deref())?,
        })
    }

    /// Bits of a value.
    pub(crate) fn bits(&self) -> Option<u64> {
        self.values.bits()
    }

    /// Appends the `n` values of a chunk.
    pub(crate) fn decode_chunk(&self, at: &PageId, buffers: &[&[u8]], n: usize, out: &mut Vec<u8>) -> Result<()> {
        let [values, lengths, ..] = buffers else {
            return Err(at.corrupt(format!(
                "expected a buffer of values and one of run lengths, found {} buffers",
                buffers.len()
            )));
        };
        self.decode(at, values, lengths, n, out)
    }

    /// Appends the `n` values of a block.
    pub(crate) fn decode_block(&self, at: &PageId, block: &[u8], n: usize, out: &mut Vec<u8>) -> Result<()> {
        let size =
            u64_at(block, 0).ok_or_else(|| at.corrupt("expected the size of the runs' values, found nothing"))?;
        let rest = block.get(8..).unwrap_or_default();
        let (values, lengths) = rest.split_at_checked(to_len(at, size)?).ok_or_else(|| {
            at.corrupt(format!(
                "expected {size} bytes of runs' values, found {} bytes",
                rest.len()
            ))
        })?;
        self.decode(at, values, lengths, n, out)
    }

    fn decode(&self, at: &PageId, values: &[u8], lengths: &[u8], n: usize, out: &mut Vec<u8>) -> Result<()> {
        let (Some(bits), Some(length_bits)) = (self.values.bits(), self.lengths.bits()) else {
            return Err(at.corrupt("expected runs of values of fixed width, found others"));
        };
        if let (Compression::Flat(_), Compression::Flat(_)) = (&self.values, &self.lengths) {
            return rle::decode(bits, values, lengths, length_bits, n, out).map_err(|e| at.kernel(e));
        }
        // Whichever tells how many runs there are goes first.
        let no_way = || at.corrupt("expected to know the number of runs, found no way to");
        let (values, lengths) = match raw(at, &self.lengths, lengths, None, n)? {
            Some(lengths) => {
                let runs = runs_in(&lengths, length_bits);
                (
                    raw(at, &self.values, values, Some(runs), n)?.ok_or_else(no_way)?,
                    lengths,
                )
            }
            None => {
                let values = raw(at, &self.values, values, None, n)?.ok_or_else(no_way)?;
                let runs = runs_in(&values, bits);
                let lengths = raw(at, &self.lengths, lengths, Some(runs), n)?.ok_or_else(no_way)?;
                (values, lengths)
            }
        };
        rle::decode(bits, &values, &lengths, length_bits, n, out).map_err(|e| at.kernel(e))
    }
}

fn runs_in(bytes: &[u8], bits: u64) -> usize {
    let width = usize::try_from(bits / 8).unwrap_or(0);
    bytes.len().checked_div(width).unwrap_or(0)
}

/// The raw bytes of one side of the runs; none where only the number of runs could tell. There are at most `n` runs.
fn raw(
    at: &PageId,
    compression: &Compression,
    stored: &[u8],
    runs: Option<usize>,
    n: usize,
) -> Result<Option<Vec<u8>>> {
    let bits = compression.bits().unwrap_or(0);
    match (compression, runs) {
        (Compression::Flat(_), _) => Ok(Some(stored.to_vec())),
        (Compression::General(general), _) => {
            let width = usize::try_from(bits / 8).unwrap_or(0);
            let all = general.decompress(at, stored, n.saturating_mul(width.max(1)).saturating_add(64))?;
            raw(at, &general.values, &all, runs, n)
        }
        (_, None) => Ok(None),
        (other, Some(runs)) if runs <= n => {
            let mut out = Vec::new();
            other.decode_block(at, bits, stored, runs, &mut out)?;
            Ok(Some(out))
        }
        (_, Some(runs)) => Err(at.corrupt(format!("expected at most {n} runs, found {runs}"))),
    }
}
