//! Deletion vectors: the deleted rows of a file.
//!
//! ```text
//! inline   Z85 of: magic 1681511377 (LE) | RoaringBitmapArray, portable
//! a file   1 byte version = 1 | at offset: u32 BE size | magic (LE) | RoaringBitmapArray | u32 BE CRC-32 of size bytes
//! portable u64 LE count of bitmaps | for each: u32 LE high bits | a 32-bit Roaring bitmap in its portable form
//! ```
//!
//! Spec: "Deletion Vectors": "Deletion Vector Format", "Deletion Vector File Storage Format", "Derived Fields".

use esker_store::{StoreError, StoreRef};
use roaring::RoaringTreemap;

use crate::actions::DeletionVectorDescriptor;
use crate::error::{DeltaError, Result};
use crate::path::TableRoot;

pub(crate) const MAGIC: u32 = 1_681_511_377;
/// A uuid in Z85.
const ENCODED_UUID: usize = 20;
/// The limit of deleted rows, more than any file has: a bitmap of a few bytes could claim that many.
const MAX_ROWS: u64 = 1 << 31;
/// The limit of a vector's bytes, more than any file needs: a corrupt descriptor must not make us read without end.
const MAX_BYTES: u64 = 1 << 31;

/// The row numbers of one file that are deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletionVector {
    pub(crate) rows: RoaringTreemap,
}

/// Where the bytes of a vector are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VectorPlace {
    /// In the descriptor itself.
    Inline(Vec<u8>),
    /// In a file, by its canonical path, from an offset on.
    File {
        /// Relative to the table, or absolute.
        path: String,
        /// The vector's first byte.
        offset: u64,
    },
}

impl DeletionVector {
    /// The number of deleted rows.
    pub fn len(&self) -> u64 {
        self.rows.len()
    }

    /// Whether no row is deleted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The deleted rows, ascending.
    pub fn rows(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows.iter()
    }

    /// Reads the vector of a descriptor from the table's store. A file outside of the table is read by [`DeletionVector::read_file`].
    pub async fn read(store: &StoreRef, root: &TableRoot, descriptor: &DeletionVectorDescriptor) -> Result<Self> {
        match place(descriptor, root)? {
            VectorPlace::Inline(bytes) => {
                let path = "deletion vector in the log";
                Self::decode(&bytes, path)?.checked(descriptor, path)
            }
            VectorPlace::File { path, .. } if is_elsewhere(&path) => Err(DeltaError::unsupported(format!(
                "expected deletion vectors within the table, found one at {path}; give the store that it is in"
            ))),
            VectorPlace::File { path, .. } => Self::read_file(store, &path, descriptor).await,
        }
    }

    /// Reads the vector of a descriptor from a file of any store, by its path there.
    pub async fn read_file(store: &StoreRef, path: &str, descriptor: &DeletionVectorDescriptor) -> Result<Self> {
        let corrupt = |message: &str| DeltaError::corrupt(path, message);
        let offset =
            u64::try_from(descriptor.offset.unwrap_or(0)).map_err(|_| corrupt("an offset that no file has"))?;
        let size = u64::try_from(descriptor.size_in_bytes).ok();
        let size = size
            .filter(|size| *size <= MAX_BYTES)
            .ok_or_else(|| corrupt("a deletion vector of an impossible size"))?;
        let end = offset
            .checked_add(size + 8)
            .ok_or_else(|| corrupt("an offset that no file has"))?;
        // The range is read by the store, which checks it against the file's size before it allocates.
        let found = store
            .get_ranges(path, &[offset..end])
            .await
            .map_err(|error| match error {
                // The path is from the log, not from the caller: the log is corrupt.
                StoreError::InvalidArgument { message, .. } => corrupt(&message),
                other => DeltaError::Store(other),
            })?;
        let bytes = found.into_iter().next().unwrap_or_default();
        Self::of_file(&bytes, size, path)?.checked(descriptor, path)
    }

    fn checked(self, descriptor: &DeletionVectorDescriptor, path: &str) -> Result<Self> {
        let rows = self.len();
        if i64::try_from(rows).ok() != Some(descriptor.cardinality) {
            return Err(DeltaError::corrupt(
                path,
                format!(
                    "expected a deletion vector of {} rows, found {rows}",
                    descriptor.cardinality
                ),
            ));
        }
        if rows > MAX_ROWS {
            return Err(DeltaError::unsupported(format!(
                "expected a deletion vector of at most {MAX_ROWS} rows, found one of {rows} in {path}"
            )));
        }
        Ok(self)
    }

    pub(crate) fn of_file(bytes: &[u8], size: u64, path: &str) -> Result<Self> {
        let corrupt = |message: String| DeltaError::corrupt(path, message);
        let (Some((head, rest)), true) = (bytes.split_first_chunk::<4>(), bytes.len() as u64 == size + 8) else {
            return Err(corrupt(format!(
                "expected a deletion vector of {size} bytes, found fewer"
            )));
        };
        let said = u64::from(u32::from_be_bytes(*head));
        let Some((data, check)) = rest.split_last_chunk::<4>() else {
            return Err(corrupt("a deletion vector without a checksum".into()));
        };
        if said != size {
            return Err(corrupt(format!(
                "expected a deletion vector of {size} bytes, found one of {said}"
            )));
        }
        let (expected, found) = (u32::from_be_bytes(*check), crc32(data));
        if expected != found {
            return Err(corrupt(format!(
                "a deletion vector whose checksum is {expected:08x}, found {found:08x}"
            )));
        }
        Self::decode(data, path)
    }

    /// Decodes the magic number and the bitmaps.
    pub fn decode(bytes: &[u8], path: &str) -> Result<Self> {
        let corrupt = |message: String| DeltaError::corrupt(path, message);
        let Some((magic, bitmaps)) = bytes.split_first_chunk::<4>() else {
            return Err(corrupt(format!(
                "expected a deletion vector, found {} bytes",
                bytes.len()
            )));
        };
        let magic = u32::from_le_bytes(*magic);
        if magic != MAGIC {
            return Err(corrupt(format!(
                "expected a deletion vector with magic number {MAGIC}, found {magic}"
            )));
        }
        // The count is checked against the bytes, so that a corrupt count allocates nothing.
        let count = bitmaps.first_chunk::<8>().map_or(0, |count| u64::from_le_bytes(*count));
        if count > bitmaps.len() as u64 / 8 {
            return Err(corrupt(format!(
                "a deletion vector of {count} bitmaps in {} bytes",
                bitmaps.len()
            )));
        }
        let rows = RoaringTreemap::deserialize_from(bitmaps)
            .map_err(|error| corrupt(format!("expected bitmaps, found: {error}")))?;
        Ok(Self { rows })
    }
}

/// Whether a canonical path lies outside of the table.
fn is_elsewhere(path: &str) -> bool {
    path.starts_with('/') || path.contains("://")
}

/// The canonical path of a descriptor's file, if it lies outside of the table.
pub fn place_elsewhere(descriptor: &DeletionVectorDescriptor, root: &TableRoot) -> Result<Option<String>> {
    Ok(match place(descriptor, root)? {
        VectorPlace::File { path, .. } if is_elsewhere(&path) => Some(path),
        _ => None,
    })
}

/// The place of a descriptor's vector.
pub fn place(descriptor: &DeletionVectorDescriptor, root: &TableRoot) -> Result<VectorPlace> {
    let text = &descriptor.path_or_inline_dv;
    let bad = || {
        DeltaError::corrupt(
            "_delta_log/",
            format!("expected a deletion vector's place, found '{text}'"),
        )
    };
    let offset = u64::try_from(descriptor.offset.unwrap_or(0)).map_err(|_| bad())?;
    match descriptor.storage_type.as_str() {
        "i" => Ok(VectorPlace::Inline(z85(text).ok_or_else(bad)?)),
        "u" => {
            let split = text
                .len()
                .checked_sub(ENCODED_UUID)
                .and_then(|at| text.split_at_checked(at));
            let (prefix, encoded) = split.ok_or_else(bad)?;
            let id = z85(encoded)
                .and_then(|bytes| uuid::Uuid::from_slice(&bytes).ok())
                .ok_or_else(bad)?;
            let folder = if prefix.is_empty() {
                String::new()
            } else {
                format!("{prefix}/")
            };
            let path = format!("{folder}deletion_vector_{id}.bin");
            Ok(VectorPlace::File { path, offset })
        }
        "p" => {
            let path = root.canonical(text).into_owned();
            Ok(VectorPlace::File { path, offset })
        }
        other => Err(DeltaError::unsupported(format!(
            "expected a deletion vector of storage type u, p or i, found {other}; upgrade esker to read the table"
        ))),
    }
}

/// The digits of Z85.
pub(crate) const Z85: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Decodes Z85 (ZeroMQ's RFC 32): five characters for four bytes.
pub(crate) fn z85(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(5) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    for group in text.as_bytes().chunks(5) {
        let mut value = 0u32;
        for byte in group {
            let digit = Z85.iter().position(|digit| digit == byte)?;
            value = value.checked_mul(85)?.checked_add(u32::try_from(digit).ok()?)?;
        }
        bytes.extend_from_slice(&value.to_be_bytes());
    }
    Some(bytes)
}

/// CRC-32, zlib's polynomial.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut table = [0u32; 256];
    for (start, entry) in (0u32..).zip(table.iter_mut()) {
        *entry = (0..8).fold(start, |crc, _| {
            if crc & 1 == 1 {
                (crc >> 1) ^ 0xEDB8_8320
            } else {
                crc >> 1
            }
        });
    }
    !bytes.iter().fold(!0u32, |crc, byte| {
        let at = (crc ^ u32::from(*byte)) & 0xFF;
        table.get(at as usize).copied().unwrap_or_default() ^ (crc >> 8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(rows: &RoaringTreemap) -> Vec<u8> {
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        rows.serialize_into(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn test_checksums_are_those_of_zlib() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn test_z85_is_that_of_the_rfc() {
        assert_eq!(
            z85("HelloWorld").unwrap(),
            [0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B]
        );
        assert_eq!(z85("Hello "), None);
        assert_eq!(z85("#####"), None);
    }

    #[test]
    fn test_the_protocols_example_leads_to_its_file() {
        let descriptor = DeletionVectorDescriptor {
            storage_type: "u".into(),
            path_or_inline_dv: "ab^-aqEH.-t@S}K{vb[*k^".into(),
            offset: Some(4),
            size_in_bytes: 40,
            cardinality: 6,
        };
        let place = place(&descriptor, &TableRoot::new("/t")).unwrap();
        let path = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin".to_owned();
        assert_eq!(place, VectorPlace::File { path, offset: 4 });
        assert_eq!(descriptor.unique_id(), "uab^-aqEH.-t@S}K{vb[*k^@4");
    }

    proptest! {
        #[test]
        fn test_vectors_round_trip(rows in proptest::collection::btree_set(0u64..1 << 34, 0..50)) {
            let rows: RoaringTreemap = rows.into_iter().collect();
            prop_assert_eq!(DeletionVector::decode(&encoded(&rows), "x").unwrap().rows, rows);
        }

        #[test]
        fn test_any_bytes_are_a_vector_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..80), flip in 0usize..40) {
            let _ = DeletionVector::decode(&bytes, "x");
            let mut good = encoded(&[1u64, 5, 1 << 33].into_iter().collect());
            let at = flip % good.len();
            good[at] ^= 0x55;
            let _ = DeletionVector::decode(&good, "x");
            let _ = z85(&String::from_utf8_lossy(&bytes));
        }
    }
}
