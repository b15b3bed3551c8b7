//! The examples of the document "Concrete Graveler: splitting for reuse", and what it promises of the rule.

use super::*;
use crate::merge::{merge, MergeOptions, Strategy};
use crate::repack::repack;
use crate::write::Written;

fn files(prefix: &str, numbers: impl IntoIterator<Item = usize>) -> Vec<(Vec<u8>, u8)> {
    let file = |n: usize| (format!("{prefix}{n:06}.parquet").into_bytes(), (n % 251) as u8);
    numbers.into_iter().map(file).collect()
}

fn commit(storage: &Arc<Storage>, base: &Metarange, files: &[(Vec<u8>, u8)], rule: SplitRule) -> Written {
    let edits = changes(files.iter().map(|(key, content)| (key.as_slice(), Some(*content))));
    applied(storage, base, &edits, rule).written.unwrap()
}

fn options(rule: SplitRule) -> MergeOptions {
    MergeOptions {
        strategy: Strategy::None,
        rule,
        dry_run: false,
        max_conflicts: 10,
    }
}

fn shared(a: &Metarange, b: &Metarange) -> usize {
    a.ranges()
        .iter()
        .filter(|range| b.ranges().iter().any(|other| other.id == range.id))
        .count()
}

#[test]
fn test_hourly_ingest_writes_one_or_two_ranges_an_hour_and_its_merge_none() {
    let storage = storage();
    let rule = SplitRule::new(0, 20_000, 3000).unwrap();
    let old = [files("input/2021/04/25/23:00/", 0..2000), files("output/", 0..2000)].concat();
    let mut main = commit(&storage, &Metarange::default(), &old, rule).metarange;
    let mut ingest = main.clone();
    for hour in 0..24 {
        let prefix = format!("input/2021/04/26/{hour:02}:00/");
        let base = main.clone();
        let written = commit(&storage, &ingest, &files(&prefix, 0..40), rule);
        assert!(
            (1..=2).contains(&written.ranges_written),
            "hour {hour}: {}",
            written.ranges_written
        );
        ingest = written.metarange;
        // Meanwhile something else happens far away on main.
        let other = commit(
            &storage,
            &main,
            &[(format!("output/{:06}.parquet", 1900 + hour).into_bytes(), 255)],
            rule,
        );
        let merged = block_on(merge(&storage, &base, &ingest, &other.metarange, options(rule))).unwrap();
        assert_eq!(merged.written.unwrap().ranges_written, 0, "hour {hour}");
        main = merged.metarange.unwrap();
        ingest = main.clone();
    }
    assert_eq!(read(&storage, &main).len(), 4000 + 24 * 40);
}

/// Two branches add mostly the same files in different commits; returns how many ranges of the merge are shared.
fn branches_with_the_same_files(rule: SplitRule) -> (usize, usize) {
    let storage = storage();
    let base = commit(
        &storage,
        &Metarange::default(),
        &files("data/", (0..8000).step_by(8)),
        rule,
    )
    .metarange;
    let branch = |order: [usize; 3], every: usize, own: usize| {
        let mut metarange = base.clone();
        for part in order {
            let added = files(
                "data/",
                (0..8000).filter(|n| n % 8 != 0 && n % 3 == part && n % every != own),
            );
            metarange = commit(&storage, &metarange, &added, rule).metarange;
        }
        metarange
    };
    let (left, right) = (branch([0, 1, 2], 1000, 17), branch([2, 0, 1], 100, 51));
    let merged = block_on(merge(&storage, &base, &left, &right, options(rule)))
        .unwrap()
        .metarange
        .unwrap();
    (shared(&left, &right).min(shared(&merged, &left)), merged.ranges().len())
}

#[test]
fn test_branches_that_add_the_same_files_share_ranges_with_hash_breaks_and_none_with_sizes_alone() {
    let (shared, all) = branches_with_the_same_files(SplitRule::new(0, 1 << 20, 50).unwrap());
    assert!(2 * shared > all, "{shared} of {all}");
    let (shared, all) = branches_with_the_same_files(SplitRule::new(0, 8000, u64::MAX).unwrap());
    assert!(shared == 0 && all > 20, "{shared} of {all}");
}

#[test]
fn test_no_range_ends_before_the_least_size_or_passes_the_largest_by_more_than_an_entry() {
    let storage = storage();
    let rule = SplitRule::new(5000, 9000, 10).unwrap();
    let written = commit(&storage, &Metarange::default(), &files("a/", 0..5000), rule);
    let (_, whole) = written.metarange.ranges().split_last().unwrap();
    assert!(whole.len() > 20);
    for range in whole {
        assert!(
            (5000..9000 + 400).contains(&range.estimated_size),
            "{}",
            range.estimated_size
        );
    }
}

#[test]
fn test_ranges_have_the_mean_size_that_raggedness_asks_for() {
    let storage = storage();
    let written = commit(
        &storage,
        &Metarange::default(),
        &files("a/", 0..40_000),
        SplitRule::new(0, 1 << 30, 200).unwrap(),
    );
    let ranges = written.metarange.ranges().len();
    assert!((150..250).contains(&ranges), "{ranges}");
}

#[test]
fn test_the_same_records_end_in_the_same_ranges_however_many_tasks_encode_them() {
    let rule = SplitRule::new(0, 30_000, 700).unwrap();
    let all = files("a/", 0..20_000);
    let parallel = commit(&storage(), &Metarange::default(), &all, rule).metarange;
    // A minimal size of one byte changes no break, but forces segments to be encoded one after the other.
    let in_turn = commit(
        &storage(),
        &Metarange::default(),
        &all,
        SplitRule::new(1, 30_000, 700).unwrap(),
    )
    .metarange;
    assert!(parallel.ranges().len() > 20);
    assert_eq!(parallel, in_turn);
}

#[test]
fn test_parameters_change_and_old_ranges_stay() {
    let storage = storage();
    let old = commit(
        &storage,
        &Metarange::default(),
        &files("a/", 0..3000),
        SplitRule::new(0, 4000, 100).unwrap(),
    )
    .metarange;
    let new = commit(&storage, &old, &files("b/", 0..3000), SplitRule::default());
    assert_eq!(new.ranges_reused, old.ranges().len() as u64);
    assert_eq!(new.ranges_written, 1);
}

#[test]
fn test_a_history_of_appends_is_packed_into_ranges_of_the_size_aimed_at() {
    let storage = storage();
    let rule = SplitRule::new(0, 1 << 20, 1000).unwrap();
    let mut metarange = Arc::new(Metarange::default());
    for hour in 0..200 {
        metarange = commit(&storage, &metarange, &files(&format!("{hour:05}/"), 0..20), rule).metarange;
    }
    assert!(metarange.ranges().len() >= 200);
    let packed = block_on(repack(&storage, &metarange, rule))
        .unwrap()
        .written
        .unwrap()
        .metarange;
    assert!(packed.ranges().len() < 20, "{}", packed.ranges().len());
    assert_eq!(read(&storage, &packed), read(&storage, &metarange));
    let again = block_on(repack(&storage, &packed, rule)).unwrap().written;
    assert!(again.is_none_or(|written| written.metarange.ranges().len() == packed.ranges().len()));
}
