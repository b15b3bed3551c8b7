//! Reading one version of a table: scan, take, count.

mod blobs;
mod by_address;
mod chunk;
mod chunking;
mod file_columns;
mod files;
mod fragment_reader;
mod gone;
mod locate;
mod order;
mod projection;
mod rows;
mod scan;
mod session;
mod statistics;
mod strict;
mod system;
mod take;
mod top_fields;
mod zone_maps;

pub use blobs::{locate_blobs, LocatedBlob, RowSelection};
pub use by_address::RowsByAddress;
pub use files::TableFiles;
pub(crate) use fragment_reader::{FragmentProjection, FragmentReader};
pub use gone::deleted_row_ids;
pub use locate::{locate, Located};
pub use order::OrderKey;
pub use projection::Projection;
pub(crate) use rows::{clip, count, groups, live};
pub(crate) use scan::fragments_of;
pub use scan::{count_rows, ruled_out, scan, BatchStream, ScanRequest};
pub use session::Session;
pub use statistics::GroupCounts;
pub use system::SystemColumn;
pub(crate) use take::live_rows;
pub use take::{take, take_ids};
