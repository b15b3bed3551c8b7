//! Verifies that a table matches its id.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{GravelerError, Result};
use crate::id::TableId;
use crate::metarange::RangeInfo;
use crate::storage::{Storage, TableCursor};
use crate::write::OpenTable;

/// Properties that are added when a table is closed, after its id is known.
const ADDED_AT_CLOSE: [&str; 4] = ["min_key", "max_key", "count", "estimated_size_bytes"];

/// The user properties of a table, without those that its writer counts.
pub fn said(properties: &BTreeMap<Vec<u8>, bytes::Bytes>) -> BTreeMap<String, String> {
    let named = properties.iter().filter_map(|(name, value)| {
        let name = std::str::from_utf8(name).ok()?;
        let counted = name.starts_with("rocksdb.") || ADDED_AT_CLOSE.contains(&name);
        (!counted).then(|| (name.to_owned(), String::from_utf8_lossy(value).into_owned()))
    });
    named.collect()
}

/// Reads a whole table and recomputes its id; returns its record for a metarange.
pub async fn verify(storage: &Arc<Storage>, id: &TableId) -> Result<RangeInfo> {
    let mut cursor = TableCursor::new(storage.open_whole(id).await?)?;
    let said = said(&cursor.reader().end().properties);
    let table_type = said.get("type").cloned().unwrap_or_default();
    // One record at a time, as prefix-compressed keys expand to more memory than the file takes.
    let mut table = OpenTable::new(&table_type, &said);
    while cursor.advance().await? {
        let added = table.add(cursor.key()?, cursor.value());
        added.map_err(|error| GravelerError::corrupt(storage.path(id), error.to_string()))?;
    }
    let found = table.finish();
    if found.info.id != *id {
        return Err(GravelerError::corrupt(
            storage.path(id),
            format!(
                "expected records whose id is the file's name, found those of {}",
                found.info.id
            ),
        ));
    }
    Ok(found.info)
}
