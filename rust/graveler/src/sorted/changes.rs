//! Converts sorted records to the changes of a commit.

use super::Merge;
use crate::change::Changes;
use crate::error::Result;

/// The most changes in a batch, and the most bytes.
const ROWS: usize = if cfg!(test) { 5 } else { 1 << 15 };
const SIZE: usize = 8 << 20;

/// Batches of changes: the records' keys are paths, their values framed values; of equal paths the newest wins.
#[derive(Debug)]
pub struct NewestChanges {
    merge: Merge,
}

impl NewestChanges {
    /// Changes from sorted records.
    pub fn new(merge: Merge) -> Self {
        NewestChanges { merge }
    }

    fn batch(&mut self) -> Result<Changes> {
        let mut changes = Changes::new();
        let mut size = 0;
        while changes.len() < ROWS && size < SIZE && self.merge.advance_to_next_key()? {
            size += self.merge.key().len() + self.merge.value().len();
            changes.push(self.merge.key(), Some(self.merge.value()))?;
        }
        Ok(changes)
    }
}

impl Iterator for NewestChanges {
    type Item = Result<Changes>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.batch() {
            Ok(changes) => (!changes.is_empty()).then_some(Ok(changes)),
            Err(error) => Some(Err(error)),
        }
    }
}
