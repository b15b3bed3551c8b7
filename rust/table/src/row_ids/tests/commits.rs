use std::collections::BTreeMap;

use bytes::Bytes;
use esker_file::schema::{Field, Schema};

use crate::apply::CommitParams;
use crate::fragment::{DataFile, Fragment};
use crate::manifest::Manifest;
use crate::row_ids::{RowIdAllocator, RowIdSequence, RowLineage, RowVersions};
use crate::transaction::Transaction;

fn fragment(rows: u64) -> Fragment {
    let file = DataFile {
        path: "new.lance".into(),
        fields: vec![0],
        column_indices: vec![0],
        file_major_version: 2,
        file_minor_version: 0,
        file_size_bytes: Some(100),
        base_id: None,
    };
    Fragment::new(vec![file], rows)
}

fn params(version: u64, stable_row_ids: bool) -> CommitParams {
    CommitParams {
        version,
        timestamp_ns: 1,
        data_storage_version: None,
        stable_row_ids,
    }
}

fn overwrite(fragments: &[Fragment]) -> Transaction {
    let field = Field {
        id: 0,
        name: "p".into(),
        logical_type: "int64".into(),
        nullable: true,
        ..Default::default()
    };
    let schema = Schema {
        fields: vec![field],
        metadata: BTreeMap::new(),
    };
    Transaction::overwrite(0, fragments, &schema, BTreeMap::new(), BTreeMap::new()).unwrap()
}

fn append(fragments: &[Fragment]) -> Transaction {
    Transaction::append(1, fragments, BTreeMap::new()).unwrap()
}

fn created(fragments: &[Fragment]) -> Manifest {
    overwrite(fragments).apply(None, &params(1, true)).unwrap()
}

/// Ids, created and updated versions of each fragment.
fn lineage(manifest: &Manifest) -> Vec<(Vec<u64>, Vec<u64>, Vec<u64>)> {
    let rows = |versions: &RowVersions| (0..versions.len()).map(|place| versions.get(place).unwrap()).collect();
    let of = |fragment: Fragment| {
        let lineage = RowLineage::inline(&fragment).unwrap();
        (
            lineage.ids.unwrap().ids(),
            rows(&lineage.created),
            rows(&lineage.updated),
        )
    };
    manifest.fragments().map(|fragment| of(fragment.unwrap())).collect()
}

fn ids(manifest: &Manifest) -> Vec<Vec<u64>> {
    lineage(manifest).into_iter().map(|(ids, _, _)| ids).collect()
}

#[test]
fn test_new_rows_get_the_next_ids() {
    let first = created(&[fragment(3), fragment(2)]);
    assert!(first.has_stable_row_ids());
    assert_eq!((ids(&first), first.next_row_id()), (vec![vec![0, 1, 2], vec![3, 4]], 5));
    assert_eq!((first.reader_feature_flags(), first.writer_feature_flags()), (2, 2));
    let second = append(&[fragment(2)]).apply(Some(&first), &params(2, false)).unwrap();
    assert_eq!(lineage(&second)[2], (vec![5, 6], vec![2, 2], vec![2, 2]));
    // The same transaction on a later version gets later ids: an attempt that lost the race leaves nothing behind.
    let third = append(&[fragment(2)]).apply(Some(&second), &params(3, false)).unwrap();
    assert_eq!(lineage(&third)[3], (vec![7, 8], vec![3, 3], vec![3, 3]));
    let over = overwrite(&[fragment(1)])
        .apply(Some(&third), &params(4, false))
        .unwrap();
    assert_eq!(
        (lineage(&over), over.next_row_id()),
        (vec![(vec![9], vec![4], vec![4])], 10)
    );
}

#[test]
fn test_a_table_without_stable_ids_never_begins_to_have_them() {
    let first = overwrite(&[fragment(1)]).apply(None, &params(1, false)).unwrap();
    for next in [overwrite(&[fragment(1)]), append(&[fragment(1)])] {
        let next = next.apply(Some(&first), &params(2, true)).unwrap();
        assert!(!next.has_stable_row_ids() && !next.fragment_at(0).unwrap().unwrap().has_row_ids());
    }
    let kept = fragment(1).with_row_ids(&RowIdSequence::from_range(0..1));
    let refused = append(&[kept]).apply(Some(&first), &params(2, false)).unwrap_err();
    assert!(refused.to_string().contains("without row ids"), "{refused}");
}

#[test]
fn test_updated_rows_keep_id_and_birth_and_new_rows_follow_them() {
    let first = created(&[fragment(4)]);
    let second = append(&[fragment(4)]).apply(Some(&first), &params(2, false)).unwrap();
    let mut allocator = RowIdAllocator::new(Some(&second), false).unwrap();
    let moved = fragment(5).with_row_ids(&RowIdSequence::from_ids(&[6, 1, 7]));
    let stamped = allocator.stamp_updated(&second, &[moved, fragment(1)]).unwrap();
    let of = |fragment: &Fragment| RowLineage::inline(fragment).unwrap();
    assert_eq!(of(&stamped[0]).ids.unwrap().ids(), [6, 1, 7, 8, 9]);
    assert_eq!(of(&stamped[0]).created, RowVersions::from_rows([2, 1, 2, 3, 3]));
    assert_eq!(of(&stamped[0]).updated, RowVersions::uniform(5, 3));
    assert_eq!(of(&stamped[1]).ids.unwrap().ids(), [10]);
    assert_eq!(allocator.next_row_id(), 11);
    let many = fragment(1).with_row_ids(&RowIdSequence::from_ids(&[0, 1]));
    let refused = allocator.stamp_updated(&second, &[many]).unwrap_err().to_string();
    assert!(
        refused.contains("at most 1 row ids for a new fragment, found 2"),
        "{refused}"
    );
}

#[test]
fn test_rows_changed_in_place_keep_id_and_birth() {
    let first = created(&[fragment(4)]);
    let allocator = RowIdAllocator::new(Some(&first), false).unwrap();
    let before = first.fragment_at(0).unwrap().unwrap();
    let some = RowLineage::inline(&allocator.stamp_changed(&before, Some(&[1, 3])).unwrap()).unwrap();
    assert_eq!(some.updated, RowVersions::from_rows([1, 2, 1, 2]));
    let all = RowLineage::inline(&allocator.stamp_changed(&before, None).unwrap()).unwrap();
    assert_eq!(all.updated, RowVersions::uniform(4, 2));
    assert_eq!(
        (all.created, all.ids.unwrap().ids()),
        (RowVersions::uniform(4, 1), vec![0, 1, 2, 3])
    );
}

#[test]
fn test_a_rewrite_must_bring_the_ids() {
    let allocator = RowIdAllocator::new(Some(&created(&[fragment(4)])), false).unwrap();
    assert!(allocator.check_moved(&fragment(2)).is_err());
    allocator
        .check_moved(&fragment(2).with_row_ids(&RowIdSequence::from_range(0..2)))
        .unwrap();
    // Ids for more rows than there are.
    let wrong = fragment(2).with_row_ids(&RowIdSequence::from_range(0..3));
    assert!(allocator
        .check_moved(&wrong)
        .unwrap_err()
        .to_string()
        .contains("row ids for 2 rows, found 3"));
}

#[test]
fn test_lineage_elsewhere_is_refused_by_a_commit_that_needs_it() {
    let first = created(&[fragment(4)]);
    let mut external = first.fragment_at(0).unwrap().unwrap();
    let place = [&[0x0a, 1][..], b"x", &[0x10, 4, 0x18, 4]].concat();
    external.raw_mut().remove(5);
    external.raw_mut().set_bytes(6, &place);
    let message = RowLineage::inline(&external).unwrap_err().to_string();
    assert!(message.contains("row ids of fragment 0 lies in x"), "{message}");
    let mut spilled = first.fragment_at(0).unwrap().unwrap();
    spilled.raw_mut().set_bytes(12, b"");
    let message = RowLineage::inline(&spilled).unwrap_err().to_string();
    assert!(message.contains("expected a data file with field -3"), "{message}");
    let file = DataFile {
        fields: vec![-3],
        column_indices: vec![0],
        ..spilled.files()[0].clone()
    };
    let message = RowLineage::inline(&spilled.clone().with_file(file))
        .unwrap_err()
        .to_string();
    assert!(message.contains("is spilled row lineage"), "{message}");
    external.raw_mut().set_bytes(6, &[&[0x0a, 4][..], b"../x"].concat());
    assert!(RowLineage::inline(&external)
        .unwrap_err()
        .to_string()
        .contains("a relative path below the table's folder"));
    assert!(Fragment::decode(&Bytes::from(spilled.encode())).is_ok());
}
