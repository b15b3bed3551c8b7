//! A URI of an object store: its scheme, its bucket, and the prefix below which all keys lie.

use crate::error::{Result, StoreError};

/// A parsed URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// In lower case.
    pub scheme: String,
    /// What stands before the first `/`: a bucket; on Azure a container, optionally with `@ACCOUNT`.
    pub authority: String,
    /// The key of the root, without `/` at its ends, with every `%XX` decoded; empty for the bucket itself.
    pub prefix: String,
}

impl Place {
    /// Parses a URI. The prefix is the one that Lance's own writers derive from it: percent-decoded once, without a trailing slash.
    pub fn parse(uri: &str) -> Result<Self> {
        let (scheme, rest) = uri.split_once("://").unwrap_or((uri, ""));
        let scheme = scheme.to_ascii_lowercase();
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        // What stands before `@` may be a password: messages leave it out.
        let named = |name: &str| format!("{scheme}://{name}");
        if authority.is_empty() || authority.contains([':', '?', '#']) {
            let message = "expected a bucket after the scheme, without a port or a password; credentials belong into storage_options";
            return Err(StoreError::invalid_argument(named("..."), message));
        }
        if !authority
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-._$@".contains(letter))
        {
            let message = "expected the name of a bucket: ASCII letters, digits, '-', '.' and '_'";
            return Err(StoreError::invalid_argument(named("..."), message));
        }
        if path.contains(['?', '#']) {
            let message = "expected a path, found a query or a fragment; write '?' as %3F and '#' as %23";
            return Err(StoreError::invalid_argument(named(authority), message));
        }
        let Some(path) = percent_decoded(path) else {
            let message = "expected UTF-8 behind the '%' of the path; write a '%' that is meant as %25";
            return Err(StoreError::invalid_argument(named(authority), message));
        };
        Ok(Self {
            prefix: path.strip_suffix('/').unwrap_or(&path).to_owned(),
            authority: authority.to_owned(),
            scheme,
        })
    }

    /// The authority as a bucket; an error if it has an account or a password before it.
    pub fn bucket(&self) -> Result<&str> {
        if self.authority.contains(['@', '$']) {
            let message = "expected the name of a bucket, found '@' in it; credentials belong into storage_options";
            return Err(StoreError::invalid_argument(format!("{}://...", self.scheme), message));
        }
        Ok(&self.authority)
    }

    /// The URI without its path, for messages.
    pub fn shown(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }
}

/// Every `%XX` decoded; a `%` without two hexadecimal digits stays as it is.
fn percent_decoded(path: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if let (b'%', [high, low, behind @ ..]) = (byte, after) {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            if let (Some(high), Some(low)) = (digit(*high), digit(*low)) {
                decoded.push(u8::try_from(high * 16 + low).ok()?);
                rest = behind;
                continue;
            }
        }
        decoded.push(byte);
    }
    String::from_utf8(decoded).ok()
}
