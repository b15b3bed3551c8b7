//! Metaranges: the ranges of a commit's content, in the order of their keys.

use esker_proto::graveler::committed::RangeData;
use prost::Message;

use crate::error::{GravelerError, Result};
use crate::id::TableId;
use crate::value::Value;

/// A range of at most this many bytes is always fetched whole, as two requests take longer.
const SMALL: u64 = 512 << 10;

/// A metarange's record of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeInfo {
    /// Its name.
    pub id: TableId,
    /// Its first key.
    pub min_key: Vec<u8>,
    /// Its last key.
    pub max_key: Vec<u8>,
    /// Its writer's estimate of its size, in bytes.
    pub estimated_size: u64,
    /// How many entries it has.
    pub count: u64,
}

impl RangeInfo {
    /// Appends the record's framed value.
    pub fn encode_value_to(&self, buffer: &mut Vec<u8>) {
        let data = RangeData {
            min_key: self.min_key.clone().into(),
            max_key: self.max_key.clone().into(),
            estimated_size: self.estimated_size,
            count: i64::try_from(self.count).unwrap_or(i64::MAX),
        };
        let value = Value {
            identity: self.id.as_str().as_bytes(),
            data: &data.encode_to_vec(),
        };
        value.encode_to(buffer);
    }

    /// Reads a record.
    pub fn decode(key: &[u8], value: &[u8]) -> Result<Self> {
        let value = Value::decode(value)?;
        let data = RangeData::decode(value.data).map_err(|error| GravelerError::corrupt("range", error.to_string()))?;
        let id = TableId::parse(value.identity)?;
        if data.max_key != key || data.min_key > data.max_key {
            return Err(GravelerError::corrupt(
                "range",
                format!("{id}: expected a first key and the record's own as the last, found others"),
            ));
        }
        let count = u64::try_from(data.count)
            .map_err(|_| GravelerError::corrupt("range", format!("{id}: expected a count, found {}", data.count)))?;
        Ok(RangeInfo {
            id,
            min_key: data.min_key.into(),
            max_key: data.max_key.into(),
            estimated_size: data.estimated_size,
            count,
        })
    }

    /// Decodes first key, last key, estimated size and count from the data of a record.
    pub fn decode_data(data: &[u8]) -> Result<(Vec<u8>, Vec<u8>, u64, u64)> {
        let data = RangeData::decode(data).map_err(|error| GravelerError::corrupt("range", error.to_string()))?;
        let count = u64::try_from(data.count)
            .map_err(|_| GravelerError::corrupt("range", format!("expected a count, found {}", data.count)))?;
        Ok((data.min_key.into(), data.max_key.into(), data.estimated_size, count))
    }

    /// Whether fetching all of it costs hardly more than some blocks of it.
    pub(crate) fn is_small(&self) -> bool {
        self.estimated_size <= SMALL
    }

    /// Whether all of its keys have the prefix.
    pub(crate) fn is_within(&self, prefix: &[u8]) -> bool {
        self.min_key.starts_with(prefix) && self.max_key.starts_with(prefix)
    }

    /// Whether to fetch all of it for its keys with the prefix: all have it, or it is small (up to four times [`SMALL`] if it begins or
    /// ends with such a key).
    pub(crate) fn is_worth_fetching(&self, prefix: &[u8]) -> bool {
        let many = self.min_key.starts_with(prefix) || self.max_key.starts_with(prefix);
        self.is_within(prefix) || self.estimated_size <= if many { 4 * SMALL } else { SMALL }
    }

    /// Whether a key may be in it.
    pub fn covers(&self, key: &[u8]) -> bool {
        self.min_key.as_slice() <= key && key <= self.max_key.as_slice()
    }
}

/// Ranges that do not overlap, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metarange {
    id: Option<TableId>,
    ranges: Vec<RangeInfo>,
}

impl Metarange {
    /// A metarange of these ranges; without an id it is the empty one of a repository's first commit, which has no file.
    pub fn new(id: Option<TableId>, ranges: Vec<RangeInfo>) -> Result<Self> {
        let overlap = ranges.windows(2).find(|pair| match pair {
            [a, b] => a.max_key >= b.min_key,
            _ => false,
        });
        if let Some([a, b]) = overlap {
            return Err(GravelerError::corrupt(
                "metarange",
                format!("expected ranges that do not overlap, found {} and {}", a.id, b.id),
            ));
        }
        Ok(Metarange { id, ranges })
    }

    /// Its name.
    pub fn id(&self) -> Option<&TableId> {
        self.id.as_ref()
    }

    /// Its ranges.
    pub fn ranges(&self) -> &[RangeInfo] {
        &self.ranges
    }

    /// How many entries it has.
    pub fn count(&self) -> u64 {
        self.ranges
            .iter()
            .fold(0u64, |sum, range| sum.saturating_add(range.count))
    }

    /// The number of the first range whose last key is not before `key`.
    pub fn position(&self, key: &[u8]) -> usize {
        self.ranges.partition_point(|range| range.max_key.as_slice() < key)
    }
}
