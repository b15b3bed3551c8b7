//! The module tree, with each submodule in `sys.modules` under its full name.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{
    blob, cleanup, compaction, deletion, delta, expr, fault, file, graveler, merge, scan, schema, store, table, write,
};

/// How long freed memory is kept. A scan takes the memory again that the one before it had: to have it cleared by the system costs as much as
/// to decode text into it.
const KEPT_FOR: Duration = Duration::from_secs(10);

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    esker_file::freed_memory::keep_for(KEPT_FOR);
    add(module, "blob", blob::register)?;
    add(module, "store", store::register)?;
    add(module, "delta", delta::register)?;
    add(module, "cleanup", cleanup::register)?;
    add(module, "compaction", compaction::register)?;
    add(module, "deletion", deletion::register)?;
    add(module, "table", table::register)?;
    add(module, "expr", expr::register)?;
    add(module, "file", file::register)?;
    add(module, "fault", fault::register)?;
    add(module, "graveler", graveler::register)?;
    add(module, "merge", merge::register)?;
    add(module, "scan", scan::register)?;
    add(module, "schema", schema::register)?;
    add(module, "write", write::register)?;
    Ok(())
}

fn add(parent: &Bound<'_, PyModule>, name: &str, register: fn(&Bound<'_, PyModule>) -> PyResult<()>) -> PyResult<()> {
    let py = parent.py();
    let full_name = format!("esker._native.{name}");
    let module = PyModule::new(py, &full_name)?;
    register(&module)?;
    parent.add(name, &module)?;
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    modules.set_item(full_name, module)
}
