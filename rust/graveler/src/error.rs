//! What can go wrong with a repository's committed storage, sorted by who must act.

use esker_store::StoreError;

/// The result of an operation on committed storage.
pub type Result<T, E = GravelerError> = std::result::Result<T, E>;

/// What can go wrong with committed storage. A merge conflict is not among it: that is a value.
#[derive(Debug, thiserror::Error)]
pub enum GravelerError {
    /// The caller's arguments are invalid.
    #[error("{0}")]
    InvalidArgument(String),
    /// The bytes need a feature that this release does not support.
    #[error("{path}: {message}")]
    Unsupported {
        /// The table or what was decoded.
        path: String,
        /// What is missing and what to do.
        message: String,
    },
    /// The bytes are not what the format promises.
    #[error("corrupt {path}: {message}")]
    Corrupt {
        /// The table, relative to the repository's root, or what was decoded.
        path: String,
        /// Where and what.
        message: String,
    },
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl GravelerError {
    /// An invalid-argument error.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidArgument(message.into())
    }

    /// An error about bytes that a newer or another writer made.
    pub fn unsupported(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Unsupported {
            path: path.into(),
            message: message.into(),
        }
    }

    /// A corrupt-bytes error.
    pub fn corrupt(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.into(),
            message: message.into(),
        }
    }

    /// A task that panicked or was cancelled: a bug.
    pub fn task_failed(task: &str, error: &tokio::task::JoinError) -> Self {
        Self::Store(StoreError::io(task, format!("a task failed: {error}")))
    }

    /// The same error; a corrupt message gets the path of the file that it lies in.
    #[must_use]
    pub fn in_file(self, file: &str) -> Self {
        match self {
            Self::Corrupt { path, message } if path != file => Self::Corrupt {
                path: file.to_owned(),
                message: format!("{path}: {message}"),
            },
            Self::Unsupported { path, message } if path != file => Self::Unsupported {
                path: file.to_owned(),
                message: format!("{path}: {message}"),
            },
            other => other,
        }
    }
}
