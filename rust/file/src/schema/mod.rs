//! The schema of a file or table: a tree of fields, each with an id that outlives renames.

mod arrow;
mod blob;
mod edit;
mod field;
mod keys;
mod logical_type;
mod names;
mod path;
mod proto;
mod select;

pub(crate) use blob::{description_type, retyped};
pub use blob::{BlobKind, BlobView, BLOB_V2_EXTENSION};
pub use edit::Alteration;
pub use field::{Field, Schema};
pub use keys::DeclaredKeys;
pub use logical_type::{data_type_from_logical, logical_from_data_type};
pub use path::parts_of;
