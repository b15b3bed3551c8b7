//! Which blob columns a file version can hold.

use arrow_schema::DataType;

use super::prepared;
use crate::error::{FileError, Result};
use crate::schema::{BlobKind, Field, Schema};
use crate::version::FileVersion;

/// Refuses blob columns that the version cannot hold. Those whose bytes lie beside the file already are of use where the caller has chosen
/// the file's name.
pub(crate) fn check_schema(schema: &Schema, version: FileVersion, may_be_prepared: bool) -> Result<()> {
    fn check(field: &Field, path: &str, version: FileVersion, in_list: bool, may_be_prepared: bool) -> Result<()> {
        if field.is_blob() {
            let data_type = field.data_type()?;
            if may_be_prepared && version == FileVersion::V2_2 && prepared::is_prepared(&data_type) {
                return Ok(());
            }
            return match refusal(field, &data_type, version, in_list) {
                None => Ok(()),
                Some(what) => Err(FileError::UnsupportedColumn {
                    column: path.to_string(),
                    data_type: data_type.to_string(),
                    version,
                    what: what.to_string(),
                }),
            };
        }
        let in_list = in_list || field.is_list();
        let mut children = field.children.iter();
        children.try_for_each(|child| {
            let path = format!("{path}.{}", child.name);
            check(child, &path, version, in_list, may_be_prepared)
        })
    }
    let mut fields = schema.fields.iter();
    fields.try_for_each(|field| check(field, &field.name, version, false, may_be_prepared))
}

/// Why a blob column cannot be written in a version; `None` if it can. `in_list`: it lies within a list.
fn refusal(field: &Field, data_type: &DataType, version: FileVersion, in_list: bool) -> Option<&'static str> {
    match (field.blob_kind()?, version) {
        (BlobKind::V1, FileVersion::V0_1) => Some("blobs, later versions can; leave out lance-encoding:blob"),
        (BlobKind::V1, _) if data_type != &DataType::LargeBinary => {
            Some("it as a blob (lance-encoding:blob); use large_binary")
        }
        // Unreadable: the ends of the lists would be lost.
        (BlobKind::V1, FileVersion::V2_1) if in_list => Some("lists of blobs; versions 2.0 and 2.2 can"),
        (BlobKind::V1, FileVersion::V2_2) if in_list => Some("lists of blobs of that kind; use lance.blob.v2"),
        (BlobKind::V1, _) => None,
        (BlobKind::V2, FileVersion::V2_2) if !is_logical(data_type) => {
            Some("it as lance.blob.v2; use a struct of data (large_binary) and uri (string), and position and size (uint64) if wanted")
        }
        (BlobKind::V2, FileVersion::V2_2) => None,
        (BlobKind::V2, _) => Some("blobs of kind lance.blob.v2, version 2.2 can; use large_binary"),
    }
}

fn is_logical(data_type: &DataType) -> bool {
    let DataType::Struct(fields) = data_type else {
        return false;
    };
    let wanted = [
        ("data", DataType::LargeBinary),
        ("uri", DataType::Utf8),
        ("position", DataType::UInt64),
        ("size", DataType::UInt64),
    ];
    let same = |(field, (name, data_type)): (&arrow_schema::FieldRef, &(&str, DataType))| {
        field.name() == name && field.data_type() == data_type
    };
    matches!(fields.len(), 2 | 4) && fields.iter().zip(&wanted).all(same)
}
