//! Converts errors of committed storage to [`NativeError`].

use esker_graveler::GravelerError;
use esker_table::TableError;

use crate::error::NativeError;

/// Converts an error for Python.
pub(super) fn graveler(error: GravelerError) -> NativeError {
    let error = match error {
        GravelerError::InvalidArgument(message) => TableError::InvalidArgument(message),
        GravelerError::Unsupported { path, message } => TableError::Unsupported(format!("{path}: {message}")),
        GravelerError::Corrupt { path, message } => TableError::Corrupt { path, message },
        GravelerError::Store(error) => TableError::Store(error),
    };
    error.into()
}
