//! What a commit changes: paths that get a value, and paths that go.

use std::ops::Range;

use crate::error::{GravelerError, Result};

/// Fewer changes than this are not worth a thread.
const LEAST_A_CORE: usize = 8192;

/// Sorted changes, in few large pieces of memory rather than one a change.
#[derive(Debug, Default, Clone)]
pub struct Changes {
    bytes: Vec<u8>,
    /// Where each change's key and value end in `bytes`, and whether it is a deletion.
    ends: Vec<(usize, usize, bool)>,
}

/// One of them, where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// The path.
    pub key: &'a [u8],
    /// The framed value, or nothing for a path that goes.
    pub value: Option<&'a [u8]>,
}

impl Changes {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a change, whose value `write` appends to the buffer it is given; none at all is a deletion.
    pub fn push_with(&mut self, key: &[u8], write: Option<impl FnOnce(&mut Vec<u8>)>) -> Result<()> {
        self.check(key)?;
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        let deleted = write.is_none();
        if let Some(write) = write {
            write(&mut self.bytes);
        }
        self.ends.push((key_end, self.bytes.len(), deleted));
        Ok(())
    }

    fn check(&self, key: &[u8]) -> Result<()> {
        if key.is_empty() {
            return Err(GravelerError::invalid("expected a path, found an empty one"));
        }
        let last = self.len().checked_sub(1).and_then(|last| self.get(last));
        match last.filter(|last| key <= last.key) {
            None => Ok(()),
            Some(last) => Err(GravelerError::invalid(format!(
                "expected changes sorted by path, each path once, found {:?} after {:?}",
                String::from_utf8_lossy(key),
                String::from_utf8_lossy(last.key)
            ))),
        }
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
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// One by number.
    #[inline]
    pub fn get(&self, at: usize) -> Option<Change<'_>> {
        let (key_end, end, deleted) = *self.ends.get(at)?;
        let start = match at.checked_sub(1) {
            Some(before) => self.ends.get(before)?.1,
            None => 0,
        };
        let value = self.bytes.get(key_end..end)?;
        Some(Change {
            key: self.bytes.get(start..key_end)?,
            value: (!deleted).then_some(value),
        })
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Change<'_>> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Changes that are made by number, some thousands at a time on each core.
    pub fn build<E>(count: usize, make: impl Fn(Range<usize>, &mut Changes) -> Result<(), E> + Sync) -> Result<Self, E>
    where
        E: Send + From<GravelerError>,
    {
        let cores = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(count / LEAST_A_CORE + 1);
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
        if self.is_empty() {
            *self = others;
            return Ok(());
        }
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(&others.bytes);
        let moved = others
            .ends
            .iter()
            .map(|(key_end, end, deleted)| (offset + key_end, offset + end, *deleted));
        self.ends.extend(moved);
        Ok(())
    }
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
