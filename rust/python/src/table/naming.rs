//! Names of manifest files.

use esker_table::naming::{self, NamingScheme};
use esker_table::TableError;
use pyo3::prelude::*;

use crate::error::Result;

/// The file name of a version within `_versions/`.
#[pyfunction]
pub(crate) fn manifest_name(version: u64, scheme: &str) -> Result<String> {
    let scheme = match scheme {
        "V1" => NamingScheme::V1,
        "V2" => NamingScheme::V2,
        other => return Err(TableError::invalid(format!("expected scheme V1 or V2, found {other:?}")).into()),
    };
    Ok(naming::manifest_name(version, scheme))
}

/// The version and the scheme of a file name within `_versions/`.
#[pyfunction]
pub(crate) fn parse_manifest_name(name: &str) -> Option<(u64, &'static str)> {
    naming::parse_manifest_name(name).map(|(version, scheme)| {
        let scheme = match scheme {
            NamingScheme::V1 => "V1",
            NamingScheme::V2 => "V2",
        };
        (version, scheme)
    })
}
