//! Compaction: the live rows of some fragments, in order, as new fragments.
//!
//! ```text
//! fragments -> cut into files by rows and bytes -> for each file, a few columns at a time:
//!    pages without deleted rows, large enough        -> copied as they are
//!    other rows                                      -> read in units of bounded size, encoded anew
//!    blobs                                           -> their places are read, their bytes copied a few at a time
//! ```
//!
//! Memory holds the units that are read ahead, the pages that fill up and those that are encoded, all bounded in bytes: never a file, and
//! never all columns of a wide table. Nothing is committed here: the outcome names new fragments and the files that were staged for them.

mod carried;
mod columns;
mod cut;
mod outcome;
mod planner;
mod request;
mod rewrite;
mod rows;
mod segments;
mod units;

pub use outcome::RewriteOutcome;
pub use request::{CopyMode, Pace, RewriteRequest};
pub use rewrite::rewrite_fragments;
