//! Conformance: what every store must do, run over each of them.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Barrier};

use bytes::Bytes;
use futures::TryStreamExt;

use crate::store::LISTED_AT_ONCE;
use crate::{block_on, PutOutcome, Store, StoreError, StoreRef};

/// Makes one test per rule and store.
macro_rules! every_store {
    ($($rule:ident),* $(,)?) => {
        mod on_local_files {
            $(#[test] fn $rule() {
                let folder = tempfile::tempdir().unwrap();
                super::$rule(std::sync::Arc::new(crate::local::LocalStore::new("x", folder.path().join("a/b"), true).unwrap()));
            })*
        }
        mod on_local_files_without_sync {
            $(#[test] fn $rule() {
                let folder = tempfile::tempdir().unwrap();
                super::$rule(std::sync::Arc::new(crate::local::LocalStore::new("x", folder.path().join("a/b"), false).unwrap()));
            })*
        }
        mod in_memory {
            $(#[test] fn $rule() { super::$rule(std::sync::Arc::new(crate::memory::private().unwrap())); })*
        }
        mod around_memory_without_faults {
            $(#[test] fn $rule() {
                let inner = std::sync::Arc::new(crate::memory::private().unwrap());
                super::$rule(std::sync::Arc::new(crate::fault::FaultStore::new(inner, crate::fault::FaultPlan::none())));
            })*
        }
        mod below_a_prefix {
            $(#[test] fn $rule() {
                let outside = super::name_of(stringify!($rule));
                let store = crate::open(&format!("memory://{outside}/some/where"), &Default::default(), true).unwrap();
                super::$rule(store);
            })*
        }
    };
}

every_store!(
    test_what_is_put_is_read_back,
    test_ranges_come_in_the_order_asked_for,
    test_a_range_past_the_end_is_corrupt_and_says_how_long_the_object_is,
    test_the_tail_comes_with_the_size,
    test_what_is_not_there_is_not_found,
    test_a_listing_is_sorted_and_keeps_to_its_folder,
    test_a_listing_in_batches_tells_of_the_same,
    test_a_listing_of_nothing_is_empty,
    test_put_if_absent_leaves_what_was_there,
    test_put_if_absent_has_one_winner_of_sixteen,
    test_readers_see_the_old_or_the_new_and_never_a_part,
    test_a_written_object_appears_when_it_is_finished,
    test_what_is_staged_or_not_synced_is_read_back_and_replaces,
    test_an_abandoned_object_leaves_nothing,
    test_deleting_twice_is_no_error,
    test_many_are_deleted_at_once,
    test_paths_out_of_the_root_are_refused,
    test_names_are_taken_as_they_are,
    test_requests_and_bytes_are_counted,
);

fn name_of(rule: &str) -> String {
    format!("conformance-{rule}")
}

pub(super) fn put(store: &StoreRef, path: &str, bytes: impl Into<Bytes>) {
    block_on(store.put(path, bytes.into())).unwrap();
}

pub(super) fn paths(store: &StoreRef, prefix: &str) -> Vec<String> {
    block_on(store.list(prefix))
        .unwrap()
        .into_iter()
        .map(|meta| meta.path)
        .collect()
}

fn test_what_is_put_is_read_back(store: StoreRef) {
    for size in [0_usize, 1, 4095, 4096, 1_000_000, 5_000_000] {
        let bytes: Bytes = (0..size).map(|at| (at % 253) as u8).collect();
        put(&store, "data/one", bytes.clone());
        assert_eq!(block_on(store.get("data/one")).unwrap(), bytes);
        let meta = block_on(store.head("data/one")).unwrap();
        assert_eq!((meta.path.as_str(), meta.size), ("data/one", size as u64));
        assert!(meta.last_modified_us.unwrap() > 1_600_000_000_000_000);
    }
}

fn test_ranges_come_in_the_order_asked_for(store: StoreRef) {
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    put(&store, "x", bytes.clone());
    let ranges = [
        2_000_000..2_000_008,
        0..4,
        4..4,
        100..200,
        150..250,
        9_999_999..9_999_999,
        0..3_000_000,
        2_999_999..3_000_000,
        64..128,
    ];
    let found = block_on(store.get_ranges("x", &ranges)).unwrap();
    for (range, found) in ranges.iter().zip(found) {
        let wanted = if range.is_empty() {
            &[]
        } else {
            &bytes[range.start as usize..range.end as usize]
        };
        assert!(found == wanted, "{range:?}");
    }
    assert!(block_on(store.get_ranges("x", &[])).unwrap().is_empty());
}

fn test_a_range_past_the_end_is_corrupt_and_says_how_long_the_object_is(store: StoreRef) {
    put(&store, "data/short", vec![7; 100]);
    for range in [90..101, 100..101, 500..600, 0..1 << 40, u64::MAX - 8..u64::MAX] {
        let error = block_on(store.get_ranges("data/short", std::slice::from_ref(&range))).unwrap_err();
        assert_eq!(error.kind(), "corrupt", "{error}");
        let message = error.to_string();
        assert!(
            message.contains("data/short") && message.contains("100 bytes"),
            "{message}"
        );
        assert!(
            message.contains(&format!("{}..{}", range.start, range.end)),
            "{message}"
        );
    }
    let error = block_on(store.get_ranges("data/short", &[Range { start: 8, end: 4 }])).unwrap_err();
    assert_eq!(error.kind(), "invalid_argument");
}

fn test_the_tail_comes_with_the_size(store: StoreRef) {
    put(&store, "x", "0123456789");
    for (asked, wanted) in [(4, "6789"), (10, "0123456789"), (99, "0123456789"), (0, "")] {
        let tail = block_on(store.get_tail("x", asked)).unwrap();
        assert_eq!((tail.bytes, tail.size), (Bytes::from(wanted), 10));
    }
    put(&store, "empty", "");
    let tail = block_on(store.get_tail("empty", 8)).unwrap();
    assert_eq!((tail.bytes, tail.size), (Bytes::new(), 0));
}

fn test_what_is_not_there_is_not_found(store: StoreRef) {
    put(&store, "folder/file", "x");
    for path in ["nothing", "no/such/folder", "folder", "folder/file/below"] {
        let errors: [StoreError; 4] = [
            block_on(store.get(path)).unwrap_err(),
            block_on(store.head(path)).unwrap_err(),
            block_on(store.get_ranges(path, &[0..1, 5..6])).unwrap_err(),
            block_on(store.get_tail(path, 8)).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), "not_found", "{error}");
            assert!(error.is_not_found() && error.path().ends_with(path), "{error}");
        }
    }
}

fn test_a_listing_is_sorted_and_keeps_to_its_folder(store: StoreRef) {
    // In byte order a '-' and a '.' come before the '/' of a folder, a '0' after it.
    let all = ["a-b", "a.b", "a/1", "a/10", "a/2", "a/b/c", "a0", "b/a", "ab/c"];
    for path in all {
        put(&store, path, path.to_owned());
    }
    let mut sorted = all.map(str::to_owned).to_vec();
    sorted.sort();
    assert_eq!(paths(&store, ""), sorted);
    assert_eq!(paths(&store, "a/"), ["a/1", "a/10", "a/2", "a/b/c"]);
    assert_eq!(paths(&store, "a/b/"), ["a/b/c"]);
    assert_eq!(block_on(store.list_paths("b/")).unwrap(), paths(&store, "b/"));
    assert_eq!(block_on(store.list_paths("")).unwrap(), paths(&store, ""));
    assert_eq!(block_on(store.list_paths("a")).unwrap_err().kind(), "invalid_argument");
    assert_eq!(block_on(store.list_folders("")).unwrap(), ["a/", "ab/", "b/"]);
    assert_eq!(block_on(store.list_folders("a/")).unwrap(), ["a/b/"]);
    assert!(block_on(store.list_folders("none/")).unwrap().is_empty());
    let listed = block_on(store.list("b/")).unwrap();
    assert_eq!((listed.len(), listed[0].size), (1, 3));
    assert_eq!(block_on(store.list("a")).unwrap_err().kind(), "invalid_argument");
}

fn test_a_listing_in_batches_tells_of_the_same(store: StoreRef) {
    for number in 0..50 {
        put(&store, &format!("many/{}/{number}", number % 7), "x");
    }
    put(&store, "other", "x");
    let in_batches = |prefix: &str| {
        let batches = block_on(async { store.list_batches(prefix).await?.try_collect::<Vec<_>>().await }).unwrap();
        assert!(batches
            .iter()
            .all(|batch| !batch.is_empty() && batch.len() <= LISTED_AT_ONCE));
        let mut found = batches.concat();
        found.sort_by(|left, right| left.path.cmp(&right.path));
        found
    };
    for prefix in ["", "many/", "many/3/", "none/"] {
        assert_eq!(in_batches(prefix), block_on(store.list(prefix)).unwrap());
    }
    assert_eq!(
        block_on(store.list_batches("a")).err().unwrap().kind(),
        "invalid_argument"
    );
}

fn test_a_listing_of_nothing_is_empty(store: StoreRef) {
    assert!(paths(&store, "").is_empty());
    put(&store, "a/b", "x");
    assert!(paths(&store, "c/").is_empty());
    assert!(paths(&store, "a/b/").is_empty());
}

fn test_put_if_absent_leaves_what_was_there(store: StoreRef) {
    let create = |bytes: &'static str| block_on(store.put_if_absent("_versions/1", Bytes::from(bytes))).unwrap();
    assert_eq!(create("first"), PutOutcome::Created);
    assert_eq!(create("second"), PutOutcome::Exists);
    assert_eq!(create("first"), PutOutcome::Exists);
    assert_eq!(block_on(store.get("_versions/1")).unwrap(), "first");
    assert_eq!(paths(&store, ""), ["_versions/1"]);
}

fn test_put_if_absent_has_one_winner_of_sixteen(store: StoreRef) {
    for round in 0..20 {
        let path = format!("v/{round}");
        let barrier = Barrier::new(16);
        let outcomes: Vec<(u8, PutOutcome)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16_u8)
                .map(|writer| {
                    let (path, barrier, store) = (&path, &barrier, &store);
                    scope.spawn(move || {
                        barrier.wait();
                        (
                            writer,
                            block_on(store.put_if_absent(path, Bytes::from(vec![writer; 3000]))).unwrap(),
                        )
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let winners: Vec<u8> = outcomes
            .iter()
            .filter(|(_, outcome)| *outcome == PutOutcome::Created)
            .map(|(writer, _)| *writer)
            .collect();
        assert_eq!(winners.len(), 1, "{outcomes:?}");
        assert_eq!(block_on(store.get(&path)).unwrap(), vec![winners[0]; 3000]);
    }
    assert_eq!(paths(&store, "").len(), 20);
}

fn test_readers_see_the_old_or_the_new_and_never_a_part(store: StoreRef) {
    let size = 200_000;
    put(&store, "x", vec![0; size]);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..60_u8 {
                put(&store, "x", vec![round; size + usize::from(round)]);
            }
        });
        let mut seen = HashSet::new();
        while !writer.is_finished() {
            let found = block_on(store.get("x")).unwrap();
            assert!(found.iter().all(|byte| *byte == found[0]));
            assert_eq!(found.len(), size + usize::from(found[0]));
            seen.insert(found[0]);
            assert_eq!(paths(&store, ""), ["x"]);
        }
    });
}

fn test_a_written_object_appears_when_it_is_finished(store: StoreRef) {
    let mut writer = block_on(store.writer("data/big")).unwrap();
    let mut wanted = Vec::new();
    for round in 0..50_u8 {
        let piece = vec![round; usize::from(round) * 20_000];
        wanted.extend_from_slice(&piece);
        block_on(writer.write(Bytes::from(piece))).unwrap();
        assert!(paths(&store, "").is_empty());
        assert!(block_on(store.get("data/big")).unwrap_err().is_not_found());
    }
    assert_eq!(block_on(writer.finish()).unwrap(), wanted.len() as u64);
    assert!(block_on(store.get("data/big")).unwrap() == wanted);

    let empty = block_on(store.writer("data/empty")).unwrap();
    assert_eq!(block_on(empty.finish()).unwrap(), 0);
    assert_eq!(paths(&store, ""), ["data/big", "data/empty"]);
}

fn test_what_is_staged_or_not_synced_is_read_back_and_replaces(store: StoreRef) {
    for round in 0..2_u8 {
        block_on(store.put_unsynced("_transactions/one", Bytes::from(vec![round; 9]))).unwrap();
        let mut writer = block_on(store.staging_writer("data/one")).unwrap();
        block_on(writer.write(Bytes::from(vec![round; 600_000]))).unwrap();
        block_on(writer.finish()).unwrap();
        drop(block_on(store.staging_writer("data/two")).unwrap());
        assert_eq!(block_on(store.get("_transactions/one")).unwrap(), vec![round; 9]);
        assert_eq!(block_on(store.get("data/one")).unwrap(), vec![round; 600_000]);
    }
    assert_eq!(paths(&store, ""), ["_transactions/one", "data/one"]);
}

fn test_an_abandoned_object_leaves_nothing(store: StoreRef) {
    let mut given_up = block_on(store.writer("data/one")).unwrap();
    block_on(given_up.write(Bytes::from(vec![1; 1_000_000]))).unwrap();
    block_on(given_up.abort()).unwrap();
    let mut dropped = block_on(store.writer("data/two")).unwrap();
    block_on(dropped.write(Bytes::from(vec![1; 1_000_000]))).unwrap();
    drop(dropped);
    assert!(paths(&store, "").is_empty());
}

fn test_many_are_deleted_at_once(store: StoreRef) {
    for n in 0..10 {
        put(&store, &format!("a/{n}"), "x");
    }
    let named = |numbers: Range<u64>| numbers.map(|n| format!("a/{n}")).collect::<Vec<_>>();
    block_on(store.delete_all(&named(3..12))).unwrap();
    assert_eq!(paths(&store, "a/"), named(0..3));
    block_on(store.delete_all(&[])).unwrap();
    let bad = block_on(store.delete_all(&["a/1".into(), "../b".into()]));
    assert!(matches!(bad, Err(StoreError::InvalidArgument { .. })), "{bad:?}");
}

fn test_deleting_twice_is_no_error(store: StoreRef) {
    put(&store, "a/b", "x");
    put(&store, "a/c", "x");
    for path in ["a/b", "a/b", "never/was", "a", "a/c/below"] {
        block_on(store.delete(path)).unwrap();
    }
    assert_eq!(paths(&store, ""), ["a/c"]);
}

fn test_paths_out_of_the_root_are_refused(store: StoreRef) {
    let temporary = format!("data/.tmp-{}", "0".repeat(32));
    for path in [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        "a/",
        ".",
        "a\0b",
        "a\nb",
        &temporary,
    ] {
        let kinds = [
            block_on(store.get(path)).unwrap_err().kind(),
            block_on(store.head(path)).unwrap_err().kind(),
            block_on(store.get_ranges(path, &[])).unwrap_err().kind(),
            block_on(store.get_tail(path, 1)).unwrap_err().kind(),
            block_on(store.put(path, Bytes::new())).unwrap_err().kind(),
            block_on(store.put_if_absent(path, Bytes::new())).unwrap_err().kind(),
            block_on(store.writer(path)).err().unwrap().kind(),
            block_on(store.delete(path)).unwrap_err().kind(),
        ];
        assert!(
            kinds.iter().all(|kind| *kind == "invalid_argument"),
            "{path:?}: {kinds:?}"
        );
    }
    for prefix in ["/", "../", "a//", "a", "./"] {
        assert_eq!(
            block_on(store.list(prefix)).unwrap_err().kind(),
            "invalid_argument",
            "{prefix:?}"
        );
    }
}

fn test_names_are_taken_as_they_are(store: StoreRef) {
    let names = [
        "with space",
        "per%20cent",
        "ünïcode/日本",
        "#1",
        "a=b/c=d",
        "q?x",
        "*",
        "~",
        ".hidden",
        "\\",
        "[x]{y}",
    ];
    for name in names {
        put(&store, name, name.to_owned());
    }
    let mut sorted = names.map(str::to_owned).to_vec();
    sorted.sort();
    assert_eq!(paths(&store, ""), sorted);
    for name in names {
        assert_eq!(block_on(store.get(name)).unwrap(), name.as_bytes());
    }
}

fn test_requests_and_bytes_are_counted(store: StoreRef) {
    put(&store, "x", vec![1; 10_000_000]);
    put(&store, "v/1", "12345");
    let stats = store.stats().take();
    assert_eq!(
        (stats.write_requests, stats.bytes_written, stats.read_requests),
        (2, 10_000_005, 0)
    );
    block_on(store.get_ranges("x", &[0..10, 9_000_000..9_000_010, 5..20, 7..7])).unwrap();
    let stats = store.stats().take();
    assert_eq!(
        (stats.read_requests, stats.bytes_read, stats.write_requests),
        (2, 30, 0)
    );
    block_on(store.get_tail("x", 100)).unwrap();
    block_on(store.get("v/1")).unwrap();
    block_on(store.head("x")).unwrap();
    block_on(store.list("")).unwrap();
    let stats = store.stats().take();
    assert_eq!(
        (stats.read_requests, stats.bytes_read, stats.list_requests),
        (3, 105, 1)
    );
    assert_eq!(store.stats().take(), crate::IoStats::default());
}

#[test]
fn test_a_store_can_be_shared_as_a_trait_object() {
    let store: Arc<dyn Store> = Arc::new(crate::memory::private().unwrap());
    put(&store, "a", "b");
    assert_eq!(store.uri(), "memory://");
}
