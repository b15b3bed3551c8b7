//! Blobs: large values that are stored outside of the pages, which hold a description of each.
//!
//! ```text
//! kind V1   position, size                            in the data file, at a multiple of 64; (0, 0) is an empty value
//! kind V2   kind, position, size, blob_id, blob_uri   in the data file, in a sidecar file beside it, or at a URI
//! ```
//!
//! A page of descriptions is encoded like any other. Reading a blob column returns the descriptions or, on request, the bytes.

mod carry;
pub(crate) mod check;
mod describe;
mod fetch;
mod location;
mod prepared;
mod sidecar;
mod write;

pub(crate) use fetch::fetch_array;
pub use fetch::{fetch, fetch_ranges, size_of};
pub(crate) use location::{locate, Home};
pub use location::{BlobLocation, BlobObject};
pub(crate) use write::BlobWriter;
