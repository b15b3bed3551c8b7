//! Changes that come some at a time, sorted: the next ones are made while others are written.

use std::fmt;
use std::sync::Arc;

use tokio::task::{spawn_blocking, JoinHandle};

use crate::change::{unsorted, Changes};
use crate::error::{GravelerError, Result};
use crate::write::Slice;

/// Where changes come from: batches, each sorted and after the one before.
pub type Batches = Box<dyn Iterator<Item = Result<Changes>> + Send>;

type Pulled = (Batches, Option<Result<Changes>>);

/// A place in a stream of changes.
pub struct ChangeStream {
    ahead: Option<JoinHandle<Pulled>>,
    batches: Option<Batches>,
    current: Arc<Changes>,
    /// The number of the next change in the current batch.
    next: usize,
}

impl fmt::Debug for ChangeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeStream")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl ChangeStream {
    /// Changes that are all there.
    pub fn of(changes: Arc<Changes>) -> Self {
        ChangeStream {
            ahead: None,
            batches: None,
            current: changes,
            next: 0,
        }
    }

    /// Batches of changes, made on a thread that may block.
    pub fn new(batches: Batches) -> Self {
        ChangeStream {
            batches: Some(batches),
            ..Self::of(Arc::default())
        }
    }

    /// The next change's path; none at the end.
    pub(crate) async fn next_key(&mut self) -> Result<Option<&[u8]>> {
        while self.next >= self.current.len() {
            let Some(batch) = self.pull().await? else {
                return Ok(None);
            };
            let first = batch.get(0).map(|change| change.key);
            match (self.current.last_key(), first) {
                (Some(last), Some(first)) if first <= last => return Err(unsorted(first, last)),
                (_, None) => continue,
                _ => {}
            }
            self.current = Arc::new(batch);
            self.next = 0;
        }
        Ok(self.current.get(self.next).map(|change| change.key))
    }

    /// The next batch, while the one after it is being made.
    async fn pull(&mut self) -> Result<Option<Changes>> {
        let task = match (self.ahead.take(), self.batches.take()) {
            (Some(task), _) => task,
            (None, Some(batches)) => make_next(batches),
            (None, None) => return Ok(None),
        };
        let (batches, batch) = task
            .await
            .map_err(|error| GravelerError::task_failed("changes", &error))?;
        let batch = batch.transpose()?;
        if batch.is_some() {
            self.ahead = Some(make_next(batches));
        }
        Ok(batch)
    }

    /// The next changes up to a path, about `count` of them: fewer than that only where there are no more of them.
    pub(crate) async fn take(&mut self, up_to: Option<&[u8]>, count: usize) -> Result<Vec<Slice>> {
        let mut taken = Vec::new();
        let mut found = 0;
        while found < count && self.next_key().await?.is_some() {
            let start = self.next;
            let end = match up_to {
                Some(key) => self.current.position(start, key, true),
                None => self.current.len(),
            };
            if end == start {
                break;
            }
            // What is there already is taken at once: it holds memory anyway.
            self.next = end;
            found += end - start;
            taken.push(Slice {
                changes: self.current.clone(),
                numbers: start..end,
            });
        }
        Ok(taken)
    }
}

fn make_next(mut batches: Batches) -> JoinHandle<Pulled> {
    spawn_blocking(move || {
        let batch = batches.next();
        (batches, batch)
    })
}
