//! A segment of a row-id sequence: a run of ids in one of five encodings.
//!
//! | form | field | holds | for |
//! |---|---|---|---|
//! | range | 1 | start, end | all ids of a range |
//! | range with holes | 2 | start, end, the missing ids | nearly all |
//! | range with bitmap | 3 | start, end, a bit an id | many |
//! | sorted array | 4 | the ids, ascending | few |
//! | array | 5 | the ids | ids in any order |

use std::ops::Range;

use bytes::Bytes;

use super::bitmap::Bitmap;
use super::encoded_array::{bounds, EncodedArray};
use super::smallest::ascending;
use crate::raw::{push_length_delimited, push_varint, walk};

const RANGE: u32 = 1;
const HOLES: u32 = 2;
const BITMAP: u32 = 3;
const SORTED: u32 = 4;
const ARRAY: u32 = 5;

const START: u32 = 1;
const END: u32 = 2;
/// Holes or bitmap of a range.
const CONTENT: u32 = 3;

/// A run of ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Range(Range<u64>),
    Holes { range: Range<u64>, holes: EncodedArray },
    Bitmap { start: u64, bitmap: Bitmap },
    Sorted(EncodedArray),
    Array(EncodedArray),
}

impl Segment {
    pub fn decode(message: &Bytes) -> Result<Self, String> {
        let mut chosen = None;
        for record in walk(message) {
            let record = record.map_err(|error| error.to_string())?;
            if (RANGE..=ARRAY).contains(&record.number) {
                chosen = Some((record.number, record.payload));
            }
        }
        let (form, place) = chosen.ok_or("expected a segment of one of five forms, found none")?;
        let message = message.slice(place);
        match form {
            SORTED => {
                let array = EncodedArray::decode(&message)?;
                if !array.is_ascending() {
                    return Err("expected a sorted array to ascend, found ids that do not".into());
                }
                Ok(Self::Sorted(array))
            }
            ARRAY => Ok(Self::Array(EncodedArray::decode(&message)?)),
            form => Self::decode_range(form, &message),
        }
    }

    fn decode_range(form: u32, message: &Bytes) -> Result<Self, String> {
        let (mut start, mut end, mut content) = (0, 0, Bytes::new());
        for record in walk(message) {
            let record = record.map_err(|error| error.to_string())?;
            match record.number {
                START => start = record.varint,
                END => end = record.varint,
                CONTENT => content = message.slice(record.payload),
                _ => {}
            }
        }
        let size = u64::checked_sub(end, start);
        let size = size.ok_or_else(|| format!("expected a range, found {start}..{end}"))?;
        match form {
            RANGE => Ok(Self::Range(start..end)),
            HOLES => {
                let holes = EncodedArray::decode(&content)?;
                let inside = |hole: Option<u64>| hole.is_none_or(|hole| (start..end).contains(&hole));
                if !holes.is_ascending() || !inside(holes.first()) || !inside(holes.last()) {
                    return Err(format!("expected holes that ascend within {start}..{end}"));
                }
                let range = start..end;
                Ok(Self::Holes { range, holes })
            }
            _ => {
                let found = content.len();
                let bitmap = Bitmap::new(content, size);
                let bitmap = bitmap.ok_or_else(|| format!("expected a bitmap of {size} bits, found {found} bytes"))?;
                Ok(Self::Bitmap { start, bitmap })
            }
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let range = |start: u64, end: u64| {
            let mut out = Vec::with_capacity(24);
            for (number, value) in [(START, start), (END, end)] {
                if value != 0 {
                    push_varint(&mut out, u64::from(number) << 3);
                    push_varint(&mut out, value);
                }
            }
            out
        };
        let (form, content) = match self {
            Self::Range(ids) => (RANGE, range(ids.start, ids.end)),
            Self::Holes { range: ids, holes } => {
                let mut content = range(ids.start, ids.end);
                push_length_delimited(&mut content, CONTENT, &holes.encode());
                (HOLES, content)
            }
            Self::Bitmap { start, bitmap } => {
                let mut content = range(*start, start.saturating_add(bitmap.len()));
                push_length_delimited(&mut content, CONTENT, bitmap.bytes());
                (BITMAP, content)
            }
            Self::Sorted(array) => (SORTED, array.encode()),
            Self::Array(array) => (ARRAY, array.encode()),
        };
        let mut out = Vec::with_capacity(content.len().saturating_add(8));
        push_length_delimited(&mut out, form, &content);
        out
    }

    /// How many ids there are.
    pub fn len(&self) -> u64 {
        match self {
            Self::Range(range) => range.end - range.start,
            Self::Holes { range, holes } => (range.end - range.start).saturating_sub(holes.len() as u64),
            Self::Bitmap { bitmap, .. } => bitmap.count(),
            Self::Sorted(array) | Self::Array(array) => array.len() as u64,
        }
    }

    /// The least and the greatest id that may be there; `None` if there is none at all.
    pub fn bounds(&self) -> Option<(u64, u64)> {
        let of = |start: u64, end: u64| (start < end).then(|| (start, end - 1));
        match self {
            Self::Range(range) | Self::Holes { range, .. } => of(range.start, range.end),
            Self::Bitmap { start, bitmap } => of(*start, start.saturating_add(bitmap.len())),
            Self::Sorted(array) => Some((array.first()?, array.last()?)),
            Self::Array(array) => {
                array.first()?;
                let fold = |(low, high): (u64, u64), id: u64| (low.min(id), high.max(id));
                Some(array.iter().fold((u64::MAX, 0), fold))
            }
        }
    }

    /// Appends the ids at `places`, counted from the segment's first one.
    pub fn extend_into(&self, places: Range<u64>, out: &mut Vec<u64>) {
        let size = usize::try_from(places.end.saturating_sub(places.start)).unwrap_or(usize::MAX);
        let index = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
        match self {
            Self::Range(range) => {
                let bound = |place: u64| range.start.saturating_add(place).min(range.end);
                out.extend(bound(places.start)..bound(places.end));
            }
            Self::Holes { range, holes } => {
                let mut next = holes_before(range.start, holes, places.start);
                let first = range.start.saturating_add(places.start).saturating_add(next as u64);
                let ids = (first..range.end).filter(|id| {
                    let hole = holes.get(next) == Some(*id);
                    next += usize::from(hole);
                    !hole
                });
                out.extend(ids.take(size));
            }
            Self::Bitmap { start, bitmap } => {
                out.extend(bitmap.ones(places.start).take(size).map(|bit| start + bit));
            }
            Self::Sorted(array) | Self::Array(array) => {
                out.extend(array.slice(index(places.start), index(places.end)).iter());
            }
        }
    }

    /// All ids in order.
    pub fn ids(&self) -> Vec<u64> {
        let mut out = Vec::new();
        self.extend_into(0..self.len(), &mut out);
        out
    }

    /// Where `id` is, counted from the segment's first one.
    pub fn position(&self, id: u64) -> Option<u64> {
        match self {
            Self::Range(range) => range.contains(&id).then(|| id - range.start),
            Self::Holes { range, holes } => match holes.search(id) {
                Err(below) if range.contains(&id) => (id - range.start).checked_sub(below as u64),
                _ => None,
            },
            Self::Bitmap { start, bitmap } => {
                let bit = id.checked_sub(*start)?;
                bitmap.contains(bit).then(|| bitmap.rank(bit))
            }
            Self::Sorted(array) => array.search(id).ok().map(|place| place as u64),
            Self::Array(array) => array.iter().position(|found| found == id).map(|place| place as u64),
        }
    }

    /// The ids at `places` as a segment of their own.
    pub fn slice(&self, places: Range<u64>) -> Self {
        let index = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
        match self {
            Self::Range(range) => {
                let bound = |place: u64| range.start.saturating_add(place).min(range.end);
                Self::Range(bound(places.start)..bound(places.end))
            }
            Self::Array(array) => Self::Array(array.slice(index(places.start), index(places.end))),
            other if places == (0..other.len()) => other.clone(),
            other => {
                let mut ids = Vec::new();
                other.extend_into(places, &mut ids);
                ascending(&ids)
            }
        }
    }

    /// The segment without the ids at `places`, which ascend.
    pub fn mask(&self, places: &[u64]) -> Self {
        if places.is_empty() {
            return self.clone();
        }
        let mut gone = places.iter().peekable();
        let kept = self.ids().into_iter().zip(0u64..);
        let kept = kept.filter(|(_, place)| gone.next_if_eq(&place).is_none());
        let kept: Vec<u64> = kept.map(|(id, _)| id).collect();
        match self {
            Self::Array(_) => Self::Array(EncodedArray::new(&kept)),
            _ => ascending(&kept),
        }
    }

    /// Some ids in any order.
    pub fn array(ids: &[u64]) -> Self {
        Self::Array(EncodedArray::new(ids))
    }

    /// About how many bytes [`Segment::array`] takes.
    pub fn array_size(ids: &[u64]) -> u64 {
        let (least, most) = bounds(ids);
        EncodedArray::size_of(ids.len() as u64, most - least)
    }
}

/// How many holes lie before the `place`-th id that is there.
fn holes_before(start: u64, holes: &EncodedArray, place: u64) -> usize {
    let (mut low, mut high) = (0, holes.len());
    while low < high {
        let middle = low + (high - low) / 2;
        // The number of ids before the hole.
        let before = holes
            .get(middle)
            .unwrap_or(u64::MAX)
            .saturating_sub(start)
            .saturating_sub(middle as u64);
        if before <= place {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
