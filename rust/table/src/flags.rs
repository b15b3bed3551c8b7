//! Feature flags: the features that a reader or a writer must support.
//!
//! A manifest has two sets of bits with the same meanings. A reader that does not know a set reader bit would return wrong rows, and a
//! writer that does not know a set writer bit would break what the bit promises: both refuse and name the bit.

use crate::error::{Result, TableError};

/// Fragments may have deletion files.
pub const DELETION_FILES: u64 = 1;
/// Rows have ids that survive moves; fragments list them.
pub const STABLE_ROW_IDS: u64 = 2;
/// Files are not of version 0.1. Replaced by the data format that the manifest names.
pub const V2_FORMAT_DEPRECATED: u64 = 4;
/// The manifest has a config, which writers carry on.
pub const TABLE_CONFIG: u64 = 8;
/// Files lie under other roots than the table's own.
pub const BASE_PATHS: u64 = 16;
/// Transactions are kept in manifests only.
pub const TRANSACTION_FILE_DISABLED: u64 = 32;
/// Data files of another version than the one that the manifest names. Readers and writers must both know it.
pub const MIXED_FILE_VERSIONS: u64 = 256;
/// Row ids and row versions may lie in columns of data files instead of the manifest.
pub const SPILLED_ROW_LINEAGE: u64 = 2048;

/// The flags that esker can read.
const READABLE: u64 = DELETION_FILES
    | STABLE_ROW_IDS
    | V2_FORMAT_DEPRECATED
    | TABLE_CONFIG
    | BASE_PATHS
    | TRANSACTION_FILE_DISABLED
    | MIXED_FILE_VERSIONS
    | SPILLED_ROW_LINEAGE;
/// The flags that esker maintains when it writes.
const WRITABLE: u64 = DELETION_FILES
    | STABLE_ROW_IDS
    | V2_FORMAT_DEPRECATED
    | TABLE_CONFIG
    | BASE_PATHS
    | TRANSACTION_FILE_DISABLED
    | MIXED_FILE_VERSIONS
    | SPILLED_ROW_LINEAGE;

/// The name of a flag.
pub fn flag_name(bit: u64) -> &'static str {
    match bit {
        DELETION_FILES => "deletion files",
        STABLE_ROW_IDS => "stable row ids",
        V2_FORMAT_DEPRECATED => "v2 file format",
        TABLE_CONFIG => "table config",
        BASE_PATHS => "base paths: files under several roots",
        TRANSACTION_FILE_DISABLED => "no transaction files",
        64 => "data overlay files",
        128 => "covered index metadata",
        MIXED_FILE_VERSIONS => "data files of several versions",
        512 => "fragment reuse index with stable row ids",
        1024 => "tagged fragment reuse index",
        SPILLED_ROW_LINEAGE => "spilled row lineage",
        4096 => "fragment tree",
        8192 => "independent covering fields",
        16384 => "managed blobs",
        32768 => "field ids that are not given twice",
        65536 => "zone seeds",
        131_072 => "object metadata",
        _ => "unknown",
    }
}

/// Refuses a table with a reader flag that this release does not understand.
pub fn check_readable(reader_flags: u64) -> Result<()> {
    check("reader", "read", reader_flags, READABLE)
}

/// Refuses to write a table with a flag that this release does not keep up.
pub fn check_writable(reader_flags: u64, writer_flags: u64) -> Result<()> {
    check_readable(reader_flags)?;
    check("writer", "written", writer_flags, WRITABLE)?;
    if (reader_flags ^ writer_flags) & MIXED_FILE_VERSIONS != 0 {
        return Err(TableError::unsupported(format!(
            "the table cannot be written: expected flag {MIXED_FILE_VERSIONS} ({}) among reader and writer feature flags or in neither, \
             found {reader_flags} and {writer_flags}; overwrite the table with the library that wrote it",
            flag_name(MIXED_FILE_VERSIONS)
        )));
    }
    Ok(())
}

fn check(side: &str, done: &str, flags: u64, known: u64) -> Result<()> {
    let unknown = flags & !known;
    if unknown == 0 {
        return Ok(());
    }
    let bits: Vec<String> = (0..u64::BITS)
        .map(|shift| 1u64 << shift)
        .filter(|bit| unknown & bit != 0)
        .map(|bit| format!("{bit} ({})", flag_name(bit)))
        .collect();
    Err(TableError::unsupported(format!(
        "the table cannot be {done}: its {side} feature flags are {flags}, and this release does not support {}; use a newer esker",
        bits.join(", ")
    )))
}

/// The contents of a version that decide its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Contents {
    /// A fragment has a deletion file.
    pub deletions: bool,
    /// Rows have stable ids.
    pub row_ids: bool,
    /// A data file is of another version than the manifest names.
    pub mixed_files: bool,
    /// The table has base paths.
    pub base_paths: bool,
    /// Row ids or row versions lie in columns of data files.
    pub spilled_lineage: bool,
}

/// The flags of a new version: bits that follow from its contents are set or cleared, the others are carried along (all of them supported,
/// see [`check_writable`]).
pub fn next_flags(carried: u64, contents: Contents) -> u64 {
    let bit = |wanted: bool, bit: u64| if wanted { bit } else { 0 };
    // The manifest names its data format, and each commit writes a transaction file.
    let decided = V2_FORMAT_DEPRECATED
        | TRANSACTION_FILE_DISABLED
        | DELETION_FILES
        | TABLE_CONFIG
        | BASE_PATHS
        | MIXED_FILE_VERSIONS
        | SPILLED_ROW_LINEAGE;
    carried & !decided
        | bit(contents.deletions, DELETION_FILES)
        | bit(contents.row_ids, STABLE_ROW_IDS)
        | bit(contents.base_paths, BASE_PATHS)
        | bit(contents.mixed_files, MIXED_FILE_VERSIONS)
        | bit(contents.spilled_lineage, SPILLED_ROW_LINEAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_supported_flags_pass() {
        check_readable(0).unwrap();
        check_readable(DELETION_FILES | STABLE_ROW_IDS | V2_FORMAT_DEPRECATED | TABLE_CONFIG).unwrap();
        check_writable(
            DELETION_FILES,
            DELETION_FILES | TABLE_CONFIG | TRANSACTION_FILE_DISABLED,
        )
        .unwrap();
    }

    #[test]
    fn test_each_unsupported_reader_flag_is_refused_by_bit_and_name() {
        for shift in 0..64 {
            let bit = 1u64 << shift;
            let checked = check_readable(bit | DELETION_FILES);
            if READABLE & bit != 0 {
                checked.unwrap();
                continue;
            }
            let message = checked.unwrap_err().to_string();
            assert!(
                message.contains(&format!("support {bit} ({})", flag_name(bit))),
                "{message}"
            );
            check_writable(bit, 0).unwrap_err();
        }
    }

    #[test]
    fn test_each_unsupported_writer_flag_refuses_writes_only() {
        for shift in 0..64 {
            let bit = 1u64 << shift;
            let reader = bit & MIXED_FILE_VERSIONS;
            let checked = check_writable(reader, bit);
            assert_eq!(checked.is_ok(), WRITABLE & bit != 0, "bit {bit}");
            if let Err(error) = checked {
                assert!(error.to_string().contains("cannot be written"), "{error}");
            }
        }
    }

    #[test]
    fn test_stable_row_ids_are_read_and_kept_up() {
        check_readable(STABLE_ROW_IDS).unwrap();
        check_writable(STABLE_ROW_IDS, STABLE_ROW_IDS).unwrap();
        let row_ids = Contents {
            row_ids: true,
            ..Contents::default()
        };
        assert_eq!(next_flags(0, row_ids), STABLE_ROW_IDS);
    }

    #[test]
    fn test_roots_beside_the_tables_own_set_a_flag() {
        let bases = Contents {
            base_paths: true,
            ..Contents::default()
        };
        assert_eq!(next_flags(0, bases), BASE_PATHS);
        assert_eq!(next_flags(BASE_PATHS, Contents::default()), 0);
    }

    #[test]
    fn test_the_flag_of_spilled_lineage_goes_with_the_last_spilled_sequence() {
        let spilled = Contents {
            spilled_lineage: true,
            ..Contents::default()
        };
        assert_eq!(next_flags(0, spilled), SPILLED_ROW_LINEAGE);
        assert_eq!(next_flags(SPILLED_ROW_LINEAGE, spilled), SPILLED_ROW_LINEAGE);
        assert_eq!(next_flags(SPILLED_ROW_LINEAGE, Contents::default()), 0);
    }

    #[test]
    fn test_the_bits_of_newer_features_have_their_right_names() {
        let names = [
            (64, "data overlay files"),
            (512, "fragment reuse index with stable row ids"),
            (1024, "tagged fragment reuse index"),
            (2048, "spilled row lineage"),
            (4096, "fragment tree"),
            (8192, "independent covering fields"),
            (16384, "managed blobs"),
            (32768, "field ids that are not given twice"),
            (65536, "zone seeds"),
            (131_072, "object metadata"),
        ];
        for (bit, name) in names {
            assert_eq!(flag_name(bit), name);
        }
        assert_eq!(flag_name(262_144), "unknown");
    }

    #[test]
    fn test_all_refused_bits_are_named_at_once() {
        let message = check_readable(64 | 128 | 1 << 40).unwrap_err().to_string();
        for part in [
            "64 (data overlay files)",
            "128 (covered index metadata)",
            "1099511627776 (unknown)",
        ] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn test_flags_follow_the_contents() {
        let all =
            DELETION_FILES | V2_FORMAT_DEPRECATED | TRANSACTION_FILE_DISABLED | TABLE_CONFIG | MIXED_FILE_VERSIONS;
        assert_eq!(next_flags(all, Contents::default()), 0);
        let deletions = Contents {
            deletions: true,
            ..Contents::default()
        };
        assert_eq!(next_flags(0, deletions), DELETION_FILES);
        let mixed_files = Contents {
            mixed_files: true,
            ..Contents::default()
        };
        assert_eq!(next_flags(1 << 40, mixed_files), 1 << 40 | MIXED_FILE_VERSIONS);
    }

    #[test]
    fn test_a_mixture_that_only_one_side_is_told_of_is_not_written() {
        check_writable(MIXED_FILE_VERSIONS, MIXED_FILE_VERSIONS).unwrap();
        for (reader, writer) in [(MIXED_FILE_VERSIONS, 0), (0, MIXED_FILE_VERSIONS)] {
            let message = check_writable(reader, writer).unwrap_err().to_string();
            assert!(message.contains("256 (data files of several versions)"), "{message}");
            check_readable(reader).unwrap();
        }
    }
}
