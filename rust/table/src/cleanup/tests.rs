use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use esker_store::store::StoreRef;
use esker_store::{block_on, memory};

use super::*;
use crate::error::TableError;
use crate::fragment::{DataFile, DeletionFile, DeletionFileType, Fragment};
use crate::manifest::Manifest;
use crate::operation::Operation;
use crate::transaction::Transaction;

fn fragment(id: u64, name: &str, deleted: Option<u64>) -> Fragment {
    let file = DataFile {
        path: format!("{name}.lance"),
        fields: vec![0],
        column_indices: vec![0],
        file_major_version: 2,
        file_minor_version: 0,
        file_size_bytes: None,
        base_id: None,
    };
    let deletion = deleted.map(|id| DeletionFile {
        file_type: DeletionFileType::Arrow,
        read_version: 1,
        id,
        num_deleted_rows: Some(1),
        base_id: None,
    });
    Fragment::new(vec![file], 3).with_id(id).with_deletion_file(deletion)
}

fn manifest(fragments: &[Fragment]) -> Manifest {
    let mut message = Vec::new();
    for fragment in fragments {
        crate::raw::push_length_delimited(&mut message, 2, &fragment.encode());
    }
    crate::raw::push_length_delimited(&mut message, 12, b"1-a.txn");
    let mut out = Vec::new();
    let position = crate::layout::push_section(&mut out, &message).unwrap();
    crate::layout::push_footer(&mut out, position);
    Manifest::decode(&out.into(), "1.manifest").unwrap()
}

fn store_with(paths: &[&str]) -> StoreRef {
    let store: StoreRef = Arc::new(memory::private().unwrap());
    for path in paths {
        block_on(store.put(path, Bytes::from("x"))).unwrap();
    }
    store
}

fn leftovers(paths: &[&str], references: &FileReferences) -> Vec<(String, &'static str, bool)> {
    let store = store_with(paths);
    let listing = block_on::<_, TableError>(FileListing::read(&store, None)).unwrap();
    let found = listing.leftovers(references);
    found
        .into_iter()
        .map(|left| (left.path, left.kind.name(), left.is_dropped))
        .collect()
}

#[test]
fn test_what_a_kept_version_refers_to_stays_and_what_only_a_dropped_one_does_is_told_apart() {
    let mut references = FileReferences::new();
    references
        .keep(&manifest(&[fragment(0, "a", None), fragment(1, "b", Some(7))]))
        .unwrap();
    references
        .discard(&manifest(&[fragment(0, "a", Some(5)), fragment(2, "c", None)]))
        .unwrap();
    let paths = [
        "data/a.lance",
        "data/a/1.blob",
        "data/b.lance",
        "data/c.lance",
        "data/c/1.blob",
        "data/d.lance",
        "data/d/1.blob",
        "_deletions/0-1-5.arrow",
        "_deletions/1-1-7.arrow",
        "_deletions/9-9-9.bin",
        "_transactions/1-a.txn",
        "_transactions/2-b.txn",
        "_indices/6c6a1c16-53b4-4dd4-a4ee-b9a2dd1b3ee0/x.idx",
        "_versions/.tmp_5.manifest_abc",
        "data/.tmp-1",
    ];
    let expected = [
        ("data/.tmp-1", "unfinished", false),
        ("data/c.lance", "data", true),
        ("data/c/1.blob", "data", true),
        ("data/d.lance", "data", false),
        ("data/d/1.blob", "data", false),
        ("_deletions/0-1-5.arrow", "deletion", true),
        ("_deletions/9-9-9.bin", "deletion", false),
        ("_transactions/2-b.txn", "transaction", false),
        ("_indices/6c6a1c16-53b4-4dd4-a4ee-b9a2dd1b3ee0/x.idx", "index", false),
        ("_versions/.tmp_5.manifest_abc", "unfinished", false),
    ];
    assert_eq!(
        leftovers(&paths, &references),
        expected.map(|(path, kind, dropped)| (path.to_owned(), kind, dropped))
    );
}

#[test]
fn test_files_of_no_known_form_are_nobodys_to_remove() {
    let paths = [
        "data/notes.txt",
        "data/.lance",
        "data/x.blob",
        "data/x.lance.bak",
        "_deletions/readme",
        "_transactions/x.json",
        "_versions/1.manifest",
        "_versions/latest_version_hint.json",
        "_versions/x/.tmp_1",
        "_refs/tags/.tmp-1",
        "_latest.manifest",
        "other/x.lance",
        "tree/b/data/x.lance",
    ];
    assert_eq!(leftovers(&paths, &FileReferences::new()), []);
}

#[test]
fn test_a_transaction_that_may_still_land_keeps_all_that_it_names() {
    let operation = Operation::Delete {
        updated_fragments: vec![fragment(3, "e", Some(8))],
        deleted_fragment_ids: vec![],
        predicate: String::new(),
    };
    let transaction = Transaction::new(4, &operation, BTreeMap::new()).unwrap();
    let own = format!("_transactions/{}", transaction.file_name());
    let mut references = FileReferences::new();
    references.discard(&manifest(&[fragment(3, "e", Some(8))])).unwrap();
    let paths = ["data/e.lance", "_deletions/3-1-8.arrow", own.as_str()];
    assert_eq!(leftovers(&paths, &references).len(), 3);
    references.keep_transaction(&transaction).unwrap();
    assert_eq!(leftovers(&paths, &references), []);
}
