//! Builders of the final Arrow buffers, filled page by page.
//!
//! Every page of a column appends to one builder, so that no arrays are concatenated afterwards. Plain values are copied from the page to
//! the builder, or shared if a page's bytes are an Arrow buffer already; compressions that are undone chunk by chunk go through a buffer
//! of their own first.

mod dictionary;
mod fixed;
mod strings;
mod validity;
mod values;
mod variable;

pub(crate) use dictionary::{KeyedBuilder, LeafBuilder};
pub(crate) use fixed::FixedBuilder;
pub(crate) use strings::list_offsets;
pub(crate) use validity::ValidityBuilder;
pub(crate) use values::{too_many, ColumnName, Values};
pub(crate) use variable::VariableBuilder;
