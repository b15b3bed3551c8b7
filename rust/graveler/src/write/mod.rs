//! Writes sorted records as ranges, and ranges as a metarange.

pub mod metarange_writer;
mod open_range;
mod range_encoder;
mod segment;
pub mod split_rule;
mod unit;

pub use metarange_writer::{encode_metarange, MetarangeWriter, Written};
pub(crate) use open_range::OpenTable;
pub use open_range::{table_of_records, EncodedTable};
pub use split_rule::SplitRule;
pub(crate) use unit::{Rewrite, Slice};

#[cfg(test)]
mod tests;
