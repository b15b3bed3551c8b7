//! What can go wrong with a table, sorted by who must act.

use esker_expr::ExprError;
use esker_file::FileError;
use esker_merge::MergeError;
use esker_store::StoreError;

/// The result of an operation on a table.
pub type Result<T, E = TableError> = std::result::Result<T, E>;

/// What can go wrong with a table. A commit conflict is not among it: that is a [`Verdict`](crate::conflict::Verdict).
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The caller's arguments are invalid.
    #[error("{0}")]
    InvalidArgument(String),
    /// The table or the request needs something that this release cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// The bytes are not what the format promises.
    #[error("corrupt {path}: {message}")]
    Corrupt {
        /// The file, relative to the table's root, or the message that was decoded.
        path: String,
        /// Where and what.
        message: String,
    },
    /// A column that the table does not have.
    #[error("{message}")]
    UnknownColumn {
        /// The name as requested.
        column: String,
        /// The columns that exist.
        message: String,
    },
    /// The data's schema does not match the table's.
    #[error("column '{column}': expected {expected}, found {found}")]
    SchemaMismatch {
        /// The column; empty if it is about all columns.
        column: String,
        /// What the table has.
        expected: String,
        /// What the data have.
        found: String,
    },
    /// A version, fragment or column that does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The table exists already.
    #[error("{0}")]
    AlreadyExists(String),
    /// An error in a data file.
    #[error(transparent)]
    File(#[from] FileError),
    /// An error in a filter or an expression.
    #[error(transparent)]
    Expr(#[from] ExprError),
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<MergeError> for TableError {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::InvalidArgument(message) => Self::InvalidArgument(message),
            MergeError::Unsupported(message) => Self::Unsupported(message),
            MergeError::Corrupt { path, message } => Self::Corrupt { path, message },
            MergeError::Store(error) => Self::Store(error),
        }
    }
}

impl TableError {
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

    /// Whether rows take more memory than a read was allowed, and then how many times as much.
    pub(crate) fn too_large(&self) -> Option<u64> {
        match self {
            Self::File(FileError::TooLarge { bytes, most }) => Some(bytes.div_ceil((*most).max(1))),
            _ => None,
        }
    }

    /// A task that panicked or was cancelled: a bug.
    pub fn task_failed(task: &str, error: &impl std::fmt::Display) -> Self {
        Self::Store(StoreError::io(task, format!("a task failed: {error}")))
    }

    /// The same error; a corrupt message gets the path of the file that it lies in.
    #[must_use]
    pub fn in_file(self, path: &str) -> Self {
        match self {
            Self::Corrupt { path: part, message } if part != path => Self::Corrupt {
                path: path.to_owned(),
                message: format!("{part}: {message}"),
            },
            other => other,
        }
    }
}
