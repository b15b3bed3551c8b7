//! Writes a whole content: takes records, changes and reused ranges in the order of keys, writes ranges and one metarange.
//!
//! ```text
//! records, changes, ranges to rewrite -> units, cut where a range ends whatever its size -> tasks that encode -> puts
//! ```
//!
//! A unit starts where a range certainly ends, so units are encoded concurrently. Where that is impossible (the rule has a minimal size, or
//! no certain break comes for long), a unit waits for the one before it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use futures::future::{try_join_all, BoxFuture};
use futures::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{spawn_blocking, JoinHandle};

use super::open_range::{check_key, EncodedTable, OpenTable};
use super::range_encoder::RangeEncoder;
use super::segment::Segment;
use super::split_rule::{fnv1a, KeyHash, SplitRule};
use super::unit::{Rewrite, Unit};
use crate::apply::Summary;
use crate::change::Changes;
use crate::error::{GravelerError, Result};
use crate::id::TableId;
use crate::metarange::{Metarange, RangeInfo};
use crate::sstable::shared_prefix;
use crate::storage::Storage;

/// The size in bytes at which a unit is handed on even if no range ends there. Small in tests.
const UNIT_SIZE: usize = if cfg!(test) { 2 << 10 } else { 8 << 20 };
/// Smaller ranges are gathered into one unit.
const LEAST_UNIT: usize = UNIT_SIZE / 8;

/// The result of writing.
#[derive(Debug, Clone)]
pub struct Written {
    /// The content.
    pub metarange: Arc<Metarange>,
    /// Ranges that were encoded and put, without the metarange.
    pub ranges_written: u64,
    /// Bytes of the new ranges and of the metarange.
    pub bytes_written: u64,
    /// Ranges that were reused by reference.
    pub ranges_reused: u64,
}

/// All ranges of a content before its metarange is written.
#[derive(Debug)]
pub(crate) struct Ranges {
    storage: Arc<Storage>,
    properties: Arc<BTreeMap<String, String>>,
    ranges: Vec<RangeInfo>,
    ranges_written: u64,
    ranges_reused: u64,
    bytes_written: u64,
    /// The counts of the applied changes.
    pub(crate) summary: Summary,
}

/// The result of a task: its finished ranges, and the open one.
#[derive(Default)]
struct Encoded {
    ranges: Vec<RangeInfo>,
    bytes: u64,
    summary: Summary,
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
    hash: KeyHash,
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

    /// The same with more user properties of the tables than their type, as in lakeFS's dumps.
    pub fn with_properties(storage: Arc<Storage>, rule: SplitRule, properties: BTreeMap<String, String>) -> Self {
        let cores = esker_store::cores();
        MetarangeWriter {
            storage,
            rule,
            properties: Arc::new(properties),
            segment: Segment::default(),
            last_key: Vec::new(),
            hash: KeyHash::new(),
            any: false,
            parts: Vec::new(),
            continues: false,
            slots: Arc::new(Semaphore::new(cores + 2)),
        }
    }

    /// Appends a record with a framed value.
    #[inline]
    pub async fn write_record(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let shared = shared_prefix(key, &self.last_key);
        if self.any && key.get(shared..) <= self.last_key.get(shared..) {
            check_key(&self.last_key, key, self.any)?;
        }
        self.any = true;
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(key.get(shared..).unwrap_or_default());
        self.segment.push(key, value);
        let hash = self.hash.of(key, shared);
        if self.rule.always_breaks_at(hash) && self.segment.size() >= LEAST_UNIT {
            self.flush(true).await?;
        } else if self.segment.size() >= UNIT_SIZE {
            self.flush(self.rule.always_breaks_at(hash)).await?;
        }
        Ok(())
    }

    /// Appends the values of changes as records; deletions are ignored.
    pub async fn write_changes(&mut self, changes: &Arc<Changes>, numbers: Range<usize>) -> Result<()> {
        let Some(first) = changes.get(numbers.start) else {
            return Ok(());
        };
        check_key(&self.last_key, first.key, self.any)?;
        let (mut start, mut size) = (numbers.start, 0);
        let mut last: &[u8] = &[];
        let mut hashes = KeyHash::new();
        let mut cuts = Vec::new();
        for (number, change) in (numbers.start..).zip(changes.within(numbers.clone())) {
            let hash = hashes.of(change.key, shared_prefix(change.key, last));
            last = change.key;
            size += change.key.len() + change.value.map_or(0, <[u8]>::len);
            let breaks = change.value.is_some() && self.rule.always_breaks_at(hash);
            if size >= UNIT_SIZE || (breaks && size >= LEAST_UNIT) {
                cuts.push((start..number + 1, breaks));
                (start, size) = (number + 1, 0);
                if cuts.len() > 4 {
                    self.cut(changes, &mut cuts).await?;
                }
            }
        }
        cuts.push((start..numbers.end.min(changes.len()), false));
        self.cut(changes, &mut cuts).await?;
        self.any = true;
        self.last_key.clear();
        self.last_key.extend_from_slice(last);
        self.hash = hashes;
        Ok(())
    }

    async fn cut(&mut self, changes: &Arc<Changes>, cuts: &mut Vec<(Range<usize>, bool)>) -> Result<()> {
        for (numbers, close) in cuts.drain(..).filter(|(numbers, _)| !numbers.is_empty()) {
            let changes = changes.clone();
            self.hand_on(Unit::Changes { changes, numbers }, close).await?;
        }
        Ok(())
    }

    /// Appends the records of a range with changes applied.
    pub(crate) async fn rewrite(&mut self, part: Rewrite) -> Result<()> {
        check_key(&self.last_key, part.first_key(), self.any)?;
        let max_key = part.max_key();
        self.any = true;
        self.last_key.clear();
        self.last_key.extend_from_slice(max_key);
        self.hash = KeyHash::new();
        // The last record written is the last one of the range, unless a change removes it.
        let ends = part.keeps_last() && self.rule.always_breaks_at(fnv1a(max_key));
        self.hand_on(Unit::Rewrite(part), ends).await
    }

    /// Appends an existing range. It closes the open one at any size: only breaks between records follow the rule.
    pub async fn write_range(&mut self, range: RangeInfo) -> Result<()> {
        check_key(&self.last_key, &range.min_key, self.any)?;
        self.flush(true).await?;
        self.any = true;
        self.last_key.clear();
        self.last_key.extend_from_slice(&range.max_key);
        self.hash = KeyHash::new();
        self.parts.push(Part::Reused(range));
        Ok(())
    }

    /// Hands on the gathered records; if there are none, ends the open range.
    async fn flush(&mut self, close: bool) -> Result<()> {
        if self.segment.is_empty() && !(close && self.continues) {
            return Ok(());
        }
        let segment = std::mem::take(&mut self.segment);
        self.spawn(Unit::Segment(segment), close).await
    }

    async fn hand_on(&mut self, unit: Unit, close: bool) -> Result<()> {
        if !self.segment.is_empty() {
            self.flush(false).await?;
        }
        self.spawn(unit, close).await
    }

    async fn spawn(&mut self, unit: Unit, close: bool) -> Result<()> {
        let before = match self.parts.pop() {
            Some(part) if self.continues => Some(part),
            other => {
                self.parts.extend(other);
                None
            }
        };
        // The slot is acquired here and not in the task, so that a task never waits for one that has no slot.
        let slot = self.slots.clone().acquire_owned().await;
        let slot = slot.map_err(|_| GravelerError::invalid("the writer is closed"))?;
        let task = Task {
            storage: self.storage.clone(),
            rule: self.rule,
            properties: self.properties.clone(),
            unit,
            close,
        };
        self.parts.push(Part::Task(tokio::spawn(task.run(before, slot))));
        self.continues = !close;
        Ok(())
    }

    /// Ends the last range and writes the metarange.
    pub async fn finish(self) -> Result<Written> {
        self.end().await?.write().await
    }

    /// Ends the last range.
    pub(crate) async fn end(mut self) -> Result<Ranges> {
        self.flush(true).await?;
        let mut all = Ranges {
            storage: self.storage.clone(),
            properties: self.properties.clone(),
            ranges: Vec::with_capacity(self.parts.len()),
            ranges_written: 0,
            ranges_reused: 0,
            bytes_written: 0,
            summary: Summary::default(),
        };
        for part in std::mem::take(&mut self.parts) {
            match part {
                Part::Reused(range) => {
                    all.ranges_reused += 1;
                    all.ranges.push(range);
                }
                other => {
                    let encoded = other.wait().await?;
                    all.ranges_written += encoded.ranges.len() as u64;
                    all.bytes_written += encoded.bytes;
                    all.summary += encoded.summary;
                    all.ranges.extend(encoded.ranges);
                }
            }
        }
        Ok(all)
    }
}

impl Ranges {
    /// Writes the metarange.
    pub(crate) async fn write(self) -> Result<Written> {
        let table = encode_metarange(&self.ranges, &self.properties)?;
        let bytes_written = self.bytes_written + table.bytes.len() as u64;
        let id = table.info.id.clone();
        let metarange = Arc::new(Metarange::new(Some(id.clone()), self.ranges)?);
        self.storage.put(&id, table.bytes.into()).await?;
        Ok(Written {
            metarange,
            ranges_written: self.ranges_written,
            bytes_written,
            ranges_reused: self.ranges_reused,
        })
    }
}

/// Encodes the table of a metarange.
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
                ..Encoded::default()
            }),
        }
    }
}

struct Task {
    storage: Arc<Storage>,
    rule: SplitRule,
    properties: Arc<BTreeMap<String, String>>,
    unit: Unit,
    close: bool,
}

impl Task {
    fn run(self, before: Option<Part>, slot: OwnedSemaphorePermit) -> BoxFuture<'static, Result<Encoded>> {
        async move {
            // Opened while the unit before it is still being encoded.
            let opened = self.unit.open(&self.storage).await?;
            let mut so_far = match before {
                Some(part) => part.wait().await?,
                None => Encoded::default(),
            };
            let mut encoder = RangeEncoder::new(self.rule, self.properties, so_far.open.take());
            let encode = move || {
                let summary = opened.encode_to(&mut encoder)?;
                if self.close {
                    encoder.close();
                }
                Ok::<_, GravelerError>((summary, encoder.finish()))
            };
            let encoded = spawn_blocking(encode).await;
            let (summary, (tables, open)) = encoded.map_err(|error| GravelerError::task_failed("ranges", &error))??;
            let storage = self.storage;
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
            so_far.summary += summary;
            so_far.open = open;
            Ok(so_far)
        }
        .boxed()
    }
}
