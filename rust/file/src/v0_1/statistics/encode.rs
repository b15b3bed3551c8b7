//! Writing statistics: gathered group by group, written behind the page table as columns of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array};
use esker_proto::lance::file as pb;

use super::collect::{collect, has_statistics, PageStatistics};
use crate::error::{FileError, Result};
use crate::schema::{Field, Schema};
use crate::v0_1::column::{ColumnNode, Kind};
use crate::v0_1::encode::{encode, with_nulls, EncodeContext, PageWriter};
use crate::v0_1::page::encode_table;

/// The statistics of a file while it is written, by field id.
#[derive(Debug, Default)]
pub(crate) struct StatisticsWriter {
    by_field: BTreeMap<i32, (Field, Vec<PageStatistics>)>,
}

impl StatisticsWriter {
    /// For the fields of `schema` that have statistics: those with one value a row, in structs too.
    pub(crate) fn new(schema: &Schema) -> Result<StatisticsWriter> {
        let mut by_field = BTreeMap::new();
        let mut waiting: Vec<&Field> = schema.fields.iter().collect();
        while let Some(field) = waiting.pop() {
            if field.is_struct() {
                waiting.extend(&field.children);
            } else if has_statistics(&field.data_type()?) {
                by_field.insert(field.id, (field.clone(), Vec::new()));
            }
        }
        Ok(StatisticsWriter { by_field })
    }

    /// Adds a group: the values of a top-level column.
    pub(crate) fn add(&mut self, node: &ColumnNode, arrays: &[ArrayRef]) -> Result<()> {
        if let Kind::Struct(_, children) = &node.kind {
            for (index, child) in children.iter().enumerate() {
                let columns = arrays.iter().filter_map(|array| {
                    let parent = array.as_struct_opt()?;
                    let column = parent.columns().get(index)?;
                    Some(with_nulls(column, parent.nulls()))
                });
                self.add(child, &columns.collect::<Result<Vec<_>>>()?)?;
            }
            return Ok(());
        }
        if let Some((_, pages)) = self.by_field.get_mut(&node.id) {
            pages.extend(collect(&node.data_type, arrays));
        }
        Ok(())
    }

    /// Writes what was gathered and says where it is; nothing where there is nothing.
    pub(crate) fn finish(
        self,
        context: EncodeContext<'_>,
        out: &mut PageWriter,
    ) -> Result<Option<pb::metadata::StatisticsMetadata>> {
        if self.by_field.values().all(|(_, pages)| pages.is_empty()) {
            return Ok(None);
        }
        let mut schema = Schema {
            fields: self
                .by_field
                .values()
                .map(|(field, _)| statistics_field(field))
                .collect(),
            ..Schema::default()
        };
        schema.assign_ids(0);
        out.pages.clear();
        for (field, (_, pages)) in schema.fields.iter().zip(self.by_field.values()) {
            let columns = [
                vec![Arc::new(Int64Array::from_iter_values(pages.iter().map(|p| p.null_count))) as ArrayRef],
                pages.iter().map(|p| p.min.clone()).collect(),
                pages.iter().map(|p| p.max.clone()).collect(),
            ];
            for (child, arrays) in field.children.iter().zip(columns) {
                encode(context, &ColumnNode::new(child, None)?, &arrays, out)?;
            }
        }
        let position = out.position();
        let ids: Vec<i32> = schema.flat_fields().iter().map(|f| f.id).collect();
        let highest = ids.iter().max().copied().unwrap_or(0);
        let pages: Vec<_> = out.pages.drain(..).map(|(id, page)| (id, 0, page)).collect();
        let table = encode_table(&pages, 0..=highest, 1).ok_or_else(|| {
            FileError::unsupported("a page table of statistics of more than 2^64 bytes cannot be written")
        })?;
        out.buffer.extend_from_slice(&table);
        Ok(Some(pb::metadata::StatisticsMetadata {
            schema: schema.to_protos(),
            fields: ids,
            page_table_position: position,
        }))
    }
}

/// The struct of a field's statistics, named by its id.
fn statistics_field(field: &Field) -> Field {
    let bound = |name: &str| Field {
        name: name.into(),
        logical_type: field.logical_type.clone(),
        nullable: field.nullable,
        ..Field::default()
    };
    let null_count = Field {
        name: "null_count".into(),
        logical_type: "int64".into(),
        ..Field::default()
    };
    Field {
        name: field.id.to_string(),
        logical_type: "struct".into(),
        children: vec![null_count, bound("min_value"), bound("max_value")],
        ..Field::default()
    }
}
