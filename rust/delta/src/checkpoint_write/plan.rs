//! Plans and runs the writing of a version's checkpoint.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch, StructArray};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::filter::filter;
use esker_store::StoreRef;
use futures::StreamExt;
use serde_json::json;

use super::action_line::FileKind;
use super::action_types::ActionTypes;
use super::fit::{Fitter, Piece, PieceData};
use super::json_columns::{column, Misfit};
use super::other_actions::{OtherActions, OTHERS};
use super::parquet_sink::ParquetSink;
use super::source::{base_files, groups, BaseFile, ParsedGroup};
use crate::actions::DeletionVectorDescriptor;
use crate::arrays::{action, integers, texts};
use crate::checkpoint_file::decode;
use crate::chunk::{file_key, hash_path};
use crate::error::{DeltaError, Result};
use crate::replay::Seen;
use crate::snapshot::Snapshot;
use crate::sparse::ParquetFile;

/// New fields may be found while files are being written: then the writing starts again with them. Up to twice, as a field's type may be
/// hidden behind nulls in the first pass.
const ATTEMPTS: usize = 3;

/// The form of a checkpoint to write.
#[derive(Debug, Clone)]
pub struct CheckpointPlan {
    /// The paths of its parts, among which actions are distributed by the path of their data file; usually one.
    pub files: Vec<String>,
    /// The sidecar of a V2 checkpoint, which holds the file actions.
    pub sidecar: Option<SidecarPlan>,
    /// A column for each action, in their order.
    pub columns: SchemaRef,
    /// Tombstones that are older have expired and are left out; in milliseconds since the epoch.
    pub tombstones_from: i64,
    /// Transactions that were last updated before have expired and are left out; in milliseconds since the epoch.
    pub transactions_from: Option<i64>,
}

/// A sidecar: a file of file actions of a V2 checkpoint.
#[derive(Debug, Clone)]
pub struct SidecarPlan {
    /// Its path.
    pub path: String,
    /// Its name in the checkpoint.
    pub name: String,
    /// Milliseconds since the epoch.
    pub modification_time: i64,
}

/// The result of writing a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointWritten {
    /// Bytes of the files, without sidecars.
    pub bytes: u64,
    /// Actions, those of sidecars included.
    pub actions: u64,
    /// Adds among them.
    pub adds: u64,
}

impl Snapshot {
    /// Writes the checkpoint of this version. Files become visible as a whole, one after the other.
    pub async fn write_checkpoint(&self, store: &StoreRef, plan: &CheckpointPlan) -> Result<CheckpointWritten> {
        let base = base_files(store, self).await?;
        let mut types = ActionTypes::new(plan.columns.fields());
        for file in &base {
            let BaseFile::Parquet(file) = file else { continue };
            for action in file.fields()?.iter() {
                if let DataType::Struct(fields) = action.data_type() {
                    for field in fields {
                        types.widen(action.name(), field.name(), field.data_type())?;
                    }
                }
            }
        }
        for _ in 0..ATTEMPTS {
            let mut attempt = Attempt::begin(self, store, plan, types).await?;
            match attempt.run(&base).await {
                Ok(true) => return attempt.finish().await,
                Ok(false) => types = attempt.abort().await,
                Err(error) => {
                    attempt.abort().await;
                    return Err(error);
                }
            }
        }
        Err(DeltaError::unsupported(
            "no checkpoint was written: the fields of its actions have other types each time they are read",
        ))
    }
}

/// One attempt, with the types that are known so far.
struct Attempt<'a> {
    snapshot: &'a Snapshot,
    store: &'a StoreRef,
    plan: &'a CheckpointPlan,
    types: ActionTypes,
    fitter: Arc<Fitter>,
    is_wider: bool,
    sinks: Vec<ParquetSink>,
    others: OtherActions,
    seen: Seen,
}

impl<'a> Attempt<'a> {
    async fn begin(
        snapshot: &'a Snapshot,
        store: &'a StoreRef,
        plan: &'a CheckpointPlan,
        types: ActionTypes,
    ) -> Result<Self> {
        let fitter = Arc::new(Fitter::new(types.settled(), snapshot.clone()));
        let (paths, actions) = match &plan.sidecar {
            Some(sidecar) => (vec![sidecar.path.clone()], vec!["add", "remove"]),
            None => (
                plan.files.clone(),
                types.0.iter().map(|field| field.name().as_str()).collect(),
            ),
        };
        let mut sinks = Vec::with_capacity(paths.len());
        for path in paths {
            sinks.push(ParquetSink::open(store, &path, &fitter, &actions).await?);
        }
        Ok(Self {
            snapshot,
            store,
            plan,
            fitter,
            types,
            is_wider: false,
            sinks,
            others: OtherActions::new(plan.transactions_from),
            seen: Seen::default(),
        })
    }

    async fn abort(self) -> ActionTypes {
        for sink in self.sinks {
            sink.abort().await;
        }
        self.types
    }

    /// Reads all actions and writes the reconciled ones; false if there are fields without a column.
    async fn run(&mut self, base: &[BaseFile]) -> Result<bool> {
        let mut parsed = std::pin::pin!(groups(self.store, self.snapshot, base));
        while let Some(group) = parsed.next().await {
            self.take_group(group?).await?;
        }
        self.is_wider |= self.others.widen(&mut self.types)?;
        if self.is_wider {
            return Ok(false);
        }
        for file in base {
            if let BaseFile::Parquet(file) = file {
                self.take_others(file).await?;
                for kind in [FileKind::Add, FileKind::Remove] {
                    self.take_files(file, kind).await?;
                }
            }
        }
        Ok(true)
    }

    async fn take_group(&mut self, group: ParsedGroup) -> Result<()> {
        for (kind, field, shown) in &group.shown {
            self.is_wider |= self.types.widen(kind.name(), field, shown)?;
        }
        for (name, raw, origin) in &group.others {
            self.others.take_json(name, raw, origin)?;
        }
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for (kind, key) in group.keys {
            let is_newest = self.seen.insert(key);
            match kind {
                FileKind::Add => added.push(is_newest),
                FileKind::Remove => removed.push(is_newest),
            }
        }
        if self.is_wider {
            // This attempt has failed: only the types of the remaining actions are collected.
            return Ok(());
        }
        for (kind, pieces, alive) in [
            (FileKind::Add, group.adds, added),
            (FileKind::Remove, group.removes, removed),
        ] {
            let mut alive = alive.into_iter();
            for rows in pieces {
                let mut alive: Vec<bool> = alive.by_ref().take(rows.len()).collect();
                if kind == FileKind::Remove {
                    let times = alive.iter_mut().zip(rows.times());
                    times.for_each(|(alive, time)| *alive &= *time >= self.plan.tombstones_from);
                }
                self.push(PieceData::Rows(kind, Box::new(rows)), alive).await?;
            }
        }
        Ok(())
    }

    async fn push(&mut self, data: PieceData, alive: Vec<bool>) -> Result<()> {
        let data = Arc::new(data);
        if let [sink] = self.sinks.as_mut_slice() {
            return sink.push(piece(data, alive)).await;
        }
        let parts = parts_of(&data, self.sinks.len())?;
        for (number, sink) in self.sinks.iter_mut().enumerate() {
            let alive = alive.iter().zip(&parts).map(|(alive, part)| *alive && *part == number);
            sink.push(piece(data.clone(), alive.collect())).await?;
        }
        Ok(())
    }

    async fn take_others(&mut self, file: &ParquetFile) -> Result<()> {
        for name in OTHERS {
            let leaves = file.leaves(&[name]);
            for group in 0..file.row_groups() {
                if leaves.is_empty() || file.all_null(group, &leaves) {
                    continue;
                }
                for batch in file.read(self.store, group, &leaves).await? {
                    if let Some(array) = action(&batch, name) {
                        self.others.take_array(name, array)?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn take_files(&mut self, file: &ParquetFile, kind: FileKind) -> Result<()> {
        if file.leaves(&[&format!("{}.path", kind.name())]).is_empty() {
            return Ok(());
        }
        for group in 0..file.row_groups() {
            let leaves = self.leaves(file, group, kind);
            if file.all_null(group, &leaves) {
                continue;
            }
            let mut batches = file.batches(self.store, group, &leaves);
            while let Some(batch) = batches.next().await? {
                self.take_batch(&batch, kind, &file.path).await?;
            }
        }
        Ok(())
    }

    /// The leaf columns of file actions to read: typed statistics only if they are used.
    fn leaves(&self, file: &ParquetFile, group: usize, kind: FileKind) -> Vec<usize> {
        let name = kind.name();
        let wanted = |field: &str| {
            self.types
                .of(name)
                .is_some_and(|fields| fields.iter().any(|f| f.name() == field))
        };
        let all_have_texts = {
            let (path, stats) = (file.leaves(&["add.path"]), file.leaves(&["add.stats"]));
            let nulls = |leaves: &[usize]| leaves.first().and_then(|leaf| file.null_count(group, *leaf));
            nulls(&stats).is_some() && nulls(&stats) == nulls(&path)
        };
        let mut derived = vec![format!("{name}.partitionValues_parsed")];
        if !wanted("stats_parsed") && (!wanted("stats") || all_have_texts) {
            derived.push(format!("{name}.stats_parsed"));
        }
        if !wanted("stats") && !wanted("stats_parsed") {
            derived.push(format!("{name}.stats"));
        }
        let derived: Vec<&str> = derived.iter().map(String::as_str).collect();
        let left_out = file.leaves(&derived);
        let mut leaves = file.leaves(&[name]);
        leaves.retain(|leaf| !left_out.contains(leaf));
        leaves
    }

    async fn take_batch(&mut self, batch: &RecordBatch, kind: FileKind, path: &str) -> Result<()> {
        let Some(array) = action(batch, kind.name()) else {
            return Ok(());
        };
        let alive = self.untouched(array, kind, path)?;
        let live = alive.iter().filter(|alive| **alive).count();
        if live == 0 {
            return Ok(());
        }
        if live == array.len() {
            return self.push(PieceData::Base(kind, array.clone()), alive).await;
        }
        let kept = filter(array, &BooleanArray::from(alive)).map_err(|error| DeltaError::invalid(error.to_string()))?;
        let kept = kept.as_struct().clone();
        self.push(PieceData::Base(kind, kept), vec![true; live]).await
    }

    /// Which files of the base have no newer action.
    fn untouched(&self, array: &StructArray, kind: FileKind, path: &str) -> Result<Vec<bool>> {
        let corrupt =
            |what: &str| DeltaError::corrupt(path, format!("expected {}.path as texts, found {what}", kind.name()));
        let paths = texts(array, "path").ok_or_else(|| corrupt("another type"))?;
        let times = integers(array, kind.time_field());
        let vectors = array
            .column_by_name("deletionVector")
            .and_then(|vectors| vectors.as_struct_opt());
        let mut alive = Vec::with_capacity(array.len());
        for row in 0..array.len() {
            let mut is_kept = array.is_valid(row) && paths.is_valid(row);
            if is_kept && kind == FileKind::Remove {
                let time = times
                    .as_ref()
                    .filter(|times| times.is_valid(row))
                    .map_or(0, |times| times.value(row));
                is_kept = time >= self.plan.tombstones_from;
            }
            if is_kept && !self.seen.is_empty() {
                let canonical = self.snapshot.root.canonical(paths.value(row));
                if self.seen.may_hold(hash_path(&canonical)) {
                    let vector = match vectors.filter(|vectors| vectors.is_valid(row)) {
                        Some(vectors) => decode::<DeletionVectorDescriptor>(vectors, row, path, "deletionVector")?,
                        None => None,
                    };
                    is_kept = !self.seen.contains(&file_key(&canonical, vector.as_ref()));
                }
            }
            alive.push(is_kept);
        }
        Ok(alive)
    }

    async fn finish(mut self) -> Result<CheckpointWritten> {
        let mut written = CheckpointWritten {
            bytes: 0,
            actions: 0,
            adds: 0,
        };
        let sinks = std::mem::take(&mut self.sinks);
        let mut top = match &self.plan.sidecar {
            None => sinks,
            Some(_) => vec![self.finish_sidecar(sinks, &mut written).await?],
        };
        let columns: Vec<_> = OTHERS
            .into_iter()
            .map(|name| {
                Ok((
                    name,
                    self.fitter
                        .types()
                        .of(name)
                        .map(|fields| self.others.column(name, fields))
                        .transpose()?,
                ))
            })
            .collect::<Result<_>>()?;
        for (name, actions) in columns {
            if let (Some(actions), Some(sink)) = (actions.flatten(), top.first_mut()) {
                sink.push(ready(name, actions)).await?;
            }
        }
        for sink in top {
            written.actions += sink.rows;
            written.adds += sink.adds;
            written.bytes += sink.finish().await?;
        }
        Ok(written)
    }

    /// Finishes the sidecar, if it has any actions, and opens the checkpoint that names it.
    async fn finish_sidecar(&self, sinks: Vec<ParquetSink>, written: &mut CheckpointWritten) -> Result<ParquetSink> {
        let mut named = Vec::new();
        for sink in sinks {
            if sink.rows == 0 {
                sink.abort().await;
                continue;
            }
            written.actions += sink.rows;
            written.adds += sink.adds;
            let bytes = sink.finish().await?;
            if let Some(sidecar) = &self.plan.sidecar {
                let action =
                    json!({"path": sidecar.name, "sizeInBytes": bytes, "modificationTime": sidecar.modification_time});
                named.push(action.to_string());
            }
        }
        // Spark requires the columns `add` and `remove`, though they are null here.
        let actions: Vec<&str> = self.types.0.iter().map(|field| field.name().as_str()).collect();
        let path = self.plan.files.first().map(String::as_str).unwrap_or_default();
        let mut top = ParquetSink::open(self.store, path, &self.fitter, &actions).await?;
        let version = json!({"version": self.snapshot.version}).to_string();
        for (name, values) in [("checkpointMetadata", vec![version]), ("sidecar", named)] {
            if let Some(fields) = self.fitter.types().of(name).filter(|_| !values.is_empty()) {
                let values: Vec<Option<&str>> = values.iter().map(|value| Some(value.as_str())).collect();
                let array =
                    column(&values, &DataType::Struct(fields.clone()), Misfit::Error).map_err(DeltaError::invalid)?;
                top.push(ready(name, array.as_struct().clone())).await?;
            }
        }
        Ok(top)
    }
}

fn ready(name: &'static str, actions: StructArray) -> Piece {
    Piece {
        live: actions.len(),
        data: Arc::new(PieceData::Ready(name, actions)),
        alive: None,
    }
}

fn piece(data: Arc<PieceData>, alive: Vec<bool>) -> Piece {
    let live = alive.iter().filter(|alive| **alive).count();
    Piece {
        data,
        alive: (live < alive.len()).then(|| BooleanArray::from(alive)),
        live,
    }
}

/// The part of a multi-part checkpoint that each file belongs to: deterministic, so that all writers agree. Spec: "Multi-part Checkpoint".
fn parts_of(data: &PieceData, parts: usize) -> Result<Vec<usize>> {
    let paths = match data {
        PieceData::Rows(_, rows) => rows.paths(),
        PieceData::Base(_, array) => {
            texts(array, "path").ok_or_else(|| DeltaError::invalid("expected paths as texts"))?
        }
        PieceData::Ready(_, array) => return Ok(vec![0; array.len()]),
    };
    let part = |path: Option<&str>| {
        let hash = path
            .unwrap_or_default()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        usize::try_from(hash % (parts.max(1) as u64)).unwrap_or_default()
    };
    Ok(paths.iter().map(part).collect())
}
