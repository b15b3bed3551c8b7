//! Round trips of tables, and invalid bytes.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;

use super::read::{decode_end, End, IndexCursor, Piece};
use super::{BlockCursor, TableWriter, UserProperties};
use crate::error::Result;

/// All records of a table in memory, or an error.
pub(crate) fn read_all(bytes: &Bytes) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let file = Piece {
        offset: 0,
        bytes: bytes.clone(),
    };
    let End::Known(end) = decode_end(&file, bytes.len() as u64)? else {
        return Err(crate::GravelerError::corrupt("table", "blocks beyond the file"));
    };
    let gone = || crate::GravelerError::corrupt("table", "a block beyond the file");
    let mut handles = Vec::new();
    let mut top = IndexCursor::new(end.index)?;
    while let Some(handle) = top.advance()? {
        if end.has_partitions {
            let mut partition = IndexCursor::new(file.block(handle)?.ok_or_else(gone)?)?;
            while let Some(handle) = partition.advance()? {
                handles.push(handle);
            }
        } else {
            handles.push(handle);
        }
    }
    let mut found = Vec::new();
    for handle in handles {
        let mut block = BlockCursor::new(file.block(handle)?.ok_or_else(gone)?)?;
        while block.advance()? {
            found.push((block.key()?.to_vec(), block.value().to_vec()));
        }
    }
    Ok(found)
}

fn write(records: &BTreeMap<Vec<u8>, Vec<u8>>) -> Bytes {
    let mut writer = TableWriter::new();
    for (key, value) in records {
        writer.add(key, value).unwrap();
    }
    writer.finish(&UserProperties::new()).into()
}

fn numbered(count: usize, value: usize) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let record = |n: usize| (format!("path/{n:08}").into_bytes(), vec![(n * 7) as u8; value + n % 5]);
    (0..count).map(record).collect()
}

#[test]
fn test_tables_of_all_sizes_come_back() {
    for count in [0, 1, 2, 15, 16, 17, 100, 3000, 40_000] {
        let records = numbered(count, 90);
        let found = read_all(&write(&records)).unwrap();
        assert!(found.into_iter().eq(records), "{count}");
    }
}

#[test]
fn test_no_prefix_of_a_table_is_a_table() {
    let table = write(&numbered(300, 20));
    for length in 0..table.len() {
        assert!(read_all(&table.slice(..length)).is_err(), "{length}");
    }
}

#[test]
fn test_no_flipped_bit_goes_unseen_but_in_the_footers_padding() {
    let records = numbered(300, 20);
    let table = write(&records);
    let padding = table.len() - 53..table.len() - 12;
    for at in 0..table.len() {
        let mut bytes = table.to_vec();
        bytes[at] ^= 1 << (at % 8);
        let found = read_all(&bytes.into());
        if !padding.contains(&at) {
            assert!(found.is_err(), "{at}");
        } else if let Ok(found) = found {
            assert!(found.into_iter().eq(records.clone()), "{at}");
        }
    }
}

#[test]
fn test_keys_that_do_not_rise_are_refused() {
    let mut writer = TableWriter::new();
    writer.add(b"b", b"").unwrap();
    for key in [b"b".as_slice(), b"a", b""] {
        let error = writer.add(key, b"").unwrap_err().to_string();
        assert!(error.contains("strictly rising"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn test_any_records_come_back(
        records in prop::collection::btree_map(
            prop::collection::vec(any::<u8>(), 0..40),
            prop::collection::vec(any::<u8>(), 0..3000),
            0..60,
        )
    ) {
        let found = read_all(&write(&records)).unwrap();
        prop_assert!(found.into_iter().eq(records));
    }

    #[test]
    fn test_any_bytes_give_records_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read_all(&bytes.clone().into());
        bytes.extend_from_slice(&[1]);
        bytes.extend_from_slice(&[0; 40]);
        bytes.extend_from_slice(&[2, 0, 0, 0, 0xf7, 0xcf, 0xf4, 0x85, 0xb7, 0x41, 0xe2, 0x88]);
        let _ = read_all(&bytes.into());
    }
}

/// A table of the same records with uncompressed data blocks.
pub(crate) fn without_compression(table: &Bytes) -> Vec<u8> {
    let records = read_all(table).unwrap();
    let mut writer = TableWriter::new();
    writer.compress = false;
    for (key, value) in &records {
        writer.add(key, value).unwrap();
    }
    writer.finish(&UserProperties::new())
}
