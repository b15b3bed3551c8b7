//! Forged contents: valid tables, and metaranges that describe them wrongly.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::apply::apply;
use crate::change::Changes;
use crate::diff::Diff;
use crate::error::{GravelerError, Result};
use crate::id::TableId;
use crate::list::List;
use crate::merge::{merge, MergeOptions, Strategy};
use crate::metarange::{Metarange, RangeInfo};
use crate::repack::repack;
use crate::storage::{Storage, PREFIX};
use crate::value::Value;
use crate::verify::verify;
use crate::write::{encode_metarange, table_of_records, SplitRule};

use super::Outcome;

/// Records of one table, and ranges of one content, at most.
const MOST: usize = 16;
/// The contents: base, source, destination.
const CONTENTS: usize = 3;

/// The rest of an input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }
}

/// Runs every operation on three contents.
///
/// ```text
/// number of tables (u8, the lowest two bits) | table* | number of ranges (u8) and range*, once a content
/// table     number of records (u8) | record*              record   key (u8 length) | identity (u8)
/// range     table (u8; one that is not there: no file) | first key (u8 length) | last key (u8 length) | count (u8)
/// ```
///
/// Records and ranges are sorted, as unsorted ones are refused at once; records of the same key are merged.
pub(super) fn contents(data: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    let result = esker_store::block_on(used(&mut Input(data), &mut outcome));
    outcome.errors.extend(result.err());
    // A missing table is a fault of these contents; the store itself never fails.
    let told = |error: &GravelerError| GravelerError::corrupt("contents", error.to_string());
    outcome.errors = outcome.errors.iter().map(told).collect();
    outcome
}

async fn used(input: &mut Input<'_>, outcome: &mut Outcome) -> Result<()> {
    let storage = Storage::new(Arc::new(esker_store::memory::private()?), PREFIX, 1 << 20);
    let mut tables = Vec::new();
    for _ in 0..=input.byte() % 4 {
        tables.push(table(&storage, input).await?);
    }
    let mut found: Vec<Arc<Metarange>> = Vec::new();
    for _ in 0..CONTENTS {
        let mut ranges = Vec::new();
        for _ in 0..usize::from(input.byte()).min(MOST) {
            ranges.push(range(&tables, input));
        }
        ranges.sort_by(|a: &RangeInfo, b: &RangeInfo| a.max_key.cmp(&b.max_key));
        ranges.dedup_by(|a, b| a.max_key == b.max_key);
        let encoded = encode_metarange(&ranges, &BTreeMap::new())?;
        storage.put(&encoded.info.id, encoded.bytes.into()).await?;
        found.push(storage.metarange(Some(&encoded.info.id)).await?);
    }
    let [base, source, dest] = found.as_slice() else {
        return Ok(());
    };
    let keys: Vec<Vec<u8>> = base.ranges().iter().map(|range| range.min_key.clone()).collect();
    for content in [base, source, dest] {
        if let Err(error) = listed(&storage, content, outcome).await {
            outcome.errors.push(error);
        }
        for key in &keys {
            if let Some(id) = content.id() {
                let _ = storage.get(id, key).await;
                let _ = verify(&storage, id).await;
            }
        }
        let _ = repack(&storage, content, SplitRule::default()).await;
    }
    for (left, right) in [(base, source), (source, dest), (dest, base)] {
        let mut diff = Diff::new(&storage, left, right, &[]);
        let most = (left.ranges().len() + right.ranges().len()) * MOST;
        let mut different = 0;
        while let Ok(Some(_)) = diff.next().await {
            different += 1;
            assert!(
                different <= most,
                "a difference of {most} records at most has {different}"
            );
        }
    }
    for strategy in [Strategy::None, Strategy::DestWins, Strategy::SourceWins] {
        for dry_run in [true, false] {
            let options = MergeOptions {
                strategy,
                rule: SplitRule::default(),
                dry_run,
                max_conflicts: 3,
            };
            let _ = merge(&storage, base, source, dest, options).await;
        }
    }
    let mut changes = Changes::new();
    for (at, key) in keys.iter().enumerate() {
        let value = [0, 0];
        let _ = changes.push(key, (at % 2 == 0).then_some(value.as_slice()));
    }
    let changes = Arc::new(changes);
    for content in [base, source, dest] {
        let _ = apply(&storage, content, &changes, SplitRule::default(), true).await;
    }
    Ok(())
}

/// Writes a table of records from the input.
async fn table(storage: &Arc<Storage>, input: &mut Input<'_>) -> Result<TableId> {
    let mut records = Vec::new();
    for _ in 0..=usize::from(input.byte()) % MOST {
        records.push((input.bytes(), input.byte()));
    }
    records.sort_unstable();
    records.dedup_by_key(|(key, _)| *key);
    let framed: Vec<(&[u8], Vec<u8>)> = records
        .iter()
        .map(|(key, identity)| (*key, value(key, *identity)))
        .collect();
    let records = framed.iter().map(|(key, value)| (*key, value.as_slice()));
    let encoded = table_of_records("ranges", &BTreeMap::new(), records)?;
    storage.put(&encoded.info.id, encoded.bytes.into()).await?;
    Ok(encoded.info.id)
}

fn value(key: &[u8], identity: u8) -> Vec<u8> {
    let mut framed = Vec::new();
    let value = Value {
        identity: &[identity],
        data: key,
    };
    value.encode_to(&mut framed);
    framed
}

/// A metarange's record of a table, from the input.
fn range(tables: &[TableId], input: &mut Input<'_>) -> RangeInfo {
    let number = usize::from(input.byte());
    let missing = || TableId::of_hash(&[9; 32]);
    let mut bounds = [input.bytes(), input.bytes()];
    bounds.sort_unstable();
    let [min_key, max_key] = bounds.map(<[u8]>::to_vec);
    RangeInfo {
        id: tables.get(number).cloned().unwrap_or_else(missing),
        min_key,
        max_key,
        estimated_size: u64::from(input.byte()),
        count: u64::from(input.byte()),
    }
}

/// Lists a content plainly, below a prefix and with a delimiter; every listing must end.
async fn listed(storage: &Arc<Storage>, content: &Arc<Metarange>, outcome: &mut Outcome) -> Result<()> {
    let most = (content.ranges().len() + 1) * MOST;
    for (prefix, delimiter) in [("", ""), ("a", ""), ("", "/"), ("a", "/"), ("", "aa")] {
        let mut list = List::new(storage, content, prefix.as_bytes(), b"", delimiter.as_bytes());
        let mut count = 0;
        while list.next().await?.is_some() {
            count += 1;
            assert!(count <= most, "a listing of {most} paths at most has {count}");
        }
        outcome.records += count;
    }
    Ok(())
}
