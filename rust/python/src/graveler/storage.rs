//! `Storage`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use esker_graveler::apply::{apply_stream, Summary};
use esker_graveler::change_stream::ChangeStream;
use esker_graveler::diff::{self, Diff};
use esker_graveler::list::{List, Listed};
use esker_graveler::merge::{self, MergeOptions, Strategy};
use esker_graveler::metarange::{Metarange, RangeInfo};
use esker_graveler::repack::repack;
use esker_graveler::storage::{Storage, TableCursor};
use esker_graveler::touched::{touched, Watched};
use esker_graveler::verify::verify;
use esker_graveler::write::MetarangeWriter;
use esker_graveler::{GravelerError, TableId};
use esker_store::block_on;
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatchReader;

use super::applied::PyApplied;
use super::batch::PyBatch;
use super::change_stream::PyChangeStream;
use super::changes::{batches, PyChanges};
use super::differences::PyDifferences;
use super::entry_columns::{arrow, paths};
use super::error::graveler;
use super::listing::{self, PyListing};
use super::merged::PyMerged;
use super::records::PyRecords;
use super::rule::PySplitRule;
use crate::error::Result;
use crate::store::PyStore;

type Found<T> = std::result::Result<T, GravelerError>;

/// The changes of a commit: in memory, or a stream.
#[derive(FromPyObject)]
enum ChangesOrStream<'py> {
    Changes(Bound<'py, PyChanges>),
    Sorted(Bound<'py, PyChangeStream>),
    Stream(PyRecordBatchReader),
}

/// The ranges and metaranges of one repository.
#[pyclass(name = "Storage", module = "esker._native.graveler", frozen)]
pub(crate) struct PyStorage(Arc<Storage>);

fn table_id(text: &str) -> Found<TableId> {
    TableId::parse(text.as_bytes()).map_err(|error| GravelerError::invalid(error.to_string()))
}

impl PyStorage {
    /// The storage itself.
    pub(super) fn inner(&self) -> Arc<Storage> {
        self.0.clone()
    }

    /// A content by its id, for objects that hold it.
    pub(super) fn content(&self, py: Python<'_>, id: Option<&str>) -> Result<Arc<Metarange>> {
        PyStorage::run(py, || self.metarange(id))
    }

    /// A content by its id; `None` or an empty id is the empty content of a repository's first commit.
    fn metarange(&self, id: Option<&str>) -> Found<Arc<Metarange>> {
        let id = id.filter(|id| !id.is_empty()).map(table_id).transpose()?;
        block_on(self.0.metarange(id.as_ref()))
    }

    fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Found<T> + Send) -> Result<T> {
        py.detach(work).map_err(graveler)
    }
}

#[pymethods]
impl PyStorage {
    #[new]
    #[pyo3(signature = (store, *, prefix = "_lakefs/", cache_bytes = 268_435_456, cache_dir = None, cache_dir_bytes = 1_073_741_824))]
    fn new(
        store: &PyStore,
        prefix: &str,
        cache_bytes: usize,
        cache_dir: Option<PathBuf>,
        cache_dir_bytes: u64,
    ) -> Self {
        let disk = cache_dir.as_deref().map(|folder| (folder, cache_dir_bytes));
        PyStorage(Storage::with_disk(store.store().clone(), prefix, cache_bytes, disk))
    }

    #[pyo3(signature = (base, changes, *, rule, allow_empty = false))]
    fn apply(
        &self,
        py: Python<'_>,
        base: Option<&str>,
        changes: ChangesOrStream<'_>,
        rule: &PySplitRule,
        allow_empty: bool,
    ) -> Result<PyApplied> {
        let changes = match changes {
            ChangesOrStream::Changes(changes) => ChangeStream::of(changes.get().0.clone()),
            ChangesOrStream::Sorted(changes) => changes.get().take().map_err(graveler)?,
            ChangesOrStream::Stream(stream) => ChangeStream::new(batches(stream)?),
        };
        let applied = PyStorage::run(py, || {
            let base = self.metarange(base)?;
            block_on(apply_stream(&self.0, &base, changes, rule.0, allow_empty))
        })?;
        Ok(PyApplied {
            written: applied.written,
            summary: applied.summary,
        })
    }

    #[pyo3(signature = (changes, *, rule, properties = BTreeMap::new()))]
    fn write(
        &self,
        py: Python<'_>,
        changes: &PyChanges,
        rule: &PySplitRule,
        properties: BTreeMap<String, String>,
    ) -> Result<PyApplied> {
        let written = PyStorage::run(py, || {
            let mut writer = MetarangeWriter::with_properties(self.0.clone(), rule.0, properties);
            block_on(async {
                writer.write_changes(&changes.0, 0..changes.0.len()).await?;
                writer.finish().await
            })
        })?;
        Ok(PyApplied {
            summary: Summary {
                added: written.metarange.count(),
                ..Summary::default()
            },
            written: Some(written),
        })
    }

    #[allow(clippy::too_many_arguments)] // They are Python's keywords.
    #[pyo3(signature = (base, source, dest, *, rule, strategy = "none", dry_run = false, max_conflicts = 1000))]
    fn merge(
        &self,
        py: Python<'_>,
        base: Option<&str>,
        source: Option<&str>,
        dest: Option<&str>,
        rule: &PySplitRule,
        strategy: &str,
        dry_run: bool,
        max_conflicts: usize,
    ) -> Result<PyMerged> {
        let merged = PyStorage::run(py, || {
            let strategy = match strategy {
                "none" => Strategy::None,
                "dest-wins" => Strategy::DestWins,
                "source-wins" => Strategy::SourceWins,
                other => {
                    return Err(GravelerError::invalid(format!(
                        "expected the strategy \"none\", \"dest-wins\" or \"source-wins\", found {other:?}"
                    )))
                }
            };
            let options = MergeOptions {
                strategy,
                rule: rule.0,
                dry_run,
                max_conflicts,
            };
            let (base, source, dest) = (self.metarange(base)?, self.metarange(source)?, self.metarange(dest)?);
            block_on(merge::merge(&self.0, &base, &source, &dest, options))
        })?;
        Ok(PyMerged(merged))
    }

    #[pyo3(signature = (left, right, *, prefix = ""))]
    fn diff(&self, py: Python<'_>, left: Option<&str>, right: Option<&str>, prefix: &str) -> Result<PyDifferences> {
        let diff = PyStorage::run(py, || {
            let (left, right) = (self.metarange(left)?, self.metarange(right)?);
            Ok(Diff::new(&self.0, &left, &right, prefix.as_bytes()))
        })?;
        Ok(PyDifferences(Mutex::new(diff)))
    }

    #[pyo3(signature = (contents, *, paths = Vec::new(), prefixes = Vec::new()))]
    fn touched(
        &self,
        py: Python<'_>,
        contents: Vec<(String, String)>,
        paths: Vec<String>,
        prefixes: Vec<String>,
    ) -> Result<Vec<bool>> {
        let bytes = |texts: Vec<String>| texts.into_iter().map(String::into_bytes).collect();
        let watched = Watched {
            paths: bytes(paths),
            prefixes: bytes(prefixes),
        };
        let id = |text: &str| (!text.is_empty()).then(|| table_id(text)).transpose();
        PyStorage::run(py, || {
            let pairs = contents.iter().map(|(left, right)| Ok((id(left)?, id(right)?)));
            let pairs: Vec<_> = pairs.collect::<Found<_>>()?;
            block_on(touched(&self.0, &pairs, &watched))
        })
    }

    fn diff_summary(&self, py: Python<'_>, left: Option<&str>, right: Option<&str>) -> Result<PyApplied> {
        let summary = PyStorage::run(py, || {
            let (left, right) = (self.metarange(left)?, self.metarange(right)?);
            block_on(diff::summary(&self.0, &left, &right))
        })?;
        Ok(PyApplied { written: None, summary })
    }

    #[pyo3(signature = (metarange, *, prefix = "", from_path = "", delimiter = ""))]
    fn list(
        &self,
        py: Python<'_>,
        metarange: Option<&str>,
        prefix: &str,
        from_path: &str,
        delimiter: &str,
    ) -> Result<PyListing> {
        let list = PyStorage::run(py, || {
            let metarange = self.metarange(metarange)?;
            Ok(List::new(
                &self.0,
                &metarange,
                prefix.as_bytes(),
                from_path.as_bytes(),
                delimiter.as_bytes(),
            ))
        })?;
        Ok(PyListing(Mutex::new(list)))
    }

    fn get(&self, py: Python<'_>, metarange: Option<&str>, paths: Vec<String>) -> Result<PyBatch> {
        let batch = PyStorage::run(py, || {
            let mut found = Vec::new();
            if let Some(metarange) = metarange.filter(|id| !id.is_empty()) {
                let metarange = table_id(metarange)?;
                for path in paths {
                    let value = block_on(self.0.get(&metarange, path.as_bytes()))?;
                    found.extend(value.map(|value| Listed::Record(path.into_bytes(), value)));
                }
            }
            listing::batch(&found)
        })?;
        Ok(PyBatch(batch))
    }

    fn ranges(&self, py: Python<'_>, metarange: Option<&str>) -> Result<PyBatch> {
        let batch = PyStorage::run(py, || ranges(self.metarange(metarange)?.ranges()))?;
        Ok(PyBatch(batch))
    }

    fn records(&self, py: Python<'_>, table: &str) -> Result<PyRecords> {
        let cursor = PyStorage::run(py, || {
            let id = table_id(table)?;
            block_on(async { TableCursor::new(self.0.open(&id).await?) })
        })?;
        Ok(PyRecords(Mutex::new(cursor)))
    }

    fn records_of_file(&self, py: Python<'_>, name: &str) -> Result<PyRecords> {
        let cursor = PyStorage::run(py, || {
            block_on(async { TableCursor::new(self.0.open_file(name).await?) })
        })?;
        Ok(PyRecords(Mutex::new(cursor)))
    }

    #[pyo3(signature = (metarange, *, rule))]
    fn repack(&self, py: Python<'_>, metarange: &str, rule: &PySplitRule) -> Result<PyApplied> {
        let packed = PyStorage::run(py, || {
            let metarange = self.metarange(Some(metarange))?;
            block_on(repack(&self.0, &metarange, rule.0))
        })?;
        Ok(PyApplied {
            written: packed.written,
            summary: Summary::default(),
        })
    }

    fn verify(&self, py: Python<'_>, table: &str) -> Result<PyBatch> {
        let batch = PyStorage::run(py, || {
            let id = table_id(table)?;
            ranges(&[block_on(verify(&self.0, &id))?])
        })?;
        Ok(PyBatch(batch))
    }
}

fn ranges(ranges: &[RangeInfo]) -> Found<RecordBatch> {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let number = |name: &str| Field::new(name, DataType::UInt64, false);
    let schema = Schema::new(vec![
        text("id"),
        text("min_key"),
        text("max_key"),
        number("estimated_size"),
        number("count"),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(
            ranges.iter().map(|range| range.id.as_str()),
        )),
        Arc::new(paths(ranges.iter().map(|range| range.min_key.as_slice()))?),
        Arc::new(paths(ranges.iter().map(|range| range.max_key.as_slice()))?),
        Arc::new(UInt64Array::from_iter_values(
            ranges.iter().map(|range| range.estimated_size),
        )),
        Arc::new(UInt64Array::from_iter_values(ranges.iter().map(|range| range.count))),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).map_err(arrow)
}
