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

/// How nulls and what is not a number compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparisons {
    /// As in SQL, so that a filter keeps the same rows however it is written: NaN is equal to itself and greater than all numbers, and
    /// whether a null is in a list is not known, unless the list has one.
    Sql,
    /// As Arrow computes them: NaN is equal to nothing, and a null is in no list that has none.
    Arrow,
}
