//! Staged changes by path: new objects and deletions, held encoded to save memory.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::change::Changes;
use crate::entry::Entry;
use crate::error::{GravelerError, Result};
use crate::value::Value;

/// Paths whose values are framed at a time.
const AT_ONCE: usize = if cfg!(test) { 7 } else { 1 << 16 };

/// Encoded entries by path; `None` for a deletion.
type Paths = BTreeMap<Box<str>, Option<Box<[u8]>>>;

/// A path and its entry; `None` for a deletion.
pub type StagedPath = (String, Option<Entry>);

/// The staged changes, sorted by path. A handle and the stores of its transaction share one.
#[derive(Debug, Default)]
pub struct StagedPaths(Mutex<Arc<Paths>>);

impl StagedPaths {
    fn paths(&self) -> MutexGuard<'_, Arc<Paths>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stages an object at a path, or its deletion.
    pub fn stage(&self, path: &str, change: Option<Entry>) {
        let change = change.map(|entry| entry.encode().into_boxed_slice());
        let mut paths = self.paths();
        let paths = Arc::make_mut(&mut paths);
        match paths.get_mut(path) {
            Some(staged) => *staged = change,
            None => {
                paths.insert(path.into(), change);
            }
        }
    }

    /// The staged change of a path; `None` if nothing is staged.
    pub fn get(&self, path: &str) -> Result<Option<Option<Entry>>> {
        self.paths()
            .get(path)
            .map(|change| decoded(change.as_deref()))
            .transpose()
    }

    /// Whether something is staged at a path.
    pub fn contains(&self, path: &str) -> bool {
        self.paths().contains_key(path)
    }

    /// Removes the staged change of a path.
    pub fn forget(&self, path: &str) {
        Arc::make_mut(&mut self.paths()).remove(path);
    }

    /// How many paths there are.
    pub fn len(&self) -> usize {
        self.paths().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.paths().is_empty()
    }

    /// The first `count` paths with `prefix` that are not before `from`.
    pub fn within(&self, prefix: &str, from: &str, count: usize) -> Result<Vec<StagedPath>> {
        let found = self.messages_within(prefix, from, count).into_iter();
        found
            .map(|(path, message)| Ok((path, decoded(message.as_deref())?)))
            .collect()
    }

    /// The same with entries as their messages.
    pub fn messages_within(&self, prefix: &str, from: &str, count: usize) -> Vec<(String, Option<Box<[u8]>>)> {
        let paths = self.paths();
        let found = paths.range::<str, _>((Bound::Included(prefix.max(from)), Bound::Unbounded));
        found
            .take_while(|(path, _)| path.starts_with(prefix))
            .take(count)
            .map(|(path, message)| (path.to_string(), message.clone()))
            .collect()
    }

    /// A copy-on-write copy.
    #[must_use]
    pub fn copy(&self) -> Self {
        StagedPaths(Mutex::new(self.paths().clone()))
    }

    /// All staged changes, in batches for a commit.
    pub fn changes(&self) -> StagedChanges {
        StagedChanges {
            paths: self.paths().clone(),
            last: None,
        }
    }
}

/// The staged changes at the time of its creation, as batches.
#[derive(Debug)]
pub struct StagedChanges {
    paths: Arc<Paths>,
    last: Option<Box<str>>,
}

impl StagedChanges {
    fn batch(&mut self) -> Result<Changes> {
        let after = match &self.last {
            Some(last) => Bound::Excluded(&**last),
            None => Bound::Unbounded,
        };
        let found = self.paths.range::<str, _>((after, Bound::Unbounded));
        let rows: Vec<(&str, Option<&[u8]>)> = found
            .take(AT_ONCE)
            .map(|(path, change)| (&**path, change.as_deref()))
            .collect();
        let changes = Changes::build(rows.len(), |numbers, changes| {
            let mut value = Vec::new();
            for (path, change) in rows.get(numbers).unwrap_or_default() {
                let Some(data) = change else {
                    changes.push(path.as_bytes(), None)?;
                    continue;
                };
                let identity = Entry::decode(data)?.identity();
                value.clear();
                let framed = Value {
                    identity: &identity,
                    data,
                };
                framed.encode_to(&mut value);
                changes.push(path.as_bytes(), Some(&value))?;
            }
            Ok::<_, GravelerError>(())
        })?;
        self.last = rows.last().map(|(path, _)| (*path).into());
        Ok(changes)
    }
}

impl Iterator for StagedChanges {
    type Item = Result<Changes>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.batch() {
            Ok(changes) => (!changes.is_empty()).then_some(Ok(changes)),
            Err(error) => Some(Err(error)),
        }
    }
}

fn decoded(change: Option<&[u8]>) -> Result<Option<Entry>> {
    change.map(Entry::decode).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(size: i64) -> Entry {
        Entry {
            size,
            metadata: [("k".to_owned(), "v".to_owned())].into(),
            ..Entry::default()
        }
    }

    #[test]
    fn test_changes_of_a_copy_are_not_seen_by_the_other() {
        let staged = StagedPaths::default();
        staged.stage("a", Some(entry(1)));
        let copy = staged.copy();
        staged.stage("a", None);
        staged.stage("b", Some(entry(2)));
        copy.forget("a");
        assert_eq!(staged.get("a").unwrap(), Some(None));
        assert_eq!((staged.len(), copy.len()), (2, 0));
    }

    #[test]
    fn test_changes_are_those_of_the_entries() {
        let staged = StagedPaths::default();
        for number in 0..30_000 {
            let path = format!("{:05}", (number * 7919) % 30_000);
            staged.stage(&path, (number % 3 > 0).then(|| entry(number)));
        }
        let batches: Result<Vec<Changes>> = staged.changes().collect();
        let batches = batches.unwrap();
        let changes = || batches.iter().flat_map(Changes::iter);
        assert_eq!(changes().count(), 30_000);
        for (change, (path, entry)) in changes().zip(staged.within("", "", 30_000).unwrap()) {
            assert_eq!(change.key, path.as_bytes());
            assert_eq!(change.value.map(<[u8]>::to_vec), entry.map(Entry::encode_value));
        }
        let paths: Vec<String> = staged
            .within("01", "0102", 3)
            .unwrap()
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        assert_eq!(paths, ["01020", "01021", "01022"]);
    }
}
