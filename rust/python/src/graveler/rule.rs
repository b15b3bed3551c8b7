//! `SplitRule`.

use esker_graveler::write::SplitRule;
use pyo3::prelude::*;

use super::error::graveler;
use crate::error::Result;

/// The split rule of ranges.
#[pyclass(name = "SplitRule", module = "esker._native.graveler", frozen)]
pub(crate) struct PySplitRule(pub(super) SplitRule);

#[pymethods]
impl PySplitRule {
    #[new]
    #[pyo3(signature = (*, min_size = 0, max_size = 20_971_520, raggedness = 50_000))]
    fn new(min_size: u64, max_size: u64, raggedness: u64) -> Result<Self> {
        Ok(PySplitRule(
            SplitRule::new(min_size, max_size, raggedness).map_err(graveler)?,
        ))
    }

    #[getter]
    fn min_size(&self) -> u64 {
        self.0.min_size()
    }

    #[getter]
    fn max_size(&self) -> u64 {
        self.0.max_size()
    }

    #[getter]
    fn raggedness(&self) -> u64 {
        self.0.raggedness()
    }
}
