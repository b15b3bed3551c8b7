//! Writes a 2.x file column by column: each column gets its rows in order, whatever the others have, as values or as encoded pages.
//!
//! A file of many columns is written a few of them at a time, so that pages are full in little memory.

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema as ArrowSchema};
use esker_store::store::StoreRef;
use std::sync::Arc;

pub use crate::paged_writer::PageCounts;
pub use crate::v2_1::write::ValuesMemory;

use crate::error::{FileError, Result};
use crate::paged_writer::PagedWriter;
use crate::raw_page::RawPage;
use crate::reader::FileReader;
use crate::required::RequiredFields;
use crate::schema::{Field, Schema};
use crate::v2_1::path::{leaves, pruned, Leaf, Step};
use crate::version::FileVersion;
use crate::writer::{check_schema, FileSummary, WriteOptions};

/// What is written by itself: a top-level field, or one of its leaves in a version that keeps those apart.
#[derive(Debug, Clone)]
pub struct ColumnPart {
    /// The place of the top-level field in the schema.
    pub top: usize,
    /// The top-level field, with nothing in it but the way to the leaf.
    pub field: Field,
    /// The place of the leaf among those of the top-level field; `None` for all of it.
    pub leaf: Option<usize>,
    /// The id of the leaf, if its pages may be copied.
    pub copied_id: Option<i32>,
}

/// The parts of a schema's fields, in order.
pub fn column_parts(schema: &Schema, version: FileVersion) -> Result<Vec<ColumnPart>> {
    let mut parts = Vec::new();
    for (top, field) in schema.fields.iter().enumerate() {
        let by_leaf = matches!(version, FileVersion::V2_1 | FileVersion::V2_2) && !field.has_blobs();
        let leaves = if by_leaf { leaves(field)? } else { Vec::new() };
        let apart = leaves.iter().all(|leaf| leaf.path.iter().all(can_be_alone));
        if leaves.is_empty() || !apart {
            parts.push(ColumnPart {
                top,
                field: field.clone(),
                leaf: None,
                copied_id: None,
            });
            continue;
        }
        for (number, leaf) in leaves.iter().enumerate() {
            parts.push(ColumnPart {
                top,
                field: narrowed(field, &leaf.path),
                leaf: Some(number),
                copied_id: can_be_copied(leaf).then_some(leaf.field.id),
            });
        }
    }
    Ok(parts)
}

/// A map without its keys is none, and neither is a fixed-size list without some of its fields.
fn can_be_alone(step: &Step) -> bool {
    !matches!(step, Step::Map | Step::FixedSizeList(_))
}

/// Pages that say that all structs around lists are there must not stand beside pages that say otherwise: pylance counts those wrong.
/// Dictionaries of pages are joined, so that their keys fit the type.
fn can_be_copied(leaf: &Leaf) -> bool {
    let list = leaf
        .path
        .iter()
        .position(|step| matches!(step, Step::List | Step::LargeList));
    let structs_around = leaf.path.iter().position(|step| matches!(step, Step::Struct { .. }));
    let around_lists = list.is_some_and(|list| structs_around.is_some_and(|first| first < list));
    let is_plain = !matches!(&leaf.data_type, DataType::Dictionary(_, _) | DataType::Null);
    let is_empty = matches!(&leaf.data_type, DataType::Struct(fields) if fields.is_empty());
    is_plain && !is_empty && !around_lists
}

fn narrowed(field: &Field, path: &[Step]) -> Field {
    let Some((step, rest)) = path.split_first() else {
        return field.clone();
    };
    let index = match step {
        Step::Struct { field, .. } => *field,
        _ => 0,
    };
    let child = field.children.get(index).map(|child| narrowed(child, rest));
    Field {
        children: child.into_iter().collect(),
        ..field.clone()
    }
}

/// A 2.x file that is written column by column.
pub struct ColumnWriter {
    out: PagedWriter,
    parts: Vec<PartState>,
}

/// A part and how far it is written.
struct PartState {
    part: ColumnPart,
    /// The way from the whole top-level field to the leaf.
    path: Option<Vec<Step>>,
    data_type: DataType,
    required: RequiredFields,
    rows: u64,
}

impl ColumnWriter {
    /// Starts the file at `path`. Nothing is visible there before [`ColumnWriter::finish`].
    pub async fn create(store: &StoreRef, path: &str, schema: &Schema, options: WriteOptions) -> Result<ColumnWriter> {
        check_schema(schema, options.version)?;
        if options.version == FileVersion::V0_1 {
            return Err(FileError::unsupported(
                "a file of version 0.1 is written in groups of rows, not column by column; write whole batches",
            ));
        }
        let parts = column_parts(schema, options.version)?.into_iter().map(|part| {
            let arrow = part.field.to_arrow()?;
            Ok(PartState {
                data_type: arrow.data_type().clone(),
                required: RequiredFields::of(&ArrowSchema::new(vec![arrow])),
                path: match (part.leaf, schema.fields.get(part.top)) {
                    (Some(leaf), Some(field)) => leaves(field)?.into_iter().nth(leaf).map(|leaf| leaf.path),
                    _ => None,
                },
                part,
                rows: 0,
            })
        });
        let parts = parts.collect::<Result<_>>()?;
        let out = PagedWriter::create(store, path, schema, options).await?;
        Ok(ColumnWriter { out, parts })
    }

    fn state(&mut self, part: usize) -> Result<(&mut PagedWriter, &mut PartState)> {
        let found = self.parts.get_mut(part);
        let found = found.ok_or_else(|| FileError::invalid(format!("expected a part {part}, found none")))?;
        Ok((&mut self.out, found))
    }

    /// Writes the next values of a part.
    pub async fn write(&mut self, part: usize, array: &ArrayRef, memory: ValuesMemory) -> Result<()> {
        let (out, state) = self.state(part)?;
        if !state.data_type.equals_datatype(array.data_type()) {
            return Err(FileError::invalid(format!(
                "column '{}': expected type {}, found {}",
                state.part.field.name,
                state.data_type,
                array.data_type()
            )));
        }
        let array = settled(&state.required, array)?;
        out.write_values(state.part.top, state.part.leaf, (&array, memory), state.rows)
            .await?;
        state.rows = state.rows.saturating_add(array.len() as u64);
        Ok(())
    }

    /// Writes the next values of a part from an array of its whole top-level field.
    pub async fn write_of(&mut self, part: usize, field: &ArrayRef, memory: ValuesMemory) -> Result<()> {
        let (_, state) = self.state(part)?;
        let Some(path) = &state.path else {
            return self.write(part, field, memory).await;
        };
        let narrow = pruned(field, path)?;
        let (out, state) = self.state(part)?;
        let narrow = settled(&state.required, &narrow)?;
        out.write_values(state.part.top, state.part.leaf, (&narrow, memory), state.rows)
            .await?;
        state.rows = state.rows.saturating_add(narrow.len() as u64);
        Ok(())
    }

    /// Writes the next blobs of a part, which `array` locates in `source`: descriptions with proper nulls. Their bytes are copied a few at
    /// a time; those outside of the table stay where they are.
    pub async fn carry(&mut self, part: usize, array: &ArrayRef, source: Option<&FileReader>) -> Result<()> {
        let (out, state) = self.state(part)?;
        out.carry_blobs(state.part.top, array, source, state.rows).await?;
        state.rows = state.rows.saturating_add(array.len() as u64);
        Ok(())
    }

    /// Writes the next rows of a part as a page of a file of the same version.
    pub async fn copy(&mut self, part: usize, page: RawPage) -> Result<()> {
        let (out, state) = self.state(part)?;
        let (Some(leaf), Some(_)) = (state.part.leaf, state.part.copied_id) else {
            return Err(FileError::invalid(format!(
                "column '{}': expected a leaf whose pages can be copied",
                state.part.field.name
            )));
        };
        let rows = page.num_rows();
        out.write_encoded(state.part.top, leaf, page, state.rows).await?;
        state.rows = state.rows.saturating_add(rows);
        Ok(())
    }

    /// Writes what waits of a part that has all of its rows.
    pub async fn end(&mut self, part: usize) -> Result<()> {
        let (out, state) = self.state(part)?;
        out.end_values(state.part.top, state.part.leaf).await
    }

    /// Writes the buffered values and makes the file visible. Every part must have `num_rows` rows.
    pub async fn finish(self, num_rows: u64) -> Result<(FileSummary, PageCounts)> {
        if let Some(state) = self.parts.iter().find(|state| state.rows != num_rows) {
            let message = format!(
                "column '{}': expected {num_rows} rows, found {}",
                state.part.field.name, state.rows
            );
            self.out.abort().await?;
            return Err(FileError::invalid(message));
        }
        self.out.finish_columns(num_rows).await
    }

    /// Abandons the file and leaves nothing behind.
    pub async fn abort(self) -> Result<()> {
        self.out.abort().await
    }
}

fn settled(required: &RequiredFields, array: &ArrayRef) -> Result<ArrayRef> {
    let field = arrow_schema::Field::new("column", array.data_type().clone(), true);
    let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(vec![field])), vec![array.clone()]);
    let batch = batch.map_err(|e| FileError::invalid(e.to_string()))?;
    let settled = required.settle(&batch)?;
    Ok(settled.columns().first().cloned().unwrap_or_else(|| array.clone()))
}
