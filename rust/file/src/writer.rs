//! Writing one data file: batches in, pages out, encoded side by side, memory bounded.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use esker_store::store::StoreRef;
use futures::stream::{self, StreamExt};

use crate::container::{ContainerWriter, WrittenPage};
use crate::error::{FileError, Result};
use crate::schema::{Field, Schema};
use crate::v2_0::columns::{assign_columns, ColumnNode};
use crate::v2_0::write::{ColumnSink, PendingPage};
use crate::version::FileVersion;

/// How a file is written.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// The version of the file format.
    pub version: FileVersion,
    /// A column's page is written when it holds so many bytes.
    pub page_bytes: u64,
    /// Bytes of values, over all columns, that may wait to be written.
    pub memory_limit: u64,
    /// Pages encoded at a time.
    pub threads: usize,
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions {
            version: FileVersion::V2_0,
            page_bytes: 8 * 1024 * 1024,
            memory_limit: 256 * 1024 * 1024,
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
        }
    }
}

/// What was written.
#[derive(Debug, Clone)]
pub struct FileSummary {
    /// Rows in the file.
    pub num_rows: u64,
    /// The file's size in bytes.
    pub size: u64,
    /// Field ids, parents before their children, and the column of each; none (-1) where a field shares its parent's column.
    pub columns: Vec<(i32, i32)>,
    /// The version of the file format.
    pub version: FileVersion,
}

/// A data file that is being written.
pub struct FileWriter {
    out: ContainerWriter,
    schema: Schema,
    arrow: SchemaRef,
    sinks: Vec<ColumnSink>,
    options: WriteOptions,
    num_rows: u64,
}

/// Refuses what the version cannot hold, before any byte is written.
pub fn check_schema(schema: &Schema, version: FileVersion) -> Result<()> {
    if version != FileVersion::V2_0 {
        return Err(FileError::unsupported(format!(
            "data_storage_version {version} cannot be written yet; use 2.0"
        )));
    }
    schema
        .fields
        .iter()
        .try_for_each(|field| check_field(field, &field.name))
}

fn check_field(field: &Field, path: &str) -> Result<()> {
    let data_type = field.data_type()?;
    let refuse = |why: &str| {
        Err(FileError::UnsupportedColumn {
            column: path.to_string(),
            data_type: data_type.to_string(),
            version: FileVersion::V2_0,
            what: why.to_string(),
        })
    };
    match &data_type {
        DataType::FixedSizeList(_, 0) | DataType::FixedSizeBinary(0) => return refuse("fixed-width values of width 0"),
        DataType::FixedSizeList(item, _) if !is_fixed_width(item.data_type()) => {
            return refuse("a fixed_size_list of anything but fixed-width values; use list");
        }
        DataType::Dictionary(_, value) if !is_dictionary_value(value) => {
            return refuse("a dictionary of anything but fixed-width values, strings or binary; use plain values");
        }
        _ => {}
    }
    if field.logical_type == "json" || field.metadata_text("ARROW:extension:name") == Some("arrow.json") {
        return refuse("json extension columns yet; store the text as a plain string");
    }
    if field.is_blob() {
        return refuse("blobs yet; leave out lance-encoding:blob");
    }
    field
        .children
        .iter()
        .try_for_each(|child| check_field(child, &format!("{path}.{}", child.name)))
}

fn is_fixed_width(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(item, _) => is_fixed_width(item.data_type()),
        DataType::Boolean | DataType::FixedSizeBinary(_) => true,
        other => other.is_primitive(),
    }
}

fn is_dictionary_value(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
    ) || is_fixed_width(data_type)
}

impl FileWriter {
    /// Starts the file at `path`. Nothing is visible there before [`FileWriter::finish`].
    pub async fn create(store: &StoreRef, path: &str, schema: &Schema, options: WriteOptions) -> Result<FileWriter> {
        check_schema(schema, options.version)?;
        let columns = assign_columns(schema);
        let column_of = |id: i32| columns.get(&id).copied();
        let mut sinks = Vec::with_capacity(schema.fields.len());
        for field in &schema.fields {
            sinks.push(ColumnSink::new(&field.name, &ColumnNode::new(field, &column_of)?));
        }
        let arrow = std::sync::Arc::new(schema.to_arrow()?);
        let out = ContainerWriter::new(store.writer(path).await?, options.version, columns.len());
        Ok(FileWriter {
            out,
            schema: schema.clone(),
            arrow,
            sinks,
            options,
            num_rows: 0,
        })
    }

    /// Takes a batch in; its columns are the schema's, in order.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut full = Vec::new();
        if batch.num_columns() != self.sinks.len() {
            return Err(FileError::invalid(format!(
                "expected {} columns, found {}",
                self.sinks.len(),
                batch.num_columns()
            )));
        }
        for ((sink, column), field) in self.sinks.iter_mut().zip(batch.columns()).zip(self.arrow.fields()) {
            check_type(field.name(), field.data_type(), column)?;
            sink.push(column, self.num_rows, self.options.page_bytes, &mut full)?;
        }
        self.num_rows = self.num_rows.saturating_add(batch.num_rows() as u64);
        let mut waiting: u64 = self.sinks.iter().map(ColumnSink::pending_bytes).sum();
        while waiting > self.options.memory_limit {
            // Many wide columns: the fullest gives up its page early.
            let Some(sink) = self.sinks.iter_mut().max_by_key(|s| s.pending_bytes()) else {
                break;
            };
            waiting = waiting.saturating_sub(sink.pending_bytes());
            sink.flush(&mut full);
        }
        self.sinks.iter_mut().for_each(ColumnSink::own);
        self.write_pages(full).await
    }

    /// Bytes in the file so far and bytes that wait.
    pub fn bytes_so_far(&self) -> u64 {
        self.out
            .position()
            .saturating_add(self.sinks.iter().map(ColumnSink::pending_bytes).sum())
    }

    /// Rows so far.
    pub fn num_rows(&self) -> u64 {
        self.num_rows
    }

    /// Writes what waits and makes the file visible.
    pub async fn finish(mut self) -> Result<FileSummary> {
        let mut full = Vec::new();
        let mut headers: Vec<WrittenPage> = Vec::new();
        for sink in &mut self.sinks {
            if self.num_rows > 0 {
                sink.begin_all();
            }
            sink.flush(&mut full);
            sink.headers(&mut headers);
        }
        self.write_pages(full).await?;
        for page in headers {
            self.out.write_page(page).await?;
        }
        let columns = assign_columns(&self.schema);
        let place = |id: i32| columns.get(&id).and_then(|c| i32::try_from(*c).ok()).unwrap_or(-1);
        let columns = self.schema.flat_fields().iter().map(|f| (f.id, place(f.id))).collect();
        let size = self.out.finish(&self.schema, self.num_rows).await?;
        Ok(FileSummary {
            num_rows: self.num_rows,
            size,
            columns,
            version: self.options.version,
        })
    }

    /// Gives the file up and leaves nothing behind.
    pub async fn abort(self) -> Result<()> {
        self.out.abort().await
    }

    async fn write_pages(&mut self, pages: Vec<PendingPage>) -> Result<()> {
        if let [_] = pages.as_slice() {
            for page in pages {
                self.out.write_page(page.encode()?).await?;
            }
            return Ok(());
        }
        let encoded = pages
            .into_iter()
            .map(|page| tokio::task::spawn_blocking(move || page.encode()));
        let mut encoded = stream::iter(encoded).buffered(self.options.threads.max(1));
        while let Some(page) = encoded.next().await {
            let page = page.map_err(|e| FileError::invalid(format!("an encoding task failed: {e}")))??;
            self.out.write_page(page).await?;
        }
        Ok(())
    }
}

fn check_type(name: &str, expected: &DataType, column: &ArrayRef) -> Result<()> {
    if expected.equals_datatype(column.data_type()) {
        return Ok(());
    }
    Err(FileError::invalid(format!(
        "column '{name}': expected type {expected}, found {}",
        column.data_type()
    )))
}
