//! Bodies for fuzzing: any bytes end in records or in an error.
//!
//! `cargo test` replays `fuzz/corpus` and seeded mutations of it; `cargo fuzz` calls the same function, see `fuzz/README.md`.

mod contents;

use std::sync::Arc;

use bytes::Bytes;

use crate::apply::apply;
use crate::change::Changes;
use crate::commit::{decode_ref, Commit};
use crate::entry::Entry;
use crate::error::{GravelerError, Result};
use crate::id::TableId;
use crate::metarange::{Metarange, RangeInfo};
use crate::sstable::block::{self, BlockSealer};
use crate::sstable::{properties, BlockCursor, Footer, Handle};
use crate::storage::{cached_table, Storage, TableCursor, PREFIX};
use crate::value::Value;
use crate::verify::verify;
use crate::write::SplitRule;

/// The most bytes of keys and values read from one input, as prefix-compressed keys expand.
const MOST_READ: usize = 8 << 20;

/// Their names, which are those of folders in `fuzz/corpus`.
pub const TARGETS: [&str; 11] = [
    "sstable",
    "assembled_sstable",
    "sstable_block",
    "sstable_footer",
    "graveler_value",
    "graveler_entry",
    "range_info",
    "commit_data",
    "ref_data",
    "cached_table",
    "contents",
];

/// The outcome of an input.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why it could not be read.
    pub errors: Vec<GravelerError>,
    /// Records that were read.
    pub records: usize,
    /// Bytes of their keys and values.
    pub bytes: usize,
}

impl Outcome {
    fn of<T>(result: Result<T>) -> Self {
        Outcome {
            records: usize::from(result.is_ok()),
            errors: result.err().into_iter().collect(),
            bytes: 0,
        }
    }
}

/// Runs a body. An unknown name is no target and ends in an error.
pub fn run(target: &str, data: &[u8]) -> Outcome {
    match target {
        "sstable" => table(Bytes::copy_from_slice(data)),
        "assembled_sstable" => table(assembled(data)),
        "sstable_block" => blocks(data),
        "sstable_footer" => Outcome::of(Footer::decode(data, u64::MAX >> 1)),
        "graveler_value" => Outcome::of(Value::decode(data)),
        "graveler_entry" => Outcome::of(Entry::decode(data)),
        "range_info" => Outcome::of(Value::decode(data).and_then(|key| RangeInfo::decode(key.identity, key.data))),
        "commit_data" => Outcome::of(Commit::decode(data)),
        "ref_data" => Outcome::of(decode_ref(data)),
        "cached_table" => Outcome::of(cached(data)),
        "contents" => contents::contents(data),
        other => Outcome::of::<()>(Err(GravelerError::invalid(format!(
            "expected one of {TARGETS:?}, found {other:?}"
        )))),
    }
}

/// A stored block, and the same bytes as an opened block: as entries, and as properties.
fn blocks(data: &[u8]) -> Outcome {
    let bytes = Bytes::copy_from_slice(data);
    let mut outcome = Outcome::default();
    let _ = block::open(&bytes);
    let entries = BlockCursor::new(bytes.clone()).and_then(|mut cursor| {
        while outcome.bytes < MOST_READ && cursor.advance()? {
            outcome.records += 1;
            outcome.bytes += cursor.key().map_or(0, <[u8]>::len) + cursor.value().len();
        }
        Ok(())
    });
    outcome.errors.extend(entries.err());
    // Properties are decoded as a whole, and prefix-compressed names of a large block may expand to more than a test should hold.
    if data.len() < 4096 {
        let _ = properties::decode(bytes);
    }
    outcome
}

/// A file of the disk cache, under the id of all sevens.
fn cached(data: &[u8]) -> Result<Bytes> {
    let found = cached_table(&TableId::of_hash(&[7; 32]), &Bytes::copy_from_slice(data));
    found.ok_or_else(|| GravelerError::corrupt("cache", "expected a table under its own name, found another or a part"))
}

/// Assembles a table from blocks with correct checksums, so that mutations get past them.
///
/// ```text
/// number of the index block (u8) | number of the metaindex block (u8) | block*
/// block: 1 if it is compressed (u8) | length (u16) | bytes
/// ```
fn assembled(data: &[u8]) -> Bytes {
    let mut out = Vec::new();
    let mut handles: Vec<Handle> = Vec::new();
    let Some(([index, metaindex], mut rest)) = data.split_first_chunk::<2>() else {
        return Bytes::new();
    };
    let mut sealer = BlockSealer::default();
    while let Some(([compress, low, high], after)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (block, next) = after.split_at(length);
        let offset = out.len() as u64;
        let length = sealer.seal(block, compress & 1 == 1, &mut out) as u64;
        handles.push(Handle { offset, length });
        rest = next;
    }
    let handle = |number: u8| {
        let nothing = Handle { offset: 0, length: 0 };
        handles.get(usize::from(number)).copied().unwrap_or(nothing)
    };
    let footer = Footer {
        metaindex: handle(*metaindex),
        index: handle(*index),
    };
    footer.encode_to(&mut out);
    out.into()
}

/// Rewrites a readable range with all of its records, by a commit that adds one record after the last.
async fn rewritten(storage: &Arc<Storage>, id: &TableId, read: &Outcome) -> Result<()> {
    let mut cursor = TableCursor::new(storage.open(id).await?)?;
    if !cursor.advance().await? {
        return Ok(());
    }
    let min_key = cursor.key()?.to_vec();
    let (mut max_key, mut sorted) = (min_key.clone(), true);
    while cursor.advance().await? {
        sorted &= cursor.key()? > max_key.as_slice();
        max_key.clear();
        max_key.extend_from_slice(cursor.key()?);
    }
    let range = RangeInfo {
        id: id.clone(),
        min_key,
        max_key: max_key.clone(),
        estimated_size: 0,
        count: read.records as u64,
    };
    let mut changes = Changes::new();
    max_key.extend_from_slice(b"/added");
    changes.push(&max_key, Some(&[0, 0]))?;
    let wide = RangeInfo {
        max_key: max_key.clone(),
        ..range
    };
    let base = Metarange::new(None, vec![wide])?;
    let applied = apply(storage, &base, &Arc::new(changes), SplitRule::default(), true).await;
    match (sorted, applied) {
        (true, Ok(applied)) => {
            let count = applied.written.map_or(0, |written| written.metarange.count());
            if count == read.records as u64 + 1 {
                return Ok(());
            }
            let message = format!("expected {} records and one more, found {count}", read.records);
            Err(GravelerError::corrupt("rewritten table", message))
        }
        (true, Err(error)) => Err(error),
        (false, _) => Ok(()),
    }
}

/// Reads a table in every way: from end to end, by single keys, as a metarange, and with its id recomputed.
fn table(file: Bytes) -> Outcome {
    let mut outcome = Outcome::default();
    let run = async {
        let store = Arc::new(esker_store::memory::private()?);
        let id = TableId::of_hash(&[7; 32]);
        esker_store::Store::put(store.as_ref(), &format!("{PREFIX}{id}"), file).await?;
        let storage = Storage::new(store, PREFIX, 0);
        let mut keys = Vec::new();
        let mut cursor = TableCursor::new(storage.open(&id).await?)?;
        while cursor.advance().await? {
            outcome.records += 1;
            outcome.bytes += cursor.key()?.len() + cursor.value().len();
            if outcome.bytes > MOST_READ {
                return Ok(());
            }
            if let Ok(value) = Value::decode(cursor.value()) {
                // Whether or not the key exists.
                let _ = (
                    Entry::decode(value.data),
                    Commit::decode(value.data),
                    decode_ref(value.data),
                );
            }
            if outcome.records.is_power_of_two() {
                keys.push((cursor.key()?.to_vec(), cursor.value().to_vec()));
            }
        }
        for (key, _) in &keys {
            let mut one = TableCursor::new(storage.open(&id).await?)?;
            let _ = one.seek(key).await?;
        }
        let _ = storage.metarange(Some(&id)).await;
        let _ = storage.get(&id, b"a").await;
        rewritten(&storage, &id, &outcome).await?;
        // The id cannot match: this only tests panics and memory.
        let _ = verify(&storage, &id).await;
        Ok::<_, GravelerError>(())
    };
    let error = esker_store::block_on(run).err();
    outcome.errors.extend(error);
    outcome
}
