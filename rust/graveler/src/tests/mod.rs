//! Contents against a plain model, the document's examples, and the cost of reads.

mod costs;
mod document;
mod model;
mod rewrite;

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_store::{block_on, memory};

use crate::apply::{apply, Applied};
use crate::change::Changes;
use crate::list::{List, Listed};
use crate::metarange::{Metarange, RangeInfo};
use crate::storage::{Storage, TableCursor, CACHE_BYTES, PREFIX};
use crate::value::Value;
use crate::write::{table_of_records, SplitRule};
use crate::Result;

/// The values by path.
type Model = BTreeMap<Vec<u8>, u8>;

fn storage() -> Arc<Storage> {
    Storage::new(Arc::new(memory::private().unwrap()), PREFIX, CACHE_BYTES)
}

/// A storage of the same tables with an empty cache.
fn cold(storage: &Arc<Storage>) -> Arc<Storage> {
    Storage::new(storage.store().clone(), PREFIX, 0)
}

/// A framed value of which `content` is the identity.
fn value(content: u8) -> Vec<u8> {
    let identity = [content; 32];
    let data = [content; 60];
    Value {
        identity: &identity,
        data: &data,
    }
    .encode()
}

fn changes<'a>(changes: impl IntoIterator<Item = (&'a [u8], Option<u8>)>) -> Changes {
    let sorted: BTreeMap<_, _> = changes.into_iter().collect();
    let mut found = Changes::new();
    for (key, content) in sorted {
        found.push(key, content.map(value).as_deref()).unwrap();
    }
    found
}

fn applied(storage: &Arc<Storage>, base: &Metarange, changes: &Changes, rule: SplitRule) -> Applied {
    block_on(apply(storage, base, &Arc::new(changes.clone()), rule, true)).unwrap()
}

fn content(storage: &Arc<Storage>, model: &Model, rule: SplitRule) -> Arc<Metarange> {
    let all = changes(model.iter().map(|(key, content)| (key.as_slice(), Some(*content))));
    applied(storage, &Metarange::default(), &all, rule)
        .written
        .unwrap()
        .metarange
}

fn read(storage: &Arc<Storage>, metarange: &Arc<Metarange>) -> Model {
    let listed = list(storage, metarange, b"", b"", b"");
    let record = |listed| match listed {
        Listed::Record(key, value) => (key, Value::decode(&value).unwrap().identity[0]),
        Listed::Prefix(_) => panic!("no delimiter was asked for"),
    };
    listed.into_iter().map(record).collect()
}

/// A range's file.
fn stored(storage: &Arc<Storage>, range: &RangeInfo) -> bytes::Bytes {
    block_on(storage.store().get(&storage.path(&range.id))).unwrap()
}

/// The file of a range's records written from scratch.
fn written_anew(storage: &Arc<Storage>, range: &RangeInfo) -> Vec<u8> {
    let mut records = Vec::new();
    let read: Result<()> = block_on(async {
        let mut cursor = TableCursor::new(storage.open_whole(&range.id).await?)?;
        while cursor.advance().await? {
            records.push((cursor.key()?.to_vec(), cursor.value().to_vec()));
        }
        Ok(())
    });
    read.unwrap();
    let records = records.iter().map(|(key, value)| (key.as_slice(), value.as_slice()));
    table_of_records("ranges", &BTreeMap::new(), records).unwrap().bytes
}

fn list(
    storage: &Arc<Storage>,
    metarange: &Arc<Metarange>,
    prefix: &[u8],
    from: &[u8],
    delimiter: &[u8],
) -> Vec<Listed> {
    let mut list = List::new(storage, metarange, prefix, from, delimiter);
    let found: Result<_> = block_on(async {
        let mut all = Vec::new();
        loop {
            let batch = list.next_batch(7).await?;
            if batch.is_empty() {
                return Ok(all);
            }
            all.extend(batch);
        }
    });
    found.unwrap()
}
