//! Compaction: the live rows of some fragments, in order, as new fragments.
//!
//! Nothing is committed here: the outcome names new fragments and the files that were staged for them.

mod carried;
mod outcome;
mod rewrite;

pub use outcome::RewriteOutcome;
pub use rewrite::{rewrite_fragments, RewriteRequest};
