//! Prefetches ranges in the order of their use.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::reader::TableReader;
use super::Storage;
use crate::error::{GravelerError, Result};
use crate::metarange::RangeInfo;

/// How many ranges are fetched concurrently, of at most 20 MiB each.
const AHEAD: usize = 3;

/// A queue of ranges in the order of their use.
#[derive(Debug)]
pub(crate) struct Fetches {
    storage: Arc<Storage>,
    waiting: VecDeque<RangeInfo>,
    under_way: VecDeque<JoinHandle<Result<TableReader>>>,
    /// The prefix of the wanted keys, if not all are wanted.
    prefix: Option<Vec<u8>>,
}

impl Fetches {
    /// Ranges that will be read whole.
    pub(crate) fn new(storage: Arc<Storage>, ranges: impl IntoIterator<Item = RangeInfo>) -> Self {
        Fetches {
            storage,
            waiting: ranges.into_iter().collect(),
            under_way: VecDeque::new(),
            prefix: None,
        }
    }

    /// Ranges of which only keys with a prefix are wanted, one at a time: for a large range with other keys only the end is fetched, any
    /// other range is fetched whole.
    pub(crate) fn within(storage: Arc<Storage>, ranges: impl IntoIterator<Item = RangeInfo>, prefix: &[u8]) -> Self {
        let mut fetches = Self::new(storage, ranges);
        fetches.prefix = Some(prefix.to_vec());
        fetches
    }

    /// The next range.
    pub(crate) async fn next(&mut self) -> Result<Option<TableReader>> {
        if let Some(prefix) = &self.prefix {
            let Some(range) = self.waiting.pop_front() else {
                return Ok(None);
            };
            let reader = match range.is_worth_fetching(prefix) {
                true => self.storage.open_whole(&range.id).await?,
                false => self.storage.open(&range.id).await?,
            };
            return Ok(Some(reader));
        }
        while self.under_way.len() < AHEAD {
            let Some(range) = self.waiting.pop_front() else { break };
            let storage = self.storage.clone();
            self.under_way
                .push_back(tokio::spawn(async move { storage.open_whole(&range.id).await }));
        }
        let Some(task) = self.under_way.pop_front() else {
            return Ok(None);
        };
        let reader = task
            .await
            .map_err(|error| GravelerError::task_failed("range", &error))?;
        reader.map(Some)
    }
}

impl Drop for Fetches {
    fn drop(&mut self) {
        self.under_way.iter().for_each(JoinHandle::abort);
    }
}
