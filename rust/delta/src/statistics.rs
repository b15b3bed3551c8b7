//! Statistics of files: JSON texts in the log, decoded only for the columns that a filter refers to.
//!
//! Spec: "Per-file Statistics". They are bounds, not values: texts are truncated, timestamps have milliseconds (so a maximum is widened by
//! one), and a bound that is missing, or not of the column's type, is unknown. Texts stay in the files of the log until a filter needs
//! them; decoded ones are cached with the chunk.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use esker_expr::ColumnRange;
use esker_store::StoreRef;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::actions::AddStatistics;
use crate::arrays::{as_texts, integers, json, texts};
use crate::checkpoint_file::add_rows;
use crate::chunk::{FileChunk, LineSpan, Source};
use crate::error::{DeltaError, Result};
use crate::path::TableRoot;
use crate::scalars::{Bound, ScalarColumn};
use crate::sparse::ParquetFile;

/// A leaf column whose statistics are wanted, or a list or map.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WantedColumn {
    /// Its path of logical names.
    pub(crate) logical: Vec<String>,
    /// Its path of physical names, which statistics use.
    pub(crate) physical: Vec<String>,
    pub(crate) data_type: DataType,
    /// Whether it was widened from float32.
    pub(crate) was_float: bool,
    /// Whether it is a list or a map: its nulls are counted, it has no bounds, and its type here is that of nulls.
    pub(crate) is_nested: bool,
}

/// The decoded statistics of a chunk.
#[derive(Debug, Default)]
pub(crate) struct StatisticsCache(Mutex<Cached>);

#[derive(Debug, Default)]
struct Cached {
    columns: HashMap<Vec<String>, Arc<ColumnRange>>,
    rows: Option<Arc<Vec<Option<u64>>>>,
}

/// Statistics of a chunk: the row count of each file, and the bounds of each wanted column.
#[derive(Debug, Clone)]
pub(crate) struct ChunkStatistics {
    pub(crate) rows: Arc<Vec<Option<u64>>>,
    pub(crate) columns: Vec<Arc<ColumnRange>>,
}

/// The statistics of the wanted columns for all files of a chunk.
pub(crate) async fn of_chunk(
    store: &StoreRef,
    chunk: &Arc<FileChunk>,
    wanted: &[WantedColumn],
    root: &Arc<TableRoot>,
) -> Result<ChunkStatistics> {
    let missing: Vec<WantedColumn> = {
        let cached = lock(&chunk.statistics);
        let missing = wanted
            .iter()
            .filter(|column| !cached.columns.contains_key(&column.physical));
        let missing: Vec<_> = missing.cloned().collect();
        if missing.is_empty() {
            if let Some(found) = cached.take(wanted) {
                return Ok(found);
            }
        }
        missing
    };
    let mut decoder = Decoder::new(missing, chunk.len());
    match &chunk.source {
        Source::Commits { files, lines } => decode_lines(store, files, lines, &mut decoder).await?,
        Source::Parquet { path, group } => decode_parquet(store, path, *group, chunk, root, &mut decoder).await?,
    }
    let mut cached = lock(&chunk.statistics);
    decoder.finish(&mut cached);
    cached
        .take(wanted)
        .ok_or_else(|| DeltaError::invalid("expected the statistics that were just decoded"))
}

fn lock(cache: &StatisticsCache) -> std::sync::MutexGuard<'_, Cached> {
    // After a panic in another thread the entries are still valid.
    cache.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Cached {
    fn take(&self, wanted: &[WantedColumn]) -> Option<ChunkStatistics> {
        let columns = wanted.iter().map(|column| self.columns.get(&column.physical).cloned());
        Some(ChunkStatistics {
            rows: self.rows.clone()?,
            columns: columns.collect::<Option<_>>()?,
        })
    }
}

async fn decode_lines(store: &StoreRef, files: &[String], lines: &[LineSpan], decoder: &mut Decoder) -> Result<()> {
    let mut open: Option<(u32, bytes::Bytes)> = None;
    for line in lines {
        if open.as_ref().is_none_or(|(file, _)| *file != line.file) {
            let path = files.get(line.file as usize).map(String::as_str).unwrap_or_default();
            // The commit was cleaned up meanwhile: the statistics of its files are unknown.
            let bytes = match store.get(path).await {
                Err(error) if error.is_not_found() => bytes::Bytes::new(),
                found => found?,
            };
            open = Some((line.file, bytes));
        }
        let stats = open.as_ref().and_then(|(_, bytes)| statistics_of_line(bytes, *line));
        decoder.push(stats.as_deref());
    }
    Ok(())
}

/// The JSON of the statistics in one line of a commit.
pub(crate) fn statistics_of_line(bytes: &[u8], line: LineSpan) -> Option<Cow<'_, str>> {
    #[derive(serde::Deserialize)]
    struct Line<'a> {
        #[serde(borrow)]
        add: AddStatistics<'a>,
    }
    let (start, len) = (line.start as usize, line.len as usize);
    let text = bytes.get(start..start.checked_add(len)?)?;
    let line: Line<'_> = serde_json::from_slice(text).ok()?;
    statistics_text(line.add.stats?)
}

/// The JSON of the statistics: a string that contains JSON, or, from some writers, the object itself.
pub(crate) fn statistics_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    if raw.get().starts_with('{') {
        return Some(Cow::Borrowed(raw.get()));
    }
    serde_json::from_str::<String>(raw.get()).ok().map(Cow::Owned)
}

async fn decode_parquet(
    store: &StoreRef,
    path: &str,
    group: usize,
    chunk: &FileChunk,
    root: &TableRoot,
    decoder: &mut Decoder,
) -> Result<()> {
    let read = decode_group(store, path, group, chunk, root, decoder).await;
    match read {
        // The checkpoint was cleaned up or replaced meanwhile: the statistics are unknown.
        Err(error) if error.is_of_file() => {
            decoder.forget(chunk.len());
            Ok(())
        }
        other => other,
    }
}

async fn decode_group(
    store: &StoreRef,
    path: &str,
    group: usize,
    chunk: &FileChunk,
    root: &TableRoot,
    decoder: &mut Decoder,
) -> Result<()> {
    let file = ParquetFile::open(store, path).await?;
    let parsed = decoder.parsed_columns();
    let parsed: Vec<&str> = parsed.iter().map(String::as_str).collect();
    // Typed columns are a fraction of the texts' size: if the file has them for all wanted columns, the texts are not read.
    let typed = parsed.iter().all(|column| !file.leaves(&[column]).is_empty());
    let mut roots = vec!["add.path"];
    if typed && !parsed.is_empty() {
        roots.extend(&parsed);
    } else {
        roots.extend(["add.stats", "add.stats_parsed"]);
    }
    let leaves = file.leaves(&roots);
    for batch in file.read(store, group, &leaves).await? {
        decode_batch(&batch, path, chunk, root, decoder)?;
    }
    if decoder.len() == chunk.len() {
        return Ok(());
    }
    Err(DeltaError::corrupt(
        path,
        "expected the files that it had when it was read first, found another number",
    ))
}

fn decode_batch(
    batch: &RecordBatch,
    path: &str,
    chunk: &FileChunk,
    root: &TableRoot,
    decoder: &mut Decoder,
) -> Result<()> {
    let Some((add, paths)) = add_rows(batch, path)? else {
        return Ok(());
    };
    let stats = texts(add, "stats");
    let parsed = add
        .column_by_name("stats_parsed")
        .and_then(|column| column.as_struct_opt());
    let typed = parsed.map(|parsed| decoder.typed(parsed));
    for row in 0..batch.num_rows() {
        if add.is_null(row) || paths.is_null(row) {
            continue;
        }
        if root.canonical(paths.value(row)) != chunk.path(decoder.len()) {
            return Err(DeltaError::corrupt(
                path,
                "expected the files that it had when it was read first, found others",
            ));
        }
        match (stats.as_ref().filter(|stats| stats.is_valid(row)), parsed, &typed) {
            (Some(stats), _, _) => decoder.push(Some(stats.value(row))),
            (None, Some(parsed), Some(typed)) if parsed.is_valid(row) => decoder.push_typed(typed, row),
            _ => decoder.push(None),
        }
    }
    Ok(())
}

/// The columns of `stats_parsed` for each wanted column (minimum, maximum, null count), and the row counts.
struct TypedColumns {
    rows: Option<arrow_array::Int64Array>,
    columns: Vec<[Option<ArrayRef>; 3]>,
}

/// Decodes statistics into arrays.
struct Decoder {
    wanted: Vec<WantedColumn>,
    tree: Node,
    min: Vec<ScalarColumn>,
    max: Vec<ScalarColumn>,
    nulls: Vec<Vec<Option<u64>>>,
    rows: Vec<Option<u64>>,
}

/// The wanted columns as a tree of their physical names.
#[derive(Debug, Default)]
struct Node {
    leaf: Option<usize>,
    fields: BTreeMap<String, Node>,
}

impl Decoder {
    fn new(wanted: Vec<WantedColumn>, files: usize) -> Self {
        let mut tree = Node::default();
        for (at, column) in wanted.iter().enumerate() {
            let mut node = &mut tree;
            for name in &column.physical {
                node = node.fields.entry(name.clone()).or_default();
            }
            node.leaf = Some(at);
        }
        let columns = |bound: Bound| {
            wanted
                .iter()
                .map(|column| ScalarColumn::new(&column.data_type, bound, files).widened(column.was_float))
                .collect()
        };
        Self {
            tree,
            min: columns(Bound::Min),
            max: columns(Bound::Max),
            nulls: wanted.iter().map(|_| Vec::with_capacity(files)).collect(),
            rows: Vec::with_capacity(files),
            wanted,
        }
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    /// The names of the columns in `stats_parsed` that cover all wanted columns.
    fn parsed_columns(&self) -> Vec<String> {
        let mut names = vec!["add.stats_parsed.numRecords".to_owned()];
        for column in &self.wanted {
            let path = column.physical.join(".");
            for part in ["minValues", "maxValues", "nullCount"] {
                names.push(format!("add.stats_parsed.{part}.{path}"));
            }
        }
        names
    }

    /// Adds the statistics of the next file.
    fn push(&mut self, text: Option<&str>) {
        let row = self.len();
        if let Some(text) = text {
            let mut deserializer = serde_json::Deserializer::from_str(text);
            // Invalid statistics are unknown: values that were decoded before the error are removed.
            if (Top { decoder: self }).deserialize(&mut deserializer).is_err() {
                self.truncate(row);
            }
        }
        self.pad(row + 1);
    }

    fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
        self.nulls.iter_mut().for_each(|nulls| nulls.truncate(rows));
        self.min
            .iter_mut()
            .chain(&mut self.max)
            .for_each(|column| column.resize(rows));
    }

    /// Fills missing values with unknown ones.
    fn pad(&mut self, rows: usize) {
        self.rows.resize(rows, None);
        self.nulls.iter_mut().for_each(|nulls| nulls.resize(rows, None));
        self.min
            .iter_mut()
            .chain(&mut self.max)
            .for_each(|column| column.resize(rows));
    }

    fn forget(&mut self, rows: usize) {
        self.truncate(0);
        self.pad(rows);
    }

    fn typed(&self, parsed: &arrow_array::StructArray) -> TypedColumns {
        let find = |part: &str, path: &[String]| {
            let mut column = parsed.column_by_name(part)?.clone();
            for name in path {
                let inner = column.as_struct_opt()?.column_by_name(name)?.clone();
                column = inner;
            }
            Some(column)
        };
        let columns = self.wanted.iter().map(|column| {
            let path = &column.physical;
            [
                find("minValues", path),
                find("maxValues", path),
                find("nullCount", path),
            ]
        });
        TypedColumns {
            rows: integers(parsed, "numRecords"),
            columns: columns.collect(),
        }
    }

    fn push_typed(&mut self, typed: &TypedColumns, row: usize) {
        let number = |column: &ArrayRef| json(column, row).and_then(|value| value.as_u64());
        let rows = typed.rows.as_ref().filter(|rows| rows.is_valid(row));
        self.rows
            .push(rows.and_then(|rows| u64::try_from(rows.value(row)).ok()));
        for (at, [min, max, nulls]) in typed.columns.iter().enumerate() {
            for (columns, array) in [(&mut self.min, min), (&mut self.max, max)] {
                let text = array.as_ref().filter(|array| array.is_valid(row));
                let text = text.and_then(|array| as_texts(&array.slice(row, 1)));
                if let (Some(column), Some(text)) = (columns.get_mut(at), text) {
                    column.push_text(text.value(0));
                }
            }
            if let Some(column) = self.nulls.get_mut(at) {
                column.push(nulls.as_ref().and_then(number));
            }
        }
        let rows = self.rows.len();
        self.pad(rows);
    }

    fn finish(self, cached: &mut Cached) {
        let columns = self.wanted.into_iter().zip(self.min).zip(self.max).zip(self.nulls);
        for (((column, min), max), null_count) in columns {
            let range = ColumnRange {
                min: min.finish(),
                max: max.finish(),
                null_count,
            };
            cached.columns.insert(column.physical, Arc::new(range));
        }
        cached.rows.get_or_insert_with(|| Arc::new(self.rows));
    }
}

/// The deserialiser of the top-level object.
struct Top<'d> {
    decoder: &'d mut Decoder,
}

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of statistics")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Decoder {
            tree,
            min,
            max,
            nulls,
            rows,
            ..
        } = self.decoder;
        let row = rows.len();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "numRecords" => {
                    let number: &RawValue = map.next_value()?;
                    rows.truncate(row);
                    rows.push(number.get().parse().ok());
                }
                "minValues" => map.next_value_seed(Fields {
                    node: tree,
                    take: &mut |leaf, value| take_bound(min, leaf, row, value),
                })?,
                "maxValues" => map.next_value_seed(Fields {
                    node: tree,
                    take: &mut |leaf, value| take_bound(max, leaf, row, value),
                })?,
                "nullCount" => map.next_value_seed(Fields {
                    node: tree,
                    take: &mut |leaf, value| {
                        if let Some(column) = nulls.get_mut(leaf) {
                            column.truncate(row);
                            column.push(value.parse().ok());
                        }
                    },
                })?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

fn take_bound(columns: &mut [ScalarColumn], leaf: usize, row: usize, value: &str) {
    if let Some(column) = columns.get_mut(leaf) {
        column.resize(row);
        column.push_json(value);
    }
}

/// The deserialiser of an object's fields, which keeps the values of wanted columns.
struct Fields<'t, 'f> {
    node: &'t Node,
    take: &'f mut dyn FnMut(usize, &str),
}

impl<'de> DeserializeSeed<'de> for Fields<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of values by column")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match self.node.fields.get(key.as_ref()) {
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some(Node { leaf: Some(leaf), .. }) => {
                    let value: &RawValue = map.next_value()?;
                    (self.take)(*leaf, value.get());
                }
                Some(node) => map.next_value_seed(Fields {
                    node,
                    take: &mut *self.take,
                })?,
            }
        }
        Ok(())
    }
}
