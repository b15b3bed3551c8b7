//! Functions that DataFusion lacks, or that it computes unlike other SQL engines.

mod field;
mod json;
mod root;
mod time;
mod tokens;
mod zero;

pub(crate) use field::masked_field;
pub(crate) use json::json_functions;
pub(crate) use root::square_root;
pub(crate) use time::{exact_time, exact_value, EXACT_TIME};
pub(crate) use tokens::contains_tokens;
pub(crate) use zero::{has_zeros, positive_zero, positive_zero_of};
