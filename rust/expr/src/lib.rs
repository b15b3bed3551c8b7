//! Predicates and column expressions: SQL, a serialized Arrow expression or Substrait in, evaluated on record batches.
//!
//! ```text
//! SQL text ---------> sql ---------------\
//! Arrow expression -> arrow_expression ---+-- expression tree --> plan: typed, simplified, bound to the columns it reads --> arrays
//! Substrait bytes --> substrait ---------/
//! ```
//!
//! The only crate that uses DataFusion, and only its parser, type coercion, simplification and physical expressions.
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

mod arrow_expression;
mod cases;
mod coerce;
mod columns;
mod conjuncts;
mod context;
mod depth;
mod dialect;
mod dialect_functions;
mod display;
mod error;
mod expression;
mod functions;
pub mod fuzz;
mod guard;
mod implied;
mod interval;
pub mod json;
mod lengths;
mod lower;
mod nan;
mod numbers_as_text;
mod overflow;
mod plan;
mod predicate;
mod prune;
mod prune_columns;
mod similar;
mod sql;
mod stack;
mod substrait;
mod times;
mod wide_floats;
mod within;

#[cfg(test)]
mod tests;

pub use arrow_expression::Comparisons;
pub use conjuncts::{Conjunct, Conjuncts};
pub use error::{ExprError, Result};
pub use expression::Expression;
pub use implied::ImpliedTerm;
pub use numbers_as_text::Numbers;
pub use predicate::Predicate;
pub use prune::{ColumnRange, ColumnRanges};
