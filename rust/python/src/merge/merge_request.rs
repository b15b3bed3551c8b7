//! `MergeRequest`.

use std::sync::Arc;

use esker_file::FileVersion;
use esker_table::merge::{MergeClauses, MergeRequest, UpdateCondition, WhenMatched, WhenNotMatchedBySource};
use esker_table::TableError;
use pyo3::prelude::*;

use crate::error::{NativeError, Result};
use crate::expr::PyPredicate;

/// How rows are merged.
#[pyclass(name = "MergeRequest", module = "esker._native.merge", frozen)]
pub(crate) struct PyMergeRequest(pub(super) MergeRequest);

#[pymethods]
impl PyMergeRequest {
    #[new]
    #[allow(clippy::too_many_arguments)] // They are Python's keywords.
    #[pyo3(signature = (*, on, when_matched, condition = None, insert = false, when_not_matched_by_source = "keep", delete_filter = None, data_storage_version, max_rows_per_file, max_bytes_per_file, memory_limit, target_bases = Vec::new()))]
    fn new(
        on: Vec<String>,
        when_matched: &str,
        condition: Option<(PyRef<'_, PyPredicate>, Vec<String>, Vec<String>)>,
        insert: bool,
        when_not_matched_by_source: &str,
        delete_filter: Option<&PyPredicate>,
        data_storage_version: &str,
        max_rows_per_file: u64,
        max_bytes_per_file: u64,
        memory_limit: u64,
        target_bases: Vec<Option<u32>>,
    ) -> Result<Self> {
        let when_matched = match (when_matched, condition) {
            ("keep", None) => WhenMatched::Keep,
            ("update", None) => WhenMatched::Update,
            ("update", Some((predicate, source_columns, target_columns))) => WhenMatched::UpdateIf(UpdateCondition {
                predicate: predicate.inner().clone(),
                source_columns,
                target_columns,
            }),
            ("delete", None) => WhenMatched::Delete,
            ("fail", None) => WhenMatched::Fail,
            (other, _) => return Err(unknown("when_matched as keep, update, delete or fail", other)),
        };
        let when_not_matched_by_source = match (when_not_matched_by_source, delete_filter) {
            ("keep", None) => WhenNotMatchedBySource::Keep,
            ("delete", None) => WhenNotMatchedBySource::Delete,
            ("delete", Some(filter)) => WhenNotMatchedBySource::DeleteIf(filter.inner().clone()),
            (other, _) => return Err(unknown("when_not_matched_by_source as keep or delete", other)),
        };
        Ok(PyMergeRequest(MergeRequest {
            on,
            clauses: MergeClauses {
                when_matched,
                insert,
                when_not_matched_by_source,
            },
            version: FileVersion::parse(data_storage_version)?,
            max_rows_per_file,
            max_bytes_per_file,
            memory_limit,
            target_bases,
            stop: Arc::default(),
        }))
    }
}

fn unknown(expected: &str, found: &str) -> NativeError {
    TableError::invalid(format!("expected {expected}, found {found:?}")).into()
}
