//! `why` and what it returns.

use esker_file::why::{self as weighed, Alternative};
use esker_file::{FileReader, Goal};
use esker_store::block_on;
use esker_table::TableError;
use pyo3::prelude::*;

use crate::error::Result;
use crate::store::PyStore;

/// One way to write a page.
#[pyclass(name = "Alternative", module = "esker._native.file", frozen)]
pub(crate) struct PyAlternative(Alternative);

#[pymethods]
impl PyAlternative {
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn num_bytes(&self) -> u64 {
        self.0.bytes
    }

    #[getter]
    fn nanoseconds(&self) -> u64 {
        self.0.nanoseconds
    }

    #[getter]
    fn chosen(&self) -> bool {
        self.0.chosen
    }

    #[getter]
    fn reason(&self) -> &str {
        &self.0.reason
    }
}

/// The alternative encodings of one page of a column.
#[pyfunction]
pub(crate) fn why(
    py: Python<'_>,
    store: &PyStore,
    path: &str,
    column: usize,
    page: usize,
    compression: &str,
) -> Result<Vec<PyAlternative>> {
    let goal = Goal::parse(compression)?;
    let found = py.detach(|| {
        block_on(async {
            let reader = FileReader::open(store.store().clone(), path).await?;
            Ok::<_, TableError>(weighed::why(&reader, column, page, goal).await?)
        })
    })?;
    Ok(found.into_iter().map(PyAlternative).collect())
}
