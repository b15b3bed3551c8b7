//! A stream of sorted changes in batches: the next batch is made while the current one is written.

use std::fmt;
use std::sync::Arc;

use tokio::task::{spawn_blocking, JoinHandle};

use crate::change::{unsorted, Changes};
use crate::error::{GravelerError, Result};
use crate::write::Slice;

/// Batches of changes, sorted within and across batches.
pub type Batches = Box<dyn Iterator<Item = Result<Changes>> + Send>;

type Pulled = (Batches, Option<Result<Changes>>);

/// A cursor over a stream of changes.
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
    /// A stream of one batch.
    pub fn of(changes: Arc<Changes>) -> Self {
        ChangeStream {
            ahead: None,
            batches: None,
            current: changes,
            next: 0,
        }
    }

    /// A stream of batches, which are made on a thread that may block.
    pub fn new(batches: Batches) -> Self {
        ChangeStream {
            batches: Some(batches),
            ..Self::of(Arc::default())
        }
    }

    /// The next change's path; `None` at the end.
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

    /// Takes the next batch and starts to make the one after it.
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

    /// The next changes up to a path, about `count` of them, fewer only if there are no more.
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
            // The whole rest of the batch is taken, since it is in memory anyway.
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
