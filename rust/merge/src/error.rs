//! What can go wrong with a join, sorted by who must act.

use esker_store::StoreError;

/// The result of an operation on rows that are joined.
pub type Result<T, E = MergeError> = std::result::Result<T, E>;

/// What can go wrong with a join.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The caller's arguments or rows are invalid.
    #[error("{0}")]
    InvalidArgument(String),
    /// The request needs something that this release cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// Bytes on disk are not what was written.
    #[error("corrupt {path}: {message}")]
    Corrupt {
        /// The file.
        path: String,
        /// Where and what.
        message: String,
    },
    /// The disk refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MergeError {
    /// A corrupt-bytes error.
    pub fn corrupt(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.into(),
            message: message.into(),
        }
    }

    /// An invalid-argument error.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidArgument(message.into())
    }

    /// An unsupported-feature error.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }
}
