//! Commits: the record, its id, and its encoding in a dump of refs.

use std::collections::BTreeMap;

use esker_proto::google::Timestamp;
use esker_proto::graveler::refs::{CommitData, TagData};
use prost::Message;

use crate::error::{GravelerError, Result};
use crate::id::CommitId;
use crate::ident::Identity;

/// A commit's record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commit {
    /// Who committed.
    pub committer: String,
    /// The commit message.
    pub message: String,
    /// The id of the content's metarange; empty for a repository's first commit.
    pub metarange_id: String,
    /// The time of the commit, in seconds since the Unix epoch.
    pub creation_date: i64,
    /// The user's own keys and values.
    pub metadata: BTreeMap<String, String>,
    /// The parents' ids; the first of a merge is the destination's commit.
    pub parents: Vec<String>,
    /// The version of the parents' order, currently 1. Not part of the id.
    pub version: i32,
    /// 1 without parents, else one more than the highest of the parents' generations. Not part of the id.
    pub generation: i32,
}

impl Commit {
    /// The commit's id: the hash of its identity.
    pub fn id(&self) -> CommitId {
        let mut parents = Identity::new();
        parents.strings(self.parents.iter().map(String::as_str));
        let mut identity = Identity::new();
        identity
            .string("commit:v1")
            .string(&self.committer)
            .string(&self.message)
            .string(&self.metarange_id)
            .integer(self.creation_date)
            .map(&self.metadata)
            .embedded(&parents);
        CommitId::of_hash(&identity.hash())
    }

    /// The commit's message in a dump of refs.
    pub fn encode(&self) -> Vec<u8> {
        let message = CommitData {
            id: self.id().as_str().to_owned(),
            committer: self.committer.clone(),
            message: self.message.clone(),
            creation_date: Some(Timestamp {
                seconds: self.creation_date,
                nanos: 0,
            }),
            meta_range_id: self.metarange_id.clone(),
            metadata: self.metadata.clone(),
            parents: self.parents.clone(),
            version: self.version,
            generation: self.generation,
        };
        message.encode_to_vec()
    }

    /// Decodes such a message; its id must match its content.
    pub fn decode(data: &[u8]) -> Result<Self> {
        let message = CommitData::decode(data).map_err(|error| GravelerError::corrupt("commit", error.to_string()))?;
        let commit = Commit {
            committer: message.committer,
            message: message.message,
            metarange_id: message.meta_range_id,
            creation_date: message.creation_date.unwrap_or_default().seconds,
            metadata: message.metadata,
            parents: message.parents,
            version: message.version,
            generation: message.generation,
        };
        let found = commit.id();
        if found.as_str() != message.id {
            return Err(GravelerError::corrupt(
                "commit",
                format!("expected the id {:?}, found a record whose id is {found}", message.id),
            ));
        }
        Ok(commit)
    }
}

/// The message of a branch or a tag in a dump of refs, which have the same fields.
pub fn encode_ref(id: &str, commit_id: &str) -> Vec<u8> {
    let message = TagData {
        id: id.to_owned(),
        commit_id: commit_id.to_owned(),
    };
    message.encode_to_vec()
}

/// Decodes such a message to its name and commit. Uncommitted changes of a branch in a server are not part of it.
pub fn decode_ref(data: &[u8]) -> Result<(String, String)> {
    let message = TagData::decode(data).map_err(|error| GravelerError::corrupt("ref", error.to_string()))?;
    Ok((message.id, message.commit_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_ref_comes_back() {
        let bytes = encode_ref("main", "00");
        assert_eq!(decode_ref(&bytes).unwrap(), ("main".to_owned(), "00".to_owned()));
        assert!(decode_ref(&bytes[..3]).is_err());
    }

    #[test]
    fn test_a_commit_comes_back_and_a_changed_one_is_told_from_it() {
        let commit = Commit {
            committer: "me".into(),
            message: "Repository created".into(),
            creation_date: 1_700_000_000,
            version: 1,
            generation: 1,
            ..Commit::default()
        };
        let bytes = commit.encode();
        assert_eq!(Commit::decode(&bytes).unwrap(), commit);
        let at = bytes.windows(10).position(|window| window == b"Repository").unwrap();
        let mut changed = bytes.clone();
        changed[at] = b'r';
        assert!(Commit::decode(&changed)
            .unwrap_err()
            .to_string()
            .contains("expected the id"));
        let older = Commit {
            generation: 5,
            ..commit.clone()
        };
        assert_eq!(older.id(), commit.id());
    }
}
