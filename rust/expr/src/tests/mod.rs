//! The crate through its public door, on one small table.

mod arrow_expressions;
mod errors;
mod expressions;
mod pruning;
mod rows;
mod sql_filters;
mod substrait;
