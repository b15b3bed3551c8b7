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
        let (first, second) = match runs(at, &self.lengths, lengths, None, n)? {
            Some(lengths) => {
                let runs = runs_in(&lengths, length_bits);
                (runs_of(at, &self.values, values, runs, n)?, lengths)
            }
            None => {
                let values = runs(at, &self.values, values, None, n)?;
                let values =
                    values.ok_or_else(|| at.corrupt("expected to know the number of runs, found no way to"))?;
                let runs = runs_in(&values, bits);
                let lengths = runs_of(at, &self.lengths, lengths, runs, n)?;
                (values, lengths)
            }
        };
        rle::decode(bits, &first, &second, length_bits, n, out).map_err(|e| at.kernel(e))
    }
}

fn runs_in(bytes: &[u8], bits: u64) -> usize {
    let width = usize::try_from(bits / 8).unwrap_or(0);
    bytes.len().checked_div(width).unwrap_or(0)
}

fn runs_of(at: &PageId, compression: &Compression, stored: &[u8], runs: usize, n: usize) -> Result<Vec<u8>> {
    Ok(runs_known(at, compression, stored, Some(runs), n)?.unwrap_or_default())
}

fn runs(
    at: &PageId,
    compression: &Compression,
    stored: &[u8],
    count: Option<usize>,
    n: usize,
) -> Result<Option<Vec<u8>>> {
    runs_known(at, compression, stored, count, n)
}

/// The raw bytes of one side of the runs; none where only the number of runs could tell. There are at most `n` runs.
fn runs_known(
    at: &PageId,
    compression: &Compression,
    stored: &[u8],
    count: Option<usize>,
    n: usize,
) -> Result<Option<Vec<u8>>> {
    let bits = compression.bits().unwrap_or(0);
    match (compression, count) {
        (Compression::Flat(_), _) => Ok(Some(stored.to_vec())),
        (Compression::General(general), _) => {
            let width = usize::try_from(bits / 8).unwrap_or(0);
            let raw = general.decompress(at, stored, n.saturating_mul(width.max(1)).saturating_add(64))?;
            runs_known(at, &general.values, &raw, count, n)
        }
        (_, None) => Ok(None),
        (other, Some(count)) if count <= n => {
            let mut out = Vec::new();
            other.decode_block(at, bits, stored, count, &mut out)?;
            Ok(Some(out))
        }
        (_, Some(count)) => Err(at.corrupt(format!("expected at most {n} runs, found {count}"))),
    }
}
