//! What field metadata ask of strings and binary, or the goal of a write where they ask for nothing.

use arrow_schema::DataType;
use esker_proto::lance::encodings as pb;

use crate::error::Result;
use crate::goal::Goal;
use crate::schema::{Field, Schema};

const SCHEME_KEY: &str = "lance-encoding:compression";
const LEVEL_KEY: &str = "lance-encoding:compression-level";

/// How the bytes of strings and binary are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// All bytes of the page at once: one value costs the whole page.
    Zstd { level: Option<i32> },
    /// The same, faster and larger.
    Lz4,
    /// Value by value.
    Fsst,
}

/// A schema whose fields ask for what the goal means: small files have strings and binary in zstd.
pub(crate) fn with_goal(schema: &Schema, goal: Goal) -> Schema {
    fn visit(field: &mut Field) {
        if !field.is_blob() && !field.is_packed_struct() {
            field.metadata.entry(SCHEME_KEY.to_string()).or_insert("zstd".into());
            field.children.iter_mut().for_each(visit);
        }
    }
    let mut schema = schema.clone();
    if goal == Goal::Small {
        schema.fields.iter_mut().for_each(visit);
    }
    schema
}

impl Compression {
    /// What the metadata of a field ask for; nothing for types and schemes that version 2.0 leaves as they are.
    pub(crate) fn of(field: &Field, data_type: &DataType) -> Option<Compression> {
        let is_text = matches!(
            data_type,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
        );
        let scheme = field.metadata_text(SCHEME_KEY).filter(|_| is_text)?;
        match scheme {
            "zstd" => Some(Compression::Zstd {
                level: field.metadata_text(LEVEL_KEY).and_then(|level| level.parse().ok()),
            }),
            "lz4" => Some(Compression::Lz4),
            "fsst" => Some(Compression::Fsst),
            _ => None,
        }
    }

    /// Compresses a whole buffer and says how; nothing for a compression that goes value by value.
    pub(crate) fn compress(self, bytes: &[u8]) -> Result<Option<(Vec<u8>, pb::Compression)>> {
        let (scheme, level) = match self {
            Compression::Zstd { level } => ("zstd", level),
            Compression::Lz4 => ("lz4", None),
            Compression::Fsst => return Ok(None),
        };
        let mut out = Vec::new();
        esker_codec::general::compress(scheme, level, bytes, &mut out)
            .map_err(|e| crate::error::FileError::invalid(e.to_string()))?;
        let scheme = scheme.to_string();
        Ok(Some((out, pb::Compression { scheme, level })))
    }
}
