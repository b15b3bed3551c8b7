//! Chooses the smallest encoding of a list of ids, for every sequence that is written.

use super::bitmap::Bitmap;
use super::encoded_array::EncodedArray;
use super::segment::Segment;

/// The least gap at which a new segment may be smaller than the bits that a bitmap needs for the gap.
const WIDE_GAP: u64 = 128;

/// The overhead of one more segment in bytes: its tags, lengths, and two bounds as varints.
fn overhead(ids: &[u64]) -> u64 {
    let bits = ids.last().map_or(0, |last| u64::from(u64::BITS - last.leading_zeros()));
    8 + 2 * bits.div_ceil(7)
}

/// The encodings of an ascending run of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Range,
    Holes,
    Bitmap,
    Sorted,
}

fn cheapest(ids: &[u64]) -> (u64, Form) {
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
        return (0, Form::Range);
    };
    let (count, span) = (ids.len() as u64, (last - first).saturating_add(1));
    let missing = span.saturating_sub(count);
    // The end of a range is exclusive, so u64::MAX fits no range.
    if *last == u64::MAX {
        return (EncodedArray::size_of(count, span), Form::Sorted);
    }
    if missing == 0 {
        return (0, Form::Range);
    }
    let costs = [
        (EncodedArray::size_of(missing, span), Form::Holes),
        (span.div_ceil(8), Form::Bitmap),
        (EncodedArray::size_of(count, span), Form::Sorted),
    ];
    costs.into_iter().min().unwrap_or((0, Form::Sorted))
}

/// Ascending ids as one segment.
pub(super) fn ascending(ids: &[u64]) -> Segment {
    let (Some(first), Some(last)) = (ids.first().copied(), ids.last().copied()) else {
        return Segment::Range(0..0);
    };
    match cheapest(ids).1 {
        Form::Range => Segment::Range(first..last.saturating_add(1)),
        Form::Holes => {
            let missing: Vec<u64> = ids.windows(2).flat_map(missing_between).collect();
            Segment::Holes {
                range: first..last.saturating_add(1),
                holes: EncodedArray::new(&missing),
            }
        }
        Form::Bitmap => Segment::Bitmap {
            start: first,
            bitmap: Bitmap::from_set(ids.iter().map(|id| id - first), last - first + 1),
        },
        Form::Sorted => Segment::Sorted(EncodedArray::new(ids)),
    }
}

fn missing_between(pair: &[u64]) -> std::ops::Range<u64> {
    match pair {
        [before, behind] => before.saturating_add(1)..*behind,
        _ => 0..0,
    }
}

/// Splits `ids` between neighbours for which `cut` is true.
fn parts(ids: &[u64], cut: impl Fn(u64, u64) -> bool) -> impl Iterator<Item = &[u64]> {
    ids.chunk_by(move |before, behind| !cut(*before, *behind))
}

/// Ids in any order as segments of approximately the least size.
pub(super) fn smallest(ids: &[u64]) -> Vec<Segment> {
    let runs = || parts(ids, |before, behind| behind <= before);
    let cost = |ids: &[u64]| cheapest(ids).0 + overhead(ids);
    let gaps = |run| parts(run, |before, behind| behind - before > WIDE_GAP);
    // Each ascending run is kept whole or split at its wide gaps, whichever is smaller.
    let split = |run| gaps(run).map(cost).sum::<u64>() < cost(run);
    let total: u64 = runs()
        .map(|run| {
            if split(run) {
                gaps(run).map(cost).sum()
            } else {
                cost(run)
            }
        })
        .sum();
    if ids.len() > 1 && Segment::array_size(ids) + overhead(ids) < total {
        return vec![Segment::array(ids)];
    }
    let mut out = Vec::new();
    for run in runs() {
        match split(run) {
            true => out.extend(gaps(run).map(ascending)),
            false => out.push(ascending(run)),
        }
    }
    out
}
