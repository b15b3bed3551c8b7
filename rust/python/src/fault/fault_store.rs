//! `FaultStore`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esker_store::fault::{Fault, FaultPlan, FaultStore};
use pyo3::prelude::*;

use crate::error::Result;
use crate::store::PyStore;

/// Callables whose stores were dropped. The last handle to a store may be dropped with an Arrow stream on a thread that does not hold the
/// GIL, so callables are only collected there and dropped later.
static LAID_ASIDE: Mutex<Vec<Py<PyAny>>> = Mutex::new(Vec::new());

fn laid_aside() -> MutexGuard<'static, Vec<Py<PyAny>>> {
    LAID_ASIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A callable that is asked before each operation.
struct Watcher(Option<Py<PyAny>>);

impl Watcher {
    /// Must be called with the GIL held, as it drops the collected callables.
    fn new(callable: Py<PyAny>) -> Self {
        let unused = std::mem::take(&mut *laid_aside());
        drop(unused);
        Watcher(Some(callable))
    }

    /// The fault that it returns for an operation. If it raises or returns an invalid fault, the writer crashes, so that no mistake in a
    /// test stays unnoticed.
    fn fault(&self, py: Python<'_>, verb: &str, path: &str) -> Option<Fault> {
        let answer = self.0.as_ref()?.call1(py, (verb, path));
        let named: Option<String> = answer.and_then(|answer| answer.extract(py)).unwrap_or_else(|error| {
            error.print(py);
            Some("crash_before".to_owned())
        });
        named.map(|name| name.parse().unwrap_or(Fault::CrashBefore))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        laid_aside().extend(self.0.take());
    }
}

/// A store that fails as planned, around another one.
#[pyclass(name = "FaultStore", module = "esker._native.fault", frozen)]
pub(crate) struct PyFaultStore(Arc<FaultStore>);

#[pymethods]
impl PyFaultStore {
    #[new]
    #[pyo3(signature = (inner, plan = "", *, watch = None))]
    fn new(inner: &PyStore, plan: &str, watch: Option<Py<PyAny>>) -> Result<Self> {
        let plan: FaultPlan = plan.parse()?;
        let inner = inner.store().clone();
        let store = match watch {
            None => FaultStore::new(inner, plan),
            Some(watch) => {
                let watcher = Watcher::new(watch);
                let ask = move |verb: &str, path: &str| Python::attach(|py| watcher.fault(py, verb, path));
                FaultStore::watched(inner, plan, Box::new(ask))
            }
        };
        Ok(PyFaultStore(Arc::new(store)))
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
