//! Checks whether this release can read a table. Spec: "Table Features" and "Requirements for Readers".

use crate::actions::{Metadata, Protocol};
use crate::error::{DeltaError, Result};

/// The newest reader version of the protocol.
const NEWEST_READER: i32 = 3;

/// The supported reader features.
pub const READER_FEATURES: [&str; 7] = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
];

/// Reader features that only add column types: a table with such a feature is readable, but a column of such a type is refused by name when
/// it is read.
pub const TYPE_FEATURES: [&str; 5] = [
    "geospatial",
    "variantShredding",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
];

/// An error if a table needs an unsupported reader version or feature. Writer features are ignored.
pub fn check_readable(protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    let version = protocol.min_reader_version;
    if version > NEWEST_READER {
        return Err(DeltaError::unsupported(format!(
            "the table asks for reader version {version} of the Delta protocol, found support for versions up to {NEWEST_READER}; \
             upgrade esker to read it"
        )));
    }
    if version == NEWEST_READER {
        let asked = protocol.reader_features.iter().flatten();
        let unknown: Vec<&str> = asked
            .map(String::as_str)
            .filter(|feature| !READER_FEATURES.contains(feature) && !TYPE_FEATURES.contains(feature))
            .collect();
        if !unknown.is_empty() {
            return Err(DeltaError::unsupported(format!(
                "the table asks for the reader features {}, which this release does not have; upgrade esker to read it",
                unknown.join(", ")
            )));
        }
    }
    let provider = &metadata.format.provider;
    if !provider.eq_ignore_ascii_case("parquet") {
        return Err(DeltaError::unsupported(format!(
            "expected a table of Parquet files, found format provider {provider}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<()> {
        let metadata = serde_json::from_str(r#"{"schemaString":""}"#).unwrap();
        check_readable(&serde_json::from_str(text).unwrap(), &metadata)
    }

    #[test]
    fn test_unknown_reader_features_are_refused_by_name() {
        let error = check(
            r#"{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors","catalogManaged","variantType","x"]}"#,
        );
        let message = error.unwrap_err().to_string();
        assert!(
            message.contains("features catalogManaged, x,") && message.contains("upgrade"),
            "{message}"
        );
    }

    #[test]
    fn test_features_of_writers_are_nothing_to_readers() {
        check(r#"{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["rowTracking","x"]}"#).unwrap();
        check(r#"{"minReaderVersion":1,"minWriterVersion":99}"#).unwrap();
        let message = check(r#"{"minReaderVersion":4,"minWriterVersion":8}"#)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("reader version 4") && message.contains("upgrade"),
            "{message}"
        );
    }
}
