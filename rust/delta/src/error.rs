//! What can go wrong with a Delta log, sorted by who must act.

use esker_expr::ExprError;
use esker_store::StoreError;

/// The result of an operation on a Delta log.
pub type Result<T, E = DeltaError> = std::result::Result<T, E>;

/// An error of a Delta log. It names the log file, and thereby the version.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeltaError {
    /// The caller's arguments are invalid.
    #[error("{0}")]
    InvalidArgument(String),
    /// The table needs a feature that this release does not support.
    #[error("{0}")]
    Unsupported(String),
    /// A file of the log is not what the protocol promises.
    #[error("corrupt {path}: {message}")]
    Corrupt {
        /// The file, relative to the table's root.
        path: String,
        /// Where and what.
        message: String,
    },
    /// A table or a version that does not exist.
    #[error("{0}")]
    NotFound(String),
    /// An error in a filter.
    #[error(transparent)]
    Expr(#[from] ExprError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl DeltaError {
    /// An error of kind invalid argument.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidArgument(message.into())
    }

    /// An error of kind unsupported.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }

    /// An error of kind corrupt.
    pub fn corrupt(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.into(),
            message: message.into(),
        }
    }

    /// An error of kind not found.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::NotFound(message.into())
    }

    /// Whether the error may be due to a log that changed since it was listed, so that listing again may help.
    pub(crate) fn is_of_listing(&self) -> bool {
        self.is_of_file() || matches!(self, Self::NotFound(_))
    }

    /// Whether a log file is corrupt or missing, so that another checkpoint may still lead to the same version.
    pub(crate) fn is_of_file(&self) -> bool {
        match self {
            Self::Corrupt { .. } => true,
            Self::Store(error) => error.is_not_found() || matches!(error, StoreError::Corrupt { .. }),
            _ => false,
        }
    }
}
