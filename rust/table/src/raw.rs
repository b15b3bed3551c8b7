//! A raw protobuf message: its fields, still encoded.
//!
//! ```text
//! tag (varint: number << 3 | wire type) | value
//!                              0: varint   1: 8 bytes   2: length (varint) + bytes   5: 4 bytes
//! ```
//!
//! Generated code drops unknown fields. The messages that esker rewrites (manifest, fragment, transaction) must keep them, so they are
//! split into records: changed ones are replaced, the others are copied byte for byte.

use std::ops::Range;

use bytes::Bytes;

use crate::error::TableError;

/// Protobuf allows field numbers of 29 bits.
const MAX_FIELD_NUMBER: u64 = (1 << 29) - 1;

/// Bytes that are no protobuf message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {position}: {message}")]
pub struct Malformed {
    /// The byte position in the message.
    pub position: usize,
    /// What is wrong there.
    pub message: &'static str,
}

impl Malformed {
    /// A corrupt-bytes error about the message `what`.
    pub fn of(self, what: &str) -> TableError {
        TableError::corrupt(what, self.to_string())
    }
}

/// How a value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireType {
    /// Integers, booleans, enums.
    Varint,
    /// Eight bytes, little endian.
    Fixed64,
    /// Strings, bytes, messages, packed numbers.
    Length,
    /// Four bytes, little endian.
    Fixed32,
}

/// Where one field of a message lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The field's number.
    pub number: u32,
    /// How the value is stored.
    pub wire_type: WireType,
    /// Tag and value.
    pub record: Range<usize>,
    /// The value alone, without tag and length.
    pub payload: Range<usize>,
    /// The value of a varint, 0 for all others.
    pub varint: u64,
}

/// Steps through the fields of a message without copying or allocating.
#[derive(Debug, Clone)]
pub struct Walk<'a> {
    bytes: &'a [u8],
    position: usize,
}

/// Steps through the fields of `message`. Ends after the first error.
pub fn walk(message: &[u8]) -> Walk<'_> {
    Walk {
        bytes: message,
        position: 0,
    }
}

impl Walk<'_> {
    fn malformed<T>(&self, message: &'static str) -> Result<T, Malformed> {
        Err(Malformed {
            position: self.position,
            message,
        })
    }

    /// Nearly all tags, lengths and small numbers take one byte.
    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        match self.bytes.get(self.position) {
            Some(&byte) if byte < 0x80 => {
                self.position += 1;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(),
        }
    }

    #[inline(never)]
    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let Some(&byte) = self.bytes.get(self.position) else {
                return self.malformed("expected a varint, found the end of the message");
            };
            if shift == 63 && byte > 1 {
                return self.malformed("expected a varint of 64 bits, found a longer one");
            }
            self.position += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.malformed("expected a varint of at most 10 bytes, found a longer one")
    }

    #[inline]
    fn skip(&mut self, length: u64) -> Result<Range<usize>, Malformed> {
        let start = self.position;
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| start.checked_add(length));
        match end.filter(|end| *end <= self.bytes.len()) {
            Some(end) => {
                self.position = end;
                Ok(start..end)
            }
            None => self.malformed("expected a value within the message, found one that ends behind it"),
        }
    }

    #[inline]
    fn record(&mut self) -> Result<Record, Malformed> {
        let start = self.position;
        let tag = self.varint()?;
        let number = match u32::try_from(tag >> 3) {
            Ok(number) if number > 0 && u64::from(number) <= MAX_FIELD_NUMBER => number,
            _ => return self.malformed("expected a field number from 1 to 2^29 - 1"),
        };
        let mut varint = 0;
        let (wire_type, payload) = match tag & 7 {
            0 => {
                let value_start = self.position;
                varint = self.varint()?;
                (WireType::Varint, value_start..self.position)
            }
            1 => (WireType::Fixed64, self.skip(8)?),
            2 => {
                let length = self.varint()?;
                (WireType::Length, self.skip(length)?)
            }
            5 => (WireType::Fixed32, self.skip(4)?),
            _ => return self.malformed("expected wire type 0, 1, 2 or 5"),
        };
        Ok(Record {
            number,
            wire_type,
            record: start..self.position,
            payload,
            varint,
        })
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Record, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.position >= self.bytes.len() {
            return None;
        }
        let record = self.record();
        if record.is_err() {
            self.position = self.bytes.len();
        }
        Some(record)
    }
}

/// One field of a [`RawMessage`]: shares the bytes of the message that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawField {
    number: u32,
    wire_type: WireType,
    record: Bytes,
    payload: Bytes,
    varint: u64,
}

impl RawField {
    pub(crate) fn from_record(source: &Bytes, record: Record) -> Self {
        Self {
            number: record.number,
            wire_type: record.wire_type,
            record: source.slice(record.record),
            payload: source.slice(record.payload),
            varint: record.varint,
        }
    }

    fn from_varint(number: u32, value: u64) -> Self {
        let mut record = Vec::with_capacity(12);
        push_varint(&mut record, u64::from(number) << 3);
        let start = record.len();
        push_varint(&mut record, value);
        let record = Bytes::from(record);
        let payload = record.slice(start..);
        Self {
            number,
            wire_type: WireType::Varint,
            record,
            payload,
            varint: value,
        }
    }

    fn from_bytes(number: u32, value: &[u8]) -> Self {
        let mut record = Vec::with_capacity(value.len() + 12);
        push_length_delimited(&mut record, number, value);
        let record = Bytes::from(record);
        let payload = record.slice(record.len() - value.len()..);
        Self {
            number,
            wire_type: WireType::Length,
            record,
            payload,
            varint: 0,
        }
    }

    /// The field's number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// How the value is stored.
    pub fn wire_type(&self) -> WireType {
        self.wire_type
    }

    /// Tag and value, as they stand in the message.
    pub fn record(&self) -> &Bytes {
        &self.record
    }

    /// The value alone: the content of a message, string or bytes field.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// The value of a varint field, 0 for all others.
    pub fn varint(&self) -> u64 {
        self.varint
    }
}

/// A message as the list of its fields, in the order in which they came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawMessage {
    fields: Vec<RawField>,
}

impl RawMessage {
    /// Splits a message. The fields share its bytes.
    pub fn decode(message: &Bytes) -> Result<Self, Malformed> {
        Self::decode_fields(message, |_| true)
    }

    /// The same for a part of the fields; the others are checked and left out.
    pub fn decode_fields(message: &Bytes, keep: impl Fn(u32) -> bool) -> Result<Self, Malformed> {
        let mut fields = Vec::new();
        for record in walk(message) {
            let record = record?;
            if keep(record.number) {
                fields.push(RawField::from_record(message, record));
            }
        }
        Ok(Self { fields })
    }

    /// A message of these fields.
    pub(crate) fn of(fields: Vec<RawField>) -> Self {
        Self { fields }
    }

    /// The message again: byte for byte what was decoded, but for the fields that were changed.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.encoded_len());
        for field in &self.fields {
            out.extend_from_slice(&field.record);
        }
        out
    }

    /// The size of the encoded message in bytes.
    pub fn encoded_len(&self) -> usize {
        self.fields.iter().map(|field| field.record.len()).sum()
    }

    /// All fields in order.
    pub fn fields(&self) -> &[RawField] {
        &self.fields
    }

    /// The field `number`; the last one if it occurs more than once, which is protobuf's rule for single values.
    pub fn get(&self, number: u32) -> Option<&RawField> {
        self.fields.iter().rev().find(|field| field.number == number)
    }

    /// All fields `number`, in order.
    pub fn all(&self, number: u32) -> impl Iterator<Item = &RawField> {
        self.fields.iter().filter(move |field| field.number == number)
    }

    /// Drops all fields `number`.
    pub fn remove(&mut self, number: u32) {
        self.fields.retain(|field| field.number != number);
    }

    /// Makes `value` the only field `number`. 0 is left out, as by every writer: absent means 0.
    pub fn set_varint(&mut self, number: u32, value: u64) {
        let field = (value != 0).then(|| RawField::from_varint(number, value));
        self.replace(number, field);
    }

    /// Makes `value` the only field `number`, 0 included: for fields whose absence means something.
    pub fn set_optional_varint(&mut self, number: u32, value: Option<u64>) {
        self.replace(number, value.map(|value| RawField::from_varint(number, value)));
    }

    /// Makes `value` the only field `number`: a string, bytes or an encoded message.
    pub fn set_bytes(&mut self, number: u32, value: &[u8]) {
        self.replace(number, Some(RawField::from_bytes(number, value)));
    }

    /// Makes `values` the only fields `number`, in their order.
    pub fn set_all_bytes<'a>(&mut self, number: u32, values: impl IntoIterator<Item = &'a [u8]>) {
        self.replace(
            number,
            values.into_iter().map(|value| RawField::from_bytes(number, value)),
        );
    }

    /// Adds one more field `number` after the existing ones.
    pub fn append_bytes(&mut self, number: u32, value: &[u8]) {
        let position = self.fields.iter().rposition(|field| field.number == number);
        let position = position.map_or_else(|| self.sorted_position(number), |position| position + 1);
        self.fields.insert(position, RawField::from_bytes(number, value));
    }

    /// Takes over the fields of `other` that `wanted` names and this message does not have.
    pub fn adopt(&mut self, other: &RawMessage, wanted: impl Fn(u32) -> bool) {
        let had: Vec<u32> = self.fields.iter().map(|field| field.number).collect();
        let adopted = other
            .fields
            .iter()
            .filter(|field| wanted(field.number) && !had.contains(&field.number));
        self.fields.extend(adopted.cloned());
    }

    /// Where a new field belongs: writers sort by number, and readers of their output may compare bytes.
    fn sorted_position(&self, number: u32) -> usize {
        self.fields
            .iter()
            .position(|field| field.number > number)
            .unwrap_or(self.fields.len())
    }

    fn replace(&mut self, number: u32, values: impl IntoIterator<Item = RawField>) {
        let position = self.fields.iter().position(|field| field.number == number);
        let position = position.unwrap_or_else(|| self.sorted_position(number));
        self.remove(number);
        self.fields.splice(position..position, values);
    }
}

/// Appends a varint.
pub fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Appends a field that holds a string, bytes or an encoded message.
pub fn push_length_delimited(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    push_varint(out, u64::from(number) << 3 | 2);
    push_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests;
