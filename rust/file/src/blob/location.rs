//! Resolves descriptions to the locations of the blobs' bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type, UInt8Type};
use arrow_array::{Array, ArrayRef};

use crate::error::{FileError, Result};
use crate::schema::BlobKind;

/// The object that holds a blob's bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlobObject {
    /// An object of the store that holds the data file.
    Stored(Arc<str>),
    /// An object of any store, by its URI.
    External(Arc<str>),
    /// An object below a base path of the table: the number of that, and the path there.
    Based(u32, Arc<str>),
}

/// The location of one blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobLocation {
    /// The object that holds it.
    pub object: BlobObject,
    /// Its first byte there.
    pub start: u64,
    /// Its size in bytes; `None` for all of an external object from `start` on.
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

/// The locations of the blobs that `descriptions` (with their nulls) describe; `None` for a null.
pub(crate) fn locate(home: Home<'_>, kind: BlobKind, descriptions: &ArrayRef) -> Result<Vec<Option<BlobLocation>>> {
    match kind {
        BlobKind::V1 => locate_v1(home, descriptions),
        BlobKind::V2 => locate_v2(home, descriptions),
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
    let mut own = OwnBlobs::new(home);
    let places = positions.values().iter().zip(sizes.values()).enumerate();
    let located = places.map(|(row, (&start, &size))| {
        if fields.is_null(row) {
            return Ok(None);
        }
        own.locate(start, size).map(Some)
    });
    located.collect()
}

/// The blobs within the data file.
struct OwnBlobs<'a> {
    home: Home<'a>,
    object: BlobObject,
    total: u64,
}

impl<'a> OwnBlobs<'a> {
    fn new(home: Home<'a>) -> Self {
        OwnBlobs {
            home,
            object: BlobObject::Stored(Arc::from(home.path)),
            total: 0,
        }
    }

    fn locate(&mut self, start: u64, size: u64) -> Result<BlobLocation> {
        let whole = self.home.size;
        if size > 0 && start.checked_add(size).is_none_or(|end| end > whole) {
            return Err(self.home.corrupt(format!(
                "expected blobs within the file's {whole} bytes, found {size} bytes at {start}"
            )));
        }
        self.total = self.total.saturating_add(size);
        // Blobs do not share bytes: more bytes than the file has are corrupt, and would cost memory.
        if self.total > whole {
            return Err(self.home.corrupt(format!(
                "expected blobs that lie apart in the file's {whole} bytes, found {} bytes of them",
                self.total
            )));
        }
        Ok(BlobLocation {
            object: self.object.clone(),
            start,
            size: Some(size),
        })
    }
}

fn locate_v2(home: Home<'_>, descriptions: &ArrayRef) -> Result<Vec<Option<BlobLocation>>> {
    let wrong =
        || home.corrupt("expected descriptions of kind, position, size, blob_id and blob_uri, found other values");
    let fields = descriptions.as_struct_opt().ok_or_else(wrong)?;
    let [kinds, positions, sizes, ids, uris] = fields.columns() else {
        return Err(wrong());
    };
    let (Some(kinds), Some(positions), Some(sizes), Some(ids), Some(uris)) = (
        kinds.as_primitive_opt::<UInt8Type>(),
        positions.as_primitive_opt::<UInt64Type>(),
        sizes.as_primitive_opt::<UInt64Type>(),
        ids.as_primitive_opt::<UInt32Type>(),
        uris.as_string_opt::<i32>(),
    ) else {
        return Err(wrong());
    };
    let mut own = OwnBlobs::new(home);
    let mut sidecars: BTreeMap<u32, BlobObject> = BTreeMap::new();
    let numbers = kinds.values().iter().zip(positions.values()).zip(sizes.values());
    let places = numbers.zip(ids.values()).zip(uris.iter()).enumerate();
    let located = places.map(|(row, ((((&kind, &start), &size), &id), uri))| {
        if fields.is_null(row) {
            return Ok(None);
        }
        let uri = uri.unwrap_or_default();
        let object = match kind {
            INLINE => return own.locate(start, size).map(Some),
            PACKED | DEDICATED => sidecars
                .entry(id)
                .or_insert_with(|| BlobObject::Stored(Arc::from(sidecar_path(home.path, id))))
                .clone(),
            EXTERNAL if uri.is_empty() => return Err(home.corrupt("expected the URI of a blob elsewhere, found none")),
            EXTERNAL if id == 0 => BlobObject::External(Arc::from(uri)),
            EXTERNAL => BlobObject::Based(id, Arc::from(uri)),
            other => {
                return Err(FileError::unsupported(format!(
                    "file {}: expected blobs of kind 0 to 3, found {other}; a newer esker may read them",
                    home.path
                )))
            }
        };
        let whole = kind == EXTERNAL && size == 0;
        Ok(Some(BlobLocation {
            object,
            start,
            size: (!whole).then_some(size),
        }))
    });
    located.collect()
}

/// The blob lies in the data file.
pub(crate) const INLINE: u8 = 0;
/// It lies in a file beside the data file, with others.
pub(crate) const PACKED: u8 = 1;
/// It has a file beside the data file.
pub(crate) const DEDICATED: u8 = 2;
/// It lies where its URI says.
pub(crate) const EXTERNAL: u8 = 3;

/// The path of the file of blobs number `id` beside a data file: a folder of the data file's name, and in it the number's bits, lowest
/// first, so that names that follow one another begin differently.
pub(crate) fn sidecar_path(data_file: &str, id: u32) -> String {
    let stem = data_file.strip_suffix(".lance").unwrap_or(data_file);
    format!("{stem}/{:032b}.blob", id.reverse_bits())
}
