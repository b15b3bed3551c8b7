use super::*;
use crate::raw::push_length_delimited;

fn index() -> Index {
    Index::new(NewIndex {
        uuid: Uuid::from_u128(1),
        name: "i".into(),
        fields: vec![3],
        fragment_ids: vec![0, 5],
        ..Default::default()
    })
    .unwrap()
}

#[test]
fn test_a_bitmap_changes_and_nothing_else() {
    let mut encoded = index().encode();
    push_length_delimited(&mut encoded, 50, b"future");
    let index = Index::decode(&Bytes::from(encoded)).unwrap();
    let changed = index.clone().with_fragment_bitmap(&[5].into_iter().collect()).unwrap();
    assert_eq!(
        changed
            .fragment_bitmap()
            .unwrap()
            .unwrap()
            .into_iter()
            .collect::<Vec<_>>(),
        [5]
    );
    assert!(changed.encode().ends_with(b"future"));
    assert_eq!(
        (changed.name(), changed.fields(), changed.uuid()),
        ("i", [3].as_slice(), Some(Uuid::from_u128(1)))
    );
    assert_eq!(
        changed.with_fragment_bitmap(&[0, 5].into_iter().collect()).unwrap(),
        index
    );
}

#[test]
fn test_a_section_keeps_what_it_does_not_know() {
    let mut section = Vec::new();
    push_length_delimited(&mut section, 1, &index().encode());
    push_length_delimited(&mut section, 9, b"future");
    let section = Bytes::from(section);
    assert_eq!(decode_section(&section).unwrap(), [index()]);
    assert_eq!(
        replace_section(Some(&section), &[index()]).unwrap(),
        Some(section.clone())
    );
    let emptied = replace_section(Some(&section), &[]).unwrap().unwrap();
    assert!(emptied.ends_with(b"future") && decode_section(&emptied).unwrap().is_empty());
    assert_eq!(replace_section(None, &[]).unwrap(), None);
}

#[test]
fn test_damaged_sections_never_panic() {
    let mut section = Vec::new();
    push_length_delimited(&mut section, 1, &index().encode());
    for position in 0..section.len() {
        for bit in 0..8 {
            let mut damaged = section.clone();
            damaged[position] ^= 1 << bit;
            for index in decode_section(&Bytes::from(damaged)).unwrap_or_default() {
                let _ = index.fragment_bitmap();
            }
        }
    }
}

#[test]
fn test_names_tell_system_indices() {
    let named = |name: &str| {
        Index::new(NewIndex {
            name: name.into(),
            ..Default::default()
        })
    };
    assert!(named("__lance_frag_reuse").unwrap().is_system());
    assert!(!named("vector_idx").unwrap().is_system());
}
