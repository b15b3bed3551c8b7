//! Reading statistics: only those of the fields that are asked for.

use std::collections::BTreeMap;

use arrow_array::ArrayRef;

use crate::error::{FileError, Result};
use crate::schema::{Field, Schema};
use crate::v0_1::column::{ColumnNode, Dictionaries};
use crate::v0_1::page::PageTable;
use crate::v0_1::read::GroupFile;

/// What a field's statistics are called in the statistics' own schema.
pub(crate) fn field_of(schema: &Schema, id: i32) -> Option<Field> {
    let mut field = schema.field(&id.to_string())?.clone();
    // A bound that is not known is stored as an empty string, whatever the schema promises.
    for bound in &mut field.children {
        bound.nullable |= bound.name != "null_count";
    }
    Some(field)
}

impl GroupFile {
    /// The ids of the fields that have statistics.
    pub(crate) fn fields_with_statistics(&self) -> Vec<i32> {
        let fields = self.statistics_meta().map(|meta| meta.schema.fields.as_slice());
        let ids = fields.unwrap_or_default().iter().filter_map(|f| f.name.parse().ok());
        ids.collect()
    }

    /// The statistics of `ids` as far as there are any: a struct array each, with a value for each group.
    pub(crate) async fn read_statistics(&self, ids: &[i32]) -> Result<BTreeMap<i32, ArrayRef>> {
        let Some(meta) = self.statistics_meta() else {
            return Ok(BTreeMap::new());
        };
        let mut found = Vec::new();
        let mut nodes = Vec::new();
        for id in ids {
            if let Some(field) = field_of(&meta.schema, *id) {
                found.push(*id);
                nodes.push(ColumnNode::new(&field, Some("statistics of field"))?);
            }
        }
        if nodes.is_empty() {
            return Ok(BTreeMap::new());
        }
        let corrupt = |message: &str| FileError::corrupt(self.path(), format!("statistics: {message}"));
        if meta.page_table.end > self.size() {
            return Err(corrupt(
                "expected a page table within the file, found it beyond its end",
            ));
        }
        let bytes = self.fetch(meta.page_table.clone()).await?;
        let table = PageTable::decode(&bytes, 0, vec![0, meta.num_groups]).ok_or_else(|| {
            corrupt("expected statistics' pages at positions and of lengths from 0 up, found negative ones")
        })?;
        let rows = table.split(&[0..meta.num_groups]);
        let arrays = self.read_pages(&table, &nodes, &rows, &Dictionaries::new()).await?;
        Ok(found.into_iter().zip(arrays).collect())
    }
}
