//! Failures that only local files have.

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::sync::Arc;

use bytes::Bytes;

use super::conformance::{paths, put};
use crate::local::LocalStore;
use crate::{block_on, PutOutcome, StoreRef};

fn store_at(folder: &std::path::Path) -> StoreRef {
    Arc::new(LocalStore::new(folder.display().to_string(), folder, true).unwrap())
}

#[test]
fn test_aligned_bytes_of_a_file_are_aligned_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_at(folder.path());
    put(&store, "x", vec![1; 4_000_000]);
    for start in [0_u64, 64, 128, 6400, 1 << 20, (1 << 20) + 64] {
        for len in [1, 8, 64, 5000, 2_000_000] {
            let ranges = [start..start + len, 3_999_936..4_000_000];
            for found in block_on(store.get_ranges("x", &ranges)).unwrap() {
                assert_eq!(found.as_ptr().addr() % 64, 0, "{start}+{len}");
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn test_ranges_that_wait_for_the_disk_are_those_of_the_file() {
    use rustix::fs::{fadvise, Advice};

    let folder = tempfile::tempdir().unwrap();
    let store = store_at(folder.path());
    let bytes: Vec<u8> = (0..6_000_000_u32).flat_map(u32::to_le_bytes).collect();
    put(&store, "x", bytes.clone());
    for count in [1, 2, 7, 300] {
        let mut ranges: Vec<std::ops::Range<u64>> = (0..count)
            .map(|place| place * 79_999..place * 79_999 + 30_000 + place)
            .collect();
        ranges.push(23_000_000..24_000_000);
        ranges.reverse();
        let file = fs::File::open(folder.path().join("x")).unwrap();
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let before = store.stats().take();
        assert_eq!(before.read_requests, 0);
        let found = block_on(store.get_ranges("x", &ranges)).unwrap();
        for (found, range) in found.iter().zip(&ranges) {
            let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            assert!(found == &bytes[range.clone()], "{range:?}");
        }
        assert!(store.stats().take().bytes_read >= 1_030_000);
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let beyond = block_on(store.get_ranges("x", &[0..100_000, 23_900_000..24_100_000])).unwrap_err();
        assert!(beyond.to_string().contains("24000000"), "{beyond}");
        store.stats().take();
    }
}

#[test]
fn test_a_replaced_file_is_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_at(folder.path());
    for round in 0..5_u8 {
        put(&store, "x", vec![round; 100]);
        assert_eq!(block_on(store.get_ranges("x", &[10..20])).unwrap()[0], vec![round; 10]);
        block_on(store.delete("x")).unwrap();
        assert!(block_on(store.get_ranges("x", &[10..20])).unwrap_err().is_not_found());
    }
}

#[test]
fn test_files_get_the_usual_mode_and_nothing_stays_behind() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_at(&folder.path().join("t"));
    fs::write(folder.path().join("usual"), "x").unwrap();
    let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().permissions().mode();
    put(&store, "put", "x");
    block_on(store.put_if_absent("created", Bytes::from("x"))).unwrap();
    block_on(store.put_if_absent("created", Bytes::from("y"))).unwrap();
    block_on(block_on(store.writer("written")).unwrap().finish()).unwrap();
    drop(block_on(store.writer("given up")).unwrap());
    for path in ["t/put", "t/created", "t/written"] {
        assert_eq!(mode(path), mode("usual"), "{path}");
    }
    assert_eq!(fs::read_dir(folder.path().join("t")).unwrap().count(), 3);
}

#[test]
fn test_a_temporary_file_of_a_dead_writer_is_not_listed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_at(folder.path());
    put(&store, "_versions/1.manifest", "x");
    let writer = block_on(store.writer("_versions/2.manifest")).unwrap();
    std::mem::forget(writer);
    assert_eq!(fs::read_dir(folder.path().join("_versions")).unwrap().count(), 2);
    assert_eq!(paths(&store, ""), ["_versions/1.manifest"]);
    assert_eq!(paths(&store, "_versions/"), ["_versions/1.manifest"]);
    assert_eq!(block_on(store.list_paths("")).unwrap(), ["_versions/1.manifest"]);
}

#[test]
fn test_what_a_dead_writer_left_is_told_of_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_at(folder.path());
    assert_eq!(block_on(store.list_unfinished("")).unwrap(), []);
    put(&store, "data/1.lance", "x");
    let mut writer = block_on(store.writer("data/2.lance")).unwrap();
    block_on(writer.write(Bytes::from(vec![1; 3_000_000]))).unwrap();
    std::mem::forget(writer);
    let left = block_on(store.list_unfinished("")).unwrap();
    assert_eq!(left.len(), 1);
    assert!(left[0].path.starts_with("data/.tmp-") && left[0].size > 0, "{left:?}");
    assert_eq!(block_on(store.list_unfinished("data/")).unwrap(), left);
    assert_eq!(block_on(store.list_unfinished("_versions/")).unwrap(), []);
    // `delete_unfinished` removes nothing else.
    for path in ["data/1.lance", "../x", "data"] {
        assert_eq!(
            block_on(store.delete_unfinished(path)).unwrap_err().kind(),
            "invalid_argument"
        );
    }
    block_on(store.delete_unfinished(&left[0].path)).unwrap();
    block_on(store.delete_unfinished(&left[0].path)).unwrap();
    assert_eq!(block_on(store.list_unfinished("")).unwrap(), []);
    assert_eq!(paths(&store, ""), ["data/1.lance"]);
}

#[cfg(unix)]
#[test]
fn test_paths_are_those_of_a_listing_where_links_are() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_at(folder.path());
    for path in ["a/1", "a/b/2", "c/3"] {
        put(&store, path, "x");
    }
    let link =
        |from: &str, to: &str| std::os::unix::fs::symlink(folder.path().join(to), folder.path().join(from)).unwrap();
    link("a/file", "c/3");
    link("a/folder", "c");
    link("a/nowhere", "none");
    assert_eq!(paths(&store, "a/"), ["a/1", "a/b/2", "a/file", "a/folder/3"]);
    assert_eq!(block_on(store.list_paths("a/")).unwrap(), paths(&store, "a/"));
    assert_eq!(block_on(store.list_paths("")).unwrap(), paths(&store, ""));
    assert!(block_on(store.list_paths("none/")).unwrap().is_empty());
}

#[test]
fn test_a_folder_in_a_files_place_is_said_clearly() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_at(folder.path());
    put(&store, "a/b", "x");
    for error in [
        block_on(store.put("a", Bytes::new())).unwrap_err(),
        block_on(store.writer("a")).err().unwrap(),
    ] {
        assert_eq!(error.kind(), "io");
        assert!(error.to_string().contains("found a folder"), "{error}");
    }
    assert_eq!(
        block_on(store.put_if_absent("a", Bytes::new())).unwrap(),
        PutOutcome::Exists
    );
    assert!(block_on(store.get("a"))
        .unwrap_err()
        .to_string()
        .contains("found a folder"));
}

#[test]
fn test_a_file_in_a_folders_place_is_said_clearly() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    for durable in [true, false] {
        let store: StoreRef = Arc::new(LocalStore::new("file", &file, durable).unwrap());
        let error = block_on(store.put("_versions/1", Bytes::new())).unwrap_err();
        assert_eq!(error.kind(), "io", "{error}");
        assert!(error.to_string().contains("file"), "{error}");
        assert!(block_on(store.get("_versions/1")).unwrap_err().is_not_found());
        assert!(paths(&store, "").is_empty());
    }
}

#[test]
fn test_permission_denied_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_at(folder.path());
    put(&store, "a/b", "x");
    fs::set_permissions(folder.path().join("a"), fs::Permissions::from_mode(0o000)).unwrap();
    let found = block_on(store.get("a/b"));
    fs::set_permissions(folder.path().join("a"), fs::Permissions::from_mode(0o755)).unwrap();
    // The superuser may read everything, and then there is no error.
    if let Err(error) = found {
        assert_eq!((error.kind(), error.os_code()), ("io", Some(13)), "{error}");
        assert!(error.path().ends_with("a/b"), "{error}");
    }
}

#[test]
fn test_a_full_disk_is_said_and_leaves_nothing() {
    let full = std::path::Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let file = fs::OpenOptions::new().write(true).open(full).unwrap();
    let error = std::io::Write::write_all(&mut &file, b"x").unwrap_err();
    let error = crate::StoreError::from_io("table/data/x", "write", error);
    assert_eq!((error.kind(), error.os_code()), ("io", Some(28)));
    assert!(error.to_string().contains("free some space"), "{error}");
}

#[test]
fn test_links_are_followed_and_dead_ones_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_at(&folder.path().join("t"));
    put(&store, "a", "x");
    fs::create_dir(folder.path().join("elsewhere")).unwrap();
    fs::write(folder.path().join("elsewhere/c"), "yy").unwrap();
    symlink(folder.path().join("elsewhere"), folder.path().join("t/b")).unwrap();
    symlink(folder.path().join("nowhere"), folder.path().join("t/dead")).unwrap();
    assert_eq!(paths(&store, ""), ["a", "b/c"]);
    assert_eq!(block_on(store.get("b/c")).unwrap(), "yy");
}

#[test]
fn test_a_relative_root_stays_where_it_was_opened() {
    let store = LocalStore::new("some/where", "some/where", true).unwrap();
    assert!(store.root().is_absolute() && store.root().ends_with("some/where"));
}

#[test]
fn test_a_table_that_was_removed_is_made_anew_by_the_same_handle() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_at(&folder.path().join("deep/down/t"));
    for _ in 0..3 {
        put(&store, "_versions/1", "x");
        fs::remove_dir_all(folder.path().join("deep")).unwrap();
    }
    put(&store, "_versions/1", "y");
    assert_eq!(paths(&store, ""), ["_versions/1"]);
}
