//! Matches rows and produces those to write: all updated rows before all inserted ones, so that rows that keep their ids come first.

use std::sync::mpsc::SyncSender;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, SchemaRef};
use esker_file::schema::{BlobView, Schema};
use futures::{future, TryStreamExt};
use roaring::RoaringBitmap;
use tokio::runtime::Handle;

use super::clauses::WhenMatched;
use super::condition::{keep, ConditionRows};
use super::filter_keys::add_keys;
use super::key_filter::KeyFilter;
use super::outcome::MergeStats;
use super::pairs::Pair;
use super::partitions::{project, SourceParts, TargetParts};
use super::rewrite::{changed, changed_schema, Rewriter};
use super::run::{check_type, key_field, places, send, MergeRequest};
use super::target::{find, Matches, TargetKeys};
use crate::deletion::RowsToDelete;
use crate::error::{Result, TableError};
use crate::manifest::Manifest;
use crate::read::{scan, RowsByAddress, TableFiles};
use esker_merge::KeyEncoder;
use esker_merge::KeyTable;
use esker_merge::MergeSource;

/// Rows that are produced at a time.
const ROWS: usize = 8 * 1024;

/// Batches of the table that are matched concurrently.
const TASKS: usize = 4;

/// The result of producing all rows.
#[derive(Debug, Default)]
pub(super) struct Produced {
    pub stats: MergeStats,
    /// Rows of the table to delete at their old address: updated (moved) or deleted ones.
    pub gone: RowsToDelete,
    /// The ids of updated rows, in the order in which they were written.
    pub kept_ids: Vec<u64>,
    pub filter: Option<KeyFilter>,
    pub rows_scanned: u64,
    pub partitions: usize,
    pub spilled_bytes: u64,
}

/// The form in which updated rows come out.
enum Output {
    /// Whole rows of the table.
    Rows(Rewriter),
    /// The source's columns, with the address of the row that they change.
    Changes(Rewriter, SchemaRef),
}

/// Matches and produces rows.
pub(super) struct Producer {
    files: Arc<TableFiles>,
    manifest: Arc<Manifest>,
    source: Arc<MergeSource>,
    request: MergeRequest,
    encoder: Arc<KeyEncoder>,
    target: TargetKeys,
    key_types: Vec<DataType>,
    /// The columns of the source that are its key, and those that the condition reads.
    on: Vec<usize>,
    condition_columns: Vec<usize>,
    condition_rows: Option<RowsByAddress>,
    output: Output,
    filter: Option<KeyFilter>,
}

impl Producer {
    pub fn new(
        files: &Arc<TableFiles>,
        manifest: &Arc<Manifest>,
        schema: &Schema,
        source: Arc<MergeSource>,
        request: &MergeRequest,
        filter: Option<KeyFilter>,
    ) -> Result<Self> {
        let names = request.on.iter().map(|name| key_field(schema, name));
        let fields = names.collect::<Result<Vec<_>>>()?;
        let key_types = fields
            .iter()
            .map(|field| Ok(field.data_type()?))
            .collect::<Result<Vec<_>>>()?;
        let on = places(source.schema(), &request.on)?;
        for (column, expected) in on.iter().zip(&key_types) {
            check_type(source.schema().field(*column), expected)?;
        }
        let columns = request.on.iter().map(String::as_str).zip(key_types.clone());
        let (mut condition_columns, mut condition_rows) = (Vec::new(), None);
        if let WhenMatched::UpdateIf(condition) = &request.clauses.when_matched {
            condition_columns = places(source.schema(), &condition.source_columns)?;
            if !condition.target_columns.is_empty() {
                let columns = &condition.target_columns;
                let rows = RowsByAddress::new(files.clone(), manifest, columns, BlobView::Descriptions)?;
                condition_rows = Some(rows);
            }
        }
        Ok(Self {
            encoder: Arc::new(KeyEncoder::new(columns)?),
            target: TargetKeys::new(
                manifest,
                &request.on,
                request.clauses.when_not_matched_by_source.clone(),
            ),
            on,
            condition_columns,
            condition_rows,
            output: Output::Rows(Rewriter::new(files, manifest, schema, source.schema())?),
            key_types,
            files: files.clone(),
            manifest: manifest.clone(),
            source,
            request: request.clone(),
            filter,
        })
    }

    /// Produces the changed columns and row addresses instead of whole rows.
    pub fn for_changes(mut self, schema: &Schema) -> Result<Self> {
        let rewriter = Rewriter::changes(&self.files, &self.manifest, schema, self.source.schema())?;
        let schema = changed_schema(rewriter.schema());
        self.output = Output::Changes(rewriter, schema);
        Ok(self)
    }

    /// The columns of the produced rows.
    pub fn schema(&self) -> &SchemaRef {
        match &self.output {
            Output::Rows(rewriter) => rewriter.schema(),
            Output::Changes(_, schema) => schema,
        }
    }

    /// Produces all rows. Runs on a blocking thread of the runtime.
    ///
    /// Inserted rows go to `inserts`, or after the updated ones if there is none.
    pub fn run(
        mut self,
        updates: SyncSender<RecordBatch>,
        inserts: Option<SyncSender<RecordBatch>>,
    ) -> Result<Produced> {
        let handle = Handle::current();
        let limit = (self.request.memory_limit / 4).max(1);
        let mut produced = Produced {
            filter: self.filter.take(),
            ..Produced::default()
        };
        let go_on = || self.request.check_stop();
        let source = SourceParts::new(
            &self.source,
            &self.encoder,
            &self.on,
            &self.condition_columns,
            limit,
            go_on,
        )?;
        let target = match source.len() {
            1 => None,
            parts => Some(handle.block_on(self.part_target(parts, limit))?),
        };
        produced.partitions = source.len();
        produced.spilled_bytes = source.spilled_bytes() + target.as_ref().map_or(0, TargetParts::spilled_bytes);
        let mut unmatched = Vec::with_capacity(source.len());
        for part in 0..source.len() {
            let (pairs, rest) = self.part(&handle, &source, target.as_ref(), part, &mut produced)?;
            unmatched.push(rest);
            if self.request.clauses.updates()
                && !self.update(&handle, &source, part, &pairs, &mut produced, &updates)?
            {
                return Ok(produced);
            }
        }
        drop(target);
        // Whoever reads the updates to their end before the inserts sees it here.
        let out = match inserts {
            Some(inserts) => {
                drop(updates);
                inserts
            }
            None => updates,
        };
        for (part, rows) in unmatched.iter().enumerate().filter(|_| self.request.clauses.insert) {
            if !self.insert(&source, part, rows, &mut produced, &out)? {
                break;
            }
        }
        Ok(produced)
    }

    async fn part_target(&self, parts: usize, limit: u64) -> Result<TargetParts> {
        let mut out = TargetParts::new(&self.target, &self.key_types, parts, limit)?;
        let mut batches = scan(self.files.clone(), &self.manifest, &self.target.scan())?.batches;
        while let Some(batch) = batches.try_next().await? {
            self.request.check_stop()?;
            out.push(&self.target, &self.target.read(&batch)?, &self.encoder)?;
        }
        out.finish()?;
        Ok(out)
    }

    /// The pairs of a partition that change rows, in the source's order, and the source's unmatched rows.
    fn part(
        &self,
        handle: &Handle,
        source: &SourceParts,
        target: Option<&TargetParts>,
        part: usize,
        produced: &mut Produced,
    ) -> Result<(Vec<Pair>, RoaringBitmap)> {
        let mut table = KeyTable::default();
        let mut held = ConditionRows::default();
        for batch in source.batches(part) {
            self.request.check_stop()?;
            let batch = batch?;
            table.push(self.encoder.encode(&project(&batch, &self.on)?)?)?;
            if !self.condition_columns.is_empty() {
                held.push(
                    batch
                        .project(&self.condition_columns)
                        .map_err(|e| TableError::invalid(e.to_string()))?,
                );
            }
        }
        self.request.check_stop()?;
        table.index();
        let table = Arc::new(table);
        let matches = match target {
            Some(parts) => self.match_part(parts, part, &table)?,
            None => handle.block_on(self.match_all(&table))?,
        };
        produced.rows_scanned += matches.rows;
        produced.stats.num_deleted_rows += produced.gone.add(&matches.gone);
        let mut matched = vec![false; table.len() as usize];
        for pair in &matches.pairs {
            if let Some(slot) = matched.get_mut(pair.source as usize) {
                *slot = true;
            }
        }
        let unmatched = (0..table.len()).zip(&matched).filter(|(_, matched)| !**matched);
        let rest: RoaringBitmap = unmatched.map(|(row, _)| row).collect();
        drop(table);
        let mut pairs = match &self.request.clauses.when_matched {
            WhenMatched::Keep => Vec::new(),
            WhenMatched::Fail => match matches.pairs.first() {
                Some(pair) => return Err(self.matched(source, part, pair)),
                None => Vec::new(),
            },
            WhenMatched::UpdateIf(condition) => {
                let target = self.condition_rows.as_ref();
                handle.block_on(keep(condition, &matches.pairs, &held, target))?
            }
            WhenMatched::Update | WhenMatched::Delete => matches.pairs,
        };
        // Pairs of one row of the table are adjacent.
        if let Some([_, second]) = pairs.array_windows().find(|[a, b]: &&[Pair; 2]| a.address == b.address) {
            return Err(self.ambiguous(source, part, second));
        }
        let addresses: Vec<u64> = pairs.iter().map(|pair| pair.address).collect();
        produced.gone.add(&addresses);
        if matches!(self.request.clauses.when_matched, WhenMatched::Delete) {
            produced.stats.num_deleted_rows += pairs.len() as u64;
        }
        pairs.sort_unstable();
        Ok((pairs, rest))
    }

    async fn match_all(&self, table: &Arc<KeyTable>) -> Result<Matches> {
        let batches = scan(self.files.clone(), &self.manifest, &self.target.scan())?.batches;
        let unless_stopped = |batch: RecordBatch| future::ready(self.request.check_stop().map(|()| batch));
        let found = batches.and_then(unless_stopped).map_ok(|batch| {
            let (target, encoder, table) = (self.target.clone(), self.encoder.clone(), table.clone());
            let task = tokio::spawn(async move { find(&target.read(&batch)?, &encoder, &table) });
            async move { task.await.map_err(|e| TableError::task_failed("merge", &e))? }
        });
        let merge = |mut all: Matches, more: Matches| async move {
            all.add(more);
            Ok(all)
        };
        found
            .try_buffer_unordered(TASKS)
            .try_fold(Matches::default(), merge)
            .await
    }

    fn match_part(&self, parts: &TargetParts, part: usize, table: &KeyTable) -> Result<Matches> {
        let mut all = Matches::default();
        for batch in parts.batches(part) {
            self.request.check_stop()?;
            all.add(find(&self.target.read_spill(&batch?)?, &self.encoder, table)?);
        }
        Ok(all)
    }

    /// Sends updated rows; false if the receiver is gone.
    fn update(
        &self,
        handle: &Handle,
        source: &SourceParts,
        part: usize,
        pairs: &[Pair],
        produced: &mut Produced,
        out: &SyncSender<RecordBatch>,
    ) -> Result<bool> {
        let (mut first, mut rest) = (0_u32, pairs);
        for batch in source.batches(part) {
            let batch = batch?;
            let end = first.saturating_add(u32::try_from(batch.num_rows()).unwrap_or(u32::MAX));
            let (here, later) = rest.split_at(rest.partition_point(|pair| pair.source < end));
            for pairs in here.chunks(ROWS) {
                self.request.check_stop()?;
                let rows = UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.source - first));
                let made = match &self.output {
                    Output::Rows(rewriter) => handle.block_on(rewriter.updated(&batch, &rows, pairs))?,
                    Output::Changes(rewriter, schema) => {
                        let changes = handle.block_on(rewriter.updated(&batch, &rows, pairs))?;
                        changed(schema, &changes, pairs)?
                    }
                };
                if !send(out, made) {
                    return Ok(false);
                }
                produced.stats.num_updated_rows += pairs.len() as u64;
                if self.manifest.has_stable_row_ids() {
                    produced.kept_ids.extend(pairs.iter().map(|pair| pair.id));
                }
            }
            (first, rest) = (end, later);
        }
        Ok(true)
    }

    /// Sends inserted rows; false if the receiver is gone.
    fn insert(
        &self,
        source: &SourceParts,
        part: usize,
        rows: &RoaringBitmap,
        produced: &mut Produced,
        out: &SyncSender<RecordBatch>,
    ) -> Result<bool> {
        let Output::Rows(rewriter) = &self.output else {
            return Ok(true);
        };
        let mut first = 0_u32;
        for batch in source.batches(part) {
            let batch = batch?;
            let end = first.saturating_add(u32::try_from(batch.num_rows()).unwrap_or(u32::MAX));
            let here: Vec<u32> = rows.range(first..end).map(|row| row - first).collect();
            for rows in here.chunks(ROWS) {
                self.request.check_stop()?;
                let rows = UInt32Array::from(rows.to_vec());
                let batch_rows = rewriter.inserted(&batch, &rows)?;
                if let Some(filter) = &mut produced.filter {
                    add_keys(filter, &taken(&batch, &self.on, &rows)?)?;
                }
                produced.stats.num_inserted_rows += batch_rows.num_rows() as u64;
                if !send(out, batch_rows) {
                    return Ok(false);
                }
            }
            first = end;
        }
        Ok(true)
    }

    fn matched(&self, source: &SourceParts, part: usize, pair: &Pair) -> TableError {
        TableError::invalid(format!(
            "expected no row of the source to match one of the table, found a match on ({}); nothing was changed",
            self.key_text(source, part, pair)
        ))
    }

    fn ambiguous(&self, source: &SourceParts, part: usize, pair: &Pair) -> TableError {
        TableError::invalid(format!(
            "ambiguous merge: expected at most one row of the source for each row of the table, found several on ({}); \
             leave all but one of them out",
            self.key_text(source, part, pair)
        ))
    }

    /// The key of a row of the source, for errors.
    fn key_text(&self, source: &SourceParts, part: usize, pair: &Pair) -> String {
        let mut row = pair.source as usize;
        for batch in source.batches(part).filter_map(Result::ok) {
            if row < batch.num_rows() {
                let columns = self.on.iter().zip(&self.request.on);
                let shown = columns.filter_map(|(column, name)| {
                    let value = array_value_to_string(batch.columns().get(*column)?, row).ok()?;
                    Some(format!("{name} = {value}"))
                });
                return shown.collect::<Vec<_>>().join(", ");
            }
            row -= batch.num_rows();
        }
        String::new()
    }
}

fn taken(batch: &RecordBatch, columns: &[usize], rows: &UInt32Array) -> Result<Vec<arrow_array::ArrayRef>> {
    let columns = project(batch, columns)?;
    let taken = columns
        .iter()
        .map(|column| arrow_select::take::take(column, rows, None));
    taken
        .map(|column| column.map_err(|e| TableError::invalid(e.to_string())))
        .collect()
}
