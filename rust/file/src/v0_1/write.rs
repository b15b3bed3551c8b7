//! Writes a 0.1 file: rows are gathered to groups, a group's pages are written field by field, and the metadata at the end.

use std::collections::VecDeque;

use arrow_array::{Array, ArrayRef, RecordBatch};
use bytes::Bytes;
use esker_proto::lance::{file as pb, table};
use esker_store::store::{ObjectWriter, StoreRef};
use prost::Message;

use super::column::ColumnNode;
use super::dictionary::encode::DictionaryWriters;
use super::dictionary::values::encode_values;
use super::encode::{encode, EncodeContext, PageWriter};
use super::page::{encode_table, Page};
use super::statistics::encode::StatisticsWriter;
use crate::container::MAGIC;
use crate::error::{FileError, Result};
use crate::schema::Schema;
use crate::version::FileVersion;
use crate::writer::{FileSummary, WriteOptions};

/// Bytes that are gathered before they go out.
const BUFFER: usize = 4 * 1024 * 1024;

/// The version numbers in the footer: pylance's, which readers take for 0.1.
const FOOTER_VERSION: [u8; 4] = [0, 0, 2, 0];

/// A 0.1 file that is being written.
pub(crate) struct GroupWriter {
    out: Box<dyn ObjectWriter>,
    schema: Schema,
    nodes: Vec<ColumnNode>,
    pages: PageWriter,
    /// Field, group and page, of all groups.
    table: Vec<(i32, usize, Page)>,
    /// The first row of each group, and the row after the last.
    group_offsets: Vec<i32>,
    statistics: StatisticsWriter,
    dictionaries: DictionaryWriters,
    /// Rows that wait for their group to fill.
    waiting: VecDeque<RecordBatch>,
    waiting_rows: usize,
    num_rows: u64,
    rows_per_group: usize,
    allow_null_loss: bool,
}

impl GroupWriter {
    pub(crate) async fn create(
        store: &StoreRef,
        path: &str,
        schema: &Schema,
        options: WriteOptions,
    ) -> Result<GroupWriter> {
        if options.rows_per_group == 0 {
            return Err(FileError::invalid("expected max_rows_per_group above 0"));
        }
        let nodes = schema.fields.iter().map(|field| ColumnNode::new(field, None));
        Ok(GroupWriter {
            nodes: nodes.collect::<Result<Vec<_>>>()?,
            statistics: StatisticsWriter::new(schema)?,
            out: store.writer(path).await?,
            schema: schema.clone(),
            pages: PageWriter::default(),
            table: Vec::new(),
            group_offsets: vec![0],
            dictionaries: options.dictionaries,
            waiting: VecDeque::new(),
            waiting_rows: 0,
            num_rows: 0,
            rows_per_group: options.rows_per_group,
            allow_null_loss: options.allow_null_loss,
        })
    }

    pub(crate) async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.num_rows = self.num_rows.saturating_add(batch.num_rows() as u64);
        self.waiting_rows += batch.num_rows();
        self.waiting.push_back(batch.clone());
        while self.waiting_rows >= self.rows_per_group {
            self.write_group(self.rows_per_group).await?;
        }
        Ok(())
    }

    pub(crate) fn bytes_so_far(&self) -> u64 {
        let waiting = self.waiting.iter().flat_map(|batch| batch.columns());
        let waiting: usize = waiting.map(|a| a.to_data().get_slice_memory_size().unwrap_or(0)).sum();
        self.pages.position().saturating_add(waiting as u64)
    }

    pub(crate) fn num_rows(&self) -> u64 {
        self.num_rows
    }

    /// Writes the first `rows` of those that wait as one group.
    async fn write_group(&mut self, rows: usize) -> Result<()> {
        let mut parts: Vec<RecordBatch> = Vec::new();
        let mut room = rows;
        while room > 0 {
            let Some(batch) = self.waiting.pop_front() else { break };
            let taken = room.min(batch.num_rows());
            parts.push(batch.slice(0, taken));
            room -= taken;
            if taken < batch.num_rows() {
                self.waiting.push_front(batch.slice(taken, batch.num_rows() - taken));
                break;
            }
        }
        self.waiting_rows -= rows;
        let group = self.group_offsets.len() - 1;
        let before = self.group_offsets.last().copied().unwrap_or(0);
        let end = i32::try_from(rows).ok().and_then(|rows| before.checked_add(rows));
        let end = end.ok_or_else(|| {
            FileError::unsupported("a file of version 0.1 holds at most 2^31 - 1 rows; lower max_rows_per_file")
        })?;
        let context = EncodeContext {
            allow_null_loss: self.allow_null_loss,
            dictionaries: &self.dictionaries,
        };
        for (column, node) in self.nodes.iter().enumerate() {
            let arrays = parts.iter().filter_map(|part| part.columns().get(column).cloned());
            let arrays: Vec<ArrayRef> = arrays.collect();
            encode(context, node, &arrays, &mut self.pages)?;
            self.statistics.add(node, &arrays)?;
        }
        let pages = self.pages.pages.drain(..);
        self.table.extend(pages.map(|(field, page)| (field, group, page)));
        self.group_offsets.push(end);
        if self.pages.buffer.len() >= BUFFER {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.pages.buffer);
        self.pages.written = self.pages.written.saturating_add(bytes.len() as u64);
        self.out.write(Bytes::from(bytes)).await?;
        Ok(())
    }

    pub(crate) async fn finish(mut self) -> Result<FileSummary> {
        if self.waiting_rows > 0 {
            self.write_group(self.waiting_rows).await?;
        }
        self.write_footer()?;
        self.flush().await?;
        let size = self.out.finish().await?;
        Ok(FileSummary {
            num_rows: self.num_rows,
            size,
            // A 0.1 file finds its columns by their ids.
            columns: self.schema.flat_fields().iter().map(|f| (f.id, -1)).collect(),
            sidecars: Vec::new(),
            version: FileVersion::V0_1,
        })
    }

    /// The page table and all behind it.
    fn write_footer(&mut self) -> Result<()> {
        let ids: Vec<i32> = self.schema.flat_fields().iter().map(|f| f.id).collect();
        let bounds = ids.iter().min().zip(ids.iter().max());
        let ids = bounds.map_or(0..=0, |(first, last)| *first..=*last);
        let page_table_position = self.pages.position();
        let num_groups = self.group_offsets.len() - 1;
        let table = encode_table(&self.table, ids, num_groups)
            .ok_or_else(|| FileError::unsupported("a page table of more than 2^64 bytes cannot be written"))?;
        self.pages.buffer.extend_from_slice(&table);
        // What bounds are not known is noted as null, whatever else may be lost.
        let context = EncodeContext {
            allow_null_loss: true,
            dictionaries: &DictionaryWriters::default(),
        };
        let statistics = std::mem::take(&mut self.statistics).finish(context, &mut self.pages)?;
        let values = self.dictionaries.values()?;
        let fields = encode_values(&self.schema, &values, &mut self.pages)?;
        let manifest = table::Manifest {
            fields: fields.to_protos(),
            schema_metadata: self.schema.proto_metadata(),
            version: 1,
            writer_version: Some(table::manifest::WriterVersion {
                library: "esker".into(),
                version: env!("CARGO_PKG_VERSION").into(),
                ..Default::default()
            }),
            data_format: Some(table::manifest::DataStorageFormat {
                file_format: "lance".into(),
                version: FileVersion::V0_1.to_string(),
            }),
            ..Default::default()
        };
        let manifest_position = self.push_message(&manifest)?;
        let metadata = pb::Metadata {
            manifest_position,
            batch_offsets: self.group_offsets.clone(),
            page_table_position,
            statistics,
        };
        let position = self.push_message(&metadata)?;
        self.pages.buffer.extend_from_slice(&position.to_le_bytes());
        self.pages.buffer.extend_from_slice(&FOOTER_VERSION);
        self.pages.buffer.extend_from_slice(&MAGIC);
        Ok(())
    }

    /// Appends a message behind its length and says where.
    fn push_message(&mut self, message: &impl Message) -> Result<u64> {
        let position = self.pages.position();
        let length = u32::try_from(message.encoded_len())
            .map_err(|_| FileError::unsupported("metadata of more than 4 GiB cannot be written"))?;
        self.pages.buffer.extend_from_slice(&length.to_le_bytes());
        self.pages.buffer.extend_from_slice(&message.encode_to_vec());
        Ok(position)
    }

    pub(crate) async fn abort(self) -> Result<()> {
        Ok(self.out.abort().await?)
    }
}
