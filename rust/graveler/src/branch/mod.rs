//! A branch as a store: reads go to the addresses of the branch's content, writes are staged and not committed here.
//!
//! ```text
//! path -> staged entry -> address          put: writes the bytes to a new address below data/ and stages the path
//!      -> entry of the content -> address  put if absent: the same, if the path is neither staged nor in the content
//! ```
//!
//! The staged paths are shared with a handle, which may commit them. A path's bytes differ between branches and stagings, so caches must be
//! keyed by address.

mod staged_paths;
mod staging;
mod store;

pub use staged_paths::{StagedChanges, StagedPath, StagedPaths};
pub use staging::BranchStaging;
pub use store::BranchStore;
