//! Gathering the values of each leaf until they fill a page.

use arrow_array::ArrayRef;

use crate::container::WrittenPage;
use crate::error::{FileError, Result};
use crate::schema::Schema;
use crate::version::FileVersion;

/// Values of one leaf that wait to be encoded as a page.
pub(crate) struct PendingPage {}

/// The columns of one top-level field while a file is written.
pub(crate) struct ColumnSink {}

/// A sink for each top-level field.
pub(crate) fn sinks(_schema: &Schema, version: FileVersion) -> Result<Vec<ColumnSink>> {
    Err(FileError::unsupported(format!(
        "data_storage_version {version} cannot be written yet; use 2.0"
    )))
}

impl PendingPage {
    /// Encodes the page. This is the expensive part, and needs nothing but the page.
    pub(crate) fn encode(self) -> Result<WrittenPage> {
        Err(FileError::unsupported(
            "pages of file version 2.1 cannot be written yet",
        ))
    }
}

impl ColumnSink {
    /// Takes values in; pages that they fill go to `full`. `row` is the top-level row of the first value.
    pub(crate) fn push(
        &mut self,
        _array: &ArrayRef,
        _row: u64,
        _page_bytes: u64,
        _full: &mut Vec<PendingPage>,
    ) -> Result<()> {
        Ok(())
    }

    /// Bytes that wait.
    pub(crate) fn pending_bytes(&self) -> u64 {
        0
    }

    /// Gives what waits up as pages.
    pub(crate) fn flush(&mut self, _full: &mut Vec<PendingPage>) {}

    /// Copies what waits in memory of others.
    pub(crate) fn own(&mut self) {}
}
