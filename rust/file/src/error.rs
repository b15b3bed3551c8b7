//! What can go wrong with a data file, sorted by who must act.

use esker_store::StoreError;

/// The result of an operation on a data file.
pub type Result<T> = std::result::Result<T, FileError>;

/// What can go wrong with a data file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The caller's arguments are invalid.
    #[error("{0}")]
    InvalidArgument(String),
    /// The file or the request needs a feature that this release does not support.
    #[error("{0}")]
    Unsupported(String),
    /// A column of a type, or with nulls, that the file version cannot hold.
    #[error("column '{column}' of type {data_type}: file version {version} cannot hold {what}")]
    UnsupportedColumn {
        /// The column's name, dotted below a struct or list.
        column: String,
        /// Its Arrow type.
        data_type: String,
        /// The file version.
        version: crate::version::FileVersion,
        /// What it cannot hold, and what to do.
        what: String,
    },
    /// Nulls in a non-nullable column, or below one.
    #[error(
        "column '{column}': expected no nulls, found {count} nulls: the column is not nullable and contains null values"
    )]
    UnexpectedNulls {
        /// The column's name, dotted below a struct or list.
        column: String,
        /// How many.
        count: usize,
    },
    /// A blob of an object that the table does not keep, where nobody said that it may stay there.
    #[error(
        "column '{column}': the blob at '{uri}' lies outside registered external bases; pass allow_external_blob_outside_bases=True to leave \
         it there, or external_blob_mode='ingest' to copy it"
    )]
    OutsideBases {
        /// The column's name.
        column: String,
        /// The object.
        uri: String,
    },
    /// The rows take more memory than the read was allowed.
    #[error(
        "the rows take about {bytes} bytes of memory, more than the {most} of this read; read fewer rows at a time"
    )]
    TooLarge {
        /// About how many.
        bytes: u64,
        /// How many the read was allowed.
        most: u64,
    },
    /// The bytes are not what the format promises.
    #[error("corrupt file {path}: {message}")]
    Corrupt {
        /// The file, relative to its store.
        path: String,
        /// Where and what.
        message: String,
    },
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FileError {
    /// A corrupt-file error.
    pub fn corrupt(path: &str, message: impl Into<String>) -> Self {
        FileError::Corrupt {
            path: path.to_string(),
            message: message.into(),
        }
    }

    /// An invalid-argument error.
    pub fn invalid(message: impl Into<String>) -> Self {
        FileError::InvalidArgument(message.into())
    }

    /// An unsupported-feature error.
    pub fn unsupported(message: impl Into<String>) -> Self {
        FileError::Unsupported(message.into())
    }
}
