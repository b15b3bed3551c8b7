//! Hostile bytes: they give an error or some ids, never a panic, and allocate no more than their size justifies.

use bytes::Bytes;
use proptest::prelude::*;

use super::sequences::id_lists;
use crate::row_ids::{RowIdIndexBuilder, RowIdSequence, RowVersions};

fn use_all(bytes: Vec<u8>) {
    let bytes = Bytes::from(bytes);
    let _ = RowVersions::decode(&bytes, "test").map(|versions| versions.get(3));
    let Ok(sequence) = RowIdSequence::decode(&bytes, "test") else {
        return;
    };
    let mut out = Vec::new();
    sequence.extend_into(0..100, &mut out);
    assert_eq!(out.len() as u64, sequence.len().min(100));
    assert_eq!(sequence.get(0), out.first().copied());
    let last = sequence.len().checked_sub(1);
    assert_eq!(last.and_then(|last| sequence.get(last)).is_some(), last.is_some());
    let mut builder = RowIdIndexBuilder::default();
    if builder.push(0, &sequence, "test").is_ok() {
        let index = builder.build();
        let mut found = Vec::new();
        for id in out {
            index.candidates(id, &mut found);
            assert!(!found.is_empty(), "id {id}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn test_any_bytes_give_ids_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        use_all(bytes);
    }

    #[test]
    fn test_changed_bytes_give_ids_or_an_error(
        ids in id_lists(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = RowIdSequence::from_ids(&ids).encode();
        prop_assume!(!bytes.is_empty());
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        use_all(bytes);
    }
}

#[test]
fn test_every_prefix_of_a_sequence_gives_ids_or_an_error() {
    let ids: Vec<u64> = (0..500)
        .chain((600..5000).filter(|id| id % 3 != 0))
        .chain([9_000, 8_000, 100_000])
        .collect();
    let bytes = RowIdSequence::from_ids(&ids).encode();
    for end in 0..bytes.len() {
        use_all(bytes[..end].to_vec());
    }
}

#[test]
fn test_segments_that_contradict_themselves_are_named() {
    let decode = |segment: &[u8]| {
        let message = [&[0x0a, segment.len() as u8][..], segment].concat();
        RowIdSequence::decode(&message.into(), "row ids of fragment 7")
            .unwrap_err()
            .to_string()
    };
    let reversed = decode(&[0x0a, 4, 0x08, 5, 0x10, 3]);
    assert!(
        reversed.contains("row ids of fragment 7: segment 0: expected a range, found 5..3"),
        "{reversed}"
    );
    assert!(decode(&[0x1a, 5, 0x10, 9, 0x1a, 1, 1]).contains("expected a bitmap of 9 bits, found 1 bytes"));
    assert!(decode(&[0x22, 8, 0x0a, 6, 0x12, 4, 5, 0, 5, 0]).contains("expected a sorted array to ascend"));
    assert!(decode(&[0x2a, 5, 0x0a, 3, 0x12, 1, 5]).contains("expected values of 2 bytes, found 1 bytes"));
    assert!(decode(&[0x12, 10, 0x10, 4, 0x1a, 6, 0x0a, 4, 0x12, 2, 9, 0])
        .contains("expected holes that ascend within 0..4"));
    assert!(decode(&[]).contains("expected a segment of one of five forms"));
}

#[test]
fn test_a_range_of_all_numbers_costs_nothing() {
    let message = [&[0x0a, 13, 0x0a, 11, 0x10][..], &[0xff; 9], &[1]].concat();
    let sequence = RowIdSequence::decode(&message.clone().into(), "test").unwrap();
    assert_eq!((sequence.len(), sequence.get(1 << 40)), (u64::MAX, Some(1 << 40)));
    assert_eq!(sequence.slice(7..9).ids(), [7, 8]);
    assert!(RowIdIndexBuilder::default().push(0, &sequence, "test").is_err());
    let twice = [message.clone(), message].concat();
    assert!(RowIdSequence::decode(&twice.into(), "test").is_err());
}
