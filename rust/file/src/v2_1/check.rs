//! What 2.1 and 2.2 files cannot hold.

use crate::error::{FileError, Result};
use crate::schema::Schema;
use crate::version::FileVersion;

/// Refuses what the version cannot hold, before any byte is written.
pub(crate) fn check_schema(_schema: &Schema, version: FileVersion) -> Result<()> {
    Err(FileError::unsupported(format!(
        "data_storage_version {version} cannot be written yet; use 2.0"
    )))
}
