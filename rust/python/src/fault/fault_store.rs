//! `FaultStore`.

use std::sync::Arc;

use esker_store::fault::{FaultPlan, FaultStore};
use pyo3::prelude::*;

use crate::error::Result;
use crate::store::PyStore;

/// A store that fails as planned, around another one.
#[pyclass(name = "FaultStore", module = "esker._native.fault", frozen)]
pub(crate) struct PyFaultStore(Arc<FaultStore>);

#[pymethods]
impl PyFaultStore {
    #[new]
    #[pyo3(signature = (inner, plan = ""))]
    fn new(inner: &PyStore, plan: &str) -> Result<Self> {
        let plan: FaultPlan = plan.parse()?;
        Ok(PyFaultStore(Arc::new(FaultStore::new(inner.store().clone(), plan))))
    }

    #[getter]
    fn store(&self) -> PyStore {
        PyStore::over(self.0.clone())
    }

    #[getter]
    fn operations(&self) -> Vec<(u64, &'static str, String)> {
        self.0
            .operations()
            .into_iter()
            .map(|o| (o.number, o.verb, o.path))
            .collect()
    }

    #[getter]
    fn cause_of_death(&self) -> Option<String> {
        self.0.cause_of_death()
    }

    #[getter]
    fn plan(&self) -> String {
        self.0.plan().to_string()
    }
}
