//! Content ids: of ranges and metaranges, and of commits.

use std::fmt;

use crate::error::{GravelerError, Result};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The hex form of a hash.
pub(crate) fn hex(hash: &[u8]) -> String {
    let mut text = String::with_capacity(2 * hash.len());
    for byte in hash {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(*HEX.get(usize::from(digit)).unwrap_or(&b'0')));
        }
    }
    text
}

fn is_hash(text: &[u8]) -> bool {
    text.len() == 64 && text.iter().all(|digit| HEX.contains(digit))
}

/// The id of a range or of a metarange: SHA-256 over its records, as 64 hex digits. Its file is named by it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(String);

impl TableId {
    /// The id that a hash is.
    pub fn of_hash(hash: &[u8; 32]) -> Self {
        TableId(hex(hash))
    }

    /// Parses an id. It becomes a file's name, so it must be exactly 64 lower-case hex digits.
    pub fn parse(text: &[u8]) -> Result<Self> {
        if !is_hash(text) {
            let shown = String::from_utf8_lossy(text.get(..80).unwrap_or(text)).into_owned();
            return Err(GravelerError::corrupt(
                "id",
                format!("expected 64 lower-case hex digits, found {shown:?}"),
            ));
        }
        Ok(TableId(String::from_utf8_lossy(text).into_owned()))
    }

    /// A placeholder id for a table's file that the user named.
    pub(crate) fn of_file_name(name: &str) -> Self {
        TableId(name.to_owned())
    }

    /// The 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get(..12).unwrap_or(&self.0))
    }
}

/// The id of a commit: SHA-256 of its identity, as 64 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitId(String);

impl CommitId {
    /// The id that a hash is.
    pub fn of_hash(hash: &[u8; 32]) -> Self {
        CommitId(hex(hash))
    }

    /// The 64 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_an_id_is_64_hex_digits_and_nothing_else() {
        let id = TableId::of_hash(&[0xa7; 32]);
        assert_eq!(id.as_str(), "a7".repeat(32));
        assert_eq!(TableId::parse(id.as_str().as_bytes()).unwrap(), id);
        let slashes = "/".repeat(64);
        for text in [
            "",
            "a7",
            slashes.as_str(),
            &"A7".repeat(32),
            &"a7".repeat(33),
            "../../../etc/passwd",
        ] {
            assert!(TableId::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
