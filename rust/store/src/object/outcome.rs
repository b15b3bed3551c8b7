//! What an object store's error means: whose fault it is, and whether the request may have had its effect all the same.

use object_store::Error;

use crate::error::StoreError;

/// The error, sorted into our kinds.
pub(super) fn sort_error(path: String, doing: &str, error: Error) -> StoreError {
    match error {
        Error::NotFound { .. } => StoreError::not_found(path),
        Error::AlreadyExists { .. } | Error::Precondition { .. } => {
            let message = format!("cannot {doing}: an object of that name is there already");
            StoreError::AlreadyExists { path, message }
        }
        Error::InvalidPath { source } => StoreError::invalid_argument(path, source.to_string()),
        Error::NotSupported { source } => StoreError::unsupported(path, format!("cannot {doing}: {source}")),
        Error::NotImplemented { operation, implementer } => {
            StoreError::unsupported(path, format!("cannot {doing}: {implementer} has no {operation}"))
        }
        error => {
            let message = match &error {
                Error::PermissionDenied { .. } => {
                    format!("cannot {doing}: permission denied; check the credentials' rights")
                }
                Error::Unauthenticated { .. } => format!("cannot {doing}: not signed in; check the credentials"),
                other => format!("cannot {doing}: {other}"),
            };
            StoreError::Io {
                path,
                message,
                os_code: None,
                source: Some(Box::new(error)),
            }
        }
    }
}

/// Whether the request may have had its effect although an error came back.
pub(super) fn is_ambiguous(error: &Error) -> bool {
    !matches!(
        error,
        Error::NotFound { .. }
            | Error::InvalidPath { .. }
            | Error::NotSupported { .. }
            | Error::NotImplemented { .. }
            | Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::UnknownConfigurationKey { .. }
    )
}
