//! Arrow's own serialized form of an expression: what a pickled `pyarrow.compute.Expression` holds.
//!
//! ```text
//! Arrow IPC file, one batch of one row
//! ├─ schema metadata: the expression in prefix order, a key and a value for each step
//! │    call NAME ... end NAME | field_ref NAME | nested_field_ref COUNT, then COUNT references | literal COLUMN | options COLUMN
//! └─ columns: the literals, and a struct for the options of each call that has any
//! ```
//!
//! It is as long as the expression, where pyarrow's Substrait doubles with every level. Types are promoted as Arrow promotes them.
//!
//! ```text
//! bytes -> container (arrays, types) -> decode (functions, options) -> expression tree
//! ```

mod arrays;
mod container;
mod decode;
mod functions;
mod options;
mod strings;
mod types;

pub(crate) use decode::decode;

/// How nulls and NaN compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparisons {
    /// As in SQL, so that a filter keeps the same rows in either notation: NaN equals itself and is greater than all numbers, and
    /// `null IN (...)` is null unless the list has a null.
    Sql,
    /// As in Arrow: NaN is equal to nothing, and `null IN (...)` is false unless the list has a null.
    Arrow,
}
