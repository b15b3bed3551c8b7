//! Final Arrow memory, filled page by page.
//!
//! Every page of a column appends to one builder, so that a value is copied once on its way from the file to Arrow, or not at all where
//! a page's bytes are Arrow's already.

mod dictionary;
mod fixed;
mod validity;
mod values;
mod variable;

pub(crate) use dictionary::{KeyedBuilder, LeafBuilder};
pub(crate) use fixed::FixedBuilder;
pub(crate) use validity::ValidityBuilder;
pub(crate) use values::{too_many, ColumnName, Values};
pub(crate) use variable::VariableBuilder;
