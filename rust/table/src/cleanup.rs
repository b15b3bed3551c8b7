//! Which files of a table nothing refers to any more: pure rules over a listing. What goes, and when, is decided elsewhere.
//!
//! ```text
//! manifests to keep ---> FileReferences: kept
//! manifests to drop ---> FileReferences: dropped     a file of theirs is known not to be part of a commit under way
//! listing of files  ---> Leftover: kind, path, size, time, whether a dropped manifest refers to it
//! ```
//!
//! What is not of the form that a table's writers give to files is never told of, whoever put it there.

mod leftover;
mod listing;
mod references;

pub use leftover::{Leftover, LeftoverKind};
pub use listing::FileListing;
pub use references::FileReferences;

#[cfg(test)]
mod tests;
