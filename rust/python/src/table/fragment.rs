//! `Fragment`.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use esker_table::fragment::{DeletionFile, DeletionFileType, Fragment};
use esker_table::row_ids::{LineageField, LineageForm, RowIdSequence};
use esker_table::TableError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3_arrow::PyArray;

use super::data_file::PyDataFile;
use crate::arrow::row_numbers;
use crate::error::Result;

/// Read version, id, type, deleted rows, base path.
type DeletionParts = (u64, u64, &'static str, u64, Option<u32>);

fn sequence_named(name: &str) -> Result<LineageField> {
    let known = LineageField::ALL.into_iter().find(|field| field.column_name() == name);
    Ok(known.ok_or_else(|| TableError::invalid(format!("expected the column of a sequence, found '{name}'")))?)
}

fn form_name(form: LineageForm) -> &'static str {
    match form {
        LineageForm::Inline => "inline",
        LineageForm::External => "external",
        LineageForm::Spilled => "spilled",
    }
}

const ARRAY: &str = "array";
const BITMAP: &str = "bitmap";

/// A horizontal slice of a table.
#[pyclass(name = "Fragment", module = "esker._native.table", frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct PyFragment(pub(crate) Fragment);

#[pymethods]
impl PyFragment {
    #[new]
    #[pyo3(signature = (id = 0, *, files, physical_rows))]
    fn new(id: u64, files: Vec<PyDataFile>, physical_rows: u64) -> Self {
        let files = files.into_iter().map(|f| f.0).collect();
        PyFragment(Fragment::new(files, physical_rows).with_id(id))
    }

    #[staticmethod]
    fn decode(data: &[u8]) -> Result<Self> {
        Ok(PyFragment(Fragment::decode(&Bytes::copy_from_slice(data))?))
    }

    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("decode")?, (slf.get().encode(slf.py()),)))
    }

    fn with_id(&self, id: u64) -> Self {
        PyFragment(self.0.clone().with_id(id))
    }

    fn with_file(&self, file: PyDataFile) -> Self {
        PyFragment(self.0.clone().with_file(file.0))
    }

    fn with_replacing_file(&self, file: PyDataFile) -> Self {
        PyFragment(self.0.clone().with_replacing_file(file.0))
    }

    #[pyo3(signature = (read_version, id, file_type, num_deleted_rows, base_id = None))]
    fn with_deletion_file(
        &self,
        read_version: u64,
        id: u64,
        file_type: &str,
        num_deleted_rows: u64,
        base_id: Option<u32>,
    ) -> Result<Self> {
        let file_type = match file_type {
            ARRAY => DeletionFileType::Arrow,
            BITMAP => DeletionFileType::Bitmap,
            other => {
                let message = format!("expected the deletion file type '{ARRAY}' or '{BITMAP}', found '{other}'");
                return Err(TableError::invalid(message).into());
            }
        };
        let file = DeletionFile {
            file_type,
            read_version,
            id,
            num_deleted_rows: Some(num_deleted_rows).filter(|rows| *rows != 0),
            base_id,
        };
        Ok(PyFragment(self.0.clone().with_deletion_file(Some(file))))
    }

    fn with_row_ids(&self, py: Python<'_>, ids: PyArray) -> Result<Self> {
        let ids = row_numbers(&ids)?;
        let ids = py.detach(|| RowIdSequence::from_ids(ids.values()));
        Ok(PyFragment(self.0.clone().with_row_ids(&ids)))
    }

    fn stored_lineage<'py>(
        &self,
        py: Python<'py>,
        sequence: &str,
    ) -> Result<Option<(&'static str, Bound<'py, PyBytes>)>> {
        let stored = self.0.stored_lineage(sequence_named(sequence)?);
        Ok(stored.map(|(form, payload)| (form_name(form), PyBytes::new(py, &payload))))
    }

    fn with_stored_lineage(&self, sequence: &str, form: &str, payload: &[u8]) -> Result<Self> {
        let forms = [LineageForm::Inline, LineageForm::External, LineageForm::Spilled];
        let found = forms.into_iter().find(|known| form_name(*known) == form);
        let found = found.ok_or_else(|| TableError::invalid(format!("expected a form of lineage, found '{form}'")))?;
        let sequence = sequence_named(sequence)?;
        Ok(PyFragment(self.0.clone().with_stored_lineage(sequence, found, payload)))
    }

    fn inline_row_ids(&self) -> Result<Vec<u64>> {
        Ok(self.0.inline_row_ids()?)
    }

    #[getter]
    fn id(&self) -> u64 {
        self.0.id()
    }

    #[getter]
    fn files(&self) -> Vec<PyDataFile> {
        self.0.files().iter().cloned().map(PyDataFile).collect()
    }

    #[getter]
    fn physical_rows(&self) -> u64 {
        self.0.physical_rows().unwrap_or(0)
    }

    #[getter]
    fn num_deletions(&self) -> u64 {
        self.0.num_deletions().unwrap_or(0)
    }

    #[getter]
    fn num_rows(&self) -> Option<u64> {
        self.0.num_rows()
    }

    #[getter]
    fn deletion_file(&self) -> Option<String> {
        self.0.deletion_file().map(|file| file.location(self.0.id()))
    }

    #[getter]
    fn deletion_parts(&self) -> Option<DeletionParts> {
        let file = self.0.deletion_file()?;
        let file_type = match file.file_type {
            DeletionFileType::Arrow => ARRAY,
            DeletionFileType::Bitmap => BITMAP,
        };
        let rows = file.num_deleted_rows.unwrap_or(0);
        Some((file.read_version, file.id, file_type, rows, file.base_id))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<PyFragment>()
            .is_ok_and(|other| other.get().0.encode() == self.0.encode())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.encode().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!(
            "Fragment(id={}, physical_rows={}, files={})",
            self.0.id(),
            self.physical_rows(),
            self.0.files().len()
        )
    }
}
