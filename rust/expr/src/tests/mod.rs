//! The crate through its public door, on one small table.

mod errors;
mod rows;
mod sql_filters;
