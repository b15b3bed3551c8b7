//! The actions of the log, parsed from JSON. Texts without escapes are borrowed from the line; statistics stay undecoded.
//!
//! Spec: "Actions". Unknown fields and actions are skipped. Only indispensable fields are required: a file's path, a protocol's versions, a
//! schema.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A text of a JSON line, borrowed where it has no escapes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            // Some writers write partition values as JSON numbers and booleans.
            fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(value.to_string())))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(value.to_string())))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(value.to_string())))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(value.to_string())))
            }
        }

        deserializer.deserialize_any(TextVisitor)
    }
}

/// Partition values as in the log: physical column names, and texts or nulls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionValues<'a>(pub Vec<(Text<'a>, Option<Text<'a>>)>);

impl<'de: 'a, 'a> Deserialize<'de> for PartitionValues<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValuesVisitor;

        impl<'de> Visitor<'de> for ValuesVisitor {
            type Value = PartitionValues<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of partition values")
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(PartitionValues::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut values = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    values.push(entry);
                }
                Ok(PartitionValues(values))
            }
        }

        deserializer.deserialize_any(ValuesVisitor)
    }
}

/// Where the deleted rows of a file are listed. Spec: "Deletion Vectors".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionVectorDescriptor {
    /// `u`: a file named by a UUID, `p`: a file by its absolute path, `i`: inline.
    pub storage_type: String,
    /// The file, or the bitmap itself in Z85.
    pub path_or_inline_dv: String,
    /// The vector's offset in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i64>,
    /// Bytes of the bitmap.
    pub size_in_bytes: i64,
    /// How many rows it deletes.
    pub cardinality: i64,
}

impl DeletionVectorDescriptor {
    /// The vector's unique id, which with the path identifies a logical file. Spec: "Derived Fields".
    pub fn unique_id(&self) -> String {
        match self.offset {
            Some(offset) => format!("{}{}@{offset}", self.storage_type, self.path_or_inline_dv),
            None => format!("{}{}", self.storage_type, self.path_or_inline_dv),
        }
    }
}

/// A file that belongs to the table from this version on. Spec: "Add File".
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Add<'a> {
    /// URI-encoded, relative to the table or absolute.
    #[serde(borrow)]
    pub path: Text<'a>,
    /// By physical name.
    #[serde(borrow, default)]
    pub partition_values: PartitionValues<'a>,
    /// Bytes.
    #[serde(default)]
    pub size: Option<i64>,
    /// Milliseconds since the epoch.
    #[serde(default)]
    pub modification_time: Option<i64>,
    /// The rows that are gone.
    #[serde(default)]
    pub deletion_vector: Option<DeletionVectorDescriptor>,
}

/// Only the statistics of an add.
#[derive(Debug, Clone, Deserialize)]
pub struct AddStatistics<'a> {
    /// A JSON text, escaped within JSON.
    #[serde(borrow, default)]
    pub stats: Option<&'a RawValue>,
}

/// A file that no longer belongs to the table: a tombstone. Spec: "Remove File".
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remove<'a> {
    /// URI-encoded, relative to the table or absolute.
    #[serde(borrow)]
    pub path: Text<'a>,
    /// The deletion vector of the removed file: the same path with another vector is another logical file.
    #[serde(default)]
    pub deletion_vector: Option<DeletionVectorDescriptor>,
}

/// The file format of a table. Spec: "Format Specification".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// `parquet`.
    pub provider: String,
    /// The provider's options.
    #[serde(default, deserialize_with = "or_default")]
    pub options: BTreeMap<String, Option<String>>,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            provider: "parquet".into(),
            options: BTreeMap::new(),
        }
    }
}

/// The table's metadata. Spec: "Change Metadata".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The table's own id.
    #[serde(default)]
    pub id: String,
    /// A name for people.
    #[serde(default)]
    pub name: Option<String>,
    /// What the table is for.
    #[serde(default)]
    pub description: Option<String>,
    /// How the files are encoded.
    #[serde(default, deserialize_with = "or_default")]
    pub format: Format,
    /// The schema as JSON. Some writers leave it out of a first metadata that a later one replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_string: Option<String>,
    /// Logical names.
    #[serde(default, deserialize_with = "or_default")]
    pub partition_columns: Vec<String>,
    /// Milliseconds since the epoch.
    #[serde(default)]
    pub created_time: Option<i64>,
    /// The table's properties.
    #[serde(default, deserialize_with = "configuration")]
    pub configuration: BTreeMap<String, String>,
}

impl Metadata {
    /// Whether a property is `true`.
    pub fn is_set(&self, property: &str) -> bool {
        self.configuration
            .get(property)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }
}

/// The protocol versions and table features that a reader and a writer must support. Spec: "Protocol Evolution".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    /// For readers.
    pub min_reader_version: i32,
    /// For writers.
    pub min_writer_version: i32,
    /// By name, from reader version 3 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<String>>,
    /// By name, from writer version 7 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<Vec<String>>,
}

/// The last transaction of an application. Spec: "Transaction Identifiers".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transaction {
    /// The application.
    pub app_id: String,
    /// Its own number.
    pub version: i64,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<i64>,
}

/// A feature's metadata of the table. Spec: "Domain Metadata".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainMetadata {
    /// The domain's name.
    pub domain: String,
    /// Any text.
    #[serde(default)]
    pub configuration: String,
    /// Whether it was removed (a tombstone).
    #[serde(default)]
    pub removed: bool,
}

/// A file of actions beside a checkpoint. Spec: "Sidecar File Information".
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sidecar {
    /// Its name within `_sidecars/`.
    pub path: String,
}

/// One line of a commit. More than one field is set only if a writer put two actions in one line.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line<'a> {
    /// `add`.
    #[serde(borrow, default)]
    pub add: Option<Add<'a>>,
    /// `remove`.
    #[serde(borrow, default)]
    pub remove: Option<Remove<'a>>,
    /// `metaData`.
    #[serde(default)]
    pub meta_data: Option<Metadata>,
    /// `protocol`.
    #[serde(default)]
    pub protocol: Option<Protocol>,
    /// `txn`.
    #[serde(default)]
    pub txn: Option<Transaction>,
    /// `domainMetadata`.
    #[serde(default)]
    pub domain_metadata: Option<DomainMetadata>,
    /// `commitInfo`: any JSON.
    #[serde(borrow, default)]
    pub commit_info: Option<&'a RawValue>,
    /// `sidecar`, in checkpoints.
    #[serde(default)]
    pub sidecar: Option<Sidecar>,
    /// `checkpointMetadata`, in checkpoints.
    #[serde(borrow, default)]
    pub checkpoint_metadata: Option<&'a RawValue>,
}

/// An action's fields as JSON for the log.
pub fn to_json(action: &impl Serialize) -> Result<String, crate::DeltaError> {
    serde_json::to_string(action).map_err(|error| crate::DeltaError::invalid(error.to_string()))
}

/// Deserialises null like a missing field, to the default.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn configuration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let found: Option<BTreeMap<String, Option<Text<'de>>>> = Option::deserialize(deserializer)?;
    let pairs = found.unwrap_or_default().into_iter();
    Ok(pairs
        .filter_map(|(key, value)| Some((key, value?.0.into_owned())))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_an_add_borrows_its_path() {
        let line = r#"{"add":{"path":"a","partitionValues":{"p":"1","q":null},"new":[{}],"size":3}}"#;
        let line: Line<'_> = serde_json::from_str(line).unwrap();
        let add = line.add.unwrap();
        assert!(matches!(add.path.0, Cow::Borrowed("a")));
        assert_eq!(add.partition_values.0.len(), 2);
        assert_eq!(add.size, Some(3));
    }

    #[test]
    fn test_commit_info_is_any_json() {
        for info in ["null", "3", "[1]", r#"{"timestamp":[]}"#, "\"x\""] {
            let line = format!(r#"{{"commitInfo":{info},"unknown":{{"a":1}}}}"#);
            serde_json::from_str::<Line<'_>>(&line).unwrap();
        }
    }

    #[test]
    fn test_metadata_needs_no_more_than_a_schema() {
        let metadata: Metadata =
            serde_json::from_str(r#"{"schemaString":"{}","configuration":null,"format":null,"partitionColumns":null}"#)
                .unwrap();
        assert_eq!(metadata.format.provider, "parquet");
    }
}
