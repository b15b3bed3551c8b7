//! Converts Rust errors to the classes of `esker.exceptions`, with their facts as attributes.

use esker_expr::ExprError;
use esker_file::FileError;
use esker_store::StoreError;
use esker_table::TableError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The result of a call from Python.
pub(crate) type Result<T> = std::result::Result<T, NativeError>;

/// The error of a call from Python.
#[derive(Debug)]
pub(crate) enum NativeError {
    Table(TableError),
    Python(PyErr),
}

impl<E: Into<TableError>> From<E> for NativeError {
    fn from(error: E) -> Self {
        NativeError::Table(error.into())
    }
}

impl From<NativeError> for PyErr {
    fn from(error: NativeError) -> Self {
        match error {
            NativeError::Python(error) => error,
            NativeError::Table(error) => Python::attach(|py| to_python(py, &error)),
        }
    }
}

/// A Python error as it is.
pub(crate) fn python(error: impl Into<PyErr>) -> NativeError {
    NativeError::Python(error.into())
}

/// The Python class, the message and the attributes of an error.
struct Raised {
    class: &'static str,
    facts: Vec<(&'static str, String)>,
}

impl Raised {
    fn new(class: &'static str) -> Self {
        Raised {
            class,
            facts: Vec::new(),
        }
    }

    fn fact(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.facts.push((name, value));
        }
        self
    }
}

fn of_table(error: &TableError) -> Raised {
    match error {
        TableError::InvalidArgument(_) => Raised::new("InvalidArgumentError"),
        TableError::Unsupported(_) => Raised::new("UnsupportedError"),
        TableError::Corrupt { path, .. } => Raised::new("CorruptFileError").fact("path", path),
        TableError::UnknownColumn { column, .. } => Raised::new("InvalidArgumentError").fact("column", column),
        TableError::SchemaMismatch {
            column,
            expected,
            found,
        } => Raised::new("SchemaMismatchError")
            .fact("column", column)
            .fact("expected", expected)
            .fact("found", found),
        TableError::NotFound(_) => Raised::new("NotFoundError"),
        TableError::AlreadyExists(_) => Raised::new("AlreadyExistsError"),
        TableError::File(error) => of_file(error),
        TableError::Expr(ExprError::InvalidArgument(_)) => Raised::new("InvalidArgumentError"),
        TableError::Expr(ExprError::Unsupported(_)) => Raised::new("UnsupportedError"),
        TableError::Store(error) => of_store(error),
    }
}

fn of_file(error: &FileError) -> Raised {
    match error {
        FileError::InvalidArgument(_) => Raised::new("InvalidArgumentError"),
        FileError::Unsupported(_) => Raised::new("UnsupportedError"),
        FileError::UnsupportedColumn {
            column,
            data_type,
            version,
            ..
        } => Raised::new("UnsupportedError")
            .fact("column", column)
            .fact("type", data_type)
            .fact("file_version", version.to_string()),
        FileError::TooLarge { .. } => Raised::new("InvalidArgumentError"),
        FileError::UnexpectedNulls { column, count } => Raised::new("SchemaMismatchError")
            .fact("column", column)
            .fact("expected", "no nulls, the column is not nullable")
            .fact("found", format!("{count} nulls")),
        FileError::OutsideBases { column, uri } => {
            Raised::new("OutsideBasesError").fact("column", column).fact("uri", uri)
        }
        FileError::Corrupt { path, .. } => Raised::new("CorruptFileError").fact("path", path),
        FileError::Store(error) => of_store(error),
    }
}

fn of_store(error: &StoreError) -> Raised {
    match error {
        StoreError::InvalidArgument { path, .. } => Raised::new("InvalidArgumentError").fact("path", path),
        StoreError::Unsupported { path, .. } => Raised::new("UnsupportedError").fact("path", path),
        StoreError::Corrupt { path, .. } => Raised::new("CorruptFileError").fact("path", path),
        StoreError::NotFound { path, .. } => Raised::new("NotFoundError").fact("path", path),
        StoreError::AlreadyExists { path, .. } => Raised::new("AlreadyExistsError").fact("path", path),
        StoreError::Io { path, .. } => Raised::new("IOFailedError").fact("path", path),
        _ => Raised::new("IOFailedError"),
    }
}

/// The operating system's own code of an error.
fn os_code(error: &TableError) -> Option<i32> {
    match error {
        TableError::Store(error) | TableError::File(FileError::Store(error)) => error.os_code(),
        _ => None,
    }
}

/// The Python exception that an error becomes.
pub(crate) fn to_python(py: Python<'_>, error: &TableError) -> PyErr {
    let raised = of_table(error);
    let made = (|| {
        let class = py.import("esker.exceptions")?.getattr(raised.class)?;
        let facts = PyDict::new(py);
        for (name, value) in &raised.facts {
            facts.set_item(name, value)?;
        }
        if let Some(code) = os_code(error) {
            facts.set_item("errno", code)?;
        }
        class.call((error.to_string(),), Some(&facts))
    })();
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}
