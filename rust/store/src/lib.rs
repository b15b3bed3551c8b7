//! Stores, the lowest layer of esker: range reads, puts and put-if-absent over local files, memory and object stores.
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

pub mod cloud;
mod coalesce;
pub mod copy;
pub mod error;
pub mod fault;
pub mod local;
pub mod memory;
pub mod mount;
pub mod object;
pub mod once;
pub mod path;
pub mod runtime;
pub mod stats;
pub mod store;
pub mod uri;

pub use copy::copy;
pub use error::{Result, StoreError};
pub use mount::Mounts;
pub use once::{kept, FoundOnce};
pub use runtime::{block_on, cores, runtime};
pub use stats::{total_reads, IoStats, StatsCounters};
pub use store::{FirstPaths, ListedBatches, ObjectMeta, ObjectWriter, PutOutcome, Store, StoreRef, Tail};
pub use uri::open;

#[cfg(test)]
mod tests;
