//! Explains the encoding of a page: the sizes of all alternatives, computed from the page's own values.

use crate::container::PageEncoding;
use crate::error::{FileError, Result};
use crate::goal::Goal;
use crate::inspect::container_of;
use crate::reader::FileReader;
use crate::schema::{Field, Schema};
use crate::v2_0;
use crate::v2_1::choose::Target;
use crate::v2_1::columns::assign_columns;
use crate::v2_1::encode::explain;
use crate::v2_1::path::{leaves, pruned, stride};
use crate::version::FileVersion;

pub use crate::v2_1::encode::Alternative;

/// What one page could be written as, and what this release would choose. The page is read and weighed as if it were to be written;
/// another writer may have decided otherwise. A page of version 2.0 has no alternatives.
pub async fn why(reader: &FileReader, column: usize, page: usize, goal: Goal) -> Result<Vec<Alternative>> {
    let file = container_of(reader)?;
    let meta = file.column(column)?;
    let found = meta.pages.get(page).ok_or_else(|| {
        FileError::invalid(format!(
            "column {column}: expected a page below {}, found {page}",
            meta.pages.len()
        ))
    })?;
    if file.version() == FileVersion::V2_0 {
        let name = match &found.encoding {
            PageEncoding::V2_0(encoding) => v2_0::decode::describe(Some(encoding)),
            _ => "unknown".to_string(),
        };
        let bytes = found
            .buffers
            .iter()
            .map(|buffer| buffer.end.saturating_sub(buffer.start))
            .sum();
        return Ok(vec![Alternative {
            name,
            bytes,
            nanoseconds: 0,
            chosen: true,
            reason: "version 2.0 has one encoding for it".to_string(),
        }]);
    }
    let (id, field) = field_of_column(file.schema(), column).ok_or_else(|| {
        FileError::invalid(format!(
            "expected a column below {}, found {column}",
            file.num_columns()
        ))
    })?;
    let Some(leaf) = leaves(&field)?.into_iter().find(|leaf| leaf.field.id == id) else {
        return Ok(Vec::new());
    };
    let stride = stride(&leaf.path).max(1);
    let rows = found.first_value / stride..found.first_value.saturating_add(found.num_values) / stride;
    let projection = reader.project(std::slice::from_ref(&field), None)?;
    let batch = reader.read(&projection, std::slice::from_ref(&rows)).await?;
    let arrays = batch.columns().iter().map(|array| pruned(array, &leaf.path));
    let target = Target {
        leaf: &leaf,
        version: file.version(),
        goal,
    };
    explain(&arrays.collect::<Result<Vec<_>>>()?, target)
}

/// The id of a column's field, and the top-level field that holds it with little else: a map is read whole.
fn field_of_column(schema: &Schema, column: usize) -> Option<(i32, Field)> {
    let columns = assign_columns(schema);
    let (id, _) = columns.iter().find(|(_, index)| **index == column)?;
    let only = schema.project(&|field| field == *id).fields.into_iter().next()?;
    let mut in_map = false;
    only.walk(&mut |field| in_map |= field.logical_type == "map");
    let whole = schema.fields.iter().find(|field| field.id == only.id);
    Some((*id, whole.filter(|_| in_map).cloned().unwrap_or(only)))
}
