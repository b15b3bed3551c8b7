//! The Python extension module `esker._native`: the only crate that uses pyo3. One file per class or function, no logic of its own.

mod arrow;
mod blob;
mod cleanup;
mod compaction;
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
mod schema;
mod signals;
mod store;
mod table;
mod write;

/// It keeps freed memory for the next batch instead of returning it to the system page by page.
#[global_allocator]
static ALLOCATOR: esker_file::large_blocks::Allocator = esker_file::large_blocks::Allocator;
