//! Paths in the log: URI-encoded, decoded once, and compared in a canonical form.
//!
//! | in the log | canonical |
//! |---|---|
//! | `a%20b/c.parquet` | `a b/c.parquet`, relative to the table |
//! | `/root/t/a`, `file:/root/t/a`, `file:///root/t/a`, the table being `/root/t` | `a` |
//! | `/elsewhere/a`, `file:/elsewhere/a` | `/elsewhere/a` |
//! | `s3a://bucket/a` | `s3://bucket/a`, or relative if the table holds it |
//!
//! Spec: "Add File and Remove File": paths are URIs by RFC 2396, relative to the table's root or absolute.

use std::borrow::Cow;
use std::fmt::Write;

/// The root of a table, to which paths are relative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRoot {
    /// Canonical, ends with `/`.
    prefix: String,
    /// The scheme and authority of a path like `/a`, empty for the local file system.
    authority: String,
}

impl TableRoot {
    /// The root of a table at a URI or a local path.
    pub fn new(uri: &str) -> Self {
        // A path of the file system names its folders as they are; its URI is encoded, as paths in the log are.
        let is_file = scheme_of(uri).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file"));
        let uri = if is_file { decode_path(uri) } else { uri.into() };
        let mut prefix = canonical_absolute(&uri).unwrap_or_else(|| uri.into_owned());
        while prefix.ends_with('/') {
            prefix.pop();
        }
        prefix.push('/');
        let authority = match prefix.split_once("://") {
            Some((scheme, rest)) => format!("{scheme}://{}", rest.split('/').next().unwrap_or_default()),
            None => String::new(),
        };
        Self { prefix, authority }
    }

    /// The canonical form of a path in the log.
    pub fn canonical<'a>(&self, encoded: &'a str) -> Cow<'a, str> {
        let decoded = decode_path(encoded);
        if is_plain_relative(&decoded) {
            return decoded;
        }
        let mut absolute = match canonical_absolute(&decoded) {
            Some(absolute) => absolute,
            None => return decoded,
        };
        if absolute.starts_with('/') && !self.authority.is_empty() {
            absolute.insert_str(0, &self.authority);
        }
        match absolute.strip_prefix(&self.prefix) {
            Some(inside) => Cow::Owned(inside.to_owned()),
            None => Cow::Owned(absolute),
        }
    }

    /// The absolute form of a canonical path: `/a/b` on the local file system, a URI elsewhere.
    pub fn place(&self, canonical: &str) -> String {
        if is_plain_relative(canonical) || canonical_absolute(canonical).is_none() {
            format!("{}{canonical}", self.prefix)
        } else {
            canonical.to_owned()
        }
    }

    /// The root itself, with a `/` at the end.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}

/// Whether a path is neither absolute nor a URI: most are.
fn is_plain_relative(path: &str) -> bool {
    !path.starts_with('/') && scheme_of(path).is_none()
}

/// The scheme of a URI: a letter and letters, digits, `+`, `-`, `.` up to a colon that a slash follows.
fn scheme_of(path: &str) -> Option<&str> {
    let (scheme, rest) = path.split_once(':')?;
    let mut letters = scheme.bytes();
    let named = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'-' | b'.'));
    (named && rest.starts_with('/')).then_some(scheme)
}

/// The canonical form of an absolute path or a URI.
fn canonical_absolute(path: &str) -> Option<String> {
    let Some(scheme) = scheme_of(path) else {
        return path.starts_with('/').then(|| one_slash(path));
    };
    let rest = path.get(scheme.len() + 1..)?;
    let scheme = scheme.to_ascii_lowercase();
    match scheme.as_str() {
        "file" => {
            // `file:/a`, `file:///a` and `file://localhost/a` are the same file.
            let rest = rest
                .strip_prefix("//localhost")
                .filter(|r| r.starts_with('/'))
                .unwrap_or(rest);
            Some(one_slash(rest))
        }
        "s3a" | "s3n" => Some(format!("s3:{rest}")),
        _ => Some(format!("{scheme}:{rest}")),
    }
}

fn one_slash(path: &str) -> String {
    format!("/{}", path.trim_start_matches('/'))
}

/// A path, percent-decoded once. Invalid encodings stay as they are.
pub fn decode_path(encoded: &str) -> Cow<'_, str> {
    if !encoded.contains('%') {
        return Cow::Borrowed(encoded);
    }
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let byte = match (first, behind) {
            (b'%', [high, low, behind @ ..]) => hex(*high).zip(hex(*low)).map(|(h, l)| (h * 16 + l, behind)),
            _ => None,
        };
        let (byte, behind) = byte.unwrap_or((*first, behind));
        decoded.push(byte);
        rest = behind;
    }
    match String::from_utf8(decoded) {
        Ok(text) => Cow::Owned(text),
        // Not UTF-8: the encoded form can at least be compared.
        Err(_) => Cow::Borrowed(encoded),
    }
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// The bytes that need no percent-encoding in a path.
const ALLOWED: [bool; 256] = {
    let mut allowed = [false; 256];
    let kept: &[u8] = b"/-_.!~*'()=:@&+$,;0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut rest = kept;
    while let Some((byte, behind)) = rest.split_first() {
        // The index of a byte is below 256; `get_mut` is not const.
        #[allow(clippy::indexing_slicing)]
        {
            allowed[*byte as usize] = true;
        }
        rest = behind;
    }
    allowed
};

/// A path for the log: characters that RFC 2396 does not allow in a path are percent-encoded.
pub fn encode_path(decoded: &str) -> Cow<'_, str> {
    let allowed = |byte: u8| ALLOWED.get(usize::from(byte)).copied().unwrap_or(false);
    if decoded.bytes().all(allowed) {
        return Cow::Borrowed(decoded);
    }
    let mut encoded = String::with_capacity(decoded.len() + 8);
    for byte in decoded.bytes() {
        if allowed(byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    Cow::Owned(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_all_spellings_of_one_file_are_one_path() {
        let root = TableRoot::new("/root/my t");
        for spelling in [
            "a%20b/c",
            "/root/my%20t/a%20b/c",
            "file:/root/my%20t/a%20b/c",
            "file:///root/my t/a b/c",
            "file://localhost/root/my t/a b/c",
        ] {
            assert_eq!(root.canonical(spelling), "a b/c", "{spelling}");
        }
        assert_eq!(root.canonical("file:/x/y"), root.canonical("/x/y"));
        assert_eq!(root.place("a b/c"), "/root/my t/a b/c");
        assert_eq!(root.place("/x/y"), "/x/y");
    }

    #[test]
    fn test_a_root_is_the_same_by_its_uri() {
        let root = TableRoot::new("file:///root/my%20t/");
        assert_eq!(root, TableRoot::new("/root/my t"));
        assert_eq!(root, TableRoot::new(root.prefix()));
        assert_eq!(TableRoot::new("/root/100%25").prefix(), "/root/100%25/");
    }

    #[test]
    fn test_paths_of_a_bucket_are_relative_to_it() {
        let root = TableRoot::new("s3://bucket/t/");
        for spelling in ["a", "s3://bucket/t/a", "s3a://bucket/t/a", "/t/a"] {
            assert_eq!(root.canonical(spelling), "a", "{spelling}");
        }
        assert_eq!(root.place("a"), "s3://bucket/t/a");
        assert_eq!(root.canonical("s3://other/a"), "s3://other/a");
    }

    #[test]
    fn test_a_colon_makes_no_scheme() {
        let root = TableRoot::new("/t");
        assert_eq!(root.canonical("time=10:20/a"), "time=10:20/a");
        assert_eq!(root.canonical("time=10%3A20/a"), "time=10:20/a");
        assert_eq!(root.canonical("x=A%252FA"), "x=A%2FA");
    }

    proptest! {
        #[test]
        fn test_decoding_undoes_encoding(path in "\\PC{0,40}") {
            let encoded = encode_path(&path).into_owned();
            prop_assert_eq!(decode_path(&encoded), path);
        }

        #[test]
        fn test_any_text_has_a_canonical_form(path in "\\PC{0,40}") {
            let root = TableRoot::new("/t");
            let once = root.canonical(&path).into_owned();
            prop_assert!(once.len() <= path.len() + 1);
        }
    }
}
