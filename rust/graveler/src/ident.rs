//! Identities: the canonical bytes that are hashed, each value with its type and length, so that different lists of values never collide.
//!
//! ```text
//! integer   02 08 | 8 bytes, highest first          bytes    00 | integer: length | bytes
//! string    01 | integer: length | bytes             strings  03 | integer: count | strings
//! map       04 | integer: count | key, value strings, sorted by key
//! embedded  05 | bytes: the SHA-256 of another
//! ```

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// The canonical bytes of an identity under construction.
#[derive(Debug, Default)]
pub struct Identity(Vec<u8>);

impl Identity {
    /// No parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all parts and keeps the buffer.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn count(&mut self, count: usize) {
        self.integer(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A signed integer.
    pub fn integer(&mut self, value: i64) -> &mut Self {
        self.0.extend_from_slice(&[2, 8]);
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Bytes.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.0.push(0);
        self.count(value.len());
        self.0.extend_from_slice(value);
        self
    }

    /// A string.
    pub fn string(&mut self, value: &str) -> &mut Self {
        self.0.push(1);
        self.count(value.len());
        self.0.extend_from_slice(value.as_bytes());
        self
    }

    /// A list of strings, in their order.
    pub fn strings<'a>(&mut self, values: impl ExactSizeIterator<Item = &'a str>) -> &mut Self {
        self.0.push(3);
        self.count(values.len());
        for value in values {
            self.string(value);
        }
        self
    }

    /// A map of strings.
    pub fn map(&mut self, values: &BTreeMap<String, String>) -> &mut Self {
        self.0.push(4);
        self.count(values.len());
        for (key, value) in values {
            self.string(key).string(value);
        }
        self
    }

    /// The hash of another identity.
    pub fn embedded(&mut self, other: &Identity) -> &mut Self {
        self.0.push(5);
        self.bytes(&other.hash())
    }

    /// The canonical bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Their SHA-256.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.0).into()
    }
}
