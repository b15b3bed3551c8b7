use std::collections::BTreeMap;

use bytes::Bytes;
use esker_proto::lance::table as pb;
use esker_proto::lance::table::transaction as op;
use op::Operation as Op;
use prost::Message;

use super::*;

fn transaction(operation: Op) -> Transaction {
    let proto = pb::Transaction {
        read_version: 1,
        uuid: "u".into(),
        operation: Some(operation),
        ..Default::default()
    };
    Transaction::decode(&Bytes::from(proto.encode_to_vec())).unwrap()
}

fn fragments(id: u64) -> Vec<pb::DataFragment> {
    vec![pb::DataFragment {
        id,
        ..Default::default()
    }]
}

fn config(key: &str) -> op::UpdateConfig {
    let entry = op::UpdateMapEntry {
        key: key.into(),
        value: Some("v".into()),
    };
    op::UpdateConfig {
        config_updates: Some(op::UpdateMap {
            update_entries: vec![entry],
            replace: false,
        }),
        ..Default::default()
    }
}

fn index(name: &str, field: i32) -> op::CreateIndex {
    let index = pb::IndexMetadata {
        name: name.into(),
        fields: vec![field],
        ..Default::default()
    };
    op::CreateIndex {
        new_indices: vec![index],
        ..Default::default()
    }
}

fn replacement(fragment_id: u64, field: i32) -> op::DataReplacement {
    let new_file = Some(pb::DataFile {
        fields: vec![field],
        ..Default::default()
    });
    op::DataReplacement {
        replacements: vec![op::DataReplacementGroup { fragment_id, new_file }],
    }
}

/// An operation of the kind; `same` and `other` differ in the fragment, the index name and column, the key, or what a new schema says.
fn sample(kind: Kind, same: bool) -> Transaction {
    let id = if same { 0 } else { 1 };
    let name = if same { "same" } else { "other" };
    transaction(match kind {
        Kind::Append => Op::Append(op::Append::default()),
        Kind::Delete => Op::Delete(op::Delete {
            updated_fragments: fragments(id),
            ..Default::default()
        }),
        Kind::Overwrite => Op::Overwrite(op::Overwrite::default()),
        Kind::CreateIndex => Op::CreateIndex(index(name, if same { 7 } else { 8 })),
        Kind::Rewrite => {
            let group = op::rewrite::RewriteGroup {
                old_fragments: fragments(id),
                new_fragments: fragments(50),
            };
            Op::Rewrite(op::Rewrite {
                groups: vec![group],
                ..Default::default()
            })
        }
        Kind::Merge => Op::Merge(op::Merge {
            preserves_nullability: !same,
            ..Default::default()
        }),
        Kind::Restore => Op::Restore(op::Restore { version: 1 }),
        Kind::ReserveFragments => Op::ReserveFragments(op::ReserveFragments { num_fragments: 1 }),
        Kind::Update => Op::Update(op::Update {
            updated_fragments: fragments(id),
            new_fragments: fragments(60),
            ..Default::default()
        }),
        Kind::Project => Op::Project(op::Project {
            preserves_nullability: !same,
            ..Default::default()
        }),
        Kind::UpdateConfig => Op::UpdateConfig(config(name)),
        Kind::DataReplacement => Op::DataReplacement(replacement(id, if same { 7 } else { 8 })),
        Kind::UpdateMemWalState => Op::UpdateMemWalState(Bytes::new()),
        Kind::Clone => Op::Clone(op::Clone::default()),
        Kind::UpdateBases => {
            let base = pb::BasePath {
                id: if same { 3 } else { 0 },
                path: name.into(),
                ..Default::default()
            };
            Op::UpdateBases(op::UpdateBases { new_bases: vec![base] })
        }
        Kind::DataOverlay => Op::DataOverlay(Bytes::new()),
        Kind::Composite => Op::CompositeOperation(Bytes::new()),
        Kind::Unknown(number) => {
            let mut encoded = pb::Transaction::default().encode_to_vec();
            crate::raw::push_length_delimited(&mut encoded, number, b"");
            return Transaction::decode(&Bytes::from(encoded)).unwrap();
        }
    })
}

/// The matrix as it was measured: o compatible, R retry, X incompatible; a pair is same fragment / other fragment, and
/// so on; a pair with a dash is of the new schemas that say so / do not say that no column became required, on either side.
const MEASURED: &str = "
    Append           o   o    X  o    o    R-o  X  o    R-o  o    o
    Delete           o   R/o  X  o    R/o  R  X  R/o  o  o    R/o
    Overwrite        o   o    R  o    o    o  o  o    o  o    o
    CreateIndex      o   o    X  R/o  R    o  X  o    o  o    R/o
    Rewrite          o   R/o  X  R    R/o  R  X  R/o  o  o    R/o
    Merge            R   R    X  o    R    R  X  R    X  o    R
    Restore          o   o    o  o    o    o  o  o    o  o    o
    Update           o   R/o  X  o    R/o  R  X  R/o  R-o  o    R/o
    Project          R-o   o    X  o    o    R  X  R-o    R  o    R-o
    UpdateConfig     o   o    o  o    o    o  o  o    o  X/o  o
    DataReplacement  o   o    X  R/o  R/o  R  X  R/o  R-o  o    R/o";

#[test]
fn test_every_cell_of_the_matrix() {
    let verdict = |letter: &str| match letter {
        "o" => Verdict::Compatible,
        "R" => Verdict::Retry,
        "X" => Verdict::Incompatible,
        other => panic!("{other}"),
    };
    let mut cells = 0;
    for line in MEASURED.lines().skip(1) {
        let words: Vec<_> = line.split_whitespace().collect();
        let ours = Kind::NAMED.into_iter().find(|kind| kind.name() == words[0]).unwrap();
        assert_eq!(words.len(), 12, "{line}");
        for (theirs, expected) in COLUMNS.into_iter().zip(&words[1..]) {
            if let Some((silent, said)) = expected.split_once('-') {
                // The fragments always differ: only the schemas matter.
                for (theirs_says, expected) in [(false, silent), (true, said)] {
                    let schema_is_ours = ours == Kind::Project;
                    let ours = sample(ours, schema_is_ours && !theirs_says);
                    let theirs = sample(
                        theirs,
                        if schema_is_ours {
                            ours.kind() == theirs
                        } else {
                            !theirs_says
                        },
                    );
                    assert_eq!(
                        check(&ours, &theirs),
                        verdict(expected),
                        "{:?} after {:?}",
                        ours.kind(),
                        theirs.kind()
                    );
                }
                cells += 1;
                continue;
            }
            let (same, other) = expected.split_once('/').unwrap_or((expected, expected));
            let ours = sample(ours, true);
            assert_eq!(
                check(&ours, &sample(theirs, true)),
                verdict(same),
                "{:?} after the same {theirs:?}",
                ours.kind()
            );
            assert_eq!(
                check(&ours, &sample(theirs, false)),
                verdict(other),
                "{:?} after another {theirs:?}",
                ours.kind()
            );
            cells += 1;
        }
    }
    assert_eq!(cells, 121);
}

#[test]
fn test_operations_outside_the_matrix() {
    use Verdict::{Compatible, Incompatible};
    for theirs in Kind::NAMED {
        let verdict = |ours| check(&sample(ours, true), &sample(theirs, true));
        if matches!(theirs, Kind::DataOverlay | Kind::Composite) {
            continue;
        }
        let reserve = matches!(theirs, Kind::Overwrite | Kind::Restore);
        assert_eq!(
            verdict(Kind::ReserveFragments),
            if reserve { Incompatible } else { Compatible },
            "{theirs:?}"
        );
        assert_eq!(verdict(Kind::Clone), Compatible, "{theirs:?}");
        let bases = theirs == Kind::UpdateBases;
        assert_eq!(
            verdict(Kind::UpdateBases),
            if bases { Incompatible } else { Compatible },
            "{theirs:?}"
        );
    }
    let append = sample(Kind::Append, true);
    assert_eq!(check(&append, &sample(Kind::ReserveFragments, true)), Compatible);
    assert_eq!(check(&append, &sample(Kind::UpdateBases, true)), Compatible);
    assert_eq!(check(&append, &sample(Kind::UpdateMemWalState, true)), Incompatible);
    assert_eq!(
        check(&sample(Kind::Rewrite, true), &sample(Kind::UpdateMemWalState, true)),
        Compatible
    );
    assert_eq!(
        check(&sample(Kind::UpdateBases, true), &sample(Kind::UpdateBases, false)),
        Compatible
    );
}

#[test]
fn test_an_operation_of_a_newer_writer_conflicts_with_everything() {
    for unknown in [Kind::Unknown(117), Kind::DataOverlay, Kind::Composite] {
        for named in Kind::NAMED {
            assert_eq!(
                check(&sample(named, true), &sample(unknown, true)),
                Verdict::Retry,
                "{named:?} after {unknown:?}"
            );
            assert_eq!(
                check(&sample(unknown, true), &sample(named, true)),
                Verdict::Retry,
                "{unknown:?} after {named:?}"
            );
        }
    }
}

#[test]
fn test_fragments_are_found_wherever_an_operation_names_them() {
    let touches_zero = [
        Op::Delete(op::Delete {
            deleted_fragment_ids: vec![0],
            ..Default::default()
        }),
        Op::Update(op::Update {
            removed_fragment_ids: vec![0],
            ..Default::default()
        }),
        Op::Rewrite(op::Rewrite {
            old_fragments: fragments(0),
            ..Default::default()
        }),
    ];
    for operation in touches_zero {
        let theirs = transaction(operation);
        assert_eq!(
            check(&sample(Kind::Delete, true), &theirs),
            Verdict::Retry,
            "{:?}",
            theirs.kind()
        );
        assert_eq!(
            check(&sample(Kind::Delete, false), &theirs),
            Verdict::Compatible,
            "{:?}",
            theirs.kind()
        );
    }
}

#[test]
fn test_two_upserts_under_a_key_are_computed_again() {
    let upsert = |id, filter: &'static [u8]| {
        let update = op::Update {
            updated_fragments: fragments(id),
            inserted_rows: Bytes::from_static(filter),
            ..Default::default()
        };
        transaction(Op::Update(update))
    };
    assert_eq!(check(&upsert(0, b"f"), &upsert(1, b"g")), Verdict::Retry);
    assert_eq!(check(&upsert(0, b"f"), &upsert(1, b"")), Verdict::Compatible);
}

#[test]
fn test_an_upsert_under_the_declared_key_is_computed_again_after_an_append() {
    let upsert = |bloom: bool, keys: &[u8]| {
        let mut filter = crate::merge::KeyFilter::new(vec![0], bloom);
        keys.iter().for_each(|key| filter.insert(&[*key]));
        let update = op::Update {
            inserted_rows: filter.encode(),
            ..Default::default()
        };
        transaction(Op::Update(update))
    };
    let append = transaction(Op::Append(op::Append {
        fragments: fragments(7),
    }));
    assert_eq!(check(&upsert(true, b"k"), &append), Verdict::Retry);
    assert!(may_insert_same_keys(&upsert(true, b"k"), &append));
    assert_eq!(check(&upsert(true, b""), &append), Verdict::Compatible);
    assert_eq!(check(&upsert(false, b"k"), &append), Verdict::Compatible);
    assert_eq!(check(&append, &upsert(true, b"k")), Verdict::Compatible);
}

#[test]
fn test_a_map_that_is_replaced_touches_every_key() {
    let mut replaced = config("other");
    replaced.config_updates.as_mut().unwrap().replace = true;
    let replaced = transaction(Op::UpdateConfig(replaced));
    assert_eq!(
        check(&sample(Kind::UpdateConfig, true), &replaced),
        Verdict::Incompatible
    );
    let old_style = op::UpdateConfig {
        upsert_values: BTreeMap::from([("same".to_string(), "v".to_string())]),
        ..Default::default()
    };
    let old_style = transaction(Op::UpdateConfig(old_style));
    assert_eq!(
        check(&sample(Kind::UpdateConfig, true), &old_style),
        Verdict::Incompatible
    );
    assert_eq!(
        check(&sample(Kind::UpdateConfig, false), &old_style),
        Verdict::Compatible
    );
    let table = op::UpdateConfig {
        table_metadata_updates: config("same").config_updates,
        ..Default::default()
    };
    assert_eq!(
        check(&sample(Kind::UpdateConfig, true), &transaction(Op::UpdateConfig(table))),
        Verdict::Compatible
    );
}

#[test]
fn test_a_damaged_operation_counts_as_a_conflict() {
    let mut encoded = pb::Transaction::default().encode_to_vec();
    crate::raw::push_length_delimited(&mut encoded, 101, b"\x0a\xff");
    let damaged = Transaction::decode(&Bytes::from(encoded)).unwrap();
    assert_eq!(check(&sample(Kind::Delete, false), &damaged), Verdict::Retry);
}

#[test]
fn test_an_append_to_a_column_that_was_replaced_is_computed_again() {
    let file = pb::DataFile {
        fields: vec![0, 2, -2],
        ..Default::default()
    };
    let fragment = pb::DataFragment {
        files: vec![file],
        ..Default::default()
    };
    let append = transaction(Op::Append(op::Append {
        fragments: vec![fragment],
    }));
    let merge = |ids: &[i32]| {
        let field = |id: &i32| esker_proto::lance::file::Field {
            id: *id,
            ..Default::default()
        };
        transaction(Op::Merge(op::Merge {
            schema: ids.iter().map(field).collect(),
            preserves_nullability: true,
            ..Default::default()
        }))
    };
    assert_eq!(check(&append, &merge(&[0, 1, 2, 3])), Verdict::Compatible);
    assert_eq!(check(&append, &merge(&[0, 1, 3])), Verdict::Retry);
}
