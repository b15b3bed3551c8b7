//! Commits, differences, merges, listings and packing of small contents, against maps.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::apply::{apply_stream, Summary};
use crate::change_stream::ChangeStream;
use crate::diff::{summary, Diff};
use crate::merge::{merge, MergeOptions, Strategy as Wins};
use crate::repack::repack;
use crate::value::identity_of;
use crate::verify::verify;

/// Few letters, so that paths collide and share prefixes.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(b'/'), Just(0xff)], 1..5)
}

fn model(size: usize) -> impl Strategy<Value = Model> {
    prop::collection::btree_map(key(), 0..3u8, 0..size)
}

fn edits() -> impl Strategy<Value = Vec<(Vec<u8>, Option<u8>)>> {
    prop::collection::vec((key(), prop::option::weighted(0.7, 0..3u8)), 0..12)
}

fn rule() -> impl Strategy<Value = SplitRule> {
    (0..600u64, 1..900u64, 1..40u64)
        .prop_map(|(min, more, raggedness)| SplitRule::new(min, min + more, raggedness).unwrap())
}

fn edited(model: &Model, edits: &[(Vec<u8>, Option<u8>)]) -> Model {
    let mut model = model.clone();
    for (key, content) in edits {
        match content {
            Some(content) => model.insert(key.clone(), *content),
            None => model.remove(key),
        };
    }
    model
}

fn difference(left: &Model, right: &Model) -> Vec<(Vec<u8>, Option<u8>, Option<u8>)> {
    let keys: BTreeSet<_> = left.keys().chain(right.keys()).collect();
    let both = keys
        .into_iter()
        .map(|key| (key.clone(), left.get(key).copied(), right.get(key).copied()));
    both.filter(|(_, l, r)| l != r).collect()
}

fn of(value: &Option<bytes::Bytes>) -> Option<u8> {
    value.as_ref().map(|value| identity_of(value).unwrap()[0])
}

fn diffed(
    storage: &Arc<Storage>,
    left: &Metarange,
    right: &Metarange,
    prefix: &[u8],
) -> Vec<(Vec<u8>, Option<u8>, Option<u8>)> {
    let mut diff = Diff::new(storage, left, right, prefix);
    let found = block_on(diff.next_batch(usize::MAX)).unwrap();
    found.into_iter().map(|d| (d.key, of(&d.left), of(&d.right))).collect()
}

fn counted(differences: &[(Vec<u8>, Option<u8>, Option<u8>)]) -> Summary {
    let count = |wanted: (bool, bool)| {
        differences
            .iter()
            .filter(|(_, l, r)| (l.is_some(), r.is_some()) == wanted)
            .count() as u64
    };
    Summary {
        added: count((false, true)),
        removed: count((true, false)),
        changed: count((true, true)),
    }
}

/// The expected merge, and the paths in conflict.
fn merged(base: &Model, source: &Model, dest: &Model, wins: Wins) -> (Model, Vec<Vec<u8>>) {
    let keys: BTreeSet<_> = base.keys().chain(source.keys()).chain(dest.keys()).collect();
    let (mut result, mut conflicts) = (Model::new(), Vec::new());
    for key in keys {
        let (b, s, d) = (base.get(key), source.get(key), dest.get(key));
        let taken = match () {
            () if s == d || d == b => s,
            () if s == b => d,
            () => {
                conflicts.push(key.clone());
                if wins == Wins::SourceWins {
                    s
                } else {
                    d
                }
            }
        };
        taken.map(|content| result.insert(key.clone(), *content));
    }
    (result, conflicts)
}

/// Checks that each range matches its id, and equals its records written from scratch.
fn check_rule(storage: &Arc<Storage>, metarange: &Metarange) {
    for range in metarange.ranges() {
        let found = block_on(verify(storage, &range.id)).unwrap();
        assert_eq!(found, *range);
        assert_eq!(stored(storage, range), written_anew(storage, range));
    }
    if let Some(id) = metarange.id() {
        block_on(verify(storage, id)).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn test_a_commit_is_what_a_map_would_be(base in model(40), edits in edits(), rule in rule(), later in rule()) {
        let storage = storage();
        let before = content(&storage, &base, rule);
        prop_assert_eq!(read(&cold(&storage), &before), base.clone());
        let expected = edited(&base, &edits);
        let edits = changes(edits.iter().map(|(key, content)| (key.as_slice(), *content)));
        let after = applied(&storage, &before, &edits, later);
        prop_assert_eq!(after.summary, counted(&difference(&base, &expected)));
        let after = after.written.unwrap().metarange;
        prop_assert_eq!(read(&cold(&storage), &after), expected.clone());
        check_rule(&storage, &before);
        check_rule(&storage, &after);
        for key in base.keys().chain(expected.keys()) {
            let found = block_on(cold(&storage).get(after.id().unwrap(), key)).unwrap();
            prop_assert_eq!(of(&found), expected.get(key).copied());
        }
    }

    #[test]
    fn test_a_commit_of_changes_that_come_in_parts_is_that_of_all_at_once(
        base in model(60), edits in edits(), rule in rule(), parts in prop::collection::vec(0..4usize, 0..12)
    ) {
        let storage = storage();
        let before = content(&storage, &base, rule);
        let edits: std::collections::BTreeMap<_, _> = edits.into_iter().collect();
        let all = changes(edits.iter().map(|(key, content)| (key.as_slice(), *content)));
        let mut rest = edits.iter();
        let mut batches: Vec<Changes> = Vec::new();
        for count in parts {
            batches.push(changes(rest.by_ref().take(count).map(|(key, content)| (key.as_slice(), *content))));
        }
        batches.push(changes(rest.map(|(key, content)| (key.as_slice(), *content))));
        let stream = ChangeStream::new(Box::new(batches.into_iter().map(Ok)));
        let found = block_on(apply_stream(&storage, &before, stream, rule, true)).unwrap();
        let expected = applied(&storage, &before, &all, rule);
        prop_assert_eq!(found.summary, expected.summary);
        prop_assert_eq!(found.written.unwrap().metarange, expected.written.unwrap().metarange);
    }

    #[test]
    fn test_a_difference_is_what_maps_differ_in(left in model(40), edits in edits(), rule in rule(), prefix in prop::option::of(key())) {
        let storage = storage();
        let before = content(&storage, &left, rule);
        let right = edited(&left, &edits);
        let edits = changes(edits.iter().map(|(key, content)| (key.as_slice(), *content)));
        let after = applied(&storage, &before, &edits, rule).written.unwrap().metarange;
        // The same content by another way: no boundary needs to be the same.
        let anew = content(&storage, &right, SplitRule::default());
        let prefix = prefix.unwrap_or_default();
        let all = difference(&left, &right);
        let expected: Vec<_> = all.iter().filter(|(key, ..)| key.starts_with(&prefix)).cloned().collect();
        for right in [&after, &anew] {
            prop_assert_eq!(diffed(&storage, &before, right, &prefix), expected.clone());
            prop_assert_eq!(block_on(summary(&storage, &before, right)).unwrap(), counted(&all));
        }
        prop_assert_eq!(diffed(&storage, &after, &anew, b""), []);
    }

    #[test]
    fn test_a_merge_is_what_maps_would_become(
        base in model(30), ours in edits(), theirs in edits(), rule in rule(), strategy in 0..3u8, anew in any::<bool>()
    ) {
        let storage = storage();
        let strategy = [Wins::None, Wins::DestWins, Wins::SourceWins][usize::from(strategy)];
        let start = content(&storage, &base, rule);
        let side = |edits: &[(Vec<u8>, Option<u8>)]| {
            let model = edited(&base, edits);
            let edits = changes(edits.iter().map(|(key, content)| (key.as_slice(), *content)));
            let metarange = applied(&storage, &start, &edits, rule).written.unwrap().metarange;
            (model, metarange)
        };
        let (source, mut left) = side(&ours);
        let (dest, right) = side(&theirs);
        if anew {
            left = content(&storage, &source, SplitRule::default());
        }
        let options = MergeOptions { strategy, rule, dry_run: false, max_conflicts: 1000 };
        let found = block_on(merge(&storage, &start, &left, &right, options)).unwrap();
        let (expected, conflicts) = merged(&base, &source, &dest, strategy);
        let listed: Vec<_> = found.conflicts.iter().map(|conflict| conflict.key.clone()).collect();
        prop_assert_eq!(&listed, &conflicts);
        prop_assert_eq!(found.conflict_count, conflicts.len() as u64);
        for conflict in &found.conflicts {
            prop_assert_eq!(of(&conflict.base), base.get(&conflict.key).copied());
            prop_assert_eq!(of(&conflict.source), source.get(&conflict.key).copied());
            prop_assert_eq!(of(&conflict.dest), dest.get(&conflict.key).copied());
        }
        match found.metarange {
            Some(metarange) => {
                prop_assert_eq!(read(&storage, &metarange), expected);
                check_rule(&storage, &metarange);
            }
            None => prop_assert!(strategy == Wins::None && !conflicts.is_empty()),
        }
        let dry = block_on(merge(&storage, &start, &left, &right, MergeOptions { dry_run: true, ..options })).unwrap();
        prop_assert_eq!(dry.conflicts, found.conflicts);
        prop_assert!(dry.written.is_none());
    }

    #[test]
    fn test_packing_changes_no_content(base in model(40), history in prop::collection::vec(edits(), 0..6), rule in rule()) {
        let storage = storage();
        let (mut model, mut metarange) = (base.clone(), content(&storage, &base, rule));
        for edits in &history {
            model = edited(&model, edits);
            let edits = changes(edits.iter().map(|(key, content)| (key.as_slice(), *content)));
            metarange = applied(&storage, &metarange, &edits, rule).written.unwrap().metarange;
        }
        let packed = block_on(repack(&storage, &metarange, rule)).unwrap();
        if let Some(written) = packed.written {
            prop_assert_eq!(read(&storage, &written.metarange), model);
            check_rule(&storage, &written.metarange);
        }
    }

    #[test]
    fn test_a_listing_is_a_stretch_of_the_map(base in model(40), rule in rule(), prefix in prop::option::of(key()), from in prop::option::of(key())) {
        let storage = storage();
        let metarange = content(&storage, &base, rule);
        let (prefix, from) = (prefix.unwrap_or_default(), from.unwrap_or_default());
        let wanted = |key: &&Vec<u8>| key.starts_with(&prefix) && **key >= from;
        let keys: Vec<_> = base.keys().filter(wanted).cloned().collect();
        let names = |listed: Vec<Listed>| -> Vec<(Vec<u8>, bool)> {
            listed.into_iter().map(|l| match l { Listed::Record(key, _) => (key, false), Listed::Prefix(key) => (key, true) }).collect()
        };
        let plain = names(list(&cold(&storage), &metarange, &prefix, &from, b""));
        prop_assert_eq!(plain, keys.iter().map(|key| (key.clone(), false)).collect::<Vec<_>>());
        let mut folders: Vec<(Vec<u8>, bool)> = Vec::new();
        for key in keys {
            let cut = key[prefix.len()..].iter().position(|byte| *byte == b'/');
            let entry = match cut { Some(at) => (key[..=prefix.len() + at].to_vec(), true), None => (key, false) };
            if folders.last() != Some(&entry) {
                folders.push(entry);
            }
        }
        prop_assert_eq!(names(list(&cold(&storage), &metarange, &prefix, &from, b"/")), folders);
    }
}

#[test]
fn test_a_merge_keeps_a_file_that_equals_another_of_the_base() {
    // lakeFS's own merge loses "y": the base's next path has the same content.
    let storage = storage();
    let make = |records: &[(&str, u8)]| {
        let model = records
            .iter()
            .map(|(key, content)| (key.as_bytes().to_vec(), *content))
            .collect();
        content(&storage, &model, SplitRule::default())
    };
    let base = make(&[("a", 1), ("z", 9)]);
    let source = make(&[("a", 1), ("y", 9), ("z", 9)]);
    let dest = make(&[("a", 1)]);
    let options = MergeOptions {
        strategy: Wins::None,
        rule: SplitRule::default(),
        dry_run: false,
        max_conflicts: 10,
    };
    let found = block_on(merge(&storage, &base, &source, &dest, options))
        .unwrap()
        .metarange
        .unwrap();
    let expected: Model = [(b"a".to_vec(), 1), (b"y".to_vec(), 9)].into();
    assert_eq!(read(&storage, &found), expected);
}

#[test]
fn test_a_merge_sees_a_conflict_where_one_side_equals_another_path_of_the_base() {
    // In lakeFS's own merge the destination silently wins.
    let storage = storage();
    let make = |records: &[(&str, u8)]| {
        let model = records
            .iter()
            .map(|(key, content)| (key.as_bytes().to_vec(), *content))
            .collect();
        content(&storage, &model, SplitRule::default())
    };
    let base = make(&[("a", 1), ("z", 9)]);
    let source = make(&[("a", 1), ("k", 9), ("z", 9)]);
    let dest = make(&[("a", 1), ("k", 7), ("z", 9)]);
    let options = MergeOptions {
        strategy: Wins::None,
        rule: SplitRule::default(),
        dry_run: false,
        max_conflicts: 10,
    };
    let found = block_on(merge(&storage, &base, &source, &dest, options)).unwrap();
    assert_eq!((found.conflict_count, found.metarange), (1, None));
    assert_eq!(found.conflicts[0].key, b"k");
    assert_eq!(found.conflicts[0].base, None);
}
