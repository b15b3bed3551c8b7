//! What a transaction does, and the kinds of it that the format knows.

use std::collections::BTreeMap;

use bytes::Bytes;
use esker_proto::lance::table as pb;
use esker_proto::lance::table::transaction as op;
use prost::Message;

use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::raw::RawMessage;

/// The field of Append and Overwrite that holds fragments.
pub(crate) const NEW_FRAGMENTS: u32 = 1;

/// The kinds of operation, by the number of their field in the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// New rows.
    Append,
    /// Rows gone.
    Delete,
    /// A new table, or new contents in place of all old ones.
    Overwrite,
    /// An index added, replaced or dropped.
    CreateIndex,
    /// The same rows in other files: compaction.
    Rewrite,
    /// New columns beside the old ones.
    Merge,
    /// The contents of an older version again.
    Restore,
    /// Fragment ids set aside.
    ReserveFragments,
    /// Rows changed.
    Update,
    /// Columns dropped or renamed.
    Project,
    /// Key-values changed.
    UpdateConfig,
    /// One column's file replaced.
    DataReplacement,
    /// The state of a write-ahead log.
    UpdateMemWalState,
    /// A table that borrows another one's files.
    Clone,
    /// New roots for files.
    UpdateBases,
    /// Values laid over single cells.
    DataOverlay,
    /// Several operations in one.
    Composite,
    /// An operation of a newer writer; 0 if there is none at all.
    Unknown(u32),
}

impl OperationKind {
    /// All kinds that have a name.
    pub const NAMED: [OperationKind; 17] = [
        Self::Append,
        Self::Delete,
        Self::Overwrite,
        Self::CreateIndex,
        Self::Rewrite,
        Self::Merge,
        Self::Restore,
        Self::ReserveFragments,
        Self::Update,
        Self::Project,
        Self::UpdateConfig,
        Self::DataReplacement,
        Self::UpdateMemWalState,
        Self::Clone,
        Self::UpdateBases,
        Self::DataOverlay,
        Self::Composite,
    ];

    /// The kind of the field `number`; nothing for the fields that say something else than the operation.
    pub fn from_field(number: u32) -> Option<Self> {
        const FIRST: u32 = 100;
        let index = number.checked_sub(FIRST)?;
        let named = usize::try_from(index)
            .ok()
            .and_then(|index| Self::NAMED.get(index).copied());
        Some(named.unwrap_or(Self::Unknown(number)))
    }

    /// The operation's name, as other libraries spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Append => "Append",
            Self::Delete => "Delete",
            Self::Overwrite => "Overwrite",
            Self::CreateIndex => "CreateIndex",
            Self::Rewrite => "Rewrite",
            Self::Merge => "Merge",
            Self::Restore => "Restore",
            Self::ReserveFragments => "ReserveFragments",
            Self::Update => "Update",
            Self::Project => "Project",
            Self::UpdateConfig => "UpdateConfig",
            Self::DataReplacement => "DataReplacement",
            Self::UpdateMemWalState => "UpdateMemWalState",
            Self::Clone => "Clone",
            Self::UpdateBases => "UpdateBases",
            Self::DataOverlay => "DataOverlay",
            Self::Composite => "CompositeOperation",
            Self::Unknown(_) => "unknown operation",
        }
    }
}

/// What a transaction does, decoded as far as esker can carry it out.
#[derive(Debug, Clone)]
pub enum Operation {
    /// New rows.
    Append {
        /// Their ids are given out at commit.
        fragments: Vec<Fragment>,
    },
    /// A new table, or new contents in place of all old ones.
    Overwrite {
        /// Their ids are given out at commit.
        fragments: Vec<Fragment>,
        /// The new columns, as encoded fields.
        schema: Vec<Bytes>,
        /// The Arrow schema's own key-values.
        schema_metadata: BTreeMap<String, Bytes>,
        /// Merged into the table's config.
        config: BTreeMap<String, String>,
        /// Roots for files, only when a table is created.
        initial_bases: usize,
    },
    /// An operation that esker recognises but does not carry out.
    Other {
        /// Which.
        kind: OperationKind,
        /// The encoded operation.
        message: Bytes,
    },
}

impl Operation {
    /// Decodes the operation's own message.
    pub(crate) fn decode(kind: OperationKind, message: &Bytes) -> Result<Self> {
        let raw = || RawMessage::decode(message).map_err(|error| error.of(kind.name()));
        match kind {
            OperationKind::Append => Ok(Self::Append {
                fragments: decode_fragments(&raw()?)?,
            }),
            OperationKind::Overwrite => {
                const SCHEMA: u32 = 2;
                let raw = raw()?;
                let fragments = decode_fragments(&raw)?;
                let schema = raw.all(SCHEMA).map(|field| field.payload().clone()).collect();
                let mut rest = raw;
                rest.remove(NEW_FRAGMENTS);
                let proto = op::Overwrite::decode(rest.encode().as_slice());
                let proto = proto.map_err(|error| TableError::corrupt(kind.name(), error.to_string()))?;
                Ok(Self::Overwrite {
                    fragments,
                    schema,
                    schema_metadata: proto.schema_metadata,
                    config: proto.config_upsert_values,
                    initial_bases: proto.initial_bases.len(),
                })
            }
            _ => Ok(Self::Other {
                kind,
                message: message.clone(),
            }),
        }
    }
}

fn decode_fragments(raw: &RawMessage) -> Result<Vec<Fragment>> {
    raw.all(NEW_FRAGMENTS)
        .map(|field| Fragment::decode(field.payload()))
        .collect()
}

/// An encoded Overwrite.
pub(crate) fn encode_overwrite(
    fragments: &[Fragment],
    fields: Vec<esker_proto::lance::file::Field>,
    schema_metadata: BTreeMap<String, Bytes>,
    config: BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    let proto = pb::transaction::Overwrite {
        fragments: vec![],
        schema: fields,
        schema_metadata,
        config_upsert_values: config,
        initial_bases: vec![],
    };
    let encoded = Bytes::from(proto.encode_to_vec());
    let mut raw = RawMessage::decode(&encoded).map_err(|error| error.of("Overwrite"))?;
    let fragments: Vec<Vec<u8>> = fragments.iter().map(Fragment::encode).collect();
    raw.set_all_bytes(NEW_FRAGMENTS, fragments.iter().map(Vec::as_slice));
    Ok(raw.encode())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_kinds_follow_their_field_numbers() {
        assert_eq!(OperationKind::from_field(99), None);
        assert_eq!(OperationKind::from_field(100), Some(OperationKind::Append));
        assert_eq!(OperationKind::from_field(108), Some(OperationKind::Update));
        assert_eq!(OperationKind::from_field(111), Some(OperationKind::DataReplacement));
        assert_eq!(OperationKind::from_field(114), Some(OperationKind::UpdateBases));
        assert_eq!(OperationKind::from_field(115), Some(OperationKind::DataOverlay));
        assert_eq!(OperationKind::from_field(116), Some(OperationKind::Composite));
        assert_eq!(OperationKind::from_field(117), Some(OperationKind::Unknown(117)));
    }
}
