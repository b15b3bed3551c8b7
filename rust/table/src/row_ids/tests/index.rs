use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;

use super::sequences::id_lists;
use crate::row_ids::cover::Cover;
use crate::row_ids::{Candidate, RowIdIndex, RowIdIndexBuilder, RowIdSequence};

fn index(fragments: &[Vec<u64>]) -> RowIdIndex {
    let mut builder = RowIdIndexBuilder::default();
    for (place, ids) in fragments.iter().enumerate() {
        let encoded = Bytes::from(RowIdSequence::from_ids(ids).encode());
        let ids = RowIdSequence::decode(&encoded, "test").unwrap();
        builder.push(place as u32, &ids, "test").unwrap();
    }
    builder.build()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn test_every_copy_of_every_id_is_found(fragments in proptest::collection::vec(id_lists(), 0..5)) {
        let index = index(&fragments);
        let mut model: BTreeMap<u64, Vec<Candidate>> = BTreeMap::new();
        for (fragment, ids) in fragments.iter().enumerate().rev() {
            for (offset, id) in ids.iter().enumerate() {
                let row = Candidate { fragment: fragment as u32, offset: offset as u32 };
                model.entry(*id).or_default().push(row);
            }
        }
        let mut found = Vec::new();
        for (id, rows) in &model {
            index.candidates(*id, &mut found);
            prop_assert_eq!(&found, rows, "id {}", id);
            for near in [id.wrapping_sub(1), id.wrapping_add(1)] {
                index.candidates(near, &mut found);
                prop_assert_eq!(&found[..], model.get(&near).map_or(&[][..], Vec::as_slice), "id {}", near);
            }
        }
    }

    #[test]
    fn test_all_ranges_that_hold_a_value_are_found(
        ranges in proptest::collection::vec((0u64..60, 0u64..30), 0..40),
        value in 0u64..100,
    ) {
        let mut ranges: Vec<(u64, u64)> = ranges.into_iter().map(|(first, size)| (first, first + size)).collect();
        ranges.sort_unstable();
        let mut found = Vec::new();
        Cover::new(&ranges).for_each(value, |place| found.push(place));
        let holds = |place: &usize| (ranges[*place].0..=ranges[*place].1).contains(&value);
        prop_assert_eq!(found, (0..ranges.len()).filter(holds).collect::<Vec<_>>());
    }
}

#[test]
fn test_what_the_index_takes_follows_the_segments_not_the_rows() {
    let small = index(
        &(0..100)
            .map(|fragment| (fragment * 10..fragment * 10 + 10).collect())
            .collect::<Vec<_>>(),
    );
    let large = index(
        &(0..100)
            .map(|fragment| (fragment * 10_000..fragment * 10_000 + 10_000).collect())
            .collect::<Vec<_>>(),
    );
    assert_eq!(
        (small.num_segments(), small.memory()),
        (large.num_segments(), large.memory())
    );
    assert!(large.memory() < 100 * 250, "{}", large.memory());
    // A bitmap's ranks take a hundredth of the bitmap.
    let bits: Vec<u64> = (0..1_000_000).filter(|id| id % 3 != 0).collect();
    assert!(index(&[bits]).memory() < 1_000_000 / 8 / 64 + 500);
}

#[test]
fn test_a_large_bitmap_is_looked_up_in_blocks() {
    let ids: Vec<u64> = (0..300_000).filter(|id| id % 7 != 3).collect();
    let index = index(&[vec![1_000_000], ids.clone()]);
    let mut found = Vec::new();
    for offset in (0..ids.len()).step_by(997) {
        index.candidates(ids[offset], &mut found);
        assert_eq!(
            found,
            [Candidate {
                fragment: 1,
                offset: offset as u32
            }]
        );
    }
    index.candidates(3, &mut found);
    assert!(found.is_empty());
}
