//! Tables of lakeFS, rewritten byte for byte.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;

use super::table_of_records;
use crate::entry::Entry;
use crate::metarange::RangeInfo;
use crate::sstable::read::{decode_end, End, Piece};
use crate::sstable::tests::read_all;
use crate::value::Value;
use crate::verify::said;

/// A file of lakeFS's own tests; `None` if the folder of fixtures is not beside the project.
fn fixture(name: &str) -> Option<Bytes> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/graveler");
    std::fs::read(folder.join(name)).ok().map(Bytes::from)
}

fn properties(file: &Bytes) -> BTreeMap<Vec<u8>, Bytes> {
    let file = Piece {
        offset: 0,
        bytes: file.clone(),
    };
    let size = file.bytes.len() as u64;
    match decode_end(&file, size).unwrap() {
        End::Known(end) => end.properties,
        other => panic!("{other:?}"),
    }
}

#[test]
fn test_what_lakefs_wrote_is_written_again_byte_for_byte() {
    let ids = [
        (
            "range.sst",
            "a83af763ba098c15369d9d6d723731eb9ce18b8dfac4f88c6f1287e772393d0e",
        ),
        ("metarange.sst", ""),
    ];
    for (name, id) in ids {
        let Some(file) = fixture(name) else { return };
        let said = said(&properties(&file));
        let records = read_all(&file).unwrap();
        let table = table_of_records(
            &said["type"],
            &said,
            records.iter().map(|(k, v)| (k.as_slice(), v.as_slice())),
        );
        let table = table.unwrap();
        assert_eq!(table.bytes, file, "{name}");
        assert!(
            id.is_empty() || table.info.id.as_str() == id,
            "{name}: {}",
            table.info.id
        );
    }
}

#[test]
fn test_the_entries_of_lakefs_have_the_identities_that_it_gave_them() {
    let Some(file) = fixture("range.sst") else { return };
    for (_, value) in read_all(&file).unwrap() {
        let value = Value::decode(&value).unwrap();
        let entry = Entry::decode(value.data).unwrap();
        assert_eq!(entry.identity(), value.identity);
        assert_eq!(entry.encode(), value.data);
    }
}

#[test]
fn test_the_metarange_of_lakefs_names_its_range() {
    let Some(file) = fixture("metarange.sst") else { return };
    let records = read_all(&file).unwrap();
    let range = RangeInfo::decode(&records[0].0, &records[0].1).unwrap();
    assert_eq!((range.min_key.as_slice(), range.count), (b"a/b/c/no".as_slice(), 2));
    let mut value = Vec::new();
    range.encode_value_to(&mut value);
    assert_eq!(value, records[0].1);
}
