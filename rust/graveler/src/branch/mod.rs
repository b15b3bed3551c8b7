//! A branch as a store: what is read lies where the branch's content says, what is written is staged and never committed.
//!
//! ```text
//! path -> staged here? -> address          put: bytes at a new address below data/, the path staged
//!      -> entry of the content -> address  put if absent: the same, if neither has the path
//! ```
//!
//! What is staged is shared with a handle, which commits it, or does not. A path's bytes differ between branches and stagings: cache by address.

mod staged_paths;
mod staging;
mod store;

pub use staged_paths::{StagedChanges, StagedPath, StagedPaths};
pub use staging::BranchStaging;
pub use store::BranchStore;
