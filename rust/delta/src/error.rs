//! What can go wrong with a Delta log, sorted by who must act.

use esker_expr::ExprError;
use esker_store::StoreError;

/// The result of an operation on a Delta log.
pub type Result<T, E = DeltaError> = std::result::Result<T, E>;

/// An error of a Delta log. The file that it is about is named, and with it the version.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeltaError {
    /// The caller asked for something that makes no sense.
    #[error("{0}")]
    InvalidArgument(String),
    /// The table needs something that this release cannot do.
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
    /// A table or a version that is not there.
    #[error("{0}")]
    NotFound(String),
    /// A filter is at fault.
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

    /// Whether the log may have become another one since it was listed.
    pub(crate) fn is_of_listing(&self) -> bool {
        self.is_of_file() || matches!(self, Self::NotFound(_))
    }

    /// Whether another way to the same version may still work: a file of this one is broken or gone.
    pub(crate) fn is_of_file(&self) -> bool {
        match self {
            Self::Corrupt { .. } => true,
            Self::Store(error) => error.is_not_found() || matches!(error, StoreError::Corrupt { .. }),
            _ => false,
        }
    }
}
