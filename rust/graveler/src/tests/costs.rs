//! How many requests and bytes reads take.

use super::*;
use crate::diff::Diff;
use crate::touched::{touched, Watched};

fn many(count: usize) -> Vec<(Vec<u8>, u8)> {
    (0..count)
        .map(|n| {
            (
                format!("table/part={:03}/file-{n:07}.parquet", n / 1000).into_bytes(),
                (n % 200) as u8,
            )
        })
        .collect()
}

#[test]
fn test_a_cold_look_up_takes_three_requests_and_128_kib_of_each_table_at_most() {
    let storage = storage();
    let model: Model = many(60_000).into_iter().collect();
    let metarange = content(&storage, &model, SplitRule::default());
    let id = metarange.id().unwrap();
    assert!(metarange.ranges().iter().any(|range| range.count > 20_000));
    for (key, content) in model.iter().step_by(5003) {
        let cold = cold(&storage);
        cold.store().stats().take();
        let found = block_on(cold.get(id, key)).unwrap().unwrap();
        assert_eq!(Value::decode(&found).unwrap().identity[0], *content);
        let stats = cold.store().stats().take();
        assert!(
            stats.read_requests <= 6 && stats.bytes_read <= 2 * 128 * 1024,
            "{stats:?}"
        );
    }
    let cold = cold(&storage);
    assert_eq!(block_on(cold.get(id, b"table/part=000/missing")).unwrap(), None);
    assert_eq!(block_on(cold.get(id, b"zzz")).unwrap(), None);
}

#[test]
fn test_a_look_up_that_was_made_before_reads_nothing() {
    let storage = storage();
    let model: Model = many(30_000).into_iter().collect();
    let metarange = content(&storage, &model, SplitRule::default());
    let warm = Storage::new(storage.store().clone(), PREFIX, CACHE_BYTES);
    let key = model.keys().nth(12_345).unwrap();
    for pass in 0..2 {
        warm.store().stats().take();
        block_on(warm.get(metarange.id().unwrap(), key)).unwrap().unwrap();
        assert_eq!(warm.store().stats().take().read_requests == 0, pass == 1);
    }
}

#[test]
fn test_a_commit_and_a_difference_read_the_ranges_that_they_touch() {
    let storage = storage();
    let rule = SplitRule::new(0, 40_000, 1000).unwrap();
    let model: Model = many(50_000).into_iter().collect();
    let before = content(&storage, &model, rule);
    assert!(before.ranges().len() > 40);
    let cold = Storage::new(storage.store().clone(), PREFIX, CACHE_BYTES);
    let edits = changes([(b"table/part=020/file-new".as_slice(), Some(3))]);
    cold.store().stats().take();
    let written = applied(&cold, &before, &edits, rule).written.unwrap();
    assert_eq!(cold.store().stats().take().read_requests, 1);
    assert_eq!(written.ranges_reused, before.ranges().len() as u64 - 1);
    let cold = Storage::new(storage.store().clone(), PREFIX, CACHE_BYTES);
    let found = block_on(Diff::new(&cold, &before, &written.metarange, b"").next_batch(10)).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(cold.store().stats().take().read_requests, 1 + written.ranges_written);
}

#[test]
fn test_a_listing_of_a_few_paths_does_not_read_whole_ranges() {
    let storage = storage();
    let model: Model = many(60_000).into_iter().collect();
    let metarange = content(&storage, &model, SplitRule::default());
    let cold = Storage::new(storage.store().clone(), PREFIX, CACHE_BYTES);
    cold.store().stats().take();
    assert_eq!(list(&cold, &metarange, b"table/part=042/", b"", b"").len(), 1000);
    let stats = cold.store().stats().take();
    assert!(stats.bytes_read < 400 << 10, "{stats:?}");
    let folders = list(&cold, &metarange, b"table/", b"", b"/");
    assert_eq!(folders.len(), 60);
}

#[test]
fn test_a_listing_of_folders_reads_about_a_block_a_folder_and_the_end_of_each_range() {
    let storage = storage();
    let model: Model = many(60_000).into_iter().collect();
    let metarange = content(&storage, &model, SplitRule::new(0, 1 << 20, 9000).unwrap());
    let ranges = metarange.ranges().len() as u64;
    assert!(ranges > 4);
    let cold = Storage::new(storage.store().clone(), PREFIX, CACHE_BYTES);
    cold.store().stats().take();
    assert_eq!(list(&cold, &metarange, b"table/", b"", b"/").len(), 60);
    let requests = cold.store().stats().take().read_requests;
    assert!(requests <= 70 + 2 * ranges, "{requests} requests, {ranges} ranges");
    // All paths in one folder: the metarange alone tells.
    let cold = Storage::new(storage.store().clone(), PREFIX, CACHE_BYTES);
    assert_eq!(list(&cold, &metarange, b"", b"", b"/").len(), 1);
    assert_eq!(cold.store().stats().take().read_requests, 0);
}

#[test]
fn test_whether_a_path_was_touched_is_told_by_metaranges_and_a_block_of_each_range_that_covers_it() {
    let storage = storage();
    let rule = SplitRule::new(0, 40_000, 1000).unwrap();
    let model: Model = many(20_000).into_iter().collect();
    let mut contents = vec![content(&storage, &model, rule)];
    let edits: [(&[u8], Option<u8>); 6] = [
        (b"table/part=003/file-0003007.parquet", Some(201)),
        (b"table/part=003/file-0003008.parquet", Some(202)),
        (b"table/part=019/file-0019001.parquet", Some(203)),
        (b"zzz/new", Some(204)),
        (b"table/part=003/file-0003007.parquet", None),
        (b"zzz/new", Some(205)),
    ];
    for edit in edits {
        let before = contents.last().unwrap().clone();
        let applied = applied(&storage, &before, &changes([edit]), rule);
        contents.push(applied.written.unwrap().metarange);
    }
    let id = |at: usize| contents[at].id().cloned();
    let pairs: Vec<_> = (0..edits.len()).map(|at| (id(at), id(at + 1))).collect();
    let ask = |paths: &[&str], prefixes: &[&str]| {
        let bytes = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        let watched = Watched {
            paths: bytes(paths),
            prefixes: bytes(prefixes),
        };
        let cold = Storage::new(storage.store().clone(), PREFIX, CACHE_BYTES);
        cold.store().stats().take();
        let found = block_on(touched(&cold, &pairs, &watched)).unwrap();
        (found, cold.store().stats().take())
    };
    let at = |wanted: &[usize]| (0..edits.len()).map(|n| wanted.contains(&n)).collect::<Vec<_>>();
    let (found, stats) = ask(&["table/part=003/file-0003007.parquet"], &[]);
    assert_eq!(found, at(&[0, 4]));
    // Seven metaranges, and the end and one block of four ranges.
    assert!(stats.read_requests <= 7 + 2 * 4, "{stats:?}");
    let (found, stats) = ask(&[], &["table/part=003/"]);
    assert_eq!(found, at(&[0, 1, 4]));
    assert!(stats.read_requests <= 7 + 3 * 4, "{stats:?}");
    // A path that no other range covers is known to be new without a read.
    let (found, stats) = ask(&[], &["zzz/"]);
    assert_eq!(found, at(&[3, 5]));
    assert!(stats.read_requests <= 7 + 2 * 2, "{stats:?}");
    assert_eq!(
        ask(&["zzz/new", "table/part=019/file-0019001.parquet"], &["none"]).0,
        at(&[2, 3, 5])
    );
    assert_eq!(ask(&[], &[""]).0, at(&[0, 1, 2, 3, 4, 5]));
    assert_eq!(
        block_on(touched(&storage, &[(id(2), id(2)), (None, id(0))], &Watched::default())).unwrap(),
        [false; 2]
    );
}
