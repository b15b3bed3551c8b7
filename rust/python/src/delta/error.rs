//! Converts the errors of a Delta log to those of tables, which have classes in Python.

use esker_delta::DeltaError;
use esker_table::TableError;

use crate::error::NativeError;

/// Converts an error of the log for Python.
pub(super) fn raised(error: DeltaError) -> NativeError {
    NativeError::Table(match error {
        DeltaError::InvalidArgument(message) => TableError::InvalidArgument(message),
        DeltaError::Unsupported(message) => TableError::Unsupported(message),
        DeltaError::Corrupt { path, message } => TableError::Corrupt { path, message },
        DeltaError::NotFound(message) => TableError::NotFound(message),
        DeltaError::Expr(error) => TableError::Expr(error),
        DeltaError::Store(error) => TableError::Store(error),
        other => TableError::InvalidArgument(other.to_string()),
    })
}
