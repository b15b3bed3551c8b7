//! What can go wrong with a store, sorted by who must act.

use std::error::Error;
use std::io;

/// The result of a store operation.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// An error of a store. Every kind names the object or the URI it is about; credentials never appear in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The caller asked for something that no store can do: a bad path, a range that ends before it starts.
    #[error("{path}: {message}")]
    InvalidArgument {
        /// The path or URI as it was given.
        path: String,
        /// What was expected, what was found, what to do.
        message: String,
    },
    /// This build or this store cannot do it: an unknown scheme, a file system without an atomic create.
    #[error("{path}: {message}")]
    Unsupported {
        /// The path or URI as it was given, without credentials.
        path: String,
        /// What is missing and what to do.
        message: String,
    },
    /// Bytes that a file or its footer promised are not there.
    #[error("{path}: {message}")]
    Corrupt {
        /// The object.
        path: String,
        /// What was expected and what was found.
        message: String,
    },
    /// No object of that name.
    #[error("{path}: {message}")]
    NotFound {
        /// The object.
        path: String,
        /// What was looked for.
        message: String,
    },
    /// An object of that name exists already.
    #[error("{path}: {message}")]
    AlreadyExists {
        /// The object.
        path: String,
        /// What exists.
        message: String,
    },
    /// The machine, the disk or the network failed, or refused.
    #[error("{path}: {message}")]
    Io {
        /// The object.
        path: String,
        /// What failed and what to do.
        message: String,
        /// The system's own error code (`errno`), where there is one.
        os_code: Option<i32>,
        /// The error underneath.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
}

impl StoreError {
    /// An error of kind invalid argument.
    pub fn invalid_argument(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::InvalidArgument {
            path: path.into(),
            message: message.into(),
        }
    }

    /// An error of kind unsupported.
    pub fn unsupported(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Unsupported {
            path: path.into(),
            message: message.into(),
        }
    }

    /// An error of kind corrupt.
    pub fn corrupt(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.into(),
            message: message.into(),
        }
    }

    /// An error of kind not found, for an object that is not there.
    pub fn not_found(path: impl Into<String>) -> Self {
        Self::NotFound {
            path: path.into(),
            message: "expected an object, found nothing of that name".into(),
        }
    }

    /// An error of kind IO without a cause of its own.
    pub fn io(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Io {
            path: path.into(),
            message: message.into(),
            os_code: None,
            source: None,
        }
    }

    /// The system's error, sorted into our kinds. `doing` is what was tried, as in "cannot {doing}".
    pub fn from_io(path: impl Into<String>, doing: &str, error: io::Error) -> Self {
        let path = path.into();
        let advice = match error.kind() {
            io::ErrorKind::NotFound => return Self::not_found(path),
            io::ErrorKind::AlreadyExists => {
                let message = format!("cannot {doing}: something of that name is there already");
                return Self::AlreadyExists { path, message };
            }
            io::ErrorKind::PermissionDenied => "check who owns it and its mode",
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space and try again",
            io::ErrorKind::ReadOnlyFilesystem => "the file system is mounted read-only",
            io::ErrorKind::NotADirectory => "a file stands where a folder is needed",
            io::ErrorKind::IsADirectory => "a folder stands where a file is needed",
            _ => "",
        };
        let separator = if advice.is_empty() { "" } else { "; " };
        let message = format!("cannot {doing}: {error}{separator}{advice}");
        Self::Io {
            path,
            message,
            os_code: error.raw_os_error(),
            source: Some(Box::new(error)),
        }
    }

    /// The kind's stable name, the same that Python shows.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InvalidArgument { .. } => "invalid_argument",
            Self::Unsupported { .. } => "unsupported",
            Self::Corrupt { .. } => "corrupt",
            Self::NotFound { .. } => "not_found",
            Self::AlreadyExists { .. } => "already_exists",
            Self::Io { .. } => "io",
        }
    }

    /// The object or URI that the error is about.
    pub fn path(&self) -> &str {
        match self {
            Self::InvalidArgument { path, .. }
            | Self::Unsupported { path, .. }
            | Self::Corrupt { path, .. }
            | Self::NotFound { path, .. }
            | Self::AlreadyExists { path, .. }
            | Self::Io { path, .. } => path,
        }
    }

    /// The message without the path in front of it.
    pub fn message(&self) -> &str {
        match self {
            Self::InvalidArgument { message, .. }
            | Self::Unsupported { message, .. }
            | Self::Corrupt { message, .. }
            | Self::NotFound { message, .. }
            | Self::AlreadyExists { message, .. }
            | Self::Io { message, .. } => message,
        }
    }

    /// The system's error code (`errno`) of an IO error, where there is one.
    pub fn os_code(&self) -> Option<i32> {
        match self {
            Self::Io { os_code, .. } => *os_code,
            _ => None,
        }
    }

    /// The same without the system's code, by which writers know that nothing was done.
    pub(crate) fn in_doubt(mut self) -> Self {
        if let Self::Io { os_code, .. } = &mut self {
            *os_code = None;
        }
        self
    }

    /// Whether there is no such object.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}
