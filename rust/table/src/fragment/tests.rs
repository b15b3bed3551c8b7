use super::*;
use crate::raw::push_length_delimited;

fn data_file() -> DataFile {
    DataFile {
        path: "a.lance".into(),
        fields: vec![0, 1],
        column_indices: vec![0, 1],
        file_major_version: 2,
        file_minor_version: 0,
        file_size_bytes: Some(578),
        base_id: None,
    }
}

fn deletion_file(num_deleted_rows: Option<u64>) -> DeletionFile {
    DeletionFile {
        file_type: DeletionFileType::Bitmap,
        read_version: 4,
        id: u64::MAX,
        num_deleted_rows,
        base_id: None,
    }
}

#[test]
fn test_a_new_fragment_comes_back() {
    let fragment = Fragment::new(vec![data_file()], 3).with_id(7);
    let again = Fragment::decode(&Bytes::from(fragment.encode())).unwrap();
    assert_eq!(again, fragment);
    assert_eq!(
        (again.id(), again.physical_rows(), again.num_rows()),
        (7, Some(3), Some(3))
    );
    assert_eq!(again.files(), [data_file()]);
    assert_eq!(again.files()[0].version().unwrap(), FileVersion::V2_0);
}

#[test]
fn test_unknown_fields_survive_a_change() {
    let mut message = Fragment::new(vec![data_file()], 3).encode();
    push_length_delimited(&mut message, 12, b"lineage");
    push_length_delimited(&mut message, 99, b"from the future");
    let fragment = Fragment::decode(&Bytes::from(message)).unwrap();
    let changed = fragment
        .with_id(5)
        .with_deletion_file(Some(deletion_file(Some(1))))
        .encode();
    for part in [b"lineage".as_slice(), b"from the future"] {
        assert!(changed.windows(part.len()).any(|window| window == part));
    }
    let again = Fragment::decode(&Bytes::from(changed)).unwrap();
    assert_eq!(
        (again.id(), again.num_deletions(), again.num_rows()),
        (5, Some(1), Some(2))
    );
    assert_eq!(again.with_deletion_file(None).num_rows(), Some(3));
}

#[test]
fn test_counts_that_were_not_noted_are_unknown() {
    let old = Fragment::new(vec![data_file()], 0);
    assert_eq!((old.physical_rows(), old.num_rows()), (None, None));
    let old = Fragment::new(vec![data_file()], 3).with_deletion_file(Some(deletion_file(None)));
    assert_eq!((old.num_deletions(), old.num_rows()), (None, None));
}

#[test]
fn test_a_summary_says_what_the_fragment_says() {
    for deletions in [
        None,
        Some(deletion_file(None)),
        Some(deletion_file(Some(2))),
        Some(deletion_file(Some(9))),
    ] {
        let fragment = Fragment::new(vec![data_file()], 3)
            .with_id(70_000)
            .with_deletion_file(deletions);
        let summary = summarize(&fragment.encode()).unwrap();
        let expected = Summary {
            id: 70_000,
            has_deletions: fragment.deletion_file().is_some(),
            physical_rows: 3,
            num_rows: fragment.num_rows(),
            has_spilled_lineage: false,
        };
        assert_eq!(summary, expected);
    }
}

#[test]
fn test_the_path_of_a_deletion_file_names_fragment_version_and_id() {
    assert_eq!(
        deletion_file(None).location(3),
        "_deletions/3-4-18446744073709551615.bin"
    );
    let arrow = DeletionFile {
        file_type: DeletionFileType::Arrow,
        id: 5,
        ..deletion_file(None)
    };
    assert_eq!(arrow.location(0), "_deletions/0-4-5.arrow");
}

#[test]
fn test_truncated_fragments_never_panic() {
    let message = Bytes::from(
        Fragment::new(vec![data_file(), data_file()], 3)
            .with_deletion_file(Some(deletion_file(Some(1))))
            .encode(),
    );
    for length in 0..message.len() {
        let _ = Fragment::decode(&message.slice(..length));
        let _ = summarize(&message[..length]);
    }
}
