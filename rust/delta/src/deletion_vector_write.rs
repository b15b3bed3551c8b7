//! Writes deletion vectors: their bytes, the files that hold many, and the text of an inline one.
//!
//! Spec: "Deletion Vector Format", "Deletion Vector File Storage Format".

use roaring::RoaringTreemap;

use crate::deletion_vector::{crc32, DeletionVector, MAGIC, Z85};
use crate::error::{DeltaError, Result};

/// The only version of the files' format.
const FILE_VERSION: u8 = 1;

impl DeletionVector {
    /// The vector of some rows, in any order; those that are given twice count once.
    pub fn of(rows: impl IntoIterator<Item = u64>) -> Self {
        let mut rows: RoaringTreemap = rows.into_iter().collect();
        rows.optimize();
        Self { rows }
    }

    /// The magic number and the bitmaps: what a descriptor's size counts.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.rows.serialized_size() + 4);
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        let written = self.rows.serialize_into(&mut bytes);
        written.map_err(|error| DeltaError::invalid(error.to_string()))?;
        Ok(bytes)
    }
}

/// A file of encoded vectors, and the offset of each.
pub fn vector_file(vectors: &[impl AsRef<[u8]>]) -> Result<(Vec<u8>, Vec<u64>)> {
    let mut bytes = vec![FILE_VERSION];
    let mut offsets = Vec::with_capacity(vectors.len());
    for vector in vectors {
        let vector = vector.as_ref();
        let size = i32::try_from(vector.len()).map_err(|_| {
            DeltaError::invalid(format!(
                "expected a deletion vector of less than 2 GiB, found one of {} bytes",
                vector.len()
            ))
        })?;
        offsets.push(bytes.len() as u64);
        bytes.extend_from_slice(&size.to_be_bytes());
        bytes.extend_from_slice(vector);
        bytes.extend_from_slice(&crc32(vector).to_be_bytes());
    }
    Ok((bytes, offsets))
}

/// Encodes bytes in Z85 (ZeroMQ's RFC 32), filled up with zeros to whole groups of four.
pub fn z85_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(4) * 5);
    for group in bytes.chunks(4) {
        let mut whole = [0u8; 4];
        for (slot, byte) in whole.iter_mut().zip(group) {
            *slot = *byte;
        }
        let value = u32::from_be_bytes(whole);
        for power in [85u32.pow(4), 85u32.pow(3), 85u32.pow(2), 85, 1] {
            let digit = Z85.get((value / power % 85) as usize).copied().unwrap_or_default();
            text.push(char::from(digit));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deletion_vector::z85;
    use proptest::prelude::*;

    #[test]
    fn test_z85_is_that_of_the_rfc() {
        assert_eq!(
            z85_text(&[0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B]),
            "HelloWorld"
        );
        assert_eq!(z85_text(&[]), "");
    }

    #[test]
    fn test_runs_are_short() {
        assert!(DeletionVector::of(0..1_000_000).encode().unwrap().len() < 300);
    }

    proptest! {
        #[test]
        fn test_what_is_encoded_is_decoded(rows in proptest::collection::btree_set(0u64..1 << 34, 0..50)) {
            let vector = DeletionVector::of(rows.iter().rev().chain(rows.iter()).copied());
            let read = DeletionVector::decode(&vector.encode().unwrap(), "x").unwrap();
            prop_assert_eq!(read.rows().collect::<Vec<_>>(), rows.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn test_texts_lead_back_to_their_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let found = z85(&z85_text(&bytes)).unwrap();
            prop_assert_eq!(&found[..bytes.len()], &bytes[..]);
            prop_assert!(found[bytes.len()..].iter().all(|byte| *byte == 0));
        }

        #[test]
        fn test_each_vector_of_a_file_is_at_its_offset(sizes in proptest::collection::vec(0u64..300, 1..5)) {
            let vectors: Vec<_> = sizes.iter().map(|size| DeletionVector::of((0..*size).map(|row| row * 3))).collect();
            let encoded: Vec<_> = vectors.iter().map(|vector| vector.encode().unwrap()).collect();
            let (file, offsets) = vector_file(&encoded).unwrap();
            prop_assert_eq!(file[0], 1);
            for ((vector, encoded), offset) in vectors.iter().zip(&encoded).zip(offsets) {
                let start = usize::try_from(offset).unwrap();
                let size = encoded.len() as u64;
                let read = DeletionVector::of_file(&file[start..start + encoded.len() + 8], size, "x").unwrap();
                prop_assert_eq!(&read, vector);
            }
        }
    }
}
