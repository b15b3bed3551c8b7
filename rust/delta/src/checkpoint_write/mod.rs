//! Writes checkpoints: all actions of a version, reconciled, into Parquet.
//!
//! ```text
//! commits after the base, newest first -> FileRows \                          /-> row group \
//!                                                   those without a newer action             file -> store
//! the base checkpoint, row group by row group     /                           \-> row group /
//! ```
//!
//! Neither the commits nor the base are ever in memory as a whole: a few tasks parse lines and encode row groups, and finished row groups
//! are written out. Unknown fields are carried along with the types inferred from their values.
//!
//! Spec: "Checkpoints", "Checkpoint Format", "Action Reconciliation".

mod action_line;
mod action_types;
mod conform;
mod file_rows;
mod fit;
mod fuzzed;
mod json_columns;
mod other_actions;
mod parquet_sink;
mod plan;
mod source;
mod statistics_text;

pub(crate) use fuzzed::{parsed_columns, typed_json};
pub use plan::{CheckpointPlan, CheckpointWritten, SidecarPlan};
pub(crate) use statistics_text::statistics_json;
