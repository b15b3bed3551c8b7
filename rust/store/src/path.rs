//! The paths that may name an object: `/`-separated, relative, never outside of the root.

use crate::error::{Result, StoreError};
use crate::store::not_unfinished;

/// The prefix of a temporary file's name. Neither esker nor other readers of the formats take such a name for a manifest, a transaction
/// or a data file.
pub const TEMP_PREFIX: &str = ".tmp-";

/// Refuses a path that cannot name an object.
pub fn check_object(path: &str) -> Result<()> {
    if path.is_empty() {
        return Err(StoreError::invalid_argument(
            path,
            "expected the path of an object, found an empty string",
        ));
    }
    for segment in path.split('/') {
        check_segment(path, segment)?;
    }
    Ok(())
}

/// Refuses a path that cannot name a folder to list: it must be empty or end in `/`.
pub fn check_folder(prefix: &str) -> Result<()> {
    if prefix.is_empty() {
        return Ok(());
    }
    match prefix.strip_suffix('/') {
        Some(folder) => check_object(folder),
        None => Err(StoreError::invalid_argument(
            prefix,
            "expected a folder ending in '/' or an empty prefix",
        )),
    }
}

/// Refuses a path that is not a temporary file's, as a writer leaves it: a temporary name in a folder of objects.
pub fn check_unfinished(path: &str) -> Result<()> {
    match path.rsplit_once('/') {
        Some((folder, name)) if is_temporary(name) => check_object(folder),
        None if is_temporary(path) => Ok(()),
        _ => Err(not_unfinished(path)),
    }
}

fn check_segment(path: &str, segment: &str) -> Result<()> {
    let message = match segment {
        "" => "expected a relative path without empty segments",
        "." | ".." => "expected a path inside the store, found a '.' or '..' segment",
        _ if segment.contains(|letter: char| letter.is_ascii_control()) => "expected a path without control characters",
        _ if is_temporary(segment) => "names of this form are kept for files that are still being written",
        _ => return Ok(()),
    };
    Err(StoreError::invalid_argument(path, message))
}

/// Whether a file name is that of a temporary file of this crate.
pub fn is_temporary(name: &str) -> bool {
    name.strip_prefix(TEMP_PREFIX)
        .is_some_and(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_paths_that_leave_the_root_are_refused() {
        for path in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            "..",
            "a/../b",
            "./a",
            "a/.",
            "a\0b",
            "a\nb",
            "../../etc/passwd",
        ] {
            assert_eq!(check_object(path).unwrap_err().kind(), "invalid_argument", "{path:?}");
        }
        for path in ["a", "a/b.lance", "..a/b", "a..", ".hidden", "a b/%20#?", ".tmp-mine"] {
            check_object(path).unwrap();
        }
    }

    #[test]
    fn test_only_temporary_names_are_unfinished() {
        let name = format!("{TEMP_PREFIX}{}", "0a".repeat(16));
        for path in [name.clone(), format!("data/{name}"), format!("a/b/{name}")] {
            check_unfinished(&path).unwrap();
        }
        for path in ["", "data/x.lance", ".tmp-1", &format!("../{name}"), &format!("/{name}")] {
            assert_eq!(
                check_unfinished(path).unwrap_err().kind(),
                "invalid_argument",
                "{path:?}"
            );
        }
    }

    #[test]
    fn test_a_prefix_is_a_folder() {
        check_folder("").unwrap();
        check_folder("a/b/").unwrap();
        for prefix in ["a", "/", "a//", "../", "/a/"] {
            assert_eq!(
                check_folder(prefix).unwrap_err().kind(),
                "invalid_argument",
                "{prefix:?}"
            );
        }
    }
}
