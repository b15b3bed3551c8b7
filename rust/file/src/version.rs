//! The versions of the file format and the numbers by which files and manifests name them.

use std::fmt;

use crate::error::{FileError, Result};

/// A version of the file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileVersion {
    /// The first format, also called "legacy".
    V0_1,
    /// The format with one column per node of the schema.
    V2_0,
    /// The format with repetition and definition levels.
    V2_1,
    /// A small step from 2.1.
    V2_2,
}

impl FileVersion {
    /// The version that a footer's numbers mean. A 2.0 file says 0.3.
    pub fn from_footer(major: u16, minor: u16) -> Result<FileVersion> {
        match (major, minor) {
            (0, 0..=2) => Ok(FileVersion::V0_1),
            (0, 3) | (2, 0) => Ok(FileVersion::V2_0),
            (2, 1) => Ok(FileVersion::V2_1),
            (2, 2) => Ok(FileVersion::V2_2),
            _ => Err(FileError::unsupported(format!(
                "expected file version 0.1, 2.0, 2.1 or 2.2, found {major}.{minor}; a newer esker may read it"
            ))),
        }
    }

    /// The numbers that the footer of a file of this version holds.
    pub fn footer_numbers(self) -> (u16, u16) {
        match self {
            FileVersion::V0_1 => (0, 2),
            FileVersion::V2_0 => (0, 3),
            FileVersion::V2_1 => (2, 1),
            FileVersion::V2_2 => (2, 2),
        }
    }

    /// The numbers that a manifest holds for a data file of this version.
    pub fn manifest_numbers(self) -> (u32, u32) {
        match self {
            FileVersion::V0_1 => (0, 2),
            FileVersion::V2_0 => (2, 0),
            FileVersion::V2_1 => (2, 1),
            FileVersion::V2_2 => (2, 2),
        }
    }

    /// The version that a user's name means: "2.0", "legacy" and so on.
    pub fn parse(name: &str) -> Result<FileVersion> {
        match name {
            "0.1" | "legacy" => Ok(FileVersion::V0_1),
            "2.0" | "0.3" => Ok(FileVersion::V2_0),
            "2.1" => Ok(FileVersion::V2_1),
            "2.2" | "stable" => Ok(FileVersion::V2_2),
            "2.3" | "next" => Err(FileError::unsupported(
                "data_storage_version 2.3 (next) is not stable: files of it may become unreadable; use 2.0",
            )),
            other => Err(FileError::invalid(format!(
                "expected data_storage_version 0.1 (legacy), 2.0, 2.1 or 2.2 (stable), found '{other}'"
            ))),
        }
    }
}

impl fmt::Display for FileVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileVersion::V0_1 => "0.1",
            FileVersion::V2_0 => "2.0",
            FileVersion::V2_1 => "2.1",
            FileVersion::V2_2 => "2.2",
        })
    }
}
