//! Writes data files: a stream of batches becomes files of bounded size, a fragment each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ArrowError;
use esker_file::schema::Schema;
use esker_file::writer::check_schema;
use esker_file::{DictionaryWriters, ExternalBlobs, FileSummary, FileVersion, FileWriter, Goal, WriteOptions};
use esker_store::store::StoreRef;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::error::{Result, TableError};
use crate::fragment::{DataFile, Fragment};
use crate::zones::{ZoneCollector, ZonesAside};

/// The least page size in bytes, however low the memory limit is: smaller pages are slow to read.
const LEAST_PAGE: u64 = 256 * 1024;

/// Files up to this size are finished while the next ones are written: the most time of a small one goes to its sync, or to its request.
const SMALL_FILE: u64 = 4 * 1024 * 1024;

/// How many of them are being finished at a time.
const FINISHING: usize = 8;

/// How often a write that waits for its input looks whether it is to stop.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// How many bytes of the name of a data file are written as binary digits.
const SPREAD_BYTES: usize = 3;

/// The size of a full page. While a page is encoded, it is in memory several times: its values, their levels, its bytes.
pub(crate) fn page_bytes(memory_limit: u64) -> u64 {
    (memory_limit / 8).clamp(LEAST_PAGE, WriteOptions::default().page_bytes)
}

/// How fragments are written.
#[derive(Debug, Clone)]
pub struct WriteRequest {
    /// Names, types and field ids of the columns.
    pub schema: Schema,
    /// The version of the file format.
    pub version: FileVersion,
    /// How small the files are to be.
    pub goal: Goal,
    /// Rows after which a new file is started.
    pub max_rows_per_file: u64,
    /// Bytes after which a new file is started, as far as pages allow.
    pub max_bytes_per_file: u64,
    /// The most bytes of buffered values.
    pub memory_limit: u64,
    /// How blobs that are given by their URI are stored.
    pub external_blobs: ExternalBlobs,
    /// Rows of a group of files of version 0.1.
    pub max_rows_per_group: usize,
    /// Whether nulls that files of version 0.1 cannot represent are written as the values that readers will see instead of being refused.
    pub allow_null_loss: bool,
    /// The dictionaries that files of version 0.1 share: of the table that is appended to, or empty.
    pub dictionaries: DictionaryWriters,
    /// The base paths that files go to in turn; `None` is the table's own root, as is an empty list.
    pub target_bases: Vec<Option<u32>>,
    /// Set while it runs it ends the write with an error, and what was written is removed.
    pub stop: Arc<AtomicBool>,
}

/// A finished data file, the files of blobs beside it, and its fragment.
#[derive(Debug, Clone)]
pub struct StagedFragment {
    /// The fragment, with id 0.
    pub fragment: Fragment,
    /// The data file, then the files of blobs beside it, relative to the table's root.
    pub files: Vec<String>,
}

/// Writes a stream as data files and returns a fragment for each, with id 0. On an error the staged files are removed.
pub async fn write_fragments(
    store: &StoreRef,
    batches: Box<dyn RecordBatchReader + Send>,
    request: &WriteRequest,
) -> Result<Vec<Fragment>> {
    let staged = stage_fragments(store, batches, request).await?;
    Ok(staged.into_iter().map(|staged| staged.fragment).collect())
}

/// Writes a stream as data files. On an error the staged files are removed.
pub async fn stage_fragments(
    store: &StoreRef,
    batches: Box<dyn RecordBatchReader + Send>,
    request: &WriteRequest,
) -> Result<Vec<StagedFragment>> {
    check_schema(&request.schema, request.version)?;
    check_stream(&batches.schema(), &request.schema)?;
    if request.max_rows_per_file == 0 || request.max_bytes_per_file == 0 || request.memory_limit == 0 {
        return Err(TableError::invalid(
            "expected max_rows_per_file, max_bytes_per_file and memory_limit above 0",
        ));
    }
    // The next batch is made while the last one is encoded and written.
    let (sender, receiver) = sync_channel(1);
    let producer = tokio::task::spawn_blocking(move || {
        for batch in batches {
            if sender.send(batch).is_err() {
                return;
            }
        }
    });
    let mut output = Output {
        store,
        request,
        open: None,
        started: 0,
        finishing: JoinSet::new(),
        done: BTreeMap::new(),
    };
    let result = output.run(receiver).await;
    let produced = producer.await.map_err(|e| TableError::task_failed("input stream", &e));
    match result.and(produced) {
        Ok(()) => Ok(output.done.into_values().collect()),
        Err(error) => {
            output.clean_up().await;
            Err(error)
        }
    }
}

struct OpenFile {
    /// Its place among the files.
    number: usize,
    name: String,
    base_id: Option<u32>,
    writer: FileWriter,
    /// Bounds of its columns, where the version has them.
    zones: Option<ZonesAside>,
}

struct Output<'a> {
    store: &'a StoreRef,
    request: &'a WriteRequest,
    open: Option<OpenFile>,
    started: usize,
    /// Small files, and their places.
    finishing: JoinSet<Result<(usize, StagedFragment)>>,
    done: BTreeMap<usize, StagedFragment>,
}

impl Output<'_> {
    async fn run(&mut self, batches: Receiver<std::result::Result<RecordBatch, ArrowError>>) -> Result<()> {
        loop {
            let batch = match tokio::task::block_in_place(|| batches.recv_timeout(LOOKS_EVERY)) {
                Ok(batch) => batch.map_err(|e| TableError::invalid(format!("the input stream failed: {e}")))?,
                Err(RecvTimeoutError::Timeout) => {
                    self.check_not_stopped().await?;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            self.write(&batch).await?;
        }
        self.close().await?;
        while self.finish_next().await? {}
        Ok(())
    }

    /// Lets whoever waits for the write do something else for a moment, such as to stop it.
    async fn check_not_stopped(&self) -> Result<()> {
        tokio::task::yield_now().await;
        match self.request.stop.load(Ordering::Relaxed) {
            true => Err(TableError::invalid("the write was stopped")),
            false => Ok(()),
        }
    }

    async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < batch.num_rows() {
            self.check_not_stopped().await?;
            let mut file = match self.open.take() {
                Some(file) => file,
                None => self.start_file().await?,
            };
            let room = self.request.max_rows_per_file.saturating_sub(file.writer.num_rows());
            let size = (batch.num_rows() - start).min(usize::try_from(room).unwrap_or(usize::MAX));
            let size = size.min(self.rows_within_memory(batch));
            let rows = batch.slice(start, size);
            let seen = match &mut file.zones {
                Some(zones) => zones.see(&rows).await,
                None => Ok(()),
            };
            let written = file.writer.write(&rows).await;
            let full = file.writer.num_rows() >= self.request.max_rows_per_file
                || file.writer.bytes_so_far() >= self.request.max_bytes_per_file;
            self.open = Some(file);
            seen?;
            written?;
            start += size;
            if full {
                self.close().await?;
            }
        }
        Ok(())
    }

    /// The number of rows of a batch to pass at a time: a huge batch is split, so that the buffers stay within the limit.
    fn rows_within_memory(&self, batch: &RecordBatch) -> usize {
        let bytes_per_row = (batch.get_array_memory_size() / batch.num_rows().max(1)).max(1) as u64;
        usize::try_from(self.request.memory_limit / bytes_per_row)
            .unwrap_or(usize::MAX)
            .max(1)
    }

    async fn start_file(&mut self) -> Result<OpenFile> {
        let name = data_file_name();
        let defaults = WriteOptions::default();
        let options = WriteOptions {
            version: self.request.version,
            goal: self.request.goal,
            page_bytes: page_bytes(self.request.memory_limit),
            memory_limit: self.request.memory_limit,
            external_blobs: self.request.external_blobs,
            rows_per_group: self.request.max_rows_per_group,
            allow_null_loss: self.request.allow_null_loss,
            dictionaries: self.request.dictionaries.clone(),
            memory_is_lent: true,
            staging: true,
            ..defaults
        };
        let targets = &self.request.target_bases;
        let number = self.started;
        let turn = number.checked_rem(targets.len()).unwrap_or(0);
        let base_id = targets.get(turn).copied().flatten();
        let file = data_file(&name, base_id);
        let writer = FileWriter::create(self.store, &file.location(), &self.request.schema, options).await?;
        let has_zones = self.request.version != FileVersion::V0_1;
        self.started += 1;
        Ok(OpenFile {
            number,
            name,
            base_id,
            writer,
            zones: has_zones.then(|| ZonesAside::new(ZoneCollector::new(&self.request.schema))),
        })
    }

    async fn close(&mut self) -> Result<()> {
        let Some(file) = self.open.take() else {
            return Ok(());
        };
        // The dictionaries that files of version 0.1 share grow from file to file.
        if self.request.version == FileVersion::V0_1 || file.writer.bytes_so_far() > SMALL_FILE {
            let (number, staged) = file.finish().await?;
            self.done.insert(number, staged);
            return Ok(());
        }
        while self.finishing.len() >= FINISHING {
            if let Err(error) = self.finish_next().await {
                // It is abandoned with the others.
                self.open = Some(file);
                return Err(error);
            }
        }
        self.finishing.spawn(file.finish());
        Ok(())
    }

    /// Waits for one of the small files; returns whether there was any.
    async fn finish_next(&mut self) -> Result<bool> {
        let Some(finished) = self.finishing.join_next().await else {
            return Ok(false);
        };
        let (number, staged) = finished.map_err(|e| TableError::task_failed("file", &e))??;
        self.done.insert(number, staged);
        Ok(true)
    }

    async fn clean_up(&mut self) {
        if let Some(file) = self.open.take() {
            // The first error is reported; files that cannot be removed become orphans, which clean-up removes.
            let _ = file.writer.abort().await;
        }
        while let Some(finished) = self.finishing.join_next().await {
            if let Ok(Ok((number, staged))) = finished {
                self.done.insert(number, staged);
            }
        }
        discard(self.store, self.done.values()).await;
    }
}

impl OpenFile {
    /// Writes all that waits and makes the file visible; returns its place and its fragment.
    async fn finish(mut self) -> Result<(usize, StagedFragment)> {
        if let Some(zones) = self.zones.take() {
            let ended = self.writer.end_rows().await;
            let seeds = match ended {
                Ok(()) => zones.finish().await,
                Err(error) => Err(error.into()),
            };
            match seeds {
                Ok(seeds) => seeds
                    .into_iter()
                    .for_each(|seed| self.writer.add_trailing_buffer(seed.into())),
                Err(error) => {
                    // The first error is reported; files that cannot be removed become orphans, which clean-up removes.
                    let _ = self.writer.abort().await;
                    return Err(error);
                }
            }
        }
        let summary = self.writer.finish().await?;
        let data_file = data_file(&self.name, self.base_id);
        Ok((self.number, StagedFragment::of(data_file, summary)))
    }
}

impl StagedFragment {
    /// The fragment of a finished file of which the location was known.
    pub(crate) fn of(file: DataFile, summary: FileSummary) -> Self {
        let mut files = vec![file.location()];
        let fragment = fragment_of(file, &summary);
        files.extend(summary.sidecars);
        Self { fragment, files }
    }
}

/// Removes the files of fragments that nobody will commit.
pub async fn discard(store: &StoreRef, staged: impl IntoIterator<Item = &StagedFragment>) {
    for path in staged.into_iter().flat_map(|staged| &staged.files) {
        // An error is on its way; files that cannot be removed become orphans, which clean-up removes.
        let _ = store.delete(path).await;
    }
}

/// A random name for a data file, as pylance makes them: it starts with 24 bits as digits, which object stores can spread by.
pub(crate) fn data_file_name() -> String {
    let id = Uuid::new_v4();
    let (first, rest) = id.as_bytes().split_at(SPREAD_BYTES);
    let digits = first.iter().map(|byte| format!("{byte:08b}"));
    let name: String = digits.chain(rest.iter().map(|byte| format!("{byte:02x}"))).collect();
    format!("{name}.lance")
}

/// A data file of which only the location is known yet.
pub(crate) fn data_file(name: &str, base_id: Option<u32>) -> DataFile {
    DataFile {
        path: name.to_string(),
        fields: Vec::new(),
        column_indices: Vec::new(),
        file_major_version: 0,
        file_minor_version: 0,
        file_size_bytes: None,
        base_id,
    }
}

fn fragment_of(file: DataFile, summary: &FileSummary) -> Fragment {
    let (major, minor) = summary.version.manifest_numbers();
    let mut fields: Vec<i32> = summary.columns.iter().map(|(id, _)| *id).collect();
    let column_indices = match summary.version {
        // 0.1 files find their columns by field ids, which must ascend: a column whose type changed has a newer id than its neighbours.
        FileVersion::V0_1 => {
            fields.sort_unstable();
            Vec::new()
        }
        _ => summary.columns.iter().map(|(_, column)| *column).collect(),
    };
    let file = DataFile {
        fields,
        column_indices,
        file_major_version: major,
        file_minor_version: minor,
        file_size_bytes: Some(summary.size),
        ..file
    };
    Fragment::new(vec![file], summary.num_rows)
}

fn check_stream(stream: &Arc<arrow_schema::Schema>, schema: &Schema) -> Result<()> {
    let expected = schema.to_arrow()?;
    let mismatch = |column: &str, expected: String, found: String| TableError::SchemaMismatch {
        column: column.to_string(),
        expected,
        found,
    };
    if stream.fields().len() != expected.fields().len() {
        let (want, found) = (expected.fields().len(), stream.fields().len());
        return Err(mismatch("", format!("{want} columns"), format!("{found} columns")));
    }
    for (want, found) in expected.fields().iter().zip(stream.fields()) {
        if want.name() != found.name() {
            return Err(mismatch(
                want.name(),
                format!("column {}", want.name()),
                format!("column {}", found.name()),
            ));
        }
        if !want.data_type().equals_datatype(found.data_type()) {
            return Err(mismatch(
                want.name(),
                want.data_type().to_string(),
                found.data_type().to_string(),
            ));
        }
    }
    Ok(())
}
