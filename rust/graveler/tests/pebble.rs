//! Tables that Pebble wrote at the commit that lakeFS pins, in `fuzz/corpus/sstable`: rewriting their records gives the same bytes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::path::Path;

use bytes::Bytes;
use esker_graveler::sstable::read::{decode_end, End, IndexCursor, Piece, TableEnd};
use esker_graveler::sstable::{BlockCursor, TableWriter, UserProperties};

fn end_of(file: &Piece) -> TableEnd {
    match decode_end(file, file.bytes.len() as u64).unwrap() {
        End::Known(end) => end,
        End::StartsAt(offset) => panic!("expected all blocks in the file, found one that starts at {offset}"),
    }
}

fn data_blocks(file: &Piece, end: &TableEnd) -> Vec<Bytes> {
    let mut blocks = Vec::new();
    let mut top = IndexCursor::new(end.index.clone()).unwrap();
    while let Some(handle) = top.advance().unwrap() {
        let block = file.block(handle).unwrap().unwrap();
        if !end.has_partitions {
            blocks.push(block);
            continue;
        }
        let mut partition = IndexCursor::new(block).unwrap();
        while let Some(handle) = partition.advance().unwrap() {
            blocks.push(file.block(handle).unwrap().unwrap());
        }
    }
    blocks
}

#[test]
fn test_pebbles_tables_written_again_are_the_same_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/sstable");
    let (mut tables, mut partitioned) = (0, 0);
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|kind| kind != "pebble") {
            continue;
        }
        let file = Piece {
            offset: 0,
            bytes: std::fs::read(&path).unwrap().into(),
        };
        let end = end_of(&file);
        let mut writer = TableWriter::new();
        for block in data_blocks(&file, &end) {
            let mut cursor = BlockCursor::new(block).unwrap();
            while cursor.advance().unwrap() {
                writer.add(cursor.key().unwrap(), cursor.value()).unwrap();
            }
        }
        let user: UserProperties = end
            .properties
            .iter()
            .filter(|(name, _)| !name.starts_with(b"rocksdb."))
            .map(|(name, value)| (String::from_utf8(name.clone()).unwrap(), value.to_vec()))
            .collect();
        assert_eq!(
            writer.estimated_size().to_string().as_bytes(),
            user["estimated_size_bytes"],
            "{path:?}"
        );
        assert!(writer.finish(&user) == file.bytes, "{path:?}");
        tables += 1;
        partitioned += usize::from(end.has_partitions);
    }
    assert!(
        tables >= 8 && partitioned >= 1,
        "{tables} tables, {partitioned} partitioned"
    );
}
