//! From errors of committed storage to those that the door knows.

use esker_graveler::GravelerError;
use esker_table::TableError;

use crate::error::NativeError;

/// The error as Python raises it.
pub(super) fn graveler(error: GravelerError) -> NativeError {
    let error = match error {
        GravelerError::InvalidArgument(message) => TableError::InvalidArgument(message),
        GravelerError::Unsupported { path, message } => TableError::Unsupported(format!("{path}: {message}")),
        GravelerError::Corrupt { path, message } => TableError::Corrupt { path, message },
        GravelerError::Store(error) => TableError::Store(error),
    };
    error.into()
}
