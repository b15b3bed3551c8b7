//! Opens a container: reads the tail in one request, decodes column metadata when a column is first used.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef};
use bytes::Bytes;
use esker_proto::lance::file as pb;
use esker_store::store::StoreRef;
use prost::Message;

use super::bytes::{u32_at, u64_at};
use super::metadata::{BufferRange, ColumnMeta};
use super::tail::{version_of_tail, FileTail};
use super::whole::WholeFile;
use super::FOOTER_SIZE;
use crate::cache::{Owner, ReadCache, Slot};
use crate::error::{FileError, Result};
use crate::schema::Schema;
use crate::version::FileVersion;

/// An opened 2.x file, by way of a store.
#[derive(Debug)]
pub struct Container {
    store: StoreRef,
    shared: Arc<Opened>,
}

/// What is known of an open file, whatever store it is read by.
#[derive(Debug)]
struct Opened {
    path: String,
    size: u64,
    version: FileVersion,
    num_rows: u64,
    schema: Schema,
    columns: Vec<LazyColumn>,
    global_buffers: Vec<BufferRange>,
    /// From the first column's metadata to the table of global buffers.
    metadata: BufferRange,
    /// The global buffers that came with the file's tail.
    buffers_at_hand: BTreeMap<usize, Bytes>,
    /// Bytes of the tail, which hold the metadata.
    tail_bytes: usize,
    /// A short file as a whole, where a read costs a request.
    whole: Option<Bytes>,
    /// What is kept of its pages.
    kept: Owner,
}

#[derive(Debug)]
struct LazyColumn {
    raw: Bytes,
    meta: OnceLock<Arc<ColumnMeta>>,
}

struct Footer {
    first_column: u64,
    column_table: BufferRange,
    global_table: BufferRange,
    version: FileVersion,
}

fn parse_footer(tail: &[u8], size: u64, path: &str) -> Result<Footer> {
    let version = version_of_tail(tail, path)?;
    let corrupt = |message: &str| FileError::corrupt(path, message);
    let short = || corrupt("expected a footer of 40 bytes, found fewer; the file is cut short");
    let at = tail.len().checked_sub(40).ok_or_else(short)?;
    let number = |offset: usize| u64_at(tail, at + offset).ok_or_else(short);
    let count = |offset: usize| u32_at(tail, at + offset).map(u64::from).ok_or_else(short);
    let (first_column, column_start, global_start) = (number(0)?, number(8)?, number(16)?);
    let (globals, columns) = (count(24)?, count(28)?);
    let table = |start: u64, entries: u64| -> Result<BufferRange> {
        match start.checked_add(entries * 16) {
            Some(end) if end <= size.saturating_sub(FOOTER_SIZE) => Ok(start..end),
            _ => Err(corrupt(
                "expected the footer's tables within the file, found them beyond its end",
            )),
        }
    };
    let footer = Footer {
        first_column,
        column_table: table(column_start, columns)?,
        global_table: table(global_start, globals)?,
        version,
    };
    if footer.first_column > size {
        return Err(corrupt(
            "expected the first column's metadata within the file, found it beyond its end",
        ));
    }
    Ok(footer)
}

fn table_entries(table: &[u8], size: u64, path: &str, what: &str) -> Result<Vec<BufferRange>> {
    table
        .chunks_exact(16)
        .enumerate()
        .map(|(index, entry)| {
            let range = u64_at(entry, 0).zip(u64_at(entry, 8)).and_then(|(start, length)| {
                let end = start.checked_add(length)?;
                (end <= size).then_some(start..end)
            });
            range.ok_or_else(|| {
                FileError::corrupt(
                    path,
                    format!("expected {what} {index} within the file's {size} bytes, found it beyond"),
                )
            })
        })
        .collect()
}

impl Container {
    /// Opens the 2.x file that `tail` ends; what is read of its pages is kept in `cache`.
    pub async fn open(mut tail: FileTail, cache: &Arc<ReadCache>) -> Result<Container> {
        let path = tail.path.clone();
        let path = path.as_str();
        let size = tail.size;
        let footer = parse_footer(&tail.bytes, size, path)?;
        let wanted = footer
            .column_table
            .start
            .min(footer.global_table.start)
            .min(footer.first_column);
        tail.widen(wanted).await?;
        let beyond = || {
            FileError::corrupt(
                path,
                "expected the metadata where the footer says, found it beyond the file's end",
            )
        };
        let columns = table_entries(
            &tail.slice(&footer.column_table).ok_or_else(beyond)?,
            size,
            path,
            "metadata of column",
        )?;
        let globals = table_entries(
            &tail.slice(&footer.global_table).ok_or_else(beyond)?,
            size,
            path,
            "global buffer",
        )?;
        let descriptor = globals.first().ok_or_else(|| {
            FileError::corrupt(
                path,
                "expected a global buffer with the file's schema, found no global buffer",
            )
        })?;
        let lowest = columns
            .iter()
            .map(|r| r.start)
            .chain([descriptor.start])
            .min()
            .unwrap_or(wanted);
        tail.widen(lowest).await?;
        tail.trim(lowest, &globals);
        let raw = columns
            .iter()
            .map(|range| tail.slice(range).ok_or_else(beyond))
            .collect::<Result<Vec<_>>>()?;
        let descriptor = tail.slice(descriptor).ok_or_else(beyond)?;
        let descriptor = pb::FileDescriptor::decode(descriptor).map_err(|e| {
            FileError::corrupt(
                path,
                format!("expected a file descriptor in global buffer 0, found bytes that do not decode ({e})"),
            )
        })?;
        let schema = descriptor.schema.unwrap_or_default();
        let schema = Schema::from_protos(&schema.fields, &schema.metadata)
            .map_err(|e| FileError::corrupt(path, e.to_string()))?;
        let at_hand = globals.iter().enumerate().skip(1);
        let buffers_at_hand = at_hand.filter_map(|(number, range)| Some((number, tail.slice(range)?)));
        let opened = Opened {
            path: tail.path.clone(),
            buffers_at_hand: buffers_at_hand.collect(),
            tail_bytes: tail.bytes.len(),
            whole: tail.whole,
            kept: cache.owner(),
            size,
            version: footer.version,
            num_rows: descriptor.length,
            schema,
            columns: raw
                .into_iter()
                .map(|raw| LazyColumn {
                    raw,
                    meta: OnceLock::new(),
                })
                .collect(),
            global_buffers: globals,
            metadata: footer.first_column..footer.global_table.start.max(footer.first_column),
        };
        Ok(Container {
            store: tail.store,
            shared: Arc::new(opened),
        })
    }

    /// The same open file, read by way of another handle to its store.
    pub(crate) fn through(&self, store: &StoreRef) -> Container {
        let store: StoreRef = match &self.shared.whole {
            Some(bytes) => Arc::new(WholeFile {
                store: store.clone(),
                path: self.shared.path.clone(),
                bytes: bytes.clone(),
            }),
            None => store.clone(),
        };
        Container {
            store,
            shared: self.shared.clone(),
        }
    }

    /// What is kept of its pages.
    pub(crate) fn kept(&self) -> &Owner {
        &self.shared.kept
    }

    /// About the bytes that the open file holds in memory: its metadata, encoded and decoded.
    pub(crate) fn metadata_bytes(&self) -> u64 {
        let encoded = self.shared.metadata.end.saturating_sub(self.shared.metadata.start);
        encoded.saturating_mul(3).saturating_add(self.shared.tail_bytes as u64)
    }

    /// The bytes of a global buffer, if they came with the file's tail.
    pub fn buffer_at_hand(&self, index: usize) -> Option<Bytes> {
        self.shared.buffers_at_hand.get(&index).cloned()
    }

    /// The file's path in its store.
    pub fn path(&self) -> &str {
        &self.shared.path
    }

    /// The store that holds the file.
    pub fn store(&self) -> &StoreRef {
        &self.store
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        self.shared.size
    }

    /// The version of the file format.
    pub fn version(&self) -> FileVersion {
        self.shared.version
    }

    /// Rows in the file.
    pub fn num_rows(&self) -> u64 {
        self.shared.num_rows
    }

    /// The schema as the file itself holds it.
    pub fn schema(&self) -> &Schema {
        &self.shared.schema
    }

    /// Columns in the file.
    pub fn num_columns(&self) -> usize {
        self.shared.columns.len()
    }

    /// Where the global buffers lie.
    pub fn global_buffers(&self) -> &[BufferRange] {
        &self.shared.global_buffers
    }

    /// Where the metadata of all columns and their table lie.
    pub fn column_metadata(&self) -> &BufferRange {
        &self.shared.metadata
    }

    /// The cached dictionary of a page.
    pub(crate) fn kept_dictionary(&self, column: usize, page: usize) -> Option<ArrayRef> {
        let found: Arc<ArrayRef> = self.shared.kept.get(&Slot::Dictionary(column, page))?;
        Some(ArrayRef::clone(&found))
    }

    /// Caches the dictionary of a page.
    pub(crate) fn keep_dictionary(&self, column: usize, page: usize, items: &ArrayRef) {
        let slot = Slot::Dictionary(column, page);
        self.shared
            .kept
            .put(slot, Arc::new(items.clone()), items.get_array_memory_size());
    }

    /// Bytes that the pages of `columns` take in the file.
    pub(crate) fn page_bytes(&self, columns: &[usize]) -> Result<u64> {
        let mut bytes = 0_u64;
        for column in columns {
            let meta = self.column(*column)?;
            let in_pages = meta.pages.iter().flat_map(|p| &p.buffers).map(|b| b.end - b.start);
            bytes = in_pages.fold(bytes, u64::saturating_add);
        }
        Ok(bytes)
    }

    /// The encoding message of each page of a column, byte for byte.
    pub(crate) fn page_messages(&self, index: usize) -> Result<Vec<Bytes>> {
        match self.shared.columns.get(index) {
            Some(column) => ColumnMeta::page_messages(&column.raw, self.path(), index),
            None => Ok(Vec::new()),
        }
    }

    /// The metadata of one column, decoded on first use.
    pub fn column(&self, index: usize) -> Result<Arc<ColumnMeta>> {
        let Some(column) = self.shared.columns.get(index) else {
            return Err(FileError::corrupt(
                self.path(),
                format!(
                    "expected a column {index}, found {} columns; the table and the file disagree",
                    self.num_columns()
                ),
            ));
        };
        if let Some(meta) = column.meta.get() {
            return Ok(meta.clone());
        }
        let meta = Arc::new(ColumnMeta::decode(&column.raw, self.path(), index, self.size())?);
        Ok(column.meta.get_or_init(|| meta).clone())
    }
}
