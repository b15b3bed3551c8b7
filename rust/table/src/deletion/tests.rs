use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, UInt32Array};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_ipc::CompressionType;

use super::*;

fn ipc(columns: &[ArrayRef], batches: usize) -> Bytes {
    let names = ["row_id", "other"];
    let batch = RecordBatch::try_from_iter(names.iter().copied().zip(columns.iter().cloned())).unwrap();
    let options = IpcWriteOptions::default()
        .try_with_compression(Some(CompressionType::ZSTD))
        .unwrap();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    for _ in 0..batches {
        writer.write(&batch).unwrap();
    }
    writer.finish().unwrap();
    Bytes::from(writer.into_inner().unwrap())
}

fn offsets(values: impl IntoIterator<Item = u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(values))
}

fn bitmap(values: impl IntoIterator<Item = u32>) -> Bytes {
    let mut out = Vec::new();
    values
        .into_iter()
        .collect::<RoaringBitmap>()
        .serialize_into(&mut out)
        .unwrap();
    Bytes::from(out)
}

#[test]
fn test_both_forms_hold_the_same_rows() {
    let values = [7, 0, 70_000, 3];
    let arrow = DeletionVector::decode(DeletionFileType::Arrow, &ipc(&[offsets(values)], 1), "a").unwrap();
    let bitmap = DeletionVector::decode(DeletionFileType::Bitmap, &bitmap(values), "b").unwrap();
    assert_eq!(arrow, bitmap);
    assert_eq!(
        (arrow.len(), arrow.contains(70_000), arrow.contains(1)),
        (4, true, false)
    );
    assert!(!arrow.is_empty());
}

#[test]
fn test_an_arrow_file_of_another_shape_is_corrupt() {
    let nulls: ArrayRef = Arc::new(UInt32Array::from(vec![Some(1), None]));
    let signed: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let cases = [
        (ipc(&[signed], 1), "uint32"),
        (ipc(&[offsets([1]), offsets([2])], 1), "one column"),
        (ipc(&[nulls], 1), "found a null"),
        (ipc(&[offsets([1])], 2), "one batch, found 2"),
        (ipc(&[offsets([1])], 0), "one batch, found 0"),
        (Bytes::from_static(b"not arrow"), "an Arrow IPC file"),
        (
            Bytes::from_static(b"ARROW1\0\0\xff\xff\xff\x7fARROW1"),
            "a footer within the file",
        ),
    ];
    for (data, expected) in cases {
        let error = DeletionVector::decode(DeletionFileType::Arrow, &data, "_deletions/x.arrow")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(expected) && error.contains("_deletions/x.arrow"),
            "{error}"
        );
    }
}

#[test]
fn test_counts_and_offsets_are_checked_against_the_fragment() {
    let vector = DeletionVector::decode(DeletionFileType::Bitmap, &bitmap([1, 9]), "b").unwrap();
    vector.check(Some(2), Some(10), "b").unwrap();
    vector.check(None, None, "b").unwrap();
    assert!(vector.check(Some(3), Some(10), "b").is_err());
    assert!(vector.check(Some(2), Some(9), "b").is_err());
}

#[test]
fn test_an_arrow_file_without_compression_is_read() {
    let batch = RecordBatch::try_from_iter([("row_id", offsets([4, 2]))]).unwrap();
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let data = Bytes::from(writer.into_inner().unwrap());
    let vector = DeletionVector::decode(DeletionFileType::Arrow, &data, "a").unwrap();
    assert_eq!(vector.rows().iter().collect::<Vec<_>>(), [2, 4]);
}

/// A file of a few kilobytes whose frame unpacks to gigabytes: nothing grows with what it claims.
#[test]
fn test_a_bomb_is_found_out_at_its_first_repeated_row() {
    let zeros = offsets(std::iter::repeat_n(0, 1 << 22));
    let data = ipc(&[zeros], 1);
    assert!(data.len() < 10_000, "{} bytes", data.len());
    let error = DeletionVector::decode(DeletionFileType::Arrow, &data, "a").unwrap_err();
    assert!(
        error.to_string().contains("expected each row once, found row 0 again"),
        "{error}"
    );
}

/// The claimed number of rows is believed only as far as there are bytes.
#[test]
fn test_a_batch_that_claims_more_rows_than_it_has_is_corrupt() {
    let data = ipc(&[offsets(0..100)], 1);
    let claims = data
        .windows(8)
        .enumerate()
        .filter(|(_, bytes)| *bytes == 100u64.to_le_bytes());
    let mut refused = 0;
    for (position, _) in claims {
        let mut damaged = data.to_vec();
        damaged[position..position + 8].copy_from_slice(&(i64::MAX / 2).to_le_bytes());
        refused += usize::from(DeletionVector::decode(DeletionFileType::Arrow, &Bytes::from(damaged), "a").is_err());
    }
    assert!(refused > 0);
}

/// Truncations and single changed bits: a value or an error, whatever the bytes.
#[test]
fn test_damaged_files_never_panic() {
    let files = [
        (DeletionFileType::Arrow, ipc(&[offsets(0..300)], 1)),
        (DeletionFileType::Bitmap, bitmap((0..300).chain(70_000..70_010))),
        (DeletionFileType::Bitmap, bitmap((0..9000).map(|n| n * 2))),
    ];
    for (file_type, data) in files {
        for length in 0..data.len() {
            assert!(
                DeletionVector::decode(file_type, &data.slice(..length), "x").is_err(),
                "prefix of {length} bytes"
            );
        }
        for position in 0..data.len() {
            for bit in 0..8 {
                let mut damaged = data.to_vec();
                damaged[position] ^= 1 << bit;
                let _ = DeletionVector::decode(file_type, &Bytes::from(damaged), "x");
            }
        }
    }
}
