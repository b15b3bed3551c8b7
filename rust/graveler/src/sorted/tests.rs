use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// All records of a merge.
fn all(mut merge: Merge) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    while merge.advance().unwrap() {
        found.push((merge.key().to_vec(), merge.value().to_vec()));
    }
    found
}

proptest! {
    #[test]
    fn test_records_come_out_sorted_and_of_equal_keys_the_newest_first(
        keys in prop::collection::vec("[a-c/.\u{e9}]{0,4}", 0..200), sorted_from in 0..200usize, memory in 1..2000usize
    ) {
        let mut keys = keys;
        if let Some(tail) = keys.get_mut(sorted_from..) {
            tail.sort();
        }
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(folder.path(), "x", memory);
        let mut expected = Vec::new();
        for (number, key) in keys.iter().enumerate() {
            let value = vec![b'v'; number];
            sorter.push(key.as_bytes(), &value).unwrap();
            expected.push((key.as_bytes().to_vec(), value));
        }
        prop_assert_eq!(sorter.len(), expected.len() as u64);
        expected.reverse();
        expected.sort_by(|left, right| left.0.cmp(&right.0));
        prop_assert_eq!(all(sorter.read().unwrap()), expected.clone());
        // What is taken afterwards comes with the rest.
        sorter.push(b"a", b"newest").unwrap();
        let place = expected.partition_point(|(key, _)| key.as_slice() < b"a".as_slice());
        expected.insert(place, (b"a".to_vec(), b"newest".to_vec()));
        prop_assert_eq!(all(sorter.read().unwrap()), expected);
    }

    #[test]
    fn test_changes_have_each_path_once_with_its_newest_value(
        keys in prop::collection::vec("[a-c/]{1,3}", 0..100), memory in 1..1000usize
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(folder.path(), "x", memory);
        let mut model = BTreeMap::new();
        for (number, key) in keys.iter().enumerate() {
            sorter.push(key.as_bytes(), &number.to_le_bytes()).unwrap();
            model.insert(key.clone(), number);
        }
        let changes = NewestChanges::new(sorter.read().unwrap());
        let mut found = Vec::new();
        for batch in changes {
            for change in batch.unwrap().iter() {
                let key = String::from_utf8(change.key.to_vec()).unwrap();
                found.push((key, usize::from_le_bytes(change.value.unwrap().try_into().unwrap())));
            }
        }
        prop_assert_eq!(found, model.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn test_names_that_others_lack_are_told_with_their_notes(
        names in prop::collection::vec(("[a-c\n]{1,3}", 0..3u64), 0..60), others in prop::collection::vec(("[a-c\n]{1,3}", 0..3u64), 0..60)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut left = Names::new(folder.path(), "left", 300);
        let mut right = Names::new(folder.path(), "right", 300);
        let others: BTreeMap<String, u64> = others.into_iter().collect();
        names.iter().for_each(|(name, size)| left.add(name, *size, "note").unwrap());
        others.iter().for_each(|(name, size)| right.add(name, *size, "").unwrap());
        for or_size in [false, true] {
            let mut expected: Vec<_> = names.iter().filter(|(name, size)| match others.get(name) {
                None => true,
                Some(other) => or_size && other != size,
            }).map(|(name, size)| (name.clone(), *size, others.get(name).copied())).collect();
            expected.sort();
            let mut found: Vec<_> = without(left.read().unwrap(), right.read().unwrap(), or_size).map(|name| {
                let name = name.unwrap();
                assert_eq!(name.note, "note");
                (name.name, name.size, name.other)
            }).collect();
            prop_assert!(found.is_sorted_by(|one, next| one.0 <= next.0));
            found.sort();
            prop_assert_eq!(found, expected);
        }
    }
}

#[test]
fn test_what_comes_in_order_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut sorter = Sorter::new(folder.path(), "x", 100);
    for number in 0..1000u32 {
        sorter.push(&number.to_be_bytes(), b"").unwrap();
    }
    assert_eq!(all(sorter.read().unwrap()).len(), 1000);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn test_many_runs_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let mut sorter = Sorter::new(folder.path(), "x", 100);
    for number in (0..1000u32).rev() {
        sorter.push(&number.to_be_bytes(), b"").unwrap();
    }
    assert_eq!(all(sorter.read().unwrap()).len(), 1000);
    assert!(std::fs::read_dir(folder.path()).unwrap().count() <= MOST_RUNS + 1);
}

#[cfg(target_os = "linux")]
#[test]
fn test_a_full_disk_is_told_with_the_path() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("x-1")).unwrap();
    let mut sorter = Sorter::new(folder.path(), "x", 100_000);
    let failed = (0..1_000_000u32).find_map(|number| sorter.push(&number.to_be_bytes(), &number.to_le_bytes()).err());
    let message = failed.unwrap().to_string();
    assert!(
        message.contains("x-1") && message.contains("free some space"),
        "{message}"
    );
}

#[test]
fn test_a_file_that_was_cut_off_anywhere_is_not_taken_for_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut sorter = Sorter::new(folder.path(), "x", 100);
    for number in 0..200u32 {
        sorter.push(&number.to_be_bytes(), b"value").unwrap();
    }
    assert_eq!(all(sorter.read().unwrap()).len(), 200);
    let path = folder.path().join("x-1");
    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let failed = sorter.read().and_then(|mut merge| {
            while merge.advance()? {}
            Ok(())
        });
        assert!(failed.unwrap_err().to_string().contains("x-1"), "{length}");
    }
}
