//! The Substrait messages that an expression is made of, as far as we read them.
//!
//! They are written out here instead of taken from the published crate: that one follows the newest version of the format, which no longer
//! has the timestamp literals and function tables that pyarrow writes. Fields that are not named here are skipped.

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
