//! Which paths name an object: `/`-separated, relative, never out of the root.

use crate::error::{Result, StoreError};

/// How the name of a file that is still being written begins. Neither we nor other readers of the formats take such a name for a
/// manifest, a transaction or a data file.
pub const TEMP_PREFIX: &str = ".tmp-";

/// Refuses what does not name an object.
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

/// Refuses what does not name a folder to list: it must be empty or end in `/`.
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

/// Whether a file name is one of our temporary names.
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
