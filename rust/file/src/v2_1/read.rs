//! Reading rows of a 2.1 or 2.2 file.

use std::ops::Range;

use arrow_array::ArrayRef;

use crate::container::Container;
use crate::error::{FileError, Result};
use crate::schema::Field;

/// An open 2.1 or 2.2 file.
#[derive(Debug)]
pub(crate) struct LeafFile {
    container: Container,
}

/// The columns of a 2.1 or 2.2 file that a read wants.
#[derive(Debug, Clone)]
pub(crate) struct LeafColumns {}

impl LeafColumns {
    /// The columns' numbers.
    pub(crate) fn columns(&self) -> Vec<usize> {
        Vec::new()
    }
}

impl LeafFile {
    pub(crate) fn new(container: Container) -> LeafFile {
        LeafFile { container }
    }

    pub(crate) fn container(&self) -> &Container {
        &self.container
    }

    /// Finds the columns of `fields`; `column_of` maps the ids of leaves to columns, and the file's own order decides without it.
    pub(crate) fn project(
        &self,
        _fields: &[Field],
        _column_of: Option<&dyn Fn(i32) -> Option<usize>>,
    ) -> Result<LeafColumns> {
        Err(FileError::unsupported(format!(
            "file {}: file version {} cannot be read yet; expected 2.0",
            self.container.path(),
            self.container.version()
        )))
    }

    /// Reads sorted, separate, non-empty `rows`: an array for each field of the projection.
    pub(crate) async fn read(&self, _columns: &LeafColumns, _rows: &[Range<u64>]) -> Result<Vec<ArrayRef>> {
        Ok(Vec::new())
    }
}
