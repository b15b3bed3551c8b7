//! Substrait: the portable form of an expression that pyarrow and others write.
//!
//! An `ExtendedExpression` holds a schema, a table of the functions it calls, and the expression. Fields are referred to by their position
//! in that schema, functions and foreign types by their anchor in the table.
//!
//! ```text
//! bytes -> messages -> decode (functions, literals, types; fields by name) -> expression tree
//! ```

mod decode;
mod extensions;
mod fields;
mod functions;
mod literals;
pub(crate) mod messages;
mod types;

pub(crate) use decode::decode;
