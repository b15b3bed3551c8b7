//! `Commit`.

use std::collections::BTreeMap;

use esker_graveler::commit::{self, Commit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::error::graveler;
use crate::error::Result;

/// A commit's record.
#[pyclass(name = "Commit", module = "esker._native.graveler", frozen)]
pub(crate) struct PyCommit(Commit);

#[pymethods]
impl PyCommit {
    #[new]
    #[allow(clippy::too_many_arguments)] // They are Python's keywords.
    #[pyo3(signature = (*, committer, message, metarange_id, creation_date, metadata, parents, generation, version = 1))]
    fn new(
        committer: String,
        message: String,
        metarange_id: String,
        creation_date: i64,
        metadata: BTreeMap<String, String>,
        parents: Vec<String>,
        generation: i32,
        version: i32,
    ) -> Self {
        PyCommit(Commit {
            committer,
            message,
            metarange_id,
            creation_date,
            metadata,
            parents,
            version,
            generation,
        })
    }

    #[staticmethod]
    fn decode(data: &[u8]) -> Result<Self> {
        Ok(PyCommit(Commit::decode(data).map_err(graveler)?))
    }

    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode())
    }

    #[getter]
    fn id(&self) -> String {
        self.0.id().as_str().to_owned()
    }

    #[getter]
    fn committer(&self) -> &str {
        &self.0.committer
    }

    #[getter]
    fn message(&self) -> &str {
        &self.0.message
    }

    #[getter]
    fn metarange_id(&self) -> &str {
        &self.0.metarange_id
    }

    #[getter]
    fn creation_date(&self) -> i64 {
        self.0.creation_date
    }

    #[getter]
    fn metadata(&self) -> BTreeMap<String, String> {
        self.0.metadata.clone()
    }

    #[getter]
    fn parents(&self) -> Vec<String> {
        self.0.parents.clone()
    }

    #[getter]
    fn generation(&self) -> i32 {
        self.0.generation
    }

    #[getter]
    fn version(&self) -> i32 {
        self.0.version
    }
}

/// Encodes the message of a branch or a tag in a dump of refs.
#[pyfunction]
pub(crate) fn encode_ref<'py>(py: Python<'py>, id: &str, commit_id: &str) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &commit::encode_ref(id, commit_id))
}

/// Decodes such a message to its name and commit.
#[pyfunction]
pub(crate) fn decode_ref(data: &[u8]) -> Result<(String, String)> {
    commit::decode_ref(data).map_err(graveler)
}
