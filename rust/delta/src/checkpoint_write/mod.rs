//! Writing checkpoints: all actions that a version has, as they stand in the log, into Parquet.
//!
//! ```text
//! commits after the base, newest first -> FileRows \                          /-> row group \
//!                                                   what no newer action spoke of            file -> store
//! the base checkpoint, row group by row group     /                           \-> row group /
//! ```
//!
//! Neither the commits nor the base are ever held as a whole: lines are parsed and row groups encoded by a few tasks at a time, and what is
//! done goes out. Fields that this release does not know are carried along with the types that their values have.
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
