//! Zone maps: bounds of a column for each run of rows of a data file, in the form of pylance's zone-map seeds.
//!
//! ```text
//! schema metadata of the data file     lance.seed.{column} = "{global buffer}:{rows of a zone}"
//! the global buffer                    an Arrow IPC file of one batch, a row for each zone in the file's order:
//!     min T?, max T?                   bounds of the values; of floats NaN counts as the greatest
//!     null_count uint32, nan_count uint32
//!     zone_length uint64               rows of the zone, deleted ones included
//! ```
//!
//! They are part of the file and named by the file's own columns, so that they outlive renames, casts and deletions.

mod aside;
mod bounds;
mod collect;
mod column;
mod decode;
mod encode;
mod seed;

pub(crate) use aside::ZonesAside;
pub(crate) use collect::ZoneCollector;
pub(crate) use column::ColumnZones;
pub(crate) use decode::decode;
pub(crate) use seed::{is_zoned, key_of, place_of, ZoneMap};

#[cfg(test)]
mod tests;
