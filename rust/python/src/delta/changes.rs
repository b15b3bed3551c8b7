//! `read_changes`.

use std::sync::Arc;

use esker_delta::{ChangedFile, TableRoot};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::error::raised;
use crate::error::{python, Result};
use crate::signals::or_signal;
use crate::store::PyStore;

/// A file: its path, its partition values, its deletion vector.
type PyFile<'py> = (String, Option<Bound<'py, PyDict>>, Option<Bound<'py, PyDict>>);
/// A version: its number, whether it turns the feed on or off, its cdc files, adds and removes.
type PyChanges<'py> = (u64, Option<bool>, Vec<PyFile<'py>>, Vec<PyFile<'py>>, Vec<PyFile<'py>>);

/// The changes of the versions `first` to `last`.
#[pyfunction]
pub(super) fn read_changes<'py>(
    py: Python<'py>,
    store: &PyStore,
    root: &str,
    first: u64,
    last: u64,
) -> Result<Vec<PyChanges<'py>>> {
    let root = Arc::new(TableRoot::new(root));
    let found = or_signal(py, || esker_delta::read_changes(store.store(), &root, first, last))?;
    let found = found.map_err(raised)?.into_iter().map(|version| {
        Ok((
            version.version,
            version.is_enabled,
            files(py, version.cdc)?,
            files(py, version.adds)?,
            files(py, version.removes)?,
        ))
    });
    found.collect()
}

fn files(py: Python<'_>, files: Vec<ChangedFile>) -> Result<Vec<PyFile<'_>>> {
    files.into_iter().map(|file| as_python(py, file)).collect()
}

fn as_python(py: Python<'_>, file: ChangedFile) -> Result<PyFile<'_>> {
    let partition = match file.partition {
        Some(values) => {
            let partition = PyDict::new(py);
            for (name, value) in values {
                partition.set_item(name, value).map_err(python)?;
            }
            Some(partition)
        }
        None => None,
    };
    let vector = match file.deletion_vector {
        Some(found) => {
            let vector = PyDict::new(py);
            let set = |name: &str, value: Option<i64>| vector.set_item(name, value).map_err(python);
            vector.set_item("storageType", found.storage_type).map_err(python)?;
            vector
                .set_item("pathOrInlineDv", found.path_or_inline_dv)
                .map_err(python)?;
            set("offset", found.offset)?;
            set("sizeInBytes", Some(found.size_in_bytes))?;
            set("cardinality", Some(found.cardinality))?;
            Some(vector)
        }
        None => None,
    };
    Ok((file.path, partition, vector))
}
