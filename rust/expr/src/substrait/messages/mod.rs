//! The Substrait messages that an expression is made of, as far as we read them.
//!
//! They are declared here instead of taken from the published crate, which follows the newest version of the format and no longer has the
//! timestamp literals and function tables that pyarrow writes. Other fields are skipped.

mod envelope;
mod expression;
mod literal;
mod types;

pub(crate) use envelope::*;
pub(crate) use expression::*;
pub(crate) use literal::*;
pub(crate) use types::*;

/// A message whose presence is all that matters.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Ignored {}
