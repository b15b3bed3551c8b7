//! Orphans: the files of a table that no kept version refers to. Pure rules over a listing; which of them are deleted, and when, is decided
//! by the caller.
//!
//! ```text
//! manifests to keep ---> FileReferences: kept
//! manifests to drop ---> FileReferences: dropped     their files are certainly not part of a commit under way
//! listing of files  ---> Leftover: kind, path, size, time, whether a dropped manifest refers to it
//! ```
//!
//! Files whose names no writer of tables makes are never listed.

mod leftover;
mod listing;
mod references;

pub use leftover::{Leftover, LeftoverKind};
pub use listing::FileListing;
pub use references::FileReferences;

#[cfg(test)]
mod tests;
