//! Paths that come out of a table's own bytes: they lead to a place below the folder that the table keeps such files in, or nowhere.
//!
//! Whoever can write a manifest could otherwise have any file read that its reader may read. A file that really lies elsewhere lies under a
//! base path, which the manifest declares and the reader sees.

use esker_store::path::check_object;

use crate::error::{Result, TableError};

/// Refuses a path that is absolute, has a scheme, or leaves its folder. `what` says what it is the path of, `of` where it was found.
pub(crate) fn check_below(path: &str, what: &str, of: &str) -> Result<()> {
    // A scheme's two slashes are an empty segment.
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
