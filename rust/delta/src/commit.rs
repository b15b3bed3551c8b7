//! Reads one commit: a file of JSON lines, an action each.
//!
//! Spec: "Delta Log Entries". An entry with two actions on one file, application or domain, or with two metadata or protocol actions, is
//! corrupt: it would be unclear which one holds.

use std::hash::{DefaultHasher, Hasher};

use bytes::Bytes;
use esker_store::StoreRef;
use hashbrown::HashSet;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::actions::{DomainMetadata, Line, Metadata, Protocol, Sidecar, Transaction};
use crate::chunk::{file_key, ChunkBuilder, FileChunk, LineSpan, Source};
use crate::error::{DeltaError, Result};
use crate::listing::commit_path;
use crate::path::TableRoot;

/// The actions of one commit, or of a checkpoint that is JSON.
#[derive(Debug)]
pub struct CommitActions {
    /// Its version.
    pub version: u64,
    /// Its file.
    pub path: String,
    /// The files that it adds.
    pub adds: FileChunk,
    /// The keys of the files that it removes.
    pub(crate) removes: Vec<Vec<u8>>,
    /// The new metadata, if it changes.
    pub metadata: Option<Metadata>,
    /// The new protocol, if it changes.
    pub protocol: Option<Protocol>,
    /// The applications' transactions.
    pub transactions: Vec<Transaction>,
    /// What features keep.
    pub domains: Vec<DomainMetadata>,
    /// `commitInfo`, any JSON.
    pub commit_info: Option<Box<RawValue>>,
    pub(crate) sidecars: Vec<Sidecar>,
    pub(crate) is_v2_checkpoint: bool,
    /// The hash of its bytes.
    pub(crate) entry: u64,
}

/// The one field of commitInfo that the log itself depends on.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CommitTime {
    in_commit_timestamp: Option<i64>,
}

impl CommitActions {
    /// The in-commit timestamp, in milliseconds since the epoch. Spec: "In-Commit Timestamps".
    pub fn in_commit_timestamp(&self) -> Option<i64> {
        let info = self.commit_info.as_deref()?;
        let time: CommitTime = serde_json::from_str(info.get()).ok()?;
        time.in_commit_timestamp
    }
}

/// What tells an entry from another one of the same version, within this process.
pub(crate) fn hash_of_entry(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Reads the commit of a version.
pub async fn read_commit(store: &StoreRef, root: &TableRoot, version: u64) -> Result<CommitActions> {
    let path = commit_path(version);
    let bytes = store.get(&path).await?;
    parse_commit(&bytes, &path, version, root)
}

/// The lines of a file of actions with their byte offsets, without blank ones.
pub(crate) fn lines<'a>(bytes: &'a [u8], path: &str) -> Result<Vec<(u32, &'a str)>> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(DeltaError::unsupported(format!("{path} is larger than 4 GiB")));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        DeltaError::corrupt(
            path,
            format!("expected UTF-8, found other bytes at {}", error.valid_up_to()),
        )
    })?;
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if !trimmed.is_empty() {
            let before = line.len() - line.trim_start().len();
            found.push((u32::try_from(start + before).unwrap_or(u32::MAX), trimmed));
        }
        start += line.len();
    }
    Ok(found)
}

pub(crate) fn parse_commit(bytes: &Bytes, path: &str, version: u64, root: &TableRoot) -> Result<CommitActions> {
    let corrupt = |message: String| DeltaError::corrupt(path, message);
    let lines = lines(bytes, path)?;
    let mut builder = ChunkBuilder::with_capacity(lines.len());
    let mut spans = Vec::with_capacity(lines.len());
    let mut found = CommitActions {
        version,
        path: path.to_owned(),
        adds: ChunkBuilder::default().finish(Source::Commits {
            files: Vec::new(),
            lines: Vec::new(),
        }),
        removes: Vec::new(),
        metadata: None,
        protocol: None,
        transactions: Vec::new(),
        domains: Vec::new(),
        commit_info: None,
        sidecars: Vec::new(),
        is_v2_checkpoint: false,
        entry: hash_of_entry(bytes),
    };
    let mut keys: HashSet<Vec<u8>> = HashSet::with_capacity(lines.len());
    for (number, (start, text)) in lines.iter().enumerate() {
        let number = number + 1;
        let twice = |what: &str| {
            corrupt(format!(
                "version {version}, line {number}: expected one action for {what}, found a second one in the same entry"
            ))
        };
        if !text.starts_with('{') {
            return Err(corrupt(format!(
                "version {version}, line {number}: expected a JSON object, found something else"
            )));
        }
        let line: Line<'_> = serde_json::from_str(text).map_err(|error| {
            corrupt(format!(
                "version {version}, line {number}: expected an action, found: {error}"
            ))
        })?;
        if let Some(add) = line.add {
            builder.push(
                root,
                &add.path.0,
                add.size.unwrap_or_default(),
                add.modification_time.unwrap_or_default(),
                add.deletion_vector.clone(),
            )?;
            builder.partition_values(&add.partition_values)?;
            spans.push(LineSpan {
                file: 0,
                start: *start,
                len: u32::try_from(text.len()).unwrap_or(u32::MAX),
            });
            let key = file_key(&root.canonical(&add.path.0), add.deletion_vector.as_ref());
            if !keys.insert(key) {
                return Err(twice(&format!("file {}", add.path.0)));
            }
        }
        if let Some(remove) = line.remove {
            let key = file_key(&root.canonical(&remove.path.0), remove.deletion_vector.as_ref());
            if !keys.insert(key.clone()) {
                return Err(twice(&format!("file {}", remove.path.0)));
            }
            found.removes.push(key);
        }
        if let Some(metadata) = line.meta_data {
            if found.metadata.replace(metadata).is_some() {
                return Err(twice("the table's metadata"));
            }
        }
        if let Some(protocol) = line.protocol {
            if found.protocol.replace(protocol).is_some() {
                return Err(twice("the protocol"));
            }
        }
        if let Some(transaction) = line.txn {
            if found
                .transactions
                .iter()
                .any(|other| other.app_id == transaction.app_id)
            {
                return Err(twice(&format!("application {}", transaction.app_id)));
            }
            found.transactions.push(transaction);
        }
        if let Some(domain) = line.domain_metadata {
            if found.domains.iter().any(|other| other.domain == domain.domain) {
                return Err(twice(&format!("domain {}", domain.domain)));
            }
            found.domains.push(domain);
        }
        if let Some(info) = line.commit_info {
            found.commit_info = Some(info.to_owned());
        }
        found.sidecars.extend(line.sidecar);
        found.is_v2_checkpoint |= line.checkpoint_metadata.is_some();
    }
    found.adds = builder.finish(Source::Commits {
        files: vec![path.to_owned()],
        lines: spans,
    });
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<CommitActions> {
        parse_commit(
            &Bytes::copy_from_slice(text.as_bytes()),
            "_delta_log/3.json",
            3,
            &TableRoot::new("/t"),
        )
    }

    #[test]
    fn test_blank_lines_and_carriage_returns_are_read_past() {
        let found =
            parse("\r\n{\"add\":{\"path\":\"a\"}}\r\n\n  {\"add\":{\"path\":\"b\",\"partitionValues\":null}}").unwrap();
        assert_eq!(found.adds.len(), 2);
        assert_eq!(parse("").unwrap().adds.len(), 0);
    }

    #[test]
    fn test_partition_values_are_null_where_empty_or_absent() {
        let found = parse(
            "{\"add\":{\"path\":\"a\",\"partitionValues\":{\"p\":\"\"}}}\n{\"add\":{\"path\":\"b\",\"partitionValues\":{\"p\":\"x\",\"q\":1}}}\n{\"add\":{\"path\":\"c\"}}",
        )
        .unwrap();
        let values: Vec<_> = (0..3).map(|row| found.adds.partition_value("p", row)).collect();
        assert_eq!(values, [None, Some("x"), None]);
        assert_eq!(found.adds.partition_value("q", 1), Some("1"));
    }

    #[test]
    fn test_actions_that_reconcile_with_each_other_are_an_error() {
        for text in [
            "{\"add\":{\"path\":\"a b\"}}\n{\"remove\":{\"path\":\"a%20b\"}}",
            "{\"add\":{\"path\":\"a\"}}\n{\"add\":{\"path\":\"file:///t/a\"}}",
            "{\"txn\":{\"appId\":\"a\",\"version\":1}}\n{\"txn\":{\"appId\":\"a\",\"version\":2}}",
            "{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2}}\n{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2}}",
            "{\"metaData\":{\"schemaString\":\"\"}}\n{\"metaData\":{\"schemaString\":\"\"}}",
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains("version 3, line 2") && message.contains("3.json"), "{message}");
        }
    }

    #[test]
    fn test_one_file_with_two_deletion_vectors_is_two_files() {
        let vector = |path: &str| {
            format!("\"deletionVector\":{{\"storageType\":\"i\",\"pathOrInlineDv\":\"{path}\",\"sizeInBytes\":1,\"cardinality\":1}}")
        };
        let text = format!("{{\"remove\":{{\"path\":\"a\",{}}}}}\n{{\"add\":{{\"path\":\"a\",{}}}}}\n{{\"remove\":{{\"path\":\"a\"}}}}", vector("x"), vector("y"));
        assert_eq!(parse(&text).unwrap().removes.len(), 2);
    }

    proptest! {
        #[test]
        fn test_any_bytes_are_a_commit_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_commit(&Bytes::from(bytes), "x", 0, &TableRoot::new("/t"));
        }

        #[test]
        fn test_a_commit_cut_anywhere_is_a_commit_or_an_error(cut in 0usize..200) {
            let text = "{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2}}\n{\"add\":{\"path\":\"a\",\"partitionValues\":{\"p\":\"1\"},\"size\":1}}\n";
            let _ = parse(&text[..cut.min(text.len())]);
        }
    }
}
