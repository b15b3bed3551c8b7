//! A row-id sequence: the ids of a fragment's rows, in row order.

use std::ops::Range;

use bytes::Bytes;

use super::segment::Segment;
use super::smallest::smallest;
use crate::error::{Result, TableError};
use crate::raw::{push_length_delimited, walk};

const SEGMENTS: u32 = 1;

/// Ids in row order, held encoded: a range takes the same memory however many rows it has.
#[derive(Debug, Clone, Default)]
pub struct RowIdSequence {
    segments: Vec<Segment>,
    /// For each segment the number of ids up to its end.
    ends: Vec<u64>,
}

impl PartialEq for RowIdSequence {
    /// Equal if they list the same ids.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.ids() == other.ids()
    }
}

impl RowIdSequence {
    /// All ids of a range.
    pub fn from_range(range: Range<u64>) -> Self {
        Self::from_segments(vec![Segment::Range(range)]).unwrap_or_default()
    }

    /// The smallest form of some ids.
    pub fn from_ids(ids: &[u64]) -> Self {
        Self::from_segments(smallest(ids)).unwrap_or_default()
    }

    /// `None` if the segments claim more than 2^64 ids.
    fn from_segments(segments: Vec<Segment>) -> Option<Self> {
        let mut ends = Vec::with_capacity(segments.len());
        let mut sum = 0u64;
        for segment in &segments {
            sum = sum.checked_add(segment.len())?;
            ends.push(sum);
        }
        Some(Self { segments, ends })
    }

    /// Decodes a sequence. `what` is for errors.
    pub fn decode(message: &Bytes, what: &str) -> Result<Self> {
        let damaged = |message: String| TableError::corrupt(what, message);
        let mut segments = Vec::new();
        for record in walk(message) {
            let record = record.map_err(|error| error.of(what))?;
            if record.number == SEGMENTS {
                let place = segments.len();
                let segment = Segment::decode(&message.slice(record.payload));
                segments.push(segment.map_err(|error| damaged(format!("segment {place}: {error}")))?);
            }
        }
        Self::from_segments(segments).ok_or_else(|| damaged("expected less than 2^64 row ids, found more".into()))
    }

    /// The sequence as a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for segment in &self.segments {
            push_length_delimited(&mut out, SEGMENTS, &segment.encode());
        }
        out
    }

    /// How many ids there are.
    pub fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All ids in order, decoded.
    pub fn ids(&self) -> Vec<u64> {
        let mut out = Vec::new();
        self.extend_into(0..self.len(), &mut out);
        out
    }

    /// Appends the ids of the rows at `places`.
    pub fn extend_into(&self, places: Range<u64>, out: &mut Vec<u64>) {
        for (segment, part) in self.parts(places) {
            segment.extend_into(part, out);
        }
    }

    /// The id of the row at `place`.
    pub fn get(&self, place: u64) -> Option<u64> {
        let mut out = Vec::with_capacity(1);
        self.extend_into(place..place.checked_add(1)?, &mut out);
        out.pop()
    }

    /// The place of the row `id`.
    pub fn position(&self, id: u64) -> Option<u64> {
        let inside = |segment: &Segment| segment.bounds().is_some_and(|(low, high)| (low..=high).contains(&id));
        self.starts()
            .filter(|(segment, _)| inside(segment))
            .find_map(|(segment, start)| Some(start + segment.position(id)?))
    }

    /// The ids of the rows at `places`.
    #[must_use]
    pub fn slice(&self, places: Range<u64>) -> Self {
        let parts = self.parts(places).map(|(segment, part)| segment.slice(part));
        Self::from_segments(parts.collect()).unwrap_or_default()
    }

    /// The sequence without the rows at `places`, which ascend: a fragment's ids without its deleted rows.
    #[must_use]
    pub fn mask(&self, places: impl IntoIterator<Item = u64>) -> Self {
        let mut places = places.into_iter().peekable();
        let mut segments = Vec::with_capacity(self.segments.len());
        for ((segment, start), end) in self.starts().zip(&self.ends) {
            let mut gone = Vec::new();
            while let Some(place) = places.next_if(|place| place < end) {
                gone.push(place.saturating_sub(start));
            }
            segments.push(segment.mask(&gone));
        }
        segments.retain(|segment| segment.len() > 0);
        Self::from_segments(segments).unwrap_or_default()
    }

    /// The segments, each with the number of ids before it.
    pub(super) fn starts(&self) -> impl Iterator<Item = (&Segment, u64)> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        self.segments.iter().zip(starts)
    }

    /// The segments that hold `places`, each with those of them that it holds, counted from its start.
    fn parts(&self, places: Range<u64>) -> impl Iterator<Item = (&Segment, Range<u64>)> {
        let places = places.start.min(self.len())..places.end.min(self.len());
        let first = self.ends.partition_point(|end| *end <= places.start);
        let starts = self.starts().zip(&self.ends).skip(first);
        starts
            .map_while(move |((segment, start), end)| {
                let part = places.start.max(start)..places.end.min(*end);
                (start < places.end).then_some((segment, part, start))
            })
            .filter(|(_, part, _)| !part.is_empty())
            .map(|(segment, part, start)| (segment, part.start - start..part.end - start))
    }
}
