use bytes::Bytes;
use proptest::prelude::*;

use crate::row_ids::segment::Segment;
use crate::row_ids::RowIdSequence;

fn decoded(sequence: &RowIdSequence) -> RowIdSequence {
    RowIdSequence::decode(&Bytes::from(sequence.encode()), "test").unwrap()
}

/// What the forms of the segments are called in an encoded sequence.
fn forms(sequence: &RowIdSequence) -> Vec<&'static str> {
    let form = |segment: &Segment| match segment {
        Segment::Range(_) => "range",
        Segment::Holes { .. } => "holes",
        Segment::Bitmap { .. } => "bitmap",
        Segment::Sorted(_) => "sorted",
        Segment::Array(_) => "array",
    };
    decoded(sequence).starts().map(|(segment, _)| form(segment)).collect()
}

/// Lists of distinct ids of every kind: ranges, with holes, sparse, shuffled, and some of each behind each other.
pub(super) fn id_lists() -> impl Strategy<Value = Vec<u64>> {
    let start = prop_oneof![Just(0u64), 0u64..5000, Just(1 << 40), Just(u64::MAX - 100_000)];
    let part = (start, 0u64..600, 1u64..70_000, any::<u64>(), 0u8..5).prop_map(|(start, len, step, seed, kind)| {
        let mixed = |index: u64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed) >> 33;
        let all = start..start + len;
        match kind {
            0 => all.collect::<Vec<u64>>(),
            1 => all.filter(|id| mixed(*id) % 50 != 0).collect(),
            2 => all.filter(|id| mixed(*id) % 3 == 0).collect(),
            3 => (0..len / 8).map(|index| start.saturating_add(index * step)).collect(),
            _ => {
                let mut ids: Vec<u64> = all.collect();
                ids.sort_by_key(|id| mixed(*id));
                ids
            }
        }
    });
    proptest::collection::vec(part, 0..5).prop_map(|parts| {
        let mut seen = std::collections::HashSet::new();
        parts.concat().into_iter().filter(|id| seen.insert(*id)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn test_ids_come_back_from_their_encoded_form(ids in id_lists()) {
        let sequence = RowIdSequence::from_ids(&ids);
        prop_assert_eq!(decoded(&sequence).ids(), &ids[..]);
        let plain = Segment::array(&ids).encode().len();
        prop_assert!(sequence.encode().len() <= plain + 40, "{} bytes, {} as an array", sequence.encode().len(), plain);
    }

    #[test]
    fn test_single_ids_and_places_are_found(ids in id_lists(), place in any::<prop::sample::Index>()) {
        prop_assume!(!ids.is_empty());
        let sequence = decoded(&RowIdSequence::from_ids(&ids));
        let place = place.index(ids.len());
        prop_assert_eq!(sequence.get(place as u64), Some(ids[place]));
        prop_assert_eq!(sequence.position(ids[place]), Some(place as u64));
        prop_assert_eq!(sequence.get(ids.len() as u64), None);
        let absent = (0..).find(|id| !ids.contains(id)).unwrap();
        prop_assert_eq!(sequence.position(absent), None);
    }

    #[test]
    fn test_slices_are_those_of_the_list(ids in id_lists(), a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>()) {
        let (a, b) = (a.index(ids.len() + 1), b.index(ids.len() + 1));
        let (start, end) = (a.min(b), a.max(b));
        let slice = RowIdSequence::from_ids(&ids).slice(start as u64..end as u64);
        prop_assert_eq!(decoded(&slice).ids(), &ids[start..end]);
        let mut part = vec![7];
        RowIdSequence::from_ids(&ids).extend_into(start as u64..end as u64, &mut part);
        prop_assert_eq!(&part[1..], &ids[start..end]);
    }

    #[test]
    fn test_masked_rows_leave_the_list(ids in id_lists(), keep in 1u64..20, seed in any::<u64>()) {
        let gone = |place: u64| (place ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & 31 >= keep;
        let masked = RowIdSequence::from_ids(&ids).mask((0..ids.len() as u64).filter(|place| gone(*place)));
        let kept: Vec<u64> = ids.iter().zip(0..).filter(|(_, place)| !gone(*place)).map(|(id, _)| *id).collect();
        prop_assert_eq!(decoded(&masked).ids(), kept);
    }
}

#[test]
fn test_each_form_is_chosen_where_it_is_the_smallest() {
    let choose = |ids: &[u64]| forms(&RowIdSequence::from_ids(ids));
    assert_eq!(choose(&(5..900).collect::<Vec<_>>()), ["range"]);
    assert_eq!(
        choose(&(0..9000).filter(|id| id % 1000 != 7).collect::<Vec<_>>()),
        ["holes"]
    );
    assert_eq!(
        choose(&(0..9000).filter(|id| id % 3 != 0).collect::<Vec<_>>()),
        ["bitmap"]
    );
    assert_eq!(choose(&(0..90).map(|id| id * 90).collect::<Vec<_>>()), ["sorted"]);
    assert_eq!(
        choose(&(0..900).map(|id| id * 497 % 900).collect::<Vec<_>>()),
        ["array"]
    );
    // Ranges far from each other, and ranges out of order.
    let far: Vec<u64> = (0..1000).chain(100_000..101_000).chain(50..60).collect();
    assert_eq!(choose(&far), ["range", "range", "range"]);
    assert_eq!(choose(&[u64::MAX]), ["sorted"]);
    assert_eq!(RowIdSequence::from_ids(&[3, u64::MAX]).ids(), [3, u64::MAX]);
    assert!(choose(&[]).is_empty());
}

#[test]
fn test_the_bytes_of_another_writer() {
    // What pylance wrote for 1..=99 without every 9th: a bitmap, the least significant bit first.
    let bits: Vec<u64> = (1..40).filter(|id| id % 9 != 0 && ![7, 8].contains(id)).collect();
    let mut bitmap = vec![0x08, 1, 0x10, 40, 0x1a, 5];
    bitmap.extend([0x3f, 0xfe, 0xfd, 0xfb, 0x77]);
    let message = [&[0x0a, 13, 0x1a, 11][..], &bitmap].concat();
    assert_eq!(
        RowIdSequence::decode(&message.clone().into(), "test").unwrap().ids(),
        bits
    );
    // Two values of two bytes from base 8: a sorted array.
    let message = [0x0a, 12, 0x22, 10, 0x0a, 8, 0x08, 8, 0x12, 4, 0, 0, 93, 0];
    assert_eq!(
        RowIdSequence::decode(&message.to_vec().into(), "test").unwrap().ids(),
        [8, 101]
    );
    // Set bits behind the end do not count.
    let message = [0x0a, 7, 0x1a, 5, 0x10, 3, 0x1a, 1, 0xff];
    assert_eq!(
        RowIdSequence::decode(&message.to_vec().into(), "test").unwrap().ids(),
        [0, 1, 2]
    );
    assert_eq!(
        RowIdSequence::decode(&message.to_vec().into(), "test").unwrap().len(),
        3
    );
}
