//! Framed values: the value of a record in a range or metarange.
//!
//! ```text
//! length of identity (folded varint) | identity | length of data (folded varint) | data | anything, ignored
//! ```
//!
//! The identity says whether two values are the same; the data is what they are. A range's identities are SHA-256 hashes of an object's
//! content and its data are [`Entry`](crate::entry::Entry) messages; a metarange's are ids of ranges, in ASCII.

use crate::error::{GravelerError, Result};
use crate::varint::{length, put_length};

/// A borrowed framed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value<'a> {
    /// Equal if the values are the same to a user, whatever their data.
    pub identity: &'a [u8],
    /// An encoded message.
    pub data: &'a [u8],
}

impl<'a> Value<'a> {
    /// Splits a value.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self> {
        let (identity, rest) = part(bytes).ok_or_else(|| corrupt("identity"))?;
        let (data, _) = part(rest).ok_or_else(|| corrupt("data"))?;
        Ok(Value { identity, data })
    }

    /// Appends the value.
    pub fn encode_to(&self, buffer: &mut Vec<u8>) {
        put_length(buffer, self.identity.len());
        buffer.extend_from_slice(self.identity);
        put_length(buffer, self.data.len());
        buffer.extend_from_slice(self.data);
    }

    /// The value as bytes of its own.
    pub fn encode(&self) -> Vec<u8> {
        let mut buffer = Vec::with_capacity(self.identity.len() + self.data.len() + 8);
        self.encode_to(&mut buffer);
        buffer
    }
}

/// The identity alone, which is all that a comparison needs.
#[inline]
pub fn identity_of(value: &[u8]) -> Result<&[u8]> {
    Ok(part(value).ok_or_else(|| corrupt("identity"))?.0)
}

fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = length(bytes)?;
    rest.split_at_checked(length)
}

fn corrupt(what: &str) -> GravelerError {
    GravelerError::corrupt(
        "value",
        format!("expected a length and as many bytes of {what}, found fewer"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_a_value_comes_back_and_what_follows_it_is_ignored() {
        let value = Value {
            identity: &[7; 32],
            data: &[1; 100],
        };
        let mut bytes = value.encode();
        assert_eq!(bytes[0], 0x40);
        for end in 0..bytes.len() {
            assert!(Value::decode(&bytes[..end]).is_err(), "{end}");
        }
        bytes.extend_from_slice(b"more");
        assert_eq!(Value::decode(&bytes).unwrap(), value);
        assert_eq!(identity_of(&bytes).unwrap(), value.identity);
    }
}
