//! Upserts: the rows of a source against those of a table, by key.
//!
//! ```text
//! source: any stream -> kept in memory, or on disk if it is larger than the limit
//!    | its keys, in memory: all at once, or a partition at a time if they are larger than the limit
//! table: the key columns of all rows, streamed past them -> pairs of rows that match
//!    | conditions: the columns that they name, of the rows that match
//!    v
//! rows to update, in the order of the source, then rows to insert -> new fragments; rows that go -> deletion files
//! ```
//!
//! Neither side is ever held in memory as a whole: of the source the keys of one partition, of the table a few batches.

mod clauses;
mod complete;
mod condition;
mod filter_keys;
mod key_filter;
mod key_table;
mod keys;
mod outcome;
mod pairs;
mod partitions;
mod produce;
mod rewrite;
mod run;
mod source;
mod spill;
mod target;

pub use clauses::{MergeClauses, UpdateCondition, WhenMatched, WhenNotMatchedBySource};
pub(crate) use key_filter::KeyFilter;
pub use outcome::{MergeOutcome, MergeStats};
pub use run::{changed_rows, merge, MergeRequest};
pub use source::MergeSource;

#[cfg(test)]
mod tests;
