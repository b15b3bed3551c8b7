//! Merges (upserts): a source's rows are joined with a table's rows by key.
//!
//! ```text
//! source: any stream -> held in memory, or spilled to disk if it is larger than the limit
//!    | its keys, in memory: all at once, or a partition at a time if they are larger than the limit
//! table: the key columns of all rows, streamed past them -> pairs of rows that match
//!    | conditions: the columns that they name, of the rows that match
//!    v
//! rows to update, in the order of the source, then rows to insert -> new fragments; rows to delete -> deletion files
//! ```
//!
//! Memory holds the keys of one partition of the source and a few batches of the table, never a whole side beyond the limit.

mod clauses;
mod complete;
mod condition;
mod filter_keys;
mod key_filter;
mod outcome;
mod pairs;
mod partitions;
mod produce;
mod rewrite;
mod run;
mod target;

pub use clauses::{MergeClauses, UpdateCondition, WhenMatched, WhenNotMatchedBySource};
pub use esker_merge::MergeSource;
pub(crate) use key_filter::KeyFilter;
pub use outcome::{MergeOutcome, MergeStats};
pub use run::{changed_rows, merge, MergeRequest};

#[cfg(test)]
mod tests;
