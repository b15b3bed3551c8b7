//! The changes of a commit: new values and deletions, by path.

use std::ops::Range;

use crate::error::{GravelerError, Result};

/// The least number of changes per thread.
const LEAST_A_CORE: usize = 8192;
/// The size at which a chunk of memory takes no more changes.
const PIECE: usize = 16 << 20;

/// Sorted changes, in few large chunks of memory instead of an allocation per change.
#[derive(Debug, Default, Clone)]
pub struct Changes {
    pieces: Vec<Piece>,
    len: usize,
}

#[derive(Debug, Default, Clone)]
struct Piece {
    /// The number of its first change.
    first: usize,
    bytes: Vec<u8>,
    ends: Vec<Ends>,
}

/// The ends of a change's key and value.
#[derive(Debug, Clone, Copy)]
struct Ends {
    key: u32,
    /// The highest bit marks a deletion.
    value: u32,
}

const DELETED: u32 = 1 << 31;

impl Piece {
    #[inline]
    fn get(&self, at: usize) -> Option<Change<'_>> {
        let ends = self.ends.get(at)?;
        let start = match at.checked_sub(1) {
            Some(before) => self.ends.get(before)?.value & !DELETED,
            None => 0,
        };
        let value = self.bytes.get(ends.key as usize..(ends.value & !DELETED) as usize)?;
        Some(Change {
            key: self.bytes.get(start as usize..ends.key as usize)?,
            value: (ends.value & DELETED == 0).then_some(value),
        })
    }
}

/// A borrowed change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// The path.
    pub key: &'a [u8],
    /// The framed value; `None` for a deletion.
    pub value: Option<&'a [u8]>,
}

impl Changes {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a change, whose value `write` appends to its buffer; `None` is a deletion.
    pub fn push_with(&mut self, key: &[u8], write: Option<impl FnOnce(&mut Vec<u8>)>) -> Result<()> {
        self.check(key)?;
        if self.pieces.last().is_none_or(|piece| piece.bytes.len() >= PIECE) {
            self.pieces.push(Piece {
                first: self.len,
                ..Piece::default()
            });
        }
        let Some(piece) = self.pieces.last_mut() else {
            return Ok(());
        };
        let start = piece.bytes.len();
        piece.bytes.extend_from_slice(key);
        let key_end = piece.bytes.len();
        let deleted = if write.is_none() { DELETED } else { 0 };
        if let Some(write) = write {
            write(&mut piece.bytes);
        }
        let end = u32::try_from(piece.bytes.len()).ok().filter(|end| *end < DELETED);
        let (Ok(key_end), Some(end)) = (u32::try_from(key_end), end) else {
            let found = piece.bytes.len() - start;
            piece.bytes.truncate(start);
            return Err(GravelerError::invalid(format!(
                "expected a path and an entry of less than two gigabytes, found {found} bytes"
            )));
        };
        piece.ends.push(Ends {
            key: key_end,
            value: end | deleted,
        });
        self.len += 1;
        Ok(())
    }

    fn check(&self, key: &[u8]) -> Result<()> {
        if key.is_empty() {
            return Err(GravelerError::invalid("expected a path, found an empty one"));
        }
        match self.last_key().filter(|last| key <= *last) {
            None => Ok(()),
            Some(last) => Err(unsorted(key, last)),
        }
    }

    /// The last path.
    pub fn last_key(&self) -> Option<&[u8]> {
        let piece = self.pieces.iter().rfind(|piece| !piece.ends.is_empty())?;
        piece.get(piece.ends.len().checked_sub(1)?).map(|change| change.key)
    }

    /// Appends a change with a framed value, or a deletion.
    pub fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        self.push_with(
            key,
            value.map(|value| move |buffer: &mut Vec<u8>| buffer.extend_from_slice(value)),
        )
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The change of a number.
    pub fn get(&self, at: usize) -> Option<Change<'_>> {
        let piece = self.pieces.partition_point(|piece| piece.first <= at).checked_sub(1)?;
        let piece = self.pieces.get(piece)?;
        piece.get(at - piece.first)
    }

    /// All changes.
    pub fn iter(&self) -> impl Iterator<Item = Change<'_>> {
        self.within(0..self.len)
    }

    /// The changes of a range of numbers.
    pub fn within(&self, numbers: Range<usize>) -> impl Iterator<Item = Change<'_>> {
        let from = self.pieces.partition_point(|piece| piece.first <= numbers.start);
        let pieces = self.pieces.get(from.saturating_sub(1)..).unwrap_or_default();
        pieces.iter().flat_map(move |piece| {
            let start = numbers.start.saturating_sub(piece.first);
            let end = numbers.end.saturating_sub(piece.first).min(piece.ends.len());
            (start..end).filter_map(|at| piece.get(at))
        })
    }

    /// The number of the first change whose path is at or after `key`, or with `after`, strictly after it.
    pub(crate) fn position(&self, from: usize, key: &[u8], after: bool) -> usize {
        let (mut low, mut high) = (from, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            let before = self
                .get(middle)
                .is_some_and(|change| change.key < key || (after && change.key == key));
            if before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Builds changes by number, in parallel on all cores.
    pub fn build<E>(count: usize, make: impl Fn(Range<usize>, &mut Changes) -> Result<(), E> + Sync) -> Result<Self, E>
    where
        E: Send + From<GravelerError>,
    {
        let cores = esker_store::cores().min(count / LEAST_A_CORE + 1);
        let part = count.div_ceil(cores).max(1);
        let made: Vec<Result<Changes, E>> = std::thread::scope(|scope| {
            let starts = (0..count).step_by(part);
            let threads: Vec<_> = starts
                .map(|start| {
                    let make = &make;
                    scope.spawn(move || {
                        let mut changes = Changes::new();
                        make(start..count.min(start + part), &mut changes)?;
                        Ok(changes)
                    })
                })
                .collect();
            let failed = || GravelerError::invalid("a thread that encodes changes failed").into();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(failed())))
                .collect()
        });
        let mut all = Changes::new();
        for changes in made {
            all.append(changes?)?;
        }
        Ok(all)
    }

    /// Appends changes whose first is after the last.
    pub fn append(&mut self, others: Changes) -> Result<()> {
        let Some(first) = others.get(0) else {
            return Ok(());
        };
        self.check(first.key)?;
        for mut piece in others.pieces {
            piece.first += self.len;
            self.pieces.push(piece);
        }
        self.len += others.len;
        Ok(())
    }
}

/// The error for unsorted changes.
pub(crate) fn unsorted(key: &[u8], last: &[u8]) -> GravelerError {
    GravelerError::invalid(format!(
        "expected changes sorted by path, each path once, found {:?} after {:?}",
        String::from_utf8_lossy(key),
        String::from_utf8_lossy(last)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_changes_made_on_many_cores_are_those_made_on_one() {
        let make = |range: Range<usize>, changes: &mut Changes| -> Result<()> {
            for n in range {
                let value = [n as u8; 3];
                changes.push(format!("{n:09}").as_bytes(), (n % 10 > 0).then_some(value.as_slice()))?;
            }
            Ok(())
        };
        for count in [0, 1, 9000, 100_000] {
            let mut one = Changes::new();
            make(0..count, &mut one).unwrap();
            let many = Changes::build(count, make).unwrap();
            assert!(many.iter().eq(one.iter()) && many.len() == count);
            for at in [0, 1, count / 2, count / 2 + 1, count.saturating_sub(1), count] {
                assert_eq!(many.get(at), one.iter().nth(at));
                assert!(many.within(at..count.min(at + 9)).eq(one.iter().skip(at).take(9)));
                if let Some(change) = one.get(at) {
                    assert_eq!(
                        (many.position(0, change.key, false), many.position(at, change.key, true)),
                        (at, at + 1)
                    );
                }
            }
        }
    }

    #[test]
    fn test_changes_must_be_sorted_and_have_paths() {
        let mut changes = Changes::new();
        changes.push(b"b", None).unwrap();
        for key in [b"b".as_slice(), b"a", b""] {
            assert!(changes.push(key, None).is_err());
        }
        assert!(changes.append(changes.clone()).is_err());
    }
}
