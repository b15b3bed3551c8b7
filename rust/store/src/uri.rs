//! Opens the store at a URI: the schemes, and what a plain path means.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cloud;
use crate::error::{Result, StoreError};
use crate::local::LocalStore;
use crate::memory;
use crate::store::StoreRef;

/// Opens the store at a URI: a plain path (`~` is the home folder), `file:///path`, `file:/path`, `memory://NAME` (shared by name within
/// the process), or an object store behind a network (see [`cloud::open`]).
///
/// `options` are for stores behind a network; local files and memory ignore them. With `durable`, a write is on stable storage when it
/// returns.
pub fn open(uri: &str, options: &HashMap<String, String>, durable: bool) -> Result<StoreRef> {
    let scheme = scheme(uri).map(str::to_ascii_lowercase);
    match scheme.as_deref() {
        None => open_local(uri, plain_path(uri)?, durable),
        Some("s3" | "s3a" | "gs" | "az" | "azure" | "adl" | "abfs" | "abfss") => cloud::open(uri, options),
        Some("file") => open_local(uri, file_path(uri)?, durable),
        Some("memory") => open_memory(uri),
        Some(other) => {
            let message = format!(
                "the scheme {other:?} is not supported; expected a path, file://, memory://NAME, s3://, gs:// or az://"
            );
            Err(StoreError::unsupported(format!("{other}://..."), message))
        }
    }
}

/// The scheme of a URI, or `None` for a plain path. A colon alone does not make a scheme (`a:b` is
/// a file name), except in `file:/path`, which Hadoop writes.
fn scheme(uri: &str) -> Option<&str> {
    if behind("file:", uri).is_some_and(|rest| rest.starts_with('/')) {
        return Some("file");
    }
    let (scheme, _) = uri.split_once("://")?;
    let starts_well = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let goes_on_well = scheme
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'));
    (starts_well && goes_on_well).then_some(scheme)
}

/// What follows a scheme, whose letters may be small or large.
fn behind<'a>(scheme: &str, uri: &'a str) -> Option<&'a str> {
    let (start, rest) = uri.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then_some(rest)
}

fn open_local(uri: &str, root: PathBuf, durable: bool) -> Result<StoreRef> {
    Ok(Arc::new(LocalStore::new(uri, root, durable)?))
}

fn open_memory(uri: &str) -> Result<StoreRef> {
    let rest = behind("memory://", uri).unwrap_or_default().trim_end_matches('/');
    let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if name.is_empty() {
        let message = "expected a name, as in memory://NAME: all who use that name share its objects";
        return Err(StoreError::invalid_argument(uri, message));
    }
    Ok(Arc::new(memory::named(uri, name, prefix)?))
}

fn plain_path(uri: &str) -> Result<PathBuf> {
    if uri.is_empty() {
        return Err(StoreError::invalid_argument(
            uri,
            "expected a path or a URI, found an empty string",
        ));
    }
    let rest = match uri.strip_prefix('~') {
        Some("") => "",
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => return Ok(PathBuf::from(uri)),
    };
    match std::env::var_os("HOME") {
        Some(home) => Ok(Path::new(&home).join(rest)),
        None => Err(StoreError::invalid_argument(
            uri,
            "'~' is the home folder, but HOME is not set; write the whole path",
        )),
    }
}

fn file_path(uri: &str) -> Result<PathBuf> {
    let refuse = |message: &str| Err(StoreError::invalid_argument(uri, message));
    let rest = behind("file:", uri).unwrap_or_default();
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(rest) => match rest.strip_prefix("localhost").unwrap_or(rest) {
            path if path.starts_with('/') => path,
            _ => return refuse("expected file:///path, found a host; only this machine's files are local"),
        },
    };
    if path.contains(['?', '#']) {
        return refuse("expected a path, found a query or a fragment; write '?' as %3F and '#' as %23");
    }
    match percent_decode(path) {
        Some(path) => Ok(PathBuf::from(path)),
        None => refuse("expected two hexadecimal digits of UTF-8 after each '%'; write '%' as %25"),
    }
}

/// The root and the name of the object that a URI names: what [`open`] takes, and the object's path in that store. `None` if it names none.
pub fn object(uri: &str) -> Option<(&str, String)> {
    let (root, name) = uri.rsplit_once('/')?;
    let name = match scheme(uri) {
        Some(scheme) if scheme.eq_ignore_ascii_case("file") => percent_decode(name)?,
        _ => name.to_owned(),
    };
    (!name.is_empty()).then_some((root, name))
}

/// The path of what a URI names below another one; `None` if it lies elsewhere.
pub fn path_below(base: &str, uri: &str) -> Option<String> {
    let ((base_scheme, base), (scheme, path)) = (whole_path(base)?, whole_path(uri)?);
    let below = path.strip_prefix(base.trim_end_matches('/'))?.strip_prefix('/')?;
    let is_below =
        base_scheme == scheme && !below.is_empty() && below.split('/').all(|part| !matches!(part, "" | "." | ".."));
    is_below.then(|| below.to_owned())
}

/// The scheme of a URI, in one of its spellings, and the rest of it without escapes.
fn whole_path(uri: &str) -> Option<(String, String)> {
    let local = |path: Result<PathBuf>| path.ok()?.to_str().map(str::to_owned);
    match scheme(uri).map(str::to_ascii_lowercase).as_deref() {
        None => Some(("file".into(), local(plain_path(uri))?)),
        Some("file") => Some(("file".into(), local(file_path(uri))?)),
        Some(other) => {
            let (_, rest) = uri.split_once("://")?;
            let spelt = match other {
                "s3a" => "s3",
                "azure" | "adl" => "az",
                "abfss" => "abfs",
                other => other,
            };
            Some((spelt.into(), rest.into()))
        }
    }
}

fn percent_decode(path: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}
