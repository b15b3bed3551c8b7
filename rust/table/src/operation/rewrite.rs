//! Rewrite: the same rows in other files (compaction).

use bytes::Bytes;
use esker_proto::lance::table as pb;
use esker_proto::lance::table::transaction as op;
use prost::Message;
use uuid::Uuid;

use super::message::{build, encoded_fragments, Parts};
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::index::uuid_from_proto;

const OLD_FRAGMENTS: u32 = 1;
const NEW_FRAGMENTS: u32 = 2;
const GROUPS: u32 = 3;
const WHAT: &str = "Rewrite";

/// The same rows in other files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rewrite {
    /// What replaces what.
    pub groups: Vec<RewriteGroup>,
    /// Indices whose row addresses were remapped.
    pub rewritten_indices: Vec<RewrittenIndex>,
}

/// Old fragments and the new ones that hold their rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RewriteGroup {
    /// Fragments of the table.
    pub old_fragments: Vec<Fragment>,
    /// What takes their place; an id other than 0 was reserved.
    pub new_fragments: Vec<Fragment>,
}

/// An index whose row addresses were remapped.
#[derive(Debug, Clone, PartialEq)]
pub struct RewrittenIndex {
    /// The one in the table.
    pub old_id: Uuid,
    /// The one that takes its place.
    pub new_id: Uuid,
    /// What the new one needs to open itself: type URL and encoded message.
    pub new_details: Option<(String, Bytes)>,
    /// Readers older than this must not use it.
    pub new_version: u32,
    /// Its files, encoded.
    pub new_files: Vec<Bytes>,
}

impl Rewrite {
    pub(super) fn decode(mut parts: Parts) -> Result<Self> {
        let old_fragments = parts.fragments(OLD_FRAGMENTS)?;
        let new_fragments = parts.fragments(NEW_FRAGMENTS)?;
        let group = |message: &Bytes| {
            let mut parts = Parts::decode(WHAT, message)?;
            Ok(RewriteGroup {
                old_fragments: parts.fragments(OLD_FRAGMENTS)?,
                new_fragments: parts.fragments(NEW_FRAGMENTS)?,
            })
        };
        let mut groups = parts.take(GROUPS).iter().map(group).collect::<Result<Vec<_>>>()?;
        // Old writers had no groups.
        if !old_fragments.is_empty() || !new_fragments.is_empty() {
            groups.push(RewriteGroup {
                old_fragments,
                new_fragments,
            });
        }
        let rest: op::Rewrite = parts.rest()?;
        let indices = rest.rewritten_indices.into_iter().map(RewrittenIndex::from_proto);
        Ok(Self {
            groups,
            rewritten_indices: indices.collect::<Result<_>>()?,
        })
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let group = |group: &RewriteGroup| {
            build(
                &op::rewrite::RewriteGroup::default(),
                [
                    (OLD_FRAGMENTS, encoded_fragments(&group.old_fragments)),
                    (NEW_FRAGMENTS, encoded_fragments(&group.new_fragments)),
                ],
            )
        };
        let groups = self.groups.iter().map(group).collect::<Result<Vec<_>>>()?;
        let rest = op::Rewrite {
            rewritten_indices: self.rewritten_indices.iter().map(RewrittenIndex::to_proto).collect(),
            ..Default::default()
        };
        build(&rest, [(GROUPS, groups)])
    }
}

impl RewrittenIndex {
    fn from_proto(proto: op::rewrite::RewrittenIndex) -> Result<Self> {
        let id = |uuid: Option<pb::Uuid>| {
            let missing = || TableError::corrupt(WHAT, "expected two UUIDs of a rewritten index");
            uuid_from_proto(uuid.as_ref()).ok_or_else(missing)
        };
        Ok(Self {
            old_id: id(proto.old_id)?,
            new_id: id(proto.new_id)?,
            new_details: proto
                .new_index_details
                .map(|details| (details.type_url, Bytes::from(details.value))),
            new_version: proto.new_index_version,
            new_files: proto.new_index_files,
        })
    }

    fn to_proto(&self) -> op::rewrite::RewrittenIndex {
        let uuid = |id: &Uuid| pb::Uuid {
            uuid: Bytes::copy_from_slice(id.as_bytes()),
        };
        op::rewrite::RewrittenIndex {
            old_id: Some(uuid(&self.old_id)),
            new_id: Some(uuid(&self.new_id)),
            new_index_details: self.new_details.as_ref().map(|(type_url, value)| prost_types::Any {
                type_url: type_url.clone(),
                value: value.to_vec(),
            }),
            new_index_version: self.new_version,
            new_index_files: self.new_files.clone(),
        }
    }

    /// The details as a message of their own.
    pub(crate) fn encoded_details(&self) -> Option<Vec<u8>> {
        self.to_proto().new_index_details.map(|details| details.encode_to_vec())
    }
}
