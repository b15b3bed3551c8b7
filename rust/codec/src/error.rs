//! What can go wrong in a kernel.

/// The result of a kernel.
pub type Result<T> = std::result::Result<T, CodecError>;

/// What can go wrong in a kernel. The caller adds the file and the page that the bytes came from.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CodecError {
    /// The bytes are not what the encoding promises.
    #[error("{0}")]
    Corrupt(String),
    /// The values do not fit the type that was asked for.
    #[error("{0}")]
    TooLarge(String),
    /// A scheme that this release does not know.
    #[error("{0}")]
    Unsupported(String),
}

impl CodecError {
    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        CodecError::Corrupt(message.into())
    }
}
