//! From descriptions to the places where the bytes are.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef};

use crate::error::{FileError, Result};
use crate::schema::BlobKind;

/// What holds a blob's bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlobObject {
    /// An object of the store that holds the data file.
    Stored(Arc<str>),
    /// An object of any store, by its URI.
    External(Arc<str>),
}

/// Where one blob lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobLocation {
    /// What holds it.
    pub object: BlobObject,
    /// Its first byte there.
    pub start: u64,
    /// Its size in bytes; none for all of an external object from `start` on.
    pub size: Option<u64>,
}

/// The data file that descriptions come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Home<'a> {
    /// Its path in its store.
    pub(crate) path: &'a str,
    /// Its size in bytes.
    pub(crate) size: u64,
}

impl Home<'_> {
    pub(crate) fn corrupt(&self, message: impl std::fmt::Display) -> FileError {
        FileError::corrupt(self.path, message.to_string())
    }
}

/// Where the blobs lie that `descriptions` (with their nulls) describe; none for a null.
pub(crate) fn locate(home: Home<'_>, kind: BlobKind, descriptions: &ArrayRef) -> Result<Vec<Option<BlobLocation>>> {
    match kind {
        BlobKind::V1 => locate_v1(home, descriptions),
        BlobKind::V2 => Err(FileError::unsupported(format!(
            "file {}: blobs of kind lance.blob.v2 cannot be read yet; a newer esker may read them",
            home.path
        ))),
    }
}

fn locate_v1(home: Home<'_>, descriptions: &ArrayRef) -> Result<Vec<Option<BlobLocation>>> {
    let fields = descriptions
        .as_struct_opt()
        .ok_or_else(|| home.corrupt("expected descriptions of blobs, found other values"))?;
    let numbers = |index: usize| {
        let column = fields.columns().get(index)?;
        column.as_primitive_opt::<UInt64Type>()
    };
    let (Some(positions), Some(sizes)) = (numbers(0), numbers(1)) else {
        return Err(home.corrupt("expected descriptions of a position and a size, found other values"));
    };
    let object = BlobObject::Stored(Arc::from(home.path));
    let mut total = 0_u64;
    let places = positions.values().iter().zip(sizes.values()).enumerate();
    let located = places.map(|(row, (&start, &size))| {
        if fields.is_null(row) {
            return Ok(None);
        }
        if size > 0 && start.checked_add(size).is_none_or(|end| end > home.size) {
            return Err(home.corrupt(format!(
                "expected blobs within the file's {} bytes, found {size} bytes at {start}",
                home.size
            )));
        }
        total = total.saturating_add(size);
        Ok(Some(BlobLocation {
            object: object.clone(),
            start,
            size: Some(size),
        }))
    });
    let located = located.collect::<Result<Vec<_>>>()?;
    // Each blob has bytes of its own: more of them than the file has is a lie that would cost memory.
    if total > home.size {
        return Err(home.corrupt(format!(
            "expected blobs that lie apart in the file's {} bytes, found {total} bytes of them",
            home.size
        )));
    }
    Ok(located)
}
