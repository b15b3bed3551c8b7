//! Opens a container: reads the tail in one request, decodes column metadata when a column is first used.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use arrow_array::{Array, ArrayRef};
use bytes::Bytes;
use esker_proto::lance::file as pb;
use esker_store::store::StoreRef;
use prost::Message;

use super::bytes::{u32_at, u64_at};
use super::metadata::{BufferRange, ColumnMeta};
use super::tail::{version_of_tail, FileTail};
use super::FOOTER_SIZE;
use crate::error::{FileError, Result};
use crate::schema::Schema;
use crate::version::FileVersion;

/// The most bytes of decoded dictionaries that an open file caches.
const KEPT_DICTIONARY_BYTES: usize = 32 * 1024 * 1024;

/// An opened 2.x file.
#[derive(Debug)]
pub struct Container {
    store: StoreRef,
    path: String,
    size: u64,
    version: FileVersion,
    num_rows: u64,
    schema: Schema,
    columns: Vec<LazyColumn>,
    global_buffers: Vec<BufferRange>,
    /// From the first column's metadata to the table of global buffers.
    metadata: BufferRange,
    dictionaries: Mutex<KeptDictionaries>,
}

/// A cache of decoded dictionaries, so that the next read of a page does not read them again.
#[derive(Debug, Default)]
struct KeptDictionaries {
    by_page: HashMap<(usize, usize), ArrayRef>,
    bytes: usize,
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
    /// Opens the 2.x file that `tail` ends.
    pub async fn open(mut tail: FileTail) -> Result<Container> {
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
        Ok(Container {
            path: tail.path,
            store: tail.store,
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
            dictionaries: Mutex::default(),
        })
    }

    /// The file's path in its store.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The store that holds the file.
    pub fn store(&self) -> &StoreRef {
        &self.store
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The version of the file format.
    pub fn version(&self) -> FileVersion {
        self.version
    }

    /// Rows in the file.
    pub fn num_rows(&self) -> u64 {
        self.num_rows
    }

    /// The schema as the file itself holds it.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Columns in the file.
    pub fn num_columns(&self) -> usize {
        self.columns.len()
    }

    /// Where the global buffers lie.
    pub fn global_buffers(&self) -> &[BufferRange] {
        &self.global_buffers
    }

    /// Where the metadata of all columns and their table lie.
    pub fn column_metadata(&self) -> &BufferRange {
        &self.metadata
    }

    /// The cached dictionary of a page.
    pub(crate) fn kept_dictionary(&self, column: usize, page: usize) -> Option<ArrayRef> {
        self.dictionaries.lock().ok()?.by_page.get(&(column, page)).cloned()
    }

    /// Caches the dictionary of a page while there is room.
    pub(crate) fn keep_dictionary(&self, column: usize, page: usize, items: &ArrayRef) {
        let size = items.get_array_memory_size();
        if let Ok(mut kept) = self.dictionaries.lock() {
            if kept.bytes.saturating_add(size) <= KEPT_DICTIONARY_BYTES {
                kept.bytes += size;
                kept.by_page.insert((column, page), items.clone());
            }
        }
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
        match self.columns.get(index) {
            Some(column) => ColumnMeta::page_messages(&column.raw, &self.path, index),
            None => Ok(Vec::new()),
        }
    }

    /// The metadata of one column, decoded on first use.
    pub fn column(&self, index: usize) -> Result<Arc<ColumnMeta>> {
        let Some(column) = self.columns.get(index) else {
            return Err(FileError::corrupt(
                &self.path,
                format!(
                    "expected a column {index}, found {} columns; the table and the file disagree",
                    self.columns.len()
                ),
            ));
        };
        if let Some(meta) = column.meta.get() {
            return Ok(meta.clone());
        }
        let meta = Arc::new(ColumnMeta::decode(&column.raw, &self.path, index, self.size)?);
        Ok(column.meta.get_or_init(|| meta).clone())
    }
}
