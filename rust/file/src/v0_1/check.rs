//! What a 0.1 file cannot hold.

use crate::error::{FileError, Result};
use crate::schema::Schema;

/// Refuses what the version cannot hold, before any byte is written.
pub(crate) fn check_schema(_schema: &Schema) -> Result<()> {
    Err(FileError::unsupported(
        "data_storage_version 0.1 cannot be written yet; use 2.0",
    ))
}
