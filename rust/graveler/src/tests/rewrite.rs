//! Rewritten ranges: their bytes equal those written from scratch, whatever blocks were reused.

use proptest::prelude::*;

use super::*;
use crate::diff::Diff;

/// Entries of uneven lengths, so that the blocks of a rewritten range align with the old ones again after a while.
fn numbered(count: usize) -> Vec<(Vec<u8>, u8)> {
    let path = |n: usize| format!("t/part-{n:06}{}", "x".repeat(n * 7919 % 40)).into_bytes();
    (0..count).map(|n| (path(n), (n % 251) as u8)).collect()
}

fn check(base: &Model, edits: Vec<(Vec<u8>, Option<u8>)>, rule: SplitRule) {
    let storage = storage();
    let before = content(&storage, base, rule);
    let edits: BTreeMap<_, _> = edits.into_iter().collect();
    let differs = |(key, content): &(&Vec<u8>, &Option<u8>)| base.get(*key) != content.as_ref();
    let expected: Vec<_> = edits.iter().filter(differs).map(|(key, _)| key.clone()).collect();
    let edits = changes(edits.iter().map(|(key, content)| (key.as_slice(), *content)));
    let written = applied(&storage, &before, &edits, rule).written.unwrap();
    for range in written.metarange.ranges() {
        assert_eq!(stored(&storage, range), written_anew(&storage, range));
    }
    for (left, right) in [(&before, &written.metarange), (&written.metarange, &before)] {
        let found = block_on(Diff::new(&storage, left, right, b"").next_batch(usize::MAX)).unwrap();
        let keys: Vec<_> = found.into_iter().map(|difference| difference.key).collect();
        assert_eq!(keys, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn test_rewritten_ranges_have_the_bytes_of_their_records(
        edits in prop::collection::vec((0..3000usize, any::<bool>(), prop::option::weighted(0.6, 0..3u8)), 1..6),
        raggedness in prop_oneof![Just(700u64), Just(50_000)]
    ) {
        let base: Model = numbered(3000).into_iter().collect();
        let keys: Vec<_> = base.keys().cloned().collect();
        let edit = |(at, between, content): (usize, bool, Option<u8>)| {
            let mut key = keys[at].clone();
            if between {
                key.push(b'!');
            }
            (key, content)
        };
        check(&base, edits.into_iter().map(edit).collect(), SplitRule::new(0, 20 << 20, raggedness).unwrap());
    }
}

#[test]
fn test_blocks_that_another_compressor_made_are_not_taken_over() {
    // The same records in blocks that are not compressed at all: as valid, and not what this writer makes.
    let storage = storage();
    let base: Model = numbered(2000).into_iter().collect();
    let rule = SplitRule::new(0, 20 << 20, u64::MAX).unwrap();
    let before = content(&storage, &base, rule);
    let [range] = before.ranges() else {
        panic!("expected one range")
    };
    let raw = crate::sstable::tests::without_compression(&stored(&storage, range));
    block_on(storage.store().put(&storage.path(&range.id), raw.into())).unwrap();
    let storage = cold(&storage);
    let edits = changes([(b"t/part-001000!".as_slice(), Some(1))]);
    let written = applied(&storage, &before, &edits, rule).written.unwrap();
    for range in written.metarange.ranges() {
        assert_eq!(stored(&storage, range), written_anew(&storage, range));
    }
}
