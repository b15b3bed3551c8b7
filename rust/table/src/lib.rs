//! Lance tables: manifests, fragments, transactions, conflicts, deletion files, scans, takes, merges and clean-up.
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

pub mod apply;
mod below;
pub mod carry;
pub mod cleanup;
pub mod compact;
pub mod conflict;
pub mod deletion;
pub mod dictionary;
pub mod error;
pub mod flags;
pub mod fragment;
mod fragment_list;
pub mod fragment_reuse;
pub mod fuzz;
pub mod index;
mod layout;
pub mod manifest;
pub mod merge;
pub mod naming;
pub mod operation;
pub mod raw;
pub mod read;
pub mod reconcile;
pub mod row_ids;
mod struct_parts;
pub mod transaction;
pub mod write;
mod zones;

pub use error::{Result, TableError};
