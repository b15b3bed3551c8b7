//! Writes a 2.x file: pages are encoded concurrently, in bounded memory.

use std::collections::VecDeque;

use arrow_array::{ArrayRef, RecordBatch};
use bytes::Bytes;
use esker_codec::large_blocks::Sparing;
use esker_store::store::StoreRef;
use tokio::task::JoinHandle;

use crate::blob::BlobWriter;
use crate::container::{ContainerWriter, WrittenPage};
use crate::error::{FileError, Result};
use crate::raw_page::RawPage;
use crate::reader::FileReader;
use crate::schema::{Field, Schema};
use crate::v2_1::write::ValuesMemory;
use crate::version::FileVersion;
use crate::writer::{FileSummary, WriteOptions};
use crate::{v2_0, v2_1};

/// A 2.x file that is being written.
pub(crate) struct PagedWriter {
    out: ContainerWriter,
    blobs: BlobWriter,
    schema: Schema,
    sinks: Vec<Sink>,
    /// Field ids and the column of each, -1 where a field has none of its own.
    columns: Vec<(i32, i32)>,
    options: WriteOptions,
    num_rows: u64,
    has_blobs: bool,
    /// Pages that are being encoded, in the order in which they are written.
    encoding: VecDeque<Encoding>,
    /// Pages that were encoded, and that were copied with their bytes.
    pages: PageCounts,
    /// Global buffers behind all pages, and the keys that name them.
    trailing: Vec<TrailingBuffer>,
    /// Whether values wait in the memory of the last batch, and whether they are most of it.
    in_last_batch: Option<bool>,
    /// Pages have all sizes, and what was freed of one hardly ever fits another.
    _sparing: Sparing,
}

/// A global buffer behind all pages, where the read that opens the file finds it.
#[derive(Debug, Clone)]
pub struct TrailingBuffer {
    /// The key of the schema's metadata that names it.
    pub key: String,
    /// What follows the buffer's number in the key's value.
    pub suffix: String,
    /// The bytes.
    pub bytes: Bytes,
}

/// How the pages of a file came about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// Pages that were encoded.
    pub encoded: u64,
    /// Pages that were copied.
    pub copied: u64,
    /// Bytes of the copied ones.
    pub bytes_copied: u64,
}

/// A page that is being encoded, or is encoded and waits for those before it.
struct Encoding {
    page: Encoded,
    /// The bytes that its values took in the buffer.
    bytes: u64,
}

enum Encoded {
    Soon(JoinHandle<Result<Vec<WrittenPage>>>),
    Already(Box<WrittenPage>),
}

impl Encoded {
    fn is_finished(&self) -> bool {
        match self {
            Encoded::Soon(page) => page.is_finished(),
            Encoded::Already(_) => true,
        }
    }

    /// A page, or the few that it became.
    async fn pages(self) -> Result<Vec<WrittenPage>> {
        match self {
            Encoded::Soon(pages) => pages
                .await
                .map_err(|e| FileError::invalid(format!("an encoding task failed: {e}")))?,
            Encoded::Already(page) => Ok(vec![*page]),
        }
    }
}

/// The buffer of one top-level field, in the form of the file version.
enum Sink {
    V2_0(v2_0::write::ColumnSink),
    V2_1(v2_1::write::ColumnSink),
}

/// A page that waits to be encoded.
enum PendingPage {
    V2_0(v2_0::write::PendingPage),
    V2_1(v2_1::write::PendingPage),
}

impl PendingPage {
    fn bytes(&self) -> u64 {
        match self {
            PendingPage::V2_0(page) => page.bytes(),
            PendingPage::V2_1(page) => page.bytes(),
        }
    }

    fn encode(self) -> Result<Vec<WrittenPage>> {
        match self {
            PendingPage::V2_0(page) => page.encode().map(|page| vec![page]),
            PendingPage::V2_1(page) => page.encode(),
        }
    }
}

impl Sink {
    fn pending_bytes(&self) -> u64 {
        match self {
            Sink::V2_0(sink) => sink.pending_bytes(),
            Sink::V2_1(sink) => sink.pending_bytes(),
        }
    }

    fn push(
        &mut self,
        array: &arrow_array::ArrayRef,
        row: u64,
        page_bytes: u64,
        full: &mut Vec<PendingPage>,
    ) -> Result<()> {
        match self {
            Sink::V2_0(sink) => gather(full, PendingPage::V2_0, |out| sink.push(array, row, page_bytes, out)),
            Sink::V2_1(sink) => gather(full, PendingPage::V2_1, |out| sink.push(array, row, page_bytes, out)),
        }
    }

    /// Takes the buffered values as pages; `last` at the file's end.
    fn flush(&mut self, last: bool, full: &mut Vec<PendingPage>) {
        match self {
            Sink::V2_0(sink) => gather(full, PendingPage::V2_0, |out| sink.flush(out)),
            Sink::V2_1(sink) => gather(full, PendingPage::V2_1, |out| sink.flush(last, out)),
        }
    }

    fn own(&mut self) {
        match self {
            Sink::V2_0(sink) => sink.own(),
            Sink::V2_1(sink) => sink.own(),
        }
    }
}

fn gather<P, R>(full: &mut Vec<PendingPage>, wrap: fn(P) -> PendingPage, fill: impl FnOnce(&mut Vec<P>) -> R) -> R {
    let mut pages = Vec::new();
    let result = fill(&mut pages);
    full.extend(pages.into_iter().map(wrap));
    result
}

impl PagedWriter {
    pub(crate) async fn create(
        store: &StoreRef,
        path: &str,
        schema: &Schema,
        options: WriteOptions,
    ) -> Result<PagedWriter> {
        let (assigned, sinks) = if options.version == FileVersion::V2_0 {
            let columns = v2_0::columns::assign_columns(schema);
            (
                columns,
                v2_0_sinks(&v2_0::compression::with_goal(schema, options.goal))?,
            )
        } else {
            let columns = v2_1::columns::assign_columns(schema);
            let sinks = v2_1::write::sinks(schema, options.version, options.goal)?;
            (columns, sinks.into_iter().map(Sink::V2_1).collect())
        };
        let place = |id: i32| assigned.get(&id).and_then(|c| i32::try_from(*c).ok()).unwrap_or(-1);
        let columns = listed(schema).iter().map(|f| (f.id, place(f.id))).collect();
        let to = match options.staging {
            true => store.staging_writer(path).await?,
            false => store.writer(path).await?,
        };
        let mut out = ContainerWriter::new(to, options.version, assigned.len());
        let in_columns = options.version == FileVersion::V2_0;
        for field in schema.flat_fields().into_iter().filter(|f| in_columns && f.is_blob()) {
            if let Some(column) = assigned.get(&field.id) {
                out.set_column_encoding(*column, &v2_0::blob::encode::column_encoding());
            }
        }
        Ok(PagedWriter {
            out,
            blobs: BlobWriter::new(store, path, schema, &options),
            schema: schema.clone(),
            sinks,
            columns,
            options,
            num_rows: 0,
            has_blobs: schema.flat_fields().iter().any(|field| field.is_blob()),
            encoding: VecDeque::new(),
            pages: PageCounts::default(),
            trailing: Vec::new(),
            in_last_batch: None,
            _sparing: Sparing::begin(),
        })
    }

    pub(crate) async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut full = Vec::new();
        // Of the last batch of all nothing is copied: what waits then becomes the last pages.
        if let Some(is_most) = self.in_last_batch.take() {
            self.own_waiting(is_most);
        }
        let before = self.waiting_bytes();
        for ((sink, field), column) in self.sinks.iter_mut().zip(&self.schema.fields).zip(batch.columns()) {
            let column = self.blobs.store(&mut self.out, field, column).await?;
            sink.push(&column, self.num_rows, self.options.page_bytes, &mut full)?;
        }
        self.num_rows = self.num_rows.saturating_add(batch.num_rows() as u64);
        self.flush_largest(&mut full);
        self.encode_pages(full).await?;
        let added = self.waiting_bytes().saturating_sub(before);
        let is_most = added.saturating_mul(2) >= batch.get_array_memory_size() as u64;
        match self.options.memory_is_lent {
            true => self.in_last_batch = Some(is_most),
            false => self.own_waiting(is_most),
        }
        Ok(())
    }

    /// Bytes that wait for their pages to fill.
    fn waiting_bytes(&self) -> u64 {
        self.sinks.iter().map(Sink::pending_bytes).sum()
    }

    /// Copies what waits in the memory of batches, which a few values of one column would keep alive. The last batch's wait for the next
    /// one as they are, if they are most of that batch and its memory is lent: often a page ends with the next, or there is none.
    fn own_waiting(&mut self, is_most: bool) {
        let keeps = is_most && self.options.memory_is_lent;
        for sink in &mut self.sinks {
            match sink {
                Sink::V2_1(sink) if keeps => sink.own_earlier(),
                _ => sink.own(),
            }
        }
    }

    /// Writes values of one field, or of one of its leaves, from top-level row `row` on.
    pub(crate) async fn write_values(
        &mut self,
        field: usize,
        leaf: Option<usize>,
        (array, memory): (&ArrayRef, ValuesMemory),
        row: u64,
    ) -> Result<()> {
        let (mut full, page_bytes) = (Vec::new(), self.options.page_bytes);
        let described = self.schema.fields.get(field);
        let (Some(sink), Some(described)) = (self.sinks.get_mut(field), described) else {
            return Err(FileError::invalid(format!(
                "expected a field {field} of the schema, found none"
            )));
        };
        match (sink, leaf) {
            (Sink::V2_1(sink), Some(leaf)) => {
                gather(&mut full, PendingPage::V2_1, |out| {
                    sink.push_leaf(leaf, array, memory, row, page_bytes, out)
                })?;
            }
            (sink, _) => {
                let array = self.blobs.store(&mut self.out, described, array).await?;
                sink.push(&array, row, page_bytes, &mut full)?;
                sink.own();
            }
        }
        self.flush_largest(&mut full);
        self.encode_pages(full).await
    }

    /// Writes the blobs that `array` locates in `source`, from top-level row `row` on.
    pub(crate) async fn carry_blobs(
        &mut self,
        field: usize,
        array: &ArrayRef,
        source: Option<&FileReader>,
        row: u64,
    ) -> Result<()> {
        let (mut full, page_bytes) = (Vec::new(), self.options.page_bytes);
        let described = self.schema.fields.get(field);
        let (Some(sink), Some(described)) = (self.sinks.get_mut(field), described) else {
            return Err(FileError::invalid(format!(
                "expected a field {field} of the schema, found none"
            )));
        };
        let array = self.blobs.carry(&mut self.out, described, array, source).await?;
        sink.push(&array, row, page_bytes, &mut full)?;
        sink.own();
        self.flush_largest(&mut full);
        self.encode_pages(full).await
    }

    /// Writes an encoded page of a leaf, whose first top-level row is `row`.
    pub(crate) async fn write_encoded(&mut self, field: usize, leaf: usize, page: RawPage, row: u64) -> Result<()> {
        let mut full = Vec::new();
        let column = match self.sinks.get_mut(field) {
            Some(Sink::V2_1(sink)) => gather(&mut full, PendingPage::V2_1, |out| sink.flush_leaf(leaf, out)),
            _ => None,
        };
        let column = column.ok_or_else(|| {
            FileError::invalid(format!(
                "expected leaf {leaf} of field {field} of a file of version 2.1 or later"
            ))
        })?;
        self.encode_pages(full).await?;
        let bytes = page.bytes();
        self.pages.copied += 1;
        self.pages.bytes_copied = self.pages.bytes_copied.saturating_add(bytes);
        let page = page.written(column, row);
        self.encoding.push_back(Encoding {
            page: Encoded::Already(Box::new(page)),
            bytes,
        });
        // There is nothing to wait for but the pages before it; many bytes are not held any longer.
        while self.encoding.len() > self.options.threads.max(1)
            || (!self.encoding.is_empty() && self.encoding_bytes() > self.options.page_bytes)
        {
            self.write_next().await?;
        }
        self.encode_pages(Vec::new()).await
    }

    /// Writes what waits of a field, or of one of its leaves, of which no more will come.
    pub(crate) async fn end_values(&mut self, field: usize, leaf: Option<usize>) -> Result<()> {
        let mut full = Vec::new();
        match (self.sinks.get_mut(field), leaf) {
            (Some(Sink::V2_1(sink)), Some(leaf)) => {
                gather(&mut full, PendingPage::V2_1, |out| sink.end_leaf(leaf, out));
            }
            (Some(sink), _) => sink.flush(true, &mut full),
            (None, _) => {}
        }
        self.encode_pages(full).await
    }

    /// Writes the file, in which every column has `num_rows` rows.
    pub(crate) async fn finish_columns(mut self, num_rows: u64) -> Result<(FileSummary, PageCounts)> {
        self.num_rows = num_rows;
        let copied = self.pages;
        let (summary, pages) = self.finish_counted().await?;
        Ok((
            summary,
            PageCounts {
                encoded: pages,
                ..copied
            },
        ))
    }

    /// Writes pages early while too much waits.
    fn flush_largest(&mut self, full: &mut Vec<PendingPage>) {
        let mut waiting = self.waiting_bytes();
        while waiting > self.options.memory_limit {
            // With many wide columns, the largest buffer is written as a page early.
            let Some(sink) = self.sinks.iter_mut().max_by_key(|s| s.pending_bytes()) else {
                break;
            };
            waiting = waiting.saturating_sub(sink.pending_bytes());
            sink.flush(false, full);
        }
    }

    pub(crate) fn bytes_so_far(&self) -> u64 {
        self.out
            .position()
            .saturating_add(self.waiting_bytes())
            .saturating_add(self.encoding_bytes())
    }

    fn encoding_bytes(&self) -> u64 {
        self.encoding.iter().map(|page| page.bytes).sum()
    }

    pub(crate) fn num_rows(&self) -> u64 {
        self.num_rows
    }

    pub(crate) async fn add_global_buffer(&mut self, bytes: Bytes) -> Result<usize> {
        // The position must not depend on how long a page takes to encode, so that files are deterministic.
        while !self.encoding.is_empty() {
            self.write_next().await?;
        }
        self.out.add_global_buffer(bytes).await
    }

    pub(crate) fn add_trailing_buffer(&mut self, buffer: TrailingBuffer) {
        self.trailing.push(buffer);
    }

    pub(crate) fn add_schema_metadata(&mut self, key: String, value: Vec<u8>) {
        self.schema.metadata.insert(key, value);
    }

    pub(crate) async fn finish(self) -> Result<FileSummary> {
        Ok(self.finish_counted().await?.0)
    }

    /// Encodes and writes what waits, of a file that gets no more rows. In 2.0 that is left to the end: headers come with it.
    pub(crate) async fn end_rows(&mut self) -> Result<()> {
        let mut full = Vec::new();
        for sink in &mut self.sinks {
            if let Sink::V2_1(_) = sink {
                sink.flush(true, &mut full);
            }
        }
        self.encode_pages(full).await?;
        while !self.encoding.is_empty() {
            self.write_next().await?;
        }
        Ok(())
    }

    /// Writes what waits and the file's end; returns the number of encoded pages, too.
    async fn finish_counted(mut self) -> Result<(FileSummary, u64)> {
        let sidecars = match self.settle().await {
            Ok(sidecars) => sidecars,
            Err(error) => {
                // The first error is the one to report.
                let _ = self.abort().await;
                return Err(error);
            }
        };
        let size = match self.out.finish(&self.schema.described()?, self.num_rows).await {
            Ok(size) => size,
            Err(error) => {
                let _ = self.blobs.abort().await;
                return Err(error);
            }
        };
        let summary = FileSummary {
            num_rows: self.num_rows,
            size,
            columns: self.columns,
            version: self.options.version,
            sidecars,
        };
        Ok((summary, self.pages.encoded))
    }

    /// Writes all that waits and makes the files of blobs visible, as a reader that finds the data file must find its blobs.
    async fn settle(&mut self) -> Result<Vec<String>> {
        let mut full = Vec::new();
        let mut headers: Vec<WrittenPage> = Vec::new();
        for sink in &mut self.sinks {
            if let Sink::V2_0(sink) = sink {
                if self.num_rows > 0 {
                    sink.begin_all();
                }
                sink.headers(&mut headers);
            }
            sink.flush(true, &mut full);
        }
        self.encode_pages(full).await?;
        while !self.encoding.is_empty() {
            self.write_next().await?;
        }
        for page in headers {
            self.out.write_page(page).await?;
        }
        for buffer in std::mem::take(&mut self.trailing) {
            let number = self.out.add_global_buffer(buffer.bytes).await?;
            let value = format!("{number}{}", buffer.suffix);
            self.schema.metadata.insert(buffer.key, value.into_bytes());
        }
        self.blobs.finish().await
    }

    pub(crate) async fn abort(self) -> Result<()> {
        self.blobs.abort().await?;
        self.out.abort().await
    }

    /// Starts to encode pages in the background and writes finished ones. Few are encoded at a time: a full one for each thread, or one
    /// more if they are smaller, as a page that is done waits for those before it.
    async fn encode_pages(&mut self, pages: Vec<PendingPage>) -> Result<()> {
        self.pages.encoded += pages.len() as u64;
        for page in pages {
            let bytes = page.bytes();
            let threads = self.options.threads.max(1);
            let limit = self.options.memory_limit;
            let full = self.options.page_bytes.saturating_mul(threads as u64);
            while self.encoding.len() > threads
                || (self.encoding.len() == threads && self.encoding_bytes().saturating_add(bytes) > full)
                || (!self.encoding.is_empty() && self.encoding_bytes().saturating_add(bytes) > limit)
            {
                self.write_next().await?;
            }
            // On the threads that run tasks, of which there are few: each keeps memory for what it encodes.
            let page = Encoded::Soon(tokio::task::spawn(async move { page.encode() }));
            self.encoding.push_back(Encoding { page, bytes });
        }
        // Blob payloads are written between pages: their position must not depend on how long a page takes to encode.
        while self
            .encoding
            .front()
            .is_some_and(|first| self.has_blobs || first.page.is_finished())
        {
            self.write_next().await?;
        }
        Ok(())
    }

    /// Writes the oldest page that is being encoded.
    async fn write_next(&mut self) -> Result<()> {
        if let Some(first) = self.encoding.pop_front() {
            for page in first.page.pages().await? {
                self.out.write_page(page).await?;
            }
        }
        Ok(())
    }
}

/// The fields that a manifest lists for a file. The children of a packed struct or of a blob have no column of their own and are left out,
/// as readers take a listed leaf without a column for corruption.
fn listed(schema: &Schema) -> Vec<&Field> {
    fn visit<'a>(field: &'a Field, out: &mut Vec<&'a Field>) {
        out.push(field);
        if !field.is_packed_struct() && !field.is_blob() {
            field.children.iter().for_each(|child| visit(child, out));
        }
    }
    let mut out = Vec::new();
    schema.fields.iter().for_each(|field| visit(field, &mut out));
    out
}

fn v2_0_sinks(schema: &Schema) -> Result<Vec<Sink>> {
    let columns = v2_0::columns::assign_columns(schema);
    let column_of = |id: i32| columns.get(&id).copied();
    let fields = schema.fields.iter();
    fields
        .map(|field| {
            let node = v2_0::columns::ColumnNode::new(field, &column_of)?;
            Ok(Sink::V2_0(v2_0::write::ColumnSink::new(&field.name, &node)))
        })
        .collect()
}
