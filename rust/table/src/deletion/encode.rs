//! Encodes deletion files: an Arrow file for few rows, a bitmap for many, as pylance does.

use std::sync::Arc;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_ipc::CompressionType;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bytes::Bytes;
use roaring::RoaringBitmap;

use super::DeletionVector;
use crate::error::{Result, TableError};
use crate::fragment::DeletionFileType;

/// From this many deleted rows on, the file holds a bitmap.
const BITMAP_FROM: u64 = 5000;

impl DeletionVector {
    /// The vector of these rows.
    pub fn new(rows: RoaringBitmap) -> Self {
        Self { rows }
    }

    /// The file type, and the file's bytes.
    pub fn encode(&self) -> Result<(DeletionFileType, Bytes)> {
        if self.len() < BITMAP_FROM {
            let failed = |error: ArrowError| TableError::corrupt("deletion file", error.to_string());
            return Ok((DeletionFileType::Arrow, self.encode_arrow().map_err(failed)?));
        }
        let mut encoded = Vec::with_capacity(self.rows.serialized_size());
        let failed = |error: std::io::Error| TableError::corrupt("deletion file", error.to_string());
        self.rows.serialize_into(&mut encoded).map_err(failed)?;
        Ok((DeletionFileType::Bitmap, Bytes::from(encoded)))
    }

    fn encode_arrow(&self) -> Result<Bytes, ArrowError> {
        let schema = Arc::new(Schema::new(vec![Field::new("row_id", DataType::UInt32, false)]));
        let rows: UInt32Array = self.rows.iter().collect::<Vec<u32>>().into();
        let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(rows)])?;
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD))?;
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, options)?;
        writer.write(&batch)?;
        Ok(Bytes::from(writer.into_inner()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_vectors_of_both_forms_come_back() {
        for (count, expected) in [
            (1u32, DeletionFileType::Arrow),
            (4999, DeletionFileType::Arrow),
            (5000, DeletionFileType::Bitmap),
        ] {
            let vector = DeletionVector::new((0..count).map(|row| row * 3).collect());
            let (form, bytes) = vector.encode().unwrap();
            assert_eq!(form, expected);
            assert_eq!(DeletionVector::decode(form, &bytes, "here").unwrap(), vector);
        }
    }
}
