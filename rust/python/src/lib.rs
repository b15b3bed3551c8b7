//! The Python extension module: the only crate that names pyo3.
