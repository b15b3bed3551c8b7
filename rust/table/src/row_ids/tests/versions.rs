use bytes::Bytes;
use proptest::prelude::*;

use crate::row_ids::{RowIdSequence, RowLineage, RowVersions};

fn rows(versions: &RowVersions) -> Vec<u64> {
    let versions = RowVersions::decode(&Bytes::from(versions.encode()), "test").unwrap();
    let runs = versions.runs(0..versions.len());
    runs.flat_map(|(rows, version)| std::iter::repeat_n(version, rows as usize))
        .collect()
}

fn version_lists() -> impl Strategy<Value = Vec<u64>> {
    let run = (1usize..20, 0u64..4).prop_map(|(rows, version)| vec![version; rows]);
    proptest::collection::vec(run, 0..12).prop_map(|runs| runs.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn test_versions_are_those_of_the_list(
        list in version_lists(),
        places in proptest::collection::btree_set(0u64..240, 0..30),
        a in 0usize..240,
        b in 0usize..240,
    ) {
        let versions = RowVersions::from_rows(list.iter().copied());
        prop_assert_eq!(rows(&versions), &list[..]);
        let (start, end) = (a.min(b).min(list.len()), a.max(b).min(list.len()));
        prop_assert_eq!(rows(&versions.slice(start as u64..end as u64)), &list[start..end]);
        let is_in = |place: usize| places.contains(&(place as u64));
        let masked: Vec<u64> = (0..list.len()).filter(|place| !is_in(*place)).map(|place| list[place]).collect();
        let present = || places.iter().copied().filter(|place| *place < list.len() as u64);
        prop_assert_eq!(rows(&versions.mask(present())), masked);
        let changed: Vec<u64> = (0..list.len()).map(|place| if is_in(place) { 99 } else { list[place] }).collect();
        prop_assert_eq!(rows(&versions.with_version(places.iter().copied(), 99)), changed);
        for (place, version) in list.iter().enumerate() {
            prop_assert_eq!(versions.get(place as u64), Some(*version));
        }
        prop_assert_eq!(versions.get(list.len() as u64), None);
    }
}

#[test]
fn test_runs_whose_offsets_overlap_follow_each_other() {
    // What pylance leaves when it drops deleted rows: a bitmap of 0..4 with bits 1 and 2, then 0..3.
    let run = |span: &[u8], version: u8| {
        let mut run = vec![0x0a, span.len() as u8];
        run.extend_from_slice(span);
        run.extend([0x10, version]);
        [&[0x0a, run.len() as u8][..], &run].concat()
    };
    let message = [run(&[0x1a, 5, 0x10, 4, 0x1a, 1, 0b110], 5), run(&[0x0a, 2, 0x10, 3], 6)].concat();
    let versions = RowVersions::decode(&message.into(), "test").unwrap();
    assert_eq!(rows(&versions), [5, 5, 6, 6, 6]);
}

#[test]
fn test_rows_of_several_fragments_become_one_run() {
    let part = |ids: &[u64], version| RowLineage {
        ids: Some(RowIdSequence::from_ids(ids)),
        created: RowVersions::uniform(ids.len() as u64, version),
        updated: RowVersions::uniform(ids.len() as u64, version + 10),
    };
    let parts = [part(&[0, 1, 2, 3], 1).mask(&[1, 2]), part(&[9, 1, 2], 2).mask(&[])];
    let joined = RowLineage::concat(&parts);
    assert_eq!(joined.ids.as_ref().unwrap().ids(), [0, 3, 9, 1, 2]);
    assert_eq!(rows(&joined.created), [1, 1, 2, 2, 2]);
    assert_eq!(rows(&joined.updated), [11, 11, 12, 12, 12]);
    let last = joined.slice(3..5);
    assert_eq!((last.ids.unwrap().ids(), rows(&last.created)), (vec![1, 2], vec![2, 2]));
}
