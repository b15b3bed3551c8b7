//! Predicates and column expressions: SQL or Substrait in, evaluated on record batches.
//!
//! ```text
//! SQL text ------> sql ----------\
//!                                 >-- expression tree --> plan: typed, simplified, bound to the columns it reads --> arrays
//! Substrait bytes -> substrait --/
//! ```
//!
//! The only crate that names DataFusion, and of DataFusion only what parses, types and evaluates an expression.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

mod coerce;
mod columns;
mod context;
mod depth;
mod dialect;
mod display;
mod error;
mod expression;
mod implied;
mod interval;
mod nan;
mod plan;
mod predicate;
mod prune;
mod prune_columns;
mod sql;
mod stack;
mod substrait;

#[cfg(test)]
mod tests;

pub use error::{ExprError, Result};
pub use expression::Expression;
pub use implied::ImpliedTerm;
pub use predicate::Predicate;
pub use prune::{ColumnRange, ColumnRanges};
