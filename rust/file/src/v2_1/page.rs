//! The identity of a page, and errors that name it.

use std::sync::Arc;

use esker_codec::CodecError;
use esker_proto::lance::encodings21 as pb;

use crate::error::{FileError, Result};
use crate::v2_1::builder::ColumnName;
use crate::version::FileVersion;

/// The place of a page: file, column and number.
#[derive(Debug, Clone)]
pub(crate) struct PageId {
    pub(crate) path: Arc<str>,
    pub(crate) version: FileVersion,
    pub(crate) column: usize,
    pub(crate) number: usize,
}

impl PageId {
    /// An error that says in which page the bytes are wrong.
    pub(crate) fn corrupt(&self, message: impl std::fmt::Display) -> FileError {
        FileError::corrupt(
            &self.path,
            format!("column {}, page {}: {message}", self.column, self.number),
        )
    }

    /// A kernel's error, with the page's name where the bytes are to blame.
    pub(crate) fn kernel(&self, error: CodecError) -> FileError {
        match error {
            CodecError::Corrupt(message) => self.corrupt(message),
            CodecError::TooLarge(message) => FileError::invalid(message),
            CodecError::Unsupported(message) => self.unsupported(message),
        }
    }

    /// Something that this release does not read.
    pub(crate) fn unsupported(&self, what: impl std::fmt::Display) -> FileError {
        FileError::unsupported(format!(
            "file {}, column {}, page {}: file version {}: {what}",
            self.path, self.column, self.number, self.version
        ))
    }

    /// Refuses the compression of a buffer beside the compressions of its values: no known writer uses it.
    pub(crate) fn no_buffer_compression(&self, found: Option<&pb::BufferCompression>) -> Result<()> {
        match found {
            None => Ok(()),
            Some(_) => Err(self.unsupported("compression of a buffer cannot be read yet; a newer esker may read it")),
        }
    }

    /// The page's column, for errors that are of no page in particular.
    pub(crate) fn column_name(&self) -> ColumnName {
        ColumnName {
            path: self.path.clone(),
            column: self.column,
        }
    }

    /// The error for a message without a part that it must have.
    pub(crate) fn missing(&self, what: &str) -> FileError {
        self.corrupt(format!("expected {what} in the page's description, found none"))
    }
}

/// A number of the file as a length in memory.
pub(crate) fn to_len(at: &PageId, value: u64) -> Result<usize> {
    usize::try_from(value).map_err(|_| at.corrupt(format!("expected a length that fits in memory, found {value}")))
}
