//! Parses one line of a commit without losing anything: the file actions' fields for the columns, and all other fields as raw JSON.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::actions::{PartitionValues, Text};

/// Whether a file is added or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Add,
    Remove,
}

impl FileKind {
    /// The action's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Remove => "remove",
        }
    }

    /// The field with its time, in milliseconds since the epoch.
    pub(crate) fn time_field(self) -> &'static str {
        match self {
            Self::Add => "modificationTime",
            Self::Remove => "deletionTimestamp",
        }
    }
}

/// The type-level kind of a file action, for parsing.
pub(crate) trait Kind {
    const KIND: FileKind;
}

/// An add.
pub(crate) struct Added;
/// A remove.
pub(crate) struct Removed;

impl Kind for Added {
    const KIND: FileKind = FileKind::Add;
}

impl Kind for Removed {
    const KIND: FileKind = FileKind::Remove;
}

/// A file action.
pub(crate) struct FileAction<'a, K> {
    pub(crate) path: Text<'a>,
    pub(crate) partition_values: Option<PartitionValues<'a>>,
    pub(crate) size: Option<i64>,
    pub(crate) time: Option<i64>,
    pub(crate) stats: Option<&'a RawValue>,
    /// All other fields but `dataChange`, which is false in checkpoints.
    pub(crate) rest: Vec<(Text<'a>, &'a RawValue)>,
    kind: PhantomData<K>,
}

impl<'de: 'a, 'a, K: Kind> Deserialize<'de> for FileAction<'a, K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ActionVisitor<K>(PhantomData<K>);

        impl<'de, K: Kind> Visitor<'de> for ActionVisitor<K> {
            type Value = FileAction<'de, K>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "the fields of {}", K::KIND.name())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut path = None;
                let (mut partition_values, mut size, mut time, mut stats) = (None, None, None, None);
                let mut rest = Vec::new();
                while let Some(name) = map.next_key::<Text<'de>>()? {
                    match name.0.as_ref() {
                        "path" => path = Some(map.next_value()?),
                        "partitionValues" => partition_values = map.next_value()?,
                        "size" => size = map.next_value()?,
                        "stats" => stats = map.next_value()?,
                        "dataChange" => {
                            map.next_value::<IgnoredAny>()?;
                        }
                        field if field == K::KIND.time_field() => time = map.next_value()?,
                        _ => rest.push((name, map.next_value()?)),
                    }
                }
                Ok(FileAction {
                    path: path.ok_or_else(|| serde::de::Error::missing_field("path"))?,
                    partition_values,
                    size,
                    time,
                    stats,
                    rest,
                    kind: PhantomData,
                })
            }
        }

        deserializer.deserialize_map(ActionVisitor(PhantomData))
    }
}

/// One line. Actions that a checkpoint does not hold are skipped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ActionLine<'a> {
    #[serde(borrow, default)]
    pub(crate) add: Option<FileAction<'a, Added>>,
    #[serde(borrow, default)]
    pub(crate) remove: Option<FileAction<'a, Removed>>,
    #[serde(borrow, default)]
    pub(crate) meta_data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) protocol: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) txn: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) domain_metadata: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_nothing_of_an_action_is_lost() {
        let line = r#"{"remove":{"path":"a","deletionTimestamp":3,"dataChange":true,"size":null,"extendedFileMetadata":true,"x":[1]},"new":{}}"#;
        let line: ActionLine<'_> = serde_json::from_str(line).unwrap();
        let remove = line.remove.unwrap();
        assert_eq!((remove.path.0.as_ref(), remove.time, remove.size), ("a", Some(3), None));
        let rest: Vec<_> = remove
            .rest
            .iter()
            .map(|(name, value)| (name.0.as_ref(), value.get()))
            .collect();
        assert_eq!(rest, [("extendedFileMetadata", "true"), ("x", "[1]")]);
    }

    #[test]
    fn test_a_file_needs_a_path() {
        assert!(serde_json::from_str::<ActionLine<'_>>(r#"{"add":{"size":1}}"#).is_err());
    }
}
