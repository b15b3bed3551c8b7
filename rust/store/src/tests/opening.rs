//! Which URIs open, and the errors of the others.

use std::collections::HashMap;

use super::conformance::{paths, put};
use crate::{block_on, open, StoreRef};

fn opened(uri: &str) -> StoreRef {
    open(uri, &HashMap::new(), true).unwrap()
}

#[test]
fn test_every_way_to_write_a_path_opens_the_same_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("with space").display().to_string();
    put(&opened(&path), "a", "x");
    let encoded = path.replace(' ', "%20");
    for uri in [
        path.clone(),
        format!("file://{encoded}"),
        format!("file://localhost{path}"),
        format!("file:{path}"),
        format!("FILE://{encoded}"),
        format!("File:{path}"),
    ] {
        assert_eq!(paths(&opened(&uri), ""), ["a"], "{uri}");
    }
}

#[test]
fn test_a_colon_does_not_make_a_scheme() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a:b").display().to_string();
    put(&opened(&path), "a", "x");
    assert_eq!(std::fs::read(format!("{path}/a")).unwrap(), b"x");
}

#[test]
fn test_memory_is_shared_by_name() {
    put(&opened("memory://opening-one/t"), "a", "x");
    assert_eq!(paths(&opened("memory://opening-one/t/"), ""), ["a"]);
    assert_eq!(paths(&opened("Memory://opening-one"), ""), ["t/a"]);
    assert!(paths(&opened("memory://opening-two"), "").is_empty());
}

#[test]
fn test_unknown_schemes_are_refused_by_name_without_credentials() {
    for uri in [
        "ftp://key:secret@host/t",
        "s4://secret",
        "https://user:secret@host/t?token=secret",
    ] {
        let error = open(uri, &HashMap::new(), true).unwrap_err();
        assert_eq!(error.kind(), "unsupported");
        let message = error.to_string();
        assert!(message.contains(uri.split(':').next().unwrap()), "{message}");
        assert!(
            !message.contains("secret") && !format!("{error:?}").contains("secret"),
            "{message}"
        );
    }
}

#[test]
fn test_uris_that_mean_nothing_are_refused() {
    for uri in [
        "",
        "memory://",
        "memory:///t",
        "file://host/t",
        "file:///a?b",
        "file:///a#b",
        "file:///a%zz",
        "file:///a%00b",
        "memory://n/../m",
    ] {
        assert_eq!(
            open(uri, &HashMap::new(), true).unwrap_err().kind(),
            "invalid_argument",
            "{uri}"
        );
    }
}

#[test]
fn test_an_error_names_the_whole_path() {
    let error = block_on(opened("memory://opening-three").get("_versions/1.manifest")).unwrap_err();
    assert_eq!(error.path(), "memory://opening-three/_versions/1.manifest");
}
