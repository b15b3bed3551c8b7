//! The container of 2.x files: pages, global buffers, column metadata and footer.
//!
//! ```text
//! data buffers        each at a multiple of 64
//! global buffers      0 is the FileDescriptor: schema and row count
//! column metadata     one protobuf a column
//! column table        u64 position, u64 size a column            <- CMO
//! global table        u64 position, u64 size a global buffer     <- GBO
//! footer (40 bytes)   u64 first column metadata, u64 CMO, u64 GBO, u32 global buffers, u32 columns, u16 major, u16 minor, "LANC"
//! ```
//!
//! Source: the Lance format document, "File Structure".

mod bytes;
mod global;
mod metadata;
mod read;
mod tail;
mod whole;
mod write;

pub(crate) use bytes::{u16_at, u32_at, u64_at};
pub use metadata::{BufferRange, ColumnMeta, PageEncoding, PageMeta};
pub use read::Container;
pub use tail::FileTail;
pub use write::{ContainerWriter, WrittenPage};

/// Data and global buffers start at multiples of it.
pub const ALIGNMENT: u64 = 64;

/// Size of the footer in bytes.
pub const FOOTER_SIZE: u64 = 40;

/// The last bytes of every Lance file.
pub const MAGIC: [u8; 4] = *b"LANC";
