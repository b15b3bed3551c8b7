//! Fault injection: a store that wraps another one and fails on purpose, for tests of everything that is built on stores.
//!
//! Only [`FaultStore::new`] makes one; no URI opens it. Operations are counted from zero, so a test first runs with
//! [`FaultPlan::none`], reads [`FaultStore::operations`], and then runs again once for each of them with a crash there. A plan prints as
//! text that parses to the same plan: what a failed test prints is what replays it. As operations are counted in the order in which they
//! start, a replay is exact where they start in the same order: one task that awaits them one by one.

mod plan;
mod store;
mod writer;

pub use plan::{Fault, FaultKind, FaultPlan};
pub use store::{FaultStore, Operation, Watch};
