//! Splits an operation's message into fields that stay encoded and a rest that the generated code decodes.

use bytes::Bytes;
use prost::Message;

use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::index::Index;
use crate::raw::RawMessage;

/// A message from which encoded fields are taken before the rest is decoded.
pub(super) struct Parts {
    what: &'static str,
    raw: RawMessage,
}

impl Parts {
    /// Splits the message of the operation that errors call `what`.
    pub fn decode(what: &'static str, message: &Bytes) -> Result<Self> {
        let raw = RawMessage::decode(message).map_err(|error| error.of(what))?;
        Ok(Self { what, raw })
    }

    /// Takes all fields `number`, still encoded.
    pub fn take(&mut self, number: u32) -> Vec<Bytes> {
        let taken = self.raw.all(number).map(|field| field.payload().clone()).collect();
        self.raw.remove(number);
        taken
    }

    /// Takes the fragments in the fields `number`.
    pub fn fragments(&mut self, number: u32) -> Result<Vec<Fragment>> {
        self.take(number).iter().map(Fragment::decode).collect()
    }

    /// Takes the indices in the fields `number`.
    pub fn indices(&mut self, number: u32) -> Result<Vec<Index>> {
        self.take(number).iter().map(Index::decode).collect()
    }

    /// Decodes what was not taken.
    pub fn rest<M: Message + Default>(self) -> Result<M> {
        let decoded = M::decode(self.raw.encode().as_slice());
        decoded.map_err(|error| TableError::corrupt(self.what, error.to_string()))
    }
}

/// Encodes `rest` and the encoded fields as one message, sorted by field number.
pub(super) fn build<const N: usize>(rest: &impl Message, verbatim: [(u32, Vec<Vec<u8>>); N]) -> Result<Vec<u8>> {
    let encoded = Bytes::from(rest.encode_to_vec());
    let mut raw = RawMessage::decode(&encoded).map_err(|error| error.of("operation"))?;
    for (number, values) in verbatim {
        raw.set_all_bytes(number, values.iter().map(Vec::as_slice));
    }
    Ok(raw.encode())
}

/// The messages of fragments.
pub(super) fn encoded_fragments(fragments: &[Fragment]) -> Vec<Vec<u8>> {
    fragments.iter().map(Fragment::encode).collect()
}
