//! What a seed is: where it lies, for which types there are any, and what it says.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use bytes::Bytes;

/// The key of a column's seed in a data file's schema metadata, in front of its name.
const KEY: &str = "lance.seed.";

/// Rows of a zone: the only number that an index of default settings takes over.
pub(crate) const ZONE_ROWS: u64 = 8192;

/// The name of each column of a seed.
pub(super) const NAMES: [&str; 5] = ["min", "max", "null_count", "nan_count", "zone_length"];

/// The key of the null rows in a seed's own metadata: a bitmap in hexadecimal digits, empty if no row is null.
pub(super) const NULL_ROWS: &str = "seed_null_bitmap";

/// A seed that waits to be written.
#[derive(Debug, Clone)]
pub(crate) struct Seed {
    /// The key in the file's schema metadata.
    pub(crate) key: String,
    /// Rows of a zone.
    pub(crate) zone_rows: u64,
    /// The Arrow IPC file.
    pub(crate) bytes: Bytes,
}

/// The bounds of a column of a data file, a value for each zone.
#[derive(Debug, Clone)]
pub(crate) struct ZoneMap {
    /// A lower bound of all values but NaN; null where unknown.
    pub(crate) min: ArrayRef,
    /// An upper bound of all values but NaN; null where unknown.
    pub(crate) max: ArrayRef,
    /// Null values.
    pub(crate) null_count: Vec<u64>,
    /// The first row of each zone, and the row after the last.
    pub(crate) offsets: Vec<u64>,
}

impl ZoneMap {
    /// Bytes that it takes in memory.
    pub(crate) fn memory(&self) -> usize {
        let numbers = self
            .null_count
            .len()
            .saturating_add(self.offsets.len())
            .saturating_mul(8);
        let bounds = self
            .min
            .get_array_memory_size()
            .saturating_add(self.max.get_array_memory_size());
        numbers.saturating_add(bounds).saturating_add(256)
    }
}

/// Whether there are seeds for columns of a type.
pub(crate) fn is_zoned(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(
        data_type,
        Int8 | Int16
            | Int32
            | Int64
            | UInt8
            | UInt16
            | UInt32
            | UInt64
            | Float32
            | Float64
            | Boolean
            | Decimal128(_, _)
            | Decimal256(_, _)
            | Date32
            | Date64
            | Time32(_)
            | Time64(_)
            | Timestamp(_, _)
            | Duration(_)
            | Utf8
            | LargeUtf8
            | Binary
            | LargeBinary
            | FixedSizeBinary(_)
    )
}

/// The key of a column's seed.
pub(crate) fn key_of(column: &str) -> String {
    format!("{KEY}{column}")
}

/// The global buffer of a seed, by the metadata of its file.
pub(crate) fn place_of(value: &[u8]) -> Option<usize> {
    let (buffer, rows) = std::str::from_utf8(value).ok()?.split_once(':')?;
    let rows: u64 = rows.parse().ok()?;
    let buffer: usize = buffer.parse().ok()?;
    (buffer > 0 && rows > 0).then_some(buffer)
}
