//! The change data feed: the cdc files of each version, or the files that it added and removed.
//!
//! Spec: "Add CDC File", "Reader Requirements for AddCDCFile".

use std::sync::Arc;

use bytes::Bytes;
use esker_store::StoreRef;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Deserialize;

use crate::actions::{DeletionVectorDescriptor, Metadata, PartitionValues, Text};
use crate::commit::lines;
use crate::error::{DeltaError, Result};
use crate::listing::commit_path;
use crate::path::TableRoot;

/// Commits that are read concurrently.
const PARALLEL: usize = 16;
/// The property that turns the change data feed on.
const ENABLED: &str = "delta.enableChangeDataFeed";

/// A file with changed rows.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedFile {
    /// Canonical.
    pub path: String,
    /// Partition values by physical name; `None` if the action has none.
    pub partition: Option<Vec<(String, Option<String>)>>,
    /// The rows that are gone.
    pub deletion_vector: Option<DeletionVectorDescriptor>,
}

/// The changes of one version.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionChanges {
    /// Its number.
    pub version: u64,
    /// Whether this version turned the change data feed on or off; `None` if it did not change it.
    pub is_enabled: Option<bool>,
    /// The cdc files. If there are any, they replace `adds` and `removes`, which hold the same changes.
    pub cdc: Vec<ChangedFile>,
    /// Added files.
    pub adds: Vec<ChangedFile>,
    /// Removed files.
    pub removes: Vec<ChangedFile>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileLine<'a> {
    #[serde(borrow)]
    path: Text<'a>,
    #[serde(borrow, default)]
    partition_values: Option<PartitionValues<'a>>,
    #[serde(default)]
    deletion_vector: Option<DeletionVectorDescriptor>,
    #[serde(default)]
    data_change: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChangeLine<'a> {
    #[serde(borrow, default)]
    cdc: Option<FileLine<'a>>,
    #[serde(borrow, default)]
    add: Option<FileLine<'a>>,
    #[serde(borrow, default)]
    remove: Option<FileLine<'a>>,
    #[serde(default)]
    meta_data: Option<Metadata>,
}

/// Reads the changes of the versions `first` to `last`, several concurrently.
pub async fn read_changes(
    store: &StoreRef,
    root: &Arc<TableRoot>,
    first: u64,
    last: u64,
) -> Result<Vec<VersionChanges>> {
    let tasks = (first..=last).map(|version| {
        let (store, root) = (store.clone(), root.clone());
        tokio::spawn(async move {
            let path = commit_path(version);
            let bytes = store.get(&path).await.map_err(|error| {
                if error.is_not_found() {
                    let message = "is not there: it may have been cleaned up; start later";
                    DeltaError::not_found(format!("version {version} {message}"))
                } else {
                    error.into()
                }
            })?;
            parse_changes(&bytes, &path, version, &root)
        })
    });
    stream::iter(tasks)
        .buffered(PARALLEL)
        .map(|task| task.unwrap_or_else(|error| Err(DeltaError::invalid(error.to_string()))))
        .try_collect()
        .await
}

pub(crate) fn parse_changes(bytes: &Bytes, path: &str, version: u64, root: &TableRoot) -> Result<VersionChanges> {
    let mut found = VersionChanges {
        version,
        is_enabled: None,
        cdc: Vec::new(),
        adds: Vec::new(),
        removes: Vec::new(),
    };
    for (number, (_, text)) in lines(bytes, path)?.into_iter().enumerate() {
        let line: ChangeLine<'_> = serde_json::from_str(text).map_err(|error| {
            DeltaError::corrupt(
                path,
                format!(
                    "version {version}, line {}: expected an action, found: {error}",
                    number + 1
                ),
            )
        })?;
        if let Some(metadata) = line.meta_data {
            found.is_enabled = Some(metadata.is_set(ENABLED));
        }
        if let Some(file) = line.cdc {
            found.cdc.push(changed(file, root));
        }
        for (file, files) in [(line.add, &mut found.adds), (line.remove, &mut found.removes)] {
            if let Some(file) = file.filter(|file| file.data_change.unwrap_or(true)) {
                files.push(changed(file, root));
            }
        }
    }
    Ok(found)
}

fn changed(file: FileLine<'_>, root: &TableRoot) -> ChangedFile {
    let values = file.partition_values.map(|values| {
        let pairs = values.0.into_iter();
        pairs.map(|(name, value)| (name.0.into_owned(), value.map(|value| value.0.into_owned())))
    });
    ChangedFile {
        path: root.canonical(&file.path.0).into_owned(),
        partition: values.map(Iterator::collect),
        deletion_vector: file.deletion_vector,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<VersionChanges> {
        parse_changes(
            &Bytes::copy_from_slice(text.as_bytes()),
            "x.json",
            3,
            &TableRoot::new("/t"),
        )
    }

    #[test]
    fn test_files_without_changed_rows_are_left_out() {
        let found = parse(
            "{\"add\":{\"path\":\"a\",\"dataChange\":false}}\n{\"add\":{\"path\":\"/t/b%20c\",\"partitionValues\":{\"p\":null}}}\n\
             {\"remove\":{\"path\":\"d\",\"dataChange\":null}}\n{\"cdc\":{\"path\":\"e\",\"dataChange\":false}}\n\
             {\"metaData\":{\"schemaString\":\"\",\"configuration\":{\"delta.enableChangeDataFeed\":\"True\"}}}",
        )
        .unwrap();
        assert_eq!(found.is_enabled, Some(true));
        assert_eq!(found.adds[0].path, "b c");
        assert_eq!(found.adds[0].partition, Some(vec![("p".to_owned(), None)]));
        assert_eq!(
            (found.adds.len(), found.cdc.len(), found.removes[0].partition.is_none()),
            (1, 1, true)
        );
    }

    #[test]
    fn test_a_broken_line_is_named() {
        let message = parse("{}\n{\"add\":{}}").unwrap_err().to_string();
        assert!(
            message.contains("version 3, line 2") && message.contains("x.json"),
            "{message}"
        );
    }

    proptest! {
        #[test]
        fn test_any_text_is_changes_or_an_error(text in "\\PC{0,60}") {
            let _ = parse(&text);
            let _ = parse(&format!("{{\"add\":{{\"path\":{text:?}}}}}"));
        }
    }
}
