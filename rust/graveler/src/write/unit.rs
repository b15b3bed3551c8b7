//! Units: what one task encodes.

use std::ops::Range;
use std::sync::Arc;

use super::range_encoder::{Compressor, RangeEncoder};
use super::segment::Segment;
use crate::apply::Summary;
use crate::change::{Change, Changes};
use crate::error::Result;
use crate::metarange::RangeInfo;
use crate::sstable::BlockCursor;
use crate::storage::{Blocks, Storage};
use crate::value::identity_of;

/// A slice of changes, by their numbers.
#[derive(Debug, Clone)]
pub(crate) struct Slice {
    pub(crate) changes: Arc<Changes>,
    pub(crate) numbers: Range<usize>,
}

/// Records of a range to rewrite with changes.
#[derive(Debug)]
pub(crate) struct Rewrite {
    /// The range.
    pub(crate) range: RangeInfo,
    /// The first key (inclusive).
    pub(crate) from: Vec<u8>,
    /// The end key (exclusive).
    pub(crate) to: Option<Vec<u8>>,
    /// The changes, all within these bounds.
    pub(crate) changes: Vec<Slice>,
}

impl Rewrite {
    /// All records of a range as they are.
    pub(crate) fn all_of(range: &RangeInfo) -> Self {
        Rewrite {
            range: range.clone(),
            from: Vec::new(),
            to: None,
            changes: Vec::new(),
        }
    }

    /// A key before which nothing is written.
    pub(super) fn first_key(&self) -> &[u8] {
        let changed = self
            .changes
            .first()
            .and_then(|slice| slice.changes.get(slice.numbers.start));
        let first = self.range.min_key.as_slice().max(&self.from);
        changed.map_or(first, |change| change.key.min(first))
    }

    /// A key after which nothing is written.
    pub(super) fn max_key(&self) -> &[u8] {
        match &self.to {
            // All records are before `to`.
            Some(_) => self.last_change().map_or(&self.from, |change| change.key),
            None => &self.range.max_key,
        }
    }

    fn last_change(&self) -> Option<Change<'_>> {
        let slice = self.changes.last()?;
        slice.changes.get(slice.numbers.end.checked_sub(1)?)
    }

    /// Whether the last record written has the last key of the range.
    pub(super) fn keeps_last(&self) -> bool {
        let deleted = |change: Change<'_>| change.key == self.range.max_key.as_slice() && change.value.is_none();
        self.to.is_none() && !self.last_change().is_some_and(deleted)
    }
}

/// A unit of work.
#[derive(Debug)]
pub(super) enum Unit {
    /// Gathered records.
    Segment(Segment),
    /// The values of changes.
    Changes {
        changes: Arc<Changes>,
        numbers: Range<usize>,
    },
    /// The records of a range, with changes.
    Rewrite(Rewrite),
}

/// A unit that needs no more reads.
pub(super) struct OpenedUnit(Unit, Option<Blocks>);

impl Unit {
    /// Reads what the unit needs.
    pub(super) async fn open(self, storage: &Arc<Storage>) -> Result<OpenedUnit> {
        let blocks = match &self {
            Unit::Rewrite(part) => Some(storage.blocks(&part.range.id).await?),
            _ => None,
        };
        Ok(OpenedUnit(self, blocks))
    }
}

impl OpenedUnit {
    /// Encodes the unit; returns the counts of the changes.
    pub(super) fn encode_to(self, encoder: &mut RangeEncoder) -> Result<Summary> {
        let mut summary = Summary::default();
        match (self.0, self.1) {
            (Unit::Rewrite(part), Some(blocks)) => {
                let work = Work {
                    changes: part
                        .changes
                        .iter()
                        .flat_map(|slice| slice.changes.within(slice.numbers.clone())),
                    next: None,
                    encoder,
                    summary,
                };
                summary = work.rewrite(blocks, &part)?;
            }
            (Unit::Changes { changes, numbers }, _) => {
                for change in changes.within(numbers) {
                    if let Some(value) = change.value {
                        summary.added += 1;
                        encoder.add(change.key, value)?;
                    }
                }
            }
            (Unit::Segment(segment), _) => {
                for (key, value) in segment.iter() {
                    encoder.add(key, value)?;
                }
            }
            (Unit::Rewrite(_), None) => {}
        }
        Ok(summary)
    }
}

/// The state of rewriting a range.
struct Work<'a, I> {
    changes: I,
    next: Option<Change<'a>>,
    encoder: &'a mut RangeEncoder,
    summary: Summary,
}

impl<'a, I: Iterator<Item = Change<'a>>> Work<'a, I> {
    fn rewrite(mut self, mut blocks: Blocks, part: &Rewrite) -> Result<Summary> {
        self.next = self.changes.next();
        let mut compressor = Compressor::Unknown;
        let mut cursor = BlockCursor::default();
        blocks.skip_to(&part.from)?;
        // Records are compared with `from` only until they reach it: comparing with an empty key costs a quarter of all the rest.
        let mut before = !part.from.is_empty();
        'blocks: while let Some((block, stored)) = blocks.next()? {
            cursor.enter(block.clone()).map_err(|error| blocks.in_file(error))?;
            while cursor.advance().map_err(|error| blocks.in_file(error))? {
                let key = cursor.key().map_err(|error| blocks.in_file(error))?;
                if before {
                    before = key < part.from.as_slice();
                    if before {
                        continue;
                    }
                }
                if part.to.as_ref().is_some_and(|to| key >= to.as_slice()) {
                    break 'blocks;
                }
                self.record(key, cursor.value())?;
            }
            self.encoder.reached_end_of(&block, &stored, &mut compressor);
        }
        while let Some(change) = self.next {
            self.add(change)?;
        }
        Ok(self.summary)
    }

    #[inline]
    fn record(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        while let Some(change) = self.next {
            match change.key.cmp(key) {
                std::cmp::Ordering::Less => self.add(change)?,
                std::cmp::Ordering::Equal => return self.replace(change, value),
                std::cmp::Ordering::Greater => break,
            }
        }
        self.encoder.add(key, value)
    }

    /// Applies a change at a path that the base does not have.
    fn add(&mut self, change: Change<'_>) -> Result<()> {
        self.next = self.changes.next();
        match change.value {
            Some(value) => {
                self.summary.added += 1;
                self.encoder.add(change.key, value)
            }
            None => Ok(()),
        }
    }

    fn replace(&mut self, change: Change<'_>, base: &[u8]) -> Result<()> {
        self.next = self.changes.next();
        let Some(value) = change.value else {
            self.summary.removed += 1;
            return Ok(());
        };
        if identity_of(value)? == identity_of(base)? {
            return self.encoder.add(change.key, base);
        }
        self.summary.changed += 1;
        self.encoder.add(change.key, value)
    }
}
