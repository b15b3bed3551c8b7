//! The operation of a transaction: one variant for each operation of the format, decoded if esker can apply it.
//!
//! Fragments, fields and indices keep their encoded bytes, so that unknown fields of newer writers survive.

mod kind;
mod message;
mod rewrite;
mod schema;
mod settings;
mod update;

use bytes::Bytes;
use esker_proto::lance::table as pb;
use esker_proto::lance::table::transaction as op;
use std::collections::BTreeMap;

use self::message::{build, encoded_fragments, Parts};
use crate::error::{Result, TableError};
use crate::fragment::{DataFile, Fragment};
use crate::index::Index;

pub use kind::OperationKind;
pub use rewrite::{Rewrite, RewriteGroup, RewrittenIndex};
pub use schema::NewSchema;
pub use settings::{MapUpdate, UpdateConfig};
pub(crate) use update::changed_offsets;
pub use update::{Update, UpdateMode};

/// What a transaction does.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// New rows.
    Append {
        /// Their ids are given out at commit.
        fragments: Vec<Fragment>,
    },
    /// Rows gone.
    Delete {
        /// Fragments of the table with their new deletion files.
        updated_fragments: Vec<Fragment>,
        /// Fragments that lost all rows.
        deleted_fragment_ids: Vec<u64>,
        /// The predicate of the deleted rows, for information.
        predicate: String,
    },
    /// A new table, or new contents in place of all old ones.
    Overwrite {
        /// Their ids are given out at commit.
        fragments: Vec<Fragment>,
        /// The new columns.
        schema: NewSchema,
        /// Merged into the table's config.
        config: BTreeMap<String, String>,
        /// Base paths, only when a table is created.
        initial_bases: Vec<pb::BasePath>,
    },
    /// Indices added, replaced or dropped.
    CreateIndex {
        /// They replace the indices of the same names.
        new_indices: Vec<Index>,
        /// Removed by their UUIDs.
        removed_indices: Vec<Index>,
    },
    /// The same rows in other files.
    Rewrite(Rewrite),
    /// New columns beside the old ones.
    Merge {
        /// All fragments of the table.
        fragments: Vec<Fragment>,
        /// All columns of the table.
        schema: NewSchema,
        /// Whether no new column is required (non-nullable).
        preserves_nullability: bool,
    },
    /// The contents of an older version again.
    Restore {
        /// Which.
        version: u64,
    },
    /// Fragment ids set aside for a later [`Rewrite`].
    ReserveFragments {
        /// How many.
        num_fragments: u32,
    },
    /// Rows changed, and perhaps added.
    Update(Update),
    /// Columns dropped or renamed.
    Project {
        /// The columns that stay.
        schema: NewSchema,
        /// Whether no column became required (non-nullable).
        preserves_nullability: bool,
    },
    /// Key-values of the table, its schema and its fields.
    UpdateConfig(UpdateConfig),
    /// Files of columns replaced by others.
    DataReplacement {
        /// The id of a fragment and its new file.
        replacements: Vec<(u64, DataFile)>,
    },
    /// A table that borrows another one's files.
    Clone(op::Clone),
    /// New roots for files.
    UpdateBases {
        /// Their ids are given out at commit where they are 0.
        new_bases: Vec<pb::BasePath>,
    },
    /// An operation that esker recognises but does not apply.
    Other {
        /// Which.
        kind: OperationKind,
        /// The encoded operation.
        message: Bytes,
    },
}

/// The protobuf numbers of the fields that hold fragments, fields or indices, which stay encoded.
mod field {
    pub const APPEND_FRAGMENTS: u32 = 1;
    pub const DELETE_UPDATED: u32 = 1;
    pub const SCHEMA_FRAGMENTS: u32 = 1;
    pub const SCHEMA_FIELDS: u32 = 2;
    pub const PROJECT_FIELDS: u32 = 1;
    pub const NEW_INDICES: u32 = 1;
    pub const REMOVED_INDICES: u32 = 2;
}

impl Operation {
    /// Which operation it is.
    pub fn kind(&self) -> OperationKind {
        match self {
            Self::Append { .. } => OperationKind::Append,
            Self::Delete { .. } => OperationKind::Delete,
            Self::Overwrite { .. } => OperationKind::Overwrite,
            Self::CreateIndex { .. } => OperationKind::CreateIndex,
            Self::Rewrite(_) => OperationKind::Rewrite,
            Self::Merge { .. } => OperationKind::Merge,
            Self::Restore { .. } => OperationKind::Restore,
            Self::ReserveFragments { .. } => OperationKind::ReserveFragments,
            Self::Update(_) => OperationKind::Update,
            Self::Project { .. } => OperationKind::Project,
            Self::UpdateConfig(_) => OperationKind::UpdateConfig,
            Self::DataReplacement { .. } => OperationKind::DataReplacement,
            Self::Clone(_) => OperationKind::Clone,
            Self::UpdateBases { .. } => OperationKind::UpdateBases,
            Self::Other { kind, .. } => *kind,
        }
    }

    /// Decodes the operation's own message.
    pub fn decode(kind: OperationKind, message: &Bytes) -> Result<Self> {
        if let OperationKind::UpdateMemWalState
        | OperationKind::DataOverlay
        | OperationKind::Composite
        | OperationKind::Unknown(_) = kind
        {
            let message = message.clone();
            return Ok(Self::Other { kind, message });
        }
        let mut parts = Parts::decode(kind.name(), message)?;
        Ok(match kind {
            OperationKind::Append => Self::Append {
                fragments: parts.fragments(field::APPEND_FRAGMENTS)?,
            },
            OperationKind::Delete => {
                let updated_fragments = parts.fragments(field::DELETE_UPDATED)?;
                let rest: op::Delete = parts.rest()?;
                Self::Delete {
                    updated_fragments,
                    deleted_fragment_ids: rest.deleted_fragment_ids,
                    predicate: rest.predicate,
                }
            }
            OperationKind::Overwrite => {
                let fragments = parts.fragments(field::SCHEMA_FRAGMENTS)?;
                let fields = parts.take(field::SCHEMA_FIELDS);
                let rest: op::Overwrite = parts.rest()?;
                Self::Overwrite {
                    fragments,
                    schema: NewSchema::new(fields, rest.schema_metadata),
                    config: rest.config_upsert_values,
                    initial_bases: rest.initial_bases,
                }
            }
            OperationKind::CreateIndex => Self::CreateIndex {
                new_indices: parts.indices(field::NEW_INDICES)?,
                removed_indices: parts.indices(field::REMOVED_INDICES)?,
            },
            OperationKind::Rewrite => Self::Rewrite(Rewrite::decode(parts)?),
            OperationKind::Merge => {
                let fragments = parts.fragments(field::SCHEMA_FRAGMENTS)?;
                let fields = parts.take(field::SCHEMA_FIELDS);
                let rest: op::Merge = parts.rest()?;
                Self::Merge {
                    fragments,
                    schema: NewSchema::new(fields, rest.schema_metadata),
                    preserves_nullability: rest.preserves_nullability,
                }
            }
            OperationKind::Restore => Self::Restore {
                version: parts.rest::<op::Restore>()?.version,
            },
            OperationKind::ReserveFragments => Self::ReserveFragments {
                num_fragments: parts.rest::<op::ReserveFragments>()?.num_fragments,
            },
            OperationKind::Update => Self::Update(Update::decode(parts)?),
            OperationKind::Project => {
                let fields = parts.take(field::PROJECT_FIELDS);
                let rest: op::Project = parts.rest()?;
                Self::Project {
                    schema: NewSchema::new(fields, BTreeMap::new()),
                    preserves_nullability: rest.preserves_nullability,
                }
            }
            OperationKind::UpdateConfig => Self::UpdateConfig(UpdateConfig::from_proto(parts.rest()?)),
            OperationKind::DataReplacement => {
                let rest: op::DataReplacement = parts.rest()?;
                let group = |group: op::DataReplacementGroup| {
                    let missing = || TableError::corrupt(kind.name(), "expected a new file in each replacement");
                    let file = group.new_file.ok_or_else(missing)?;
                    Ok((group.fragment_id, DataFile::from_proto(file)))
                };
                Self::DataReplacement {
                    replacements: rest.replacements.into_iter().map(group).collect::<Result<_>>()?,
                }
            }
            OperationKind::Clone => Self::Clone(parts.rest()?),
            OperationKind::UpdateBases => Self::UpdateBases {
                new_bases: parts.rest::<op::UpdateBases>()?.new_bases,
            },
            OperationKind::UpdateMemWalState
            | OperationKind::DataOverlay
            | OperationKind::Composite
            | OperationKind::Unknown(_) => Self::Other {
                kind,
                message: message.clone(),
            },
        })
    }

    /// The operation's own message.
    pub fn encode(&self) -> Result<Vec<u8>> {
        match self {
            Self::Append { fragments } => build(
                &op::Append::default(),
                [(field::APPEND_FRAGMENTS, encoded_fragments(fragments))],
            ),
            Self::Delete {
                updated_fragments,
                deleted_fragment_ids,
                predicate,
            } => {
                let rest = op::Delete {
                    deleted_fragment_ids: deleted_fragment_ids.clone(),
                    predicate: predicate.clone(),
                    ..Default::default()
                };
                build(&rest, [(field::DELETE_UPDATED, encoded_fragments(updated_fragments))])
            }
            Self::Overwrite {
                fragments,
                schema,
                config,
                initial_bases,
            } => {
                let rest = op::Overwrite {
                    schema_metadata: schema.metadata().clone(),
                    config_upsert_values: config.clone(),
                    initial_bases: initial_bases.clone(),
                    ..Default::default()
                };
                build(
                    &rest,
                    [
                        (field::SCHEMA_FRAGMENTS, encoded_fragments(fragments)),
                        (field::SCHEMA_FIELDS, schema.encoded_fields()),
                    ],
                )
            }
            Self::CreateIndex {
                new_indices,
                removed_indices,
            } => {
                let encoded = |indices: &[Index]| indices.iter().map(Index::encode).collect();
                build(
                    &op::CreateIndex::default(),
                    [
                        (field::NEW_INDICES, encoded(new_indices)),
                        (field::REMOVED_INDICES, encoded(removed_indices)),
                    ],
                )
            }
            Self::Rewrite(rewrite) => rewrite.encode(),
            Self::Merge {
                fragments,
                schema,
                preserves_nullability,
            } => {
                let rest = op::Merge {
                    schema_metadata: schema.metadata().clone(),
                    preserves_nullability: *preserves_nullability,
                    ..Default::default()
                };
                build(
                    &rest,
                    [
                        (field::SCHEMA_FRAGMENTS, encoded_fragments(fragments)),
                        (field::SCHEMA_FIELDS, schema.encoded_fields()),
                    ],
                )
            }
            Self::Restore { version } => build(&op::Restore { version: *version }, []),
            Self::ReserveFragments { num_fragments } => {
                let num_fragments = *num_fragments;
                build(&op::ReserveFragments { num_fragments }, [])
            }
            Self::Update(update) => update.encode(),
            Self::Project {
                schema,
                preserves_nullability,
            } => {
                let rest = op::Project {
                    preserves_nullability: *preserves_nullability,
                    ..Default::default()
                };
                build(&rest, [(field::PROJECT_FIELDS, schema.encoded_fields())])
            }
            Self::UpdateConfig(update) => build(&update.to_proto(), []),
            Self::DataReplacement { replacements } => {
                let group = |(fragment_id, file): &(u64, DataFile)| op::DataReplacementGroup {
                    fragment_id: *fragment_id,
                    new_file: Some(file.to_proto()),
                };
                let replacements = replacements.iter().map(group).collect();
                build(&op::DataReplacement { replacements }, [])
            }
            Self::Clone(clone) => build(clone, []),
            Self::UpdateBases { new_bases } => {
                let new_bases = new_bases.clone();
                build(&op::UpdateBases { new_bases }, [])
            }
            Self::Other { message, .. } => Ok(message.to_vec()),
        }
    }
}

#[cfg(test)]
mod tests;
