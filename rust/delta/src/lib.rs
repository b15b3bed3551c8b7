//! The Delta transaction log: actions, replay, checkpoints and pruning by statistics.
//!
//! ```text
//! _delta_log/ -> listing -> segment: a checkpoint and the commits after it -> replay, newest first -> snapshot: a columnar file list
//!                                                                                                        |
//!                                                       a filter -> partition values, statistics -> the files that may match
//! ```
//!
//! The protocol is `PROTOCOL.md` of delta-io/delta. Data files are read by pyarrow; here only chosen rows of them, and pages that are copied.
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

pub mod actions;
mod arrays;
mod changes;
mod checked_pages;
pub mod checkpoint;
mod checkpoint_file;
mod checkpoint_write;
mod chunk;
mod column_bytes;
mod column_splice;
mod commit;
mod deletion_vector;
mod deletion_vector_write;
mod delta_lengths;
mod described;
mod error;
mod file_rows;
pub mod fuzz;
mod guard;
mod listing;
mod partition;
mod partitions;
mod path;
mod path_column;
mod protocol;
mod prune;
mod replay;
mod scalars;
mod schema;
mod snapshot;
mod sparse;
mod splice_output;
mod spliced_columns;
mod statistics;
mod statistics_texts;

pub use changes::{read_changes, ChangedFile, VersionChanges};
pub use checkpoint_write::{CheckpointPlan, CheckpointWritten, SidecarPlan};
pub use chunk::{ChunkView, FileChunk};
pub use column_splice::ColumnSplice;
pub use commit::{read_commit, CommitActions};
pub use deletion_vector::{place, place_elsewhere, DeletionVector, VectorPlace};
pub use deletion_vector_write::{vector_file, z85_text};
pub use error::{DeltaError, Result};
pub use file_rows::{FileRows, RowRequest};
pub use listing::LogListing;
pub use partitions::Partition;
pub use path::{decode_path, encode_path, TableRoot};
pub use protocol::check_readable;
pub use prune::Selection;
pub use schema::{ColumnMapping, DeltaField, DeltaSchema, DeltaType};
pub use snapshot::Snapshot;
