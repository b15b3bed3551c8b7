//! The names of manifests in `_versions/`.
//!
//! | scheme | name | order |
//! |---|---|---|
//! | V1 | `{version}.manifest` | list all and take the highest |
//! | V2 | `{2^64 - 1 - version}.manifest`, 20 digits | the first name listed is the latest version |
//! | detached | `d{version}.manifest` | not part of the history; bit 63 of the version is set |
//!
//! A table has one scheme for all its versions: put-if-absent of a V2 name does not conflict with a V1 name of the same version.

use crate::error::{Result, TableError};

/// The folder of manifests, relative to the table's root.
pub const VERSIONS_DIR: &str = "_versions";

const SUFFIX: &str = ".manifest";
const V2_DIGITS: usize = 20;
const DETACHED_BIT: u64 = 1 << 63;

/// How a table names its manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamingScheme {
    /// The version itself.
    V1,
    /// Counted down from the highest number, so that the latest version is listed first.
    V2,
}

/// True for a version that is not part of the history.
pub fn is_detached_version(version: u64) -> bool {
    version & DETACHED_BIT != 0
}

/// The name of a version's manifest within `_versions/`.
pub fn manifest_name(version: u64, scheme: NamingScheme) -> String {
    if is_detached_version(version) {
        return format!("d{version}{SUFFIX}");
    }
    match scheme {
        NamingScheme::V1 => format!("{version}{SUFFIX}"),
        NamingScheme::V2 => format!("{:020}{SUFFIX}", u64::MAX - version),
    }
}

/// The version and scheme of a manifest's name within `_versions/`; `None` for other files there: detached versions, staged manifests, the
/// hint at the latest version.
pub fn parse_manifest_name(name: &str) -> Option<(u64, NamingScheme)> {
    let digits = name.strip_suffix(SUFFIX)?;
    let number = parse_digits(digits)?;
    let (version, scheme) = if digits.len() == V2_DIGITS {
        (u64::MAX - number, NamingScheme::V2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        return None;
    } else {
        (number, NamingScheme::V1)
    };
    (!is_detached_version(version)).then_some((version, scheme))
}

/// The version that a detached manifest's name stands for.
pub fn parse_detached_name(name: &str) -> Option<u64> {
    let version = parse_digits(name.strip_prefix('d')?.strip_suffix(SUFFIX)?)?;
    is_detached_version(version).then_some(version)
}

fn parse_digits(digits: &str) -> Option<u64> {
    // `parse` alone would take a plus sign.
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())
        .flatten()
}

/// The versions among the names in a table's `_versions/`, ascending, and the table's scheme; `None` if there is no version.
/// Names of both schemes are an error: it is unknown which of them other writers use.
pub fn parse_history<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Option<(NamingScheme, Vec<u64>)>> {
    let mut scheme: Option<(NamingScheme, &str)> = None;
    let mut versions = Vec::new();
    for name in names {
        let Some((version, found)) = parse_manifest_name(name) else {
            continue;
        };
        match scheme {
            None => scheme = Some((found, name)),
            Some((expected, first)) if expected != found => {
                return Err(TableError::corrupt(
                    VERSIONS_DIR,
                    format!(
                        "expected manifest names of one scheme, found '{first}' ({expected:?}) and '{name}' ({found:?}); \
                         an interrupted migration leaves this: finish it before reading or writing the table"
                    ),
                ));
            }
            Some(_) => {}
        }
        versions.push(version);
    }
    versions.sort_unstable();
    Ok(scheme.map(|(scheme, _)| (scheme, versions)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_names_of_both_schemes_come_back() {
        for version in [0, 1, 9, 10, 1_000_000, DETACHED_BIT - 1] {
            for scheme in [NamingScheme::V1, NamingScheme::V2] {
                let name = manifest_name(version, scheme);
                assert_eq!(parse_manifest_name(&name), Some((version, scheme)), "{name}");
            }
        }
        assert_eq!(manifest_name(1, NamingScheme::V1), "1.manifest");
        assert_eq!(manifest_name(1, NamingScheme::V2), "18446744073709551614.manifest");
    }

    #[test]
    fn test_a_detached_version_has_a_name_of_its_own() {
        let version = DETACHED_BIT | 7;
        let name = manifest_name(version, NamingScheme::V2);
        assert_eq!(name, "d9223372036854775815.manifest");
        assert_eq!(parse_detached_name(&name), Some(version));
        assert_eq!(parse_manifest_name(&name), None);
        assert_eq!(parse_detached_name("d7.manifest"), None);
    }

    #[test]
    fn test_what_is_no_manifest_is_passed_over() {
        let names = [
            "",
            ".manifest",
            "x.manifest",
            "+1.manifest",
            "-1.manifest",
            "01.manifest",
            "1.manifest.tmp",
            "1",
            "18446744073709551614.manifest-0f0e",
            "99999999999999999999.manifest",
            "00000000000000000001.manifest",
            "latest_version_hint.json",
            "1\u{661}.manifest",
        ];
        for name in names {
            assert_eq!(parse_manifest_name(name), None, "{name}");
        }
        assert!(parse_history(names).unwrap().is_none());
    }

    #[test]
    fn test_later_versions_are_listed_first_in_the_second_scheme() {
        assert!(manifest_name(10, NamingScheme::V2) < manifest_name(9, NamingScheme::V2));
    }

    #[test]
    fn test_a_history_is_sorted_and_of_one_scheme() {
        let history = parse_history(["10.manifest", "9.manifest", "d9223372036854775815.manifest"]).unwrap();
        assert_eq!(history, Some((NamingScheme::V1, vec![9, 10])));
        let error = parse_history(["1.manifest", "18446744073709551613.manifest"])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("'1.manifest' (V1)") && error.contains("'18446744073709551613.manifest' (V2)"),
            "{error}"
        );
    }
}
