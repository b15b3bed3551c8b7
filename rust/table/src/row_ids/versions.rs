//! Row versions: for each row of a fragment a table version (that created it, or that last changed it), as runs.
//!
//! A run names its rows by a segment of offsets. Writers that drop deleted rows leave overlapping offsets in different runs, so every
//! reader uses only their count: the rows of a run follow those of the run before.

use std::ops::Range;

use bytes::Bytes;

use super::segment::Segment;
use crate::error::{Result, TableError};
use crate::raw::{push_length_delimited, push_varint, walk};

const RUNS: u32 = 1;
const SPAN: u32 = 1;
const VERSION: u32 = 2;

/// Versions in row order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowVersions {
    /// Where each run ends, and its version. Neighbours differ, none is empty.
    runs: Vec<(u64, u64)>,
}

impl RowVersions {
    /// `rows` rows of one version.
    pub fn uniform(rows: u64, version: u64) -> Self {
        let mut versions = Self::default();
        versions.push(rows, version);
        versions
    }

    /// One version a row.
    pub fn from_rows(versions: impl IntoIterator<Item = u64>) -> Self {
        let mut out = Self::default();
        versions.into_iter().for_each(|version| out.push(1, version));
        out
    }

    /// Adds `rows` rows of one version at the end.
    pub fn push(&mut self, rows: u64, version: u64) {
        if rows == 0 {
            return;
        }
        let end = self.len().saturating_add(rows);
        match self.runs.last_mut() {
            Some((last, same)) if *same == version => *last = end,
            _ => self.runs.push((end, version)),
        }
    }

    /// Adds other rows at the end.
    pub fn extend(&mut self, other: &Self) {
        other
            .runs(0..other.len())
            .for_each(|(rows, version)| self.push(rows, version));
    }

    /// Decodes a sequence of versions. `what` is for errors.
    pub fn decode(message: &Bytes, what: &str) -> Result<Self> {
        let damaged = |message: String| TableError::corrupt(what, message);
        let mut out = Self::default();
        for record in walk(message) {
            let record = record.map_err(|error| error.of(what))?;
            if record.number != RUNS {
                continue;
            }
            let run = message.slice(record.payload);
            let (mut span, mut version) = (None, 0);
            for record in walk(&run) {
                let record = record.map_err(|error| error.of(what))?;
                match record.number {
                    SPAN => span = Some(run.slice(record.payload)),
                    VERSION => version = record.varint,
                    _ => {}
                }
            }
            let span = span.ok_or_else(|| damaged("expected a run of versions to name its rows".into()))?;
            let rows = Segment::decode(&span).map_err(damaged)?.len();
            if out.len().checked_add(rows).is_none() {
                return Err(damaged("expected less than 2^64 rows, found more".into()));
            }
            out.push(rows, version);
        }
        Ok(out)
    }

    /// The versions as a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut start = 0;
        for (end, version) in &self.runs {
            let mut run = Vec::new();
            push_length_delimited(&mut run, SPAN, &Segment::Range(start..*end).encode());
            if *version != 0 {
                push_varint(&mut run, u64::from(VERSION) << 3);
                push_varint(&mut run, *version);
            }
            push_length_delimited(&mut out, RUNS, &run);
            start = *end;
        }
        out
    }

    /// How many rows there are.
    pub fn len(&self) -> u64 {
        self.runs.last().map_or(0, |(end, _)| *end)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The version of each row.
    pub fn rows(&self) -> Vec<u64> {
        let mut out = Vec::with_capacity(usize::try_from(self.len()).unwrap_or(0));
        let mut start = 0;
        for (end, version) in &self.runs {
            out.extend((start..*end).map(|_| *version));
            start = *end;
        }
        out
    }

    /// The version of the row at `place`.
    pub fn get(&self, place: u64) -> Option<u64> {
        let run = self.runs.partition_point(|(end, _)| *end <= place);
        self.runs.get(run).map(|(_, version)| *version)
    }

    /// The rows at `places` as runs: how many rows, and their version.
    pub fn runs(&self, places: Range<u64>) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.runs.partition_point(|(end, _)| *end <= places.start);
        let mut start = places.start;
        self.runs.iter().skip(first).map_while(move |(end, version)| {
            let end = (*end).min(places.end);
            let rows = end.checked_sub(start).filter(|rows| *rows > 0)?;
            start = end;
            Some((rows, *version))
        })
    }

    /// The versions of the rows at `places`.
    #[must_use]
    pub fn slice(&self, places: Range<u64>) -> Self {
        let mut out = Self::default();
        self.runs(places).for_each(|(rows, version)| out.push(rows, version));
        out
    }

    /// The versions without the rows at `places`, which ascend.
    #[must_use]
    pub fn mask(&self, places: impl IntoIterator<Item = u64>) -> Self {
        let mut out = Self::default();
        let mut start = 0;
        for place in places.into_iter().chain([self.len()]) {
            self.runs(start..place)
                .for_each(|(rows, version)| out.push(rows, version));
            start = place.saturating_add(1);
        }
        out
    }

    /// The versions with that of the rows at `places`, which ascend, set to `version`.
    #[must_use]
    pub fn with_version(&self, places: impl IntoIterator<Item = u64>, version: u64) -> Self {
        let mut out = Self::default();
        let mut start = 0;
        for place in places.into_iter().filter(|place| *place < self.len()) {
            self.runs(start..place)
                .for_each(|(rows, version)| out.push(rows, version));
            out.push(1, version);
            start = place.saturating_add(1);
        }
        self.runs(start..self.len())
            .for_each(|(rows, version)| out.push(rows, version));
        out
    }
}
