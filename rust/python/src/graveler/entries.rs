//! `entry_identity`, `decode_entry`, `decode_range`.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use esker_graveler::entry::Entry;
use esker_graveler::metarange::RangeInfo;
use esker_graveler::value::Value;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::batch::PyBatch;
use super::entry_columns;
use super::error::graveler;
use crate::error::Result;

/// The identity of an entry, by which objects are compared.
#[pyfunction]
#[pyo3(signature = (*, size_bytes, checksum, metadata = BTreeMap::new(), content_type = ""))]
pub(crate) fn entry_identity<'py>(
    py: Python<'py>,
    size_bytes: i64,
    checksum: String,
    metadata: BTreeMap<String, String>,
    content_type: &str,
) -> Bound<'py, PyBytes> {
    let entry = Entry {
        size: size_bytes,
        e_tag: checksum,
        metadata,
        content_type: content_type.to_owned(),
        ..Entry::default()
    };
    PyBytes::new(py, &entry.identity())
}

/// Decodes one entry from a record's data.
#[pyfunction]
pub(crate) fn decode_entry(data: &[u8]) -> Result<PyBatch> {
    let value = Value { identity: &[], data }.encode();
    let columns = entry_columns::entries(std::iter::once(Some(value.as_slice()))).map_err(graveler)?;
    Ok(PyBatch(RecordBatch::from(columns)))
}

/// Decodes a metarange's record of a range.
#[pyfunction]
pub(crate) fn decode_range<'py>(
    py: Python<'py>,
    data: &[u8],
) -> Result<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, u64, u64)> {
    let said = RangeInfo::decode_data(data).map_err(graveler)?;
    Ok((PyBytes::new(py, &said.0), PyBytes::new(py, &said.1), said.2, said.3))
}
