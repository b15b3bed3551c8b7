//! The rows that were deleted between two versions, by their stable row ids.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::files::TableFiles;
use super::fragment_reader::FragmentReader;
use super::locate::locate;
use super::rows::live;
use super::scan::BatchStream;
use super::system::{read_lineage, SystemColumn};
use crate::error::{Result, TableError};
use crate::fragment::{DeletionFile, Fragment};
use crate::manifest::Manifest;
use crate::row_ids::LineageParts;

/// The ids of the rows of `begin` that are not in `end`, in the column `_rowid`: a batch for each fragment that lost rows. Reads only the
/// fragments that changed between the versions.
pub fn deleted_row_ids(files: Arc<TableFiles>, begin: &Manifest, end: Arc<Manifest>) -> Result<BatchStream> {
    for manifest in [begin, end.as_ref()] {
        manifest.check_readable()?;
        if !manifest.has_stable_row_ids() {
            return Err(TableError::invalid(format!(
                "deleted row ids need stable row ids, version {} does not have them",
                manifest.version()
            )));
        }
    }
    let mut kept: HashMap<u64, Option<DeletionFile>> = HashMap::new();
    for fragment in end.fragments() {
        let fragment = fragment?;
        kept.insert(fragment.id(), fragment.deletion_file().cloned());
    }
    let mut changed = Vec::new();
    for fragment in begin.fragments() {
        let fragment = fragment?;
        if kept.get(&fragment.id()) != Some(&fragment.deletion_file().cloned()) {
            changed.push(fragment);
        }
    }
    let field = Field::new(SystemColumn::RowId.name(), DataType::UInt64, false);
    let schema = Arc::new(Schema::new(vec![field]));
    let output = schema.clone();
    let batches = stream::iter(changed)
        .then(move |fragment| gone_from(files.clone(), end.clone(), fragment, output.clone()))
        .try_filter(|batch| std::future::ready(batch.num_rows() > 0));
    Ok(BatchStream {
        schema,
        batches: batches.boxed(),
        groups: Arc::default(),
    })
}

async fn gone_from(
    files: Arc<TableFiles>,
    end: Arc<Manifest>,
    fragment: Fragment,
    schema: SchemaRef,
) -> Result<RecordBatch> {
    let reader = FragmentReader::open(&files, &fragment).await?;
    let wanted = LineageParts {
        ids: true,
        ..LineageParts::default()
    };
    let lineage = read_lineage(&files, &fragment, reader.physical_rows(), wanted).await?;
    let mut ids = Vec::new();
    for rows in live(0..reader.physical_rows(), reader.deletions().map(AsRef::as_ref)) {
        lineage
            .ids
            .iter()
            .for_each(|sequence| sequence.extend_into(rows.clone(), &mut ids));
    }
    let located = locate(&files, &end, &ids).await?;
    let gone = ids.iter().zip(&located.rows).filter(|(_, row)| row.is_none());
    let gone = UInt64Array::from_iter_values(gone.map(|(id, _)| *id));
    RecordBatch::try_new(schema, vec![Arc::new(gone)]).map_err(|e| TableError::invalid(e.to_string()))
}
