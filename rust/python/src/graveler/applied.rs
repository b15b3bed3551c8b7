//! `Applied`.

use esker_graveler::apply::Summary;
use esker_graveler::write::Written;
use pyo3::prelude::*;

/// A written content, with the counts of changes and ranges.
#[pyclass(name = "Applied", module = "esker._native.graveler", frozen)]
pub(crate) struct PyApplied {
    pub(super) written: Option<Written>,
    pub(super) summary: Summary,
}

#[pymethods]
impl PyApplied {
    #[getter]
    fn metarange_id(&self) -> Option<&str> {
        self.written.as_ref()?.metarange.id().map(|id| id.as_str())
    }

    #[getter]
    fn added(&self) -> u64 {
        self.summary.added
    }

    #[getter]
    fn removed(&self) -> u64 {
        self.summary.removed
    }

    #[getter]
    fn changed(&self) -> u64 {
        self.summary.changed
    }

    #[getter]
    fn ranges_written(&self) -> u64 {
        self.written.as_ref().map_or(0, |written| written.ranges_written)
    }

    #[getter]
    fn ranges_reused(&self) -> u64 {
        self.written.as_ref().map_or(0, |written| written.ranges_reused)
    }

    #[getter]
    fn bytes_written(&self) -> u64 {
        self.written.as_ref().map_or(0, |written| written.bytes_written)
    }
}
