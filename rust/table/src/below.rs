//! Checks paths that a table's own files name: they must stay below the folder of such files.
//!
//! Otherwise an attacker who can write a manifest could make a reader open any file that the reader has access to. Files outside of the
//! table's root must lie under a base path, which the manifest declares and the user can see.

use esker_store::path::check_object;

use crate::error::{Result, TableError};

/// Refuses a path that is absolute, has a scheme, or leaves its folder. For errors, `what` names the file's kind and `of` where the path
/// was found.
pub(crate) fn check_below(path: &str, what: &str, of: &str) -> Result<()> {
    // The two slashes of a scheme make an empty segment, which is refused.
    check_object(path).map_err(|_| {
        TableError::corrupt(
            of,
            format!(
                "expected {what} by a relative path below the table's folder for it, found {path:?}; files elsewhere need a base path that \
                 the table declares"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_only_paths_below_a_folder_pass() {
        for path in ["a.lance", "a/b.lance", "..a", "a:b", "%2e%2e"] {
            check_below(path, "a data file", "here").unwrap();
        }
        for path in [
            "",
            "..",
            "../a.lance",
            "a/../../b",
            "./a",
            "/etc/passwd",
            "s3://bucket/a.lance",
            "file:///etc/passwd",
            "a//b",
            "a/",
            "a\0",
        ] {
            let error = check_below(path, "a data file", "here").unwrap_err();
            assert!(matches!(error, TableError::Corrupt { .. }), "{path:?}");
            assert!(
                error.to_string().contains("expected a data file by a relative path"),
                "{error}"
            );
        }
    }
}
