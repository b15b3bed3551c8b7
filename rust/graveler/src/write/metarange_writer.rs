//! Writes a whole content: records and reused ranges go in by key, ranges and one metarange come out.
//!
//! ```text
//! records -> segments, cut where a range ends whatever its size -> tasks that encode -> puts, some at a time
//! ```
//!
//! A segment's ranges do not depend on what stands before it, so segments are encoded side by side; where the rule has a least size, one
//! waits for the one before.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::{try_join_all, BoxFuture};
use futures::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{spawn_blocking, JoinHandle};

use super::open_range::{check_key, EncodedTable, OpenTable};
use super::segment::Segment;
use super::split_rule::SplitRule;
use crate::error::{GravelerError, Result};
use crate::id::TableId;
use crate::metarange::{Metarange, RangeInfo};
use crate::storage::Storage;

/// A segment is handed on when it is this large, even where no range ends.
const SEGMENT_SIZE: usize = 8 << 20;

/// What writing left.
#[derive(Debug, Clone)]
pub struct Written {
    /// The content.
    pub metarange: Arc<Metarange>,
    /// Ranges that were encoded and put, the metarange not counted.
    pub ranges_written: u64,
    /// Bytes of them and of the metarange.
    pub bytes_written: u64,
    /// Ranges that were taken over by reference.
    pub ranges_reused: u64,
}

/// What a task leaves: its ranges, and one that goes on.
struct Encoded {
    ranges: Vec<RangeInfo>,
    bytes: u64,
    open: Option<Box<OpenTable>>,
}

enum Part {
    Reused(RangeInfo),
    Task(JoinHandle<Result<Encoded>>),
}

/// Takes records and ranges in the order of their keys.
pub struct MetarangeWriter {
    storage: Arc<Storage>,
    rule: SplitRule,
    properties: Arc<BTreeMap<String, String>>,
    segment: Segment,
    last_key: Vec<u8>,
    any: bool,
    parts: Vec<Part>,
    /// The last part is a task whose last range is not closed yet.
    continues: bool,
    slots: Arc<Semaphore>,
}

impl MetarangeWriter {
    /// A writer of ranges into a storage.
    pub fn new(storage: Arc<Storage>, rule: SplitRule) -> Self {
        Self::with_properties(storage, rule, BTreeMap::new())
    }

    /// The same, whose tables say more of themselves than their type: lakeFS's dumps do.
    pub fn with_properties(storage: Arc<Storage>, rule: SplitRule, properties: BTreeMap<String, String>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        MetarangeWriter {
            storage,
            rule,
            properties: Arc::new(properties),
            segment: Segment::default(),
            last_key: Vec::new(),
            any: false,
            parts: Vec::new(),
            continues: false,
            slots: Arc::new(Semaphore::new(cores + 1)),
        }
    }

    /// Appends a record with a framed value.
    #[inline]
    pub async fn write_record(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(&self.last_key, key, self.any)?;
        self.any = true;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.segment.push(key, value);
        if self.rule.always_breaks_after(key) {
            self.flush(true).await?;
        } else if self.segment.size() >= SEGMENT_SIZE {
            self.flush(false).await?;
        }
        Ok(())
    }

    /// Appends a range that exists. It closes the open one at any size: only breaks of our own follow the rule.
    pub async fn write_range(&mut self, range: RangeInfo) -> Result<()> {
        check_key(&self.last_key, &range.min_key, self.any)?;
        self.flush(true).await?;
        self.any = true;
        self.last_key.clear();
        self.last_key.extend_from_slice(&range.max_key);
        self.parts.push(Part::Reused(range));
        Ok(())
    }

    async fn flush(&mut self, close: bool) -> Result<()> {
        if self.segment.is_empty() && !(close && self.continues) {
            return Ok(());
        }
        let before = match self.parts.pop() {
            Some(part) if self.continues => Some(part),
            other => {
                self.parts.extend(other);
                None
            }
        };
        // Not from a task that waits for another: the one it waits for has its slot already.
        let slot = self.slots.clone().acquire_owned().await;
        let slot = slot.map_err(|_| GravelerError::invalid("the writer is closed"))?;
        let task = Task {
            storage: self.storage.clone(),
            rule: self.rule,
            properties: self.properties.clone(),
            segment: std::mem::take(&mut self.segment),
            close,
        };
        self.parts.push(Part::Task(tokio::spawn(task.run(before, slot))));
        self.continues = !close;
        Ok(())
    }

    /// Ends the last range and writes the metarange.
    pub async fn finish(mut self) -> Result<Written> {
        self.flush(true).await?;
        let mut ranges = Vec::with_capacity(self.parts.len());
        let (mut ranges_written, mut ranges_reused, mut bytes_written) = (0, 0, 0);
        for part in std::mem::take(&mut self.parts) {
            match part {
                Part::Reused(range) => {
                    ranges_reused += 1;
                    ranges.push(range);
                }
                other => {
                    let encoded = other.wait().await?;
                    ranges_written += encoded.ranges.len() as u64;
                    bytes_written += encoded.bytes;
                    ranges.extend(encoded.ranges);
                }
            }
        }
        let table = encode_metarange(&ranges, &self.properties)?;
        bytes_written += table.bytes.len() as u64;
        let id = table.info.id.clone();
        self.storage.put(&id, table.bytes.into()).await?;
        Ok(Written {
            metarange: Arc::new(Metarange::new(Some(id), ranges)?),
            ranges_written,
            bytes_written,
            ranges_reused,
        })
    }
}

/// The table of a metarange.
pub fn encode_metarange(ranges: &[RangeInfo], properties: &BTreeMap<String, String>) -> Result<EncodedTable> {
    let mut open = OpenTable::new("metaranges", properties);
    let mut value = Vec::new();
    for range in ranges {
        value.clear();
        range.encode_value_to(&mut value);
        open.add(&range.max_key, &value)?;
    }
    Ok(open.finish())
}

/// The id that a metarange of these ranges has.
pub fn metarange_id(ranges: &[RangeInfo]) -> Result<TableId> {
    Ok(encode_metarange(ranges, &BTreeMap::new())?.info.id)
}

impl Part {
    async fn wait(self) -> Result<Encoded> {
        match self {
            Part::Task(task) => task
                .await
                .map_err(|error| GravelerError::task_failed("ranges", &error))?,
            Part::Reused(range) => Ok(Encoded {
                ranges: vec![range],
                bytes: 0,
                open: None,
            }),
        }
    }
}

struct Task {
    storage: Arc<Storage>,
    rule: SplitRule,
    properties: Arc<BTreeMap<String, String>>,
    segment: Segment,
    close: bool,
}

impl Task {
    fn run(self, before: Option<Part>, slot: OwnedSemaphorePermit) -> BoxFuture<'static, Result<Encoded>> {
        async move {
            let mut so_far = match before {
                Some(part) => part.wait().await?,
                None => Encoded {
                    ranges: Vec::new(),
                    bytes: 0,
                    open: None,
                },
            };
            let open = so_far.open.take();
            let storage = self.storage.clone();
            let encoded = spawn_blocking(move || self.encode(open)).await;
            let (tables, open) = encoded.map_err(|error| GravelerError::task_failed("ranges", &error))??;
            let puts = tables.into_iter().map(|table| {
                let storage = storage.clone();
                async move {
                    let bytes = table.bytes.len() as u64;
                    storage.put(&table.info.id, table.bytes.into()).await?;
                    Ok::<_, GravelerError>((table.info, bytes))
                }
            });
            for (info, bytes) in try_join_all(puts).await? {
                so_far.ranges.push(info);
                so_far.bytes += bytes;
            }
            drop(slot);
            so_far.open = open;
            Ok(so_far)
        }
        .boxed()
    }

    fn encode(self, open: Option<Box<OpenTable>>) -> Result<(Vec<EncodedTable>, Option<Box<OpenTable>>)> {
        let mut tables = Vec::new();
        let mut current = open;
        for (key, value) in self.segment.iter() {
            let table = current.get_or_insert_with(|| Box::new(OpenTable::new("ranges", &self.properties)));
            let size = table.add(key, value)?;
            if self.rule.breaks_after(key, size) {
                tables.extend(current.take().map(|table| table.finish()));
            }
        }
        if self.close {
            tables.extend(current.take().map(|table| table.finish()));
        }
        Ok((tables, current))
    }
}
