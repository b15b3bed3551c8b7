use proptest::prelude::*;

use super::*;

fn fragment(id: u64, rows: u64) -> Fragment {
    Fragment::new(Vec::new(), rows).with_id(id)
}

fn moved(version: u64, old: &[u64], new: &[u64]) -> ReuseVersion {
    let fragments = |ids: &[u64]| ids.iter().map(|id| fragment(*id, 10)).collect::<Vec<_>>();
    let (old, new) = (fragments(old), fragments(new));
    let group = MovedGroup {
        survivors: [3, 4].into_iter().collect(),
        old: &old,
        new: &new,
    };
    ReuseVersion::new(version, &[group]).unwrap()
}

fn reuse() -> FragmentReuse {
    FragmentReuse {
        versions: vec![moved(8, &[0, 1], &[5]), moved(12, &[5, 6], &[9])],
    }
}

fn bitmap(ids: &[u32]) -> RoaringBitmap {
    ids.iter().copied().collect()
}

fn index(listed: &[u32], dataset_version: u64) -> Index {
    Index::new(NewIndex {
        uuid: Uuid::new_v4(),
        name: "i".into(),
        fields: vec![0],
        dataset_version,
        fragment_ids: listed.to_vec(),
        details: Some(("/lance.table.BTreeIndexDetails".into(), Vec::new())),
        ..NewIndex::default()
    })
    .unwrap()
}

#[test]
fn test_an_index_covers_what_became_of_its_fragments() {
    let reuse = reuse();
    assert_eq!(reuse.covered(&bitmap(&[0, 1, 6, 7])), bitmap(&[7, 9]));
    assert_eq!(reuse.covered(&bitmap(&[5, 6])), bitmap(&[9]));
    assert_eq!(reuse.covered(&bitmap(&[0, 1])), bitmap(&[]));
    assert_eq!(reuse.covered(&bitmap(&[0, 7])), bitmap(&[7]));
}

#[test]
fn test_a_fragment_has_all_those_that_it_was_made_from_as_ancestors() {
    let all = reuse().with_ancestors(&[9, 20].into());
    assert_eq!(all, [0, 1, 5, 6, 9, 20].into());
    assert_eq!(reuse().with_ancestors(&[6].into()), [6].into());
}

#[test]
fn test_a_compaction_is_forgotten_once_no_older_index_covers_its_fragments() {
    let trimmed = |indices: &[Index]| {
        let mut reuse = reuse();
        reuse.trim(indices).unwrap();
        reuse
            .versions
            .iter()
            .map(|version| version.dataset_version)
            .collect::<Vec<_>>()
    };
    assert_eq!(trimmed(&[index(&[0, 1, 6], 3)]), [8, 12]);
    assert_eq!(trimmed(&[index(&[9], 3)]), [8, 12]);
    assert_eq!(trimmed(&[index(&[9], 10)]), [12]);
    assert_eq!(trimmed(&[index(&[9], 13)]), [0_u64; 0]);
    assert_eq!(trimmed(&[index(&[7], 3)]), [0_u64; 0]);
    assert_eq!(trimmed(&[]), [0_u64; 0]);
}

#[test]
fn test_a_newer_form_is_refused() {
    let mut content = Vec::new();
    push_length_delimited(&mut content, 2, b"transitions");
    let error = FragmentReuse::decode(&content.into()).unwrap_err().to_string();
    assert!(error.contains("found field 2"), "{error}");
}

proptest! {
    #[test]
    fn test_hostile_bytes_are_errors(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = FragmentReuse::decode(&Bytes::from(bytes.clone()));
        let mut wrapped = Vec::new();
        push_length_delimited(&mut wrapped, VERSIONS, &bytes);
        let _ = FragmentReuse::decode(&wrapped.into());
    }
}
