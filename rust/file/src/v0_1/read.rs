//! Reading a 0.1 file: rounds of requests over all columns at a time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use bytes::Bytes;
use esker_store::store::StoreRef;
use esker_store::{kept, FoundOnce};

use super::column::{ColumnNode, Dictionaries, Kind, ReadContext, Rounds};
use super::dictionary::values::DictionaryValues;
use super::extents::PageExtents;
use super::metadata::{read_metadata, FileMeta, StatisticsMeta};
use super::page::{PageRows, PageTable};
use super::statistics::bounds::{bounds, ColumnBounds};
use crate::container::FileTail;
use crate::error::{FileError, Result};
use crate::schema::{Field, Schema};

/// An open 0.1 file.
#[derive(Debug)]
pub(crate) struct GroupFile {
    store: StoreRef,
    path: String,
    size: u64,
    meta: FileMeta,
    /// The values of the file's own dictionaries, read when a column first needs them.
    dictionaries: FoundOnce<Dictionaries>,
    /// Statistics that were read, by field id.
    statistics: Mutex<BTreeMap<i32, ArrayRef>>,
    extents: OnceLock<PageExtents>,
}

/// The columns of a 0.1 file that a read wants.
#[derive(Debug, Clone)]
pub(crate) struct GroupColumns {
    nodes: Arc<[ColumnNode]>,
    /// Values that the table has for dictionary columns; the file's own count where it has none.
    dictionaries: Arc<Dictionaries>,
}

impl GroupFile {
    pub(crate) async fn open(tail: FileTail) -> Result<GroupFile> {
        let meta = read_metadata(&tail).await?;
        Ok(GroupFile {
            store: tail.store,
            path: tail.path,
            size: tail.size,
            meta,
            dictionaries: FoundOnce::default(),
            statistics: Mutex::default(),
            extents: OnceLock::new(),
        })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The file's size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.meta.schema
    }

    pub(crate) fn num_rows(&self) -> u64 {
        self.meta.table.num_rows()
    }

    pub(crate) fn page_table(&self) -> &PageTable {
        &self.meta.table
    }

    /// Finds the columns of `fields` by their ids.
    pub(crate) fn project(&self, fields: &[Field], dictionaries: &Arc<Dictionaries>) -> Result<GroupColumns> {
        let nodes = fields.iter().map(|field| ColumnNode::new(field, None));
        let nodes = nodes.collect::<Result<Vec<_>>>()?;
        for node in &nodes {
            self.check(node)?;
        }
        Ok(GroupColumns {
            nodes: nodes.into(),
            dictionaries: dictionaries.clone(),
        })
    }

    fn check(&self, node: &ColumnNode) -> Result<()> {
        let own: BTreeMap<i32, &Field> = self.meta.schema.flat_fields().iter().map(|f| (f.id, *f)).collect();
        let mut checked = Ok(());
        node.walk(&mut |node| {
            if checked.is_ok() {
                checked = self.check_field(node, own.get(&node.id).copied());
            }
        });
        checked
    }

    fn check_field(&self, node: &ColumnNode, own: Option<&Field>) -> Result<()> {
        if let Some(encoding) = self.meta.refused.get(&node.id) {
            return Err(FileError::unsupported(format!(
                "file {}, column '{}': encoding {encoding} of file version 0.1 cannot be read",
                self.path, node.path
            )));
        }
        let Some(own) = own else {
            return Err(FileError::corrupt(
                &self.path,
                format!(
                    "expected field {} ('{}'), found no such field; the table and the file disagree",
                    node.id, node.path
                ),
            ));
        };
        let alike = match &node.kind {
            Kind::List(_) => {
                own.is_list()
                    && own
                        .data_type()
                        .is_ok_and(|own| is_large(&own) == is_large(&node.data_type))
            }
            Kind::Struct(..) => own.is_struct(),
            _ => own.data_type().is_ok_and(|own| own.equals_datatype(&node.data_type)),
        };
        if alike {
            return Ok(());
        }
        if own.is_blob() {
            return Err(FileError::unsupported(format!(
                "file {}, column '{}': files of version 0.1 have no descriptions of blobs, only their bytes; read them with \
                 blob_handling=\"all_binary\"",
                self.path, node.path
            )));
        }
        Err(FileError::corrupt(
            &self.path,
            format!(
                "column '{}': expected type {}, found {}; the table and the file disagree",
                node.path, node.data_type, own.logical_type
            ),
        ))
    }

    /// Bytes that the columns take in the file.
    pub(crate) fn bytes_of(&self, columns: &GroupColumns) -> Result<u64> {
        let extents = self.extents();
        let mut bytes = 0_u64;
        for node in columns.nodes.iter() {
            node.walk(&mut |node| bytes = bytes.saturating_add(extents.bytes_of(node.id)));
        }
        Ok(bytes)
    }

    /// Where each page starts and ends.
    pub(crate) fn extents(&self) -> &PageExtents {
        kept(&self.extents, || PageExtents::new(&self.meta.schema, &self.meta.table))
    }

    /// Reads sorted, separate, non-empty `rows`: an array for each field of the projection.
    pub(crate) async fn read(&self, columns: &GroupColumns, rows: &[Range<u64>]) -> Result<Vec<ArrayRef>> {
        let merged = self.dictionaries_of(columns).await?;
        let rows = self.meta.table.split(rows);
        self.read_pages(&self.meta.table, &columns.nodes, &rows, &merged).await
    }

    pub(crate) async fn read_pages(
        &self,
        table: &PageTable,
        nodes: &[ColumnNode],
        rows: &[PageRows],
        dictionaries: &Dictionaries,
    ) -> Result<Vec<ArrayRef>> {
        let context = ReadContext {
            path: &self.path,
            file_size: self.size,
            table,
            dictionaries,
        };
        let mut rounds = Rounds::new(context, nodes, rows)?;
        while let Some(wanted) = rounds.next() {
            let parts = match wanted.is_empty() {
                true => Vec::new(),
                false => self.store.get_ranges(&self.path, &wanted).await?,
            };
            rounds.receive(parts)?;
        }
        rounds.finish()
    }

    /// Bytes of the file.
    pub(crate) async fn fetch(&self, range: Range<u64>) -> Result<Bytes> {
        let mut parts = self.store.get_ranges(&self.path, &[range]).await?;
        Ok(parts.pop().unwrap_or_default())
    }

    pub(crate) fn statistics_meta(&self) -> Option<&StatisticsMeta> {
        self.meta.statistics.as_ref()
    }

    /// Rows of each group.
    pub(crate) fn group_rows(&self) -> Vec<u64> {
        let offsets = self.meta.table.group_offsets();
        let ends = offsets.iter().skip(1);
        offsets.iter().zip(ends).map(|(start, end)| end - start).collect()
    }

    /// All statistics as one batch with a row for each group: a struct column for each field, named by the field's id.
    pub(crate) async fn statistics(&self) -> Result<Option<RecordBatch>> {
        if self.meta.statistics.is_none() {
            return Ok(None);
        }
        let found = self.read_statistics(&self.fields_with_statistics()).await?;
        let columns = found.into_iter().map(|(id, array)| {
            let field = ArrowField::new(id.to_string(), array.data_type().clone(), false);
            (field, array)
        });
        let (fields, arrays): (Vec<_>, Vec<_>) = columns.unzip();
        let options = RecordBatchOptions::new().with_row_count(Some(self.meta.table.num_groups()));
        RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), arrays, &options)
            .map(Some)
            .map_err(|e| FileError::corrupt(&self.path, format!("statistics: {e}")))
    }

    /// The bounds of the columns without children among `columns`, by the names that lead to them. What was read once
    /// is kept.
    pub(crate) async fn bounds(&self, columns: &GroupColumns) -> Result<BTreeMap<Vec<String>, ColumnBounds>> {
        let mut leaves = Vec::new();
        columns.nodes.iter().for_each(|node| node.leaves(&[], &mut leaves));
        let kept = self.statistics.lock().map(|kept| kept.clone()).unwrap_or_default();
        let ids = leaves
            .iter()
            .map(|(_, node)| node.id)
            .filter(|id| !kept.contains_key(id));
        let ids: Vec<i32> = ids.collect();
        let mut known = kept;
        if !ids.is_empty() {
            let read = self.read_statistics(&ids).await?;
            known.extend(read.clone());
            if let Ok(mut kept) = self.statistics.lock() {
                kept.extend(read);
            }
        }
        let rows = self.group_rows();
        let found = leaves.into_iter().filter_map(|(names, node)| {
            let bounds = bounds(node, known.get(&node.id)?, &rows)?;
            Some((names, bounds))
        });
        Ok(found.collect())
    }

    /// The values of the dictionary columns among `columns`.
    async fn dictionaries_of(&self, columns: &GroupColumns) -> Result<Dictionaries> {
        let mut wanted = Vec::new();
        for node in columns.nodes.iter() {
            node.walk(&mut |node| {
                if matches!(node.kind, Kind::Dictionary) {
                    wanted.push(node.id);
                }
            });
        }
        let mut found = Dictionaries::new();
        for id in wanted {
            let values = match columns.dictionaries.get(&id) {
                Some(values) => Some(values),
                None => self.own_dictionaries().await?.get(&id),
            };
            if let Some(values) = values {
                found.insert(id, values.clone());
            }
        }
        Ok(found)
    }

    /// The values of all dictionary columns that the file itself holds.
    pub(crate) async fn own_dictionaries(&self) -> Result<&Dictionaries> {
        self.dictionaries
            .get_or_try_init(|| async {
                let mut out = Dictionaries::new();
                for field in self.meta.schema.flat_fields() {
                    let Some(values) = DictionaryValues::of(field, &self.path, self.size)? else {
                        continue;
                    };
                    let (table, node) = (values.page_table(), values.node());
                    let (rows, none) = (values.rows(), Dictionaries::new());
                    let read = self.read_pages(&table, std::slice::from_ref(node), &rows, &none);
                    out.extend(read.await?.pop().map(|values| (field.id, values)));
                }
                Ok(out)
            })
            .await
    }
}

fn is_large(data_type: &DataType) -> bool {
    matches!(data_type, DataType::LargeList(_))
}
