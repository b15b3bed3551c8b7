//! Tests of the public interface, on one small table.

mod arrow_expressions;
mod errors;
mod expressions;
mod json;
mod pruning;
mod rows;
mod sql_filters;
mod substrait;
