//! One Lance data file: schema, page encodings, reader and writer.
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

pub mod batches;
pub mod blob;
pub mod cache;
pub mod column_writer;
pub mod container;
pub mod dictionaries;
pub mod error;
#[doc(hidden)]
pub mod fuzz;
pub mod goal;
pub mod inspect;
mod nulls;
mod own_fields;
mod paged_writer;
pub mod raw_page;
pub mod reader;
mod required;
pub mod room;
pub mod schema;
mod v0_1;
mod v2_0;
mod v2_1;
pub mod version;
pub mod why;
pub mod writer;

pub use cache::ReadCache;
pub use column_writer::ColumnWriter;
pub use error::{FileError, Result};
pub use esker_codec::{freed_memory, large_blocks};
pub use goal::Goal;
pub use paged_writer::TrailingBuffer;
pub use reader::{FileProjection, FileReader};
pub use room::Room;
pub use v0_1::column::Dictionaries;
pub use v0_1::dictionary::encode::DictionaryWriters;
pub use v0_1::dictionary::values::{read_dictionaries, write_dictionaries};
pub use v0_1::statistics::bounds::ColumnBounds;
pub use v2_1::read::Decoding;
pub use version::FileVersion;
pub use writer::{ExternalBlobs, FileSummary, FileWriter, WriteOptions};

#[cfg(test)]
mod tests;
