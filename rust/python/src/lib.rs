//! The Python extension module `esker._native`: the only crate that names pyo3. One file a class or verb, no decisions.

mod arrow;
mod blob;
mod cleanup;
mod deletion;
mod delta;
mod error;
mod expr;
mod fault;
mod file;
mod graveler;
mod merge;
mod module;
mod scan;
mod store;
mod table;
mod write;

/// Keeps freed memory for the next batch instead of giving it back to the system page by page.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
