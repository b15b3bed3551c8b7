//! Stable row ids: ids that rows keep when they move, and the versions that rows come from.
//!
//! Each fragment lists the ids of its rows, in row order and deleted rows included, as a [`RowIdSequence`]. An update writes the row
//! to another fragment under the same id and deletes the old one, so two fragments may list one id: the row that is not deleted is live.

mod allocate;
mod bitmap;
mod cover;
mod encoded_array;
mod index;
mod lineage;
mod moved;
mod of_manifest;
mod segment;
mod sequence;
mod smallest;
mod spilling;
mod stored;
mod versions;

pub use allocate::RowIdAllocator;
pub use index::{Candidate, RowIdIndex, RowIdIndexBuilder};
pub use lineage::{LineageParts, RowLineage};
pub use moved::MovedRows;
pub use of_manifest::RowChange;
pub use sequence::RowIdSequence;
pub(crate) use spilling::{LineageColumn, Sequences};
pub use spilling::{SpilledFragments, Spilling};
pub(crate) use stored::{is_lineage_field, is_spilled};
pub use stored::{LineageField, LineageForm};
pub use versions::RowVersions;

#[cfg(test)]
mod tests;
