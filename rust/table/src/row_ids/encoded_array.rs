//! An encoded array of integers: little-endian offsets of two or four bytes from a base, or whole values of eight bytes.
//!
//! ```text
//! u16_array { base, offsets }   value = base + u16 at 2 * i
//! u32_array { base, offsets }   value = base + u32 at 4 * i
//! u64_array { values }          value = u64 at 8 * i
//! ```

use std::cmp::Ordering;

use bytes::Bytes;

use crate::raw::{push_length_delimited, push_varint, walk};

const BASE: u32 = 1;
const OFFSETS: u32 = 2;

/// How many bytes one value takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    U16,
    U32,
    U64,
}

impl Width {
    const ALL: [Width; 3] = [Self::U16, Self::U32, Self::U64];

    fn bytes(self) -> usize {
        match self {
            Self::U16 => 2,
            Self::U32 => 4,
            Self::U64 => 8,
        }
    }

    /// The number of the field that holds an array of this width.
    fn field(self) -> u32 {
        match self {
            Self::U16 => 1,
            Self::U32 => 2,
            Self::U64 => 3,
        }
    }

    /// The largest offset.
    fn max(self) -> u64 {
        match self {
            Self::U16 => u64::from(u16::MAX),
            Self::U32 => u64::from(u32::MAX),
            Self::U64 => u64::MAX,
        }
    }

    fn of_span(span: u64) -> Self {
        match span {
            span if span <= Self::U16.max() => Self::U16,
            span if span <= Self::U32.max() => Self::U32,
            _ => Self::U64,
        }
    }
}

/// An array of ids in their encoded form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EncodedArray {
    width: Width,
    base: u64,
    values: Bytes,
}

impl EncodedArray {
    /// The smallest form of `values`.
    pub fn new(values: &[u64]) -> Self {
        let (least, most) = bounds(values);
        let width = Width::of_span(most - least);
        let base = if width == Width::U64 { 0 } else { least };
        let mut out = Vec::with_capacity(values.len().saturating_mul(width.bytes()));
        for value in values {
            let bytes = (value - base).to_le_bytes();
            out.extend_from_slice(bytes.get(..width.bytes()).unwrap_or(&bytes));
        }
        let values = Bytes::from(out);
        Self { width, base, values }
    }

    /// The bytes of values that lie within `span` of each other.
    pub fn size_of(count: u64, span: u64) -> u64 {
        count.saturating_mul(Width::of_span(span).bytes() as u64)
    }

    pub fn decode(message: &Bytes) -> Result<Self, String> {
        let mut chosen = None;
        for record in walk(message) {
            let record = record.map_err(|error| error.to_string())?;
            if let Some(width) = Width::ALL.into_iter().find(|width| width.field() == record.number) {
                chosen = Some((width, record.payload));
            }
        }
        let (width, place) = chosen.ok_or("expected an array of u16, u32 or u64, found none")?;
        let message = message.slice(place);
        let (mut base, mut values) = (0, Bytes::new());
        for record in walk(&message) {
            let record = record.map_err(|error| error.to_string())?;
            match record.number {
                BASE if width != Width::U64 => base = record.varint,
                OFFSETS => values = message.slice(record.payload),
                _ => {}
            }
        }
        if values.len() % width.bytes() != 0 {
            let (size, found) = (width.bytes(), values.len());
            return Err(format!("expected values of {size} bytes, found {found} bytes"));
        }
        let array = Self { width, base, values };
        let fits = |bytes: &[u8]| base.checked_add(word(bytes)).is_some();
        if base > u64::MAX - u64::from(u32::MAX) && !array.values.chunks_exact(width.bytes()).all(fits) {
            return Err(format!(
                "expected values of 64 bits, found larger ones from base {base} on"
            ));
        }
        Ok(array)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut array = Vec::with_capacity(self.values.len().saturating_add(16));
        if self.base != 0 {
            push_varint(&mut array, u64::from(BASE) << 3);
            push_varint(&mut array, self.base);
        }
        push_length_delimited(&mut array, OFFSETS, &self.values);
        let mut out = Vec::with_capacity(array.len().saturating_add(16));
        push_length_delimited(&mut out, self.width.field(), &array);
        out
    }

    pub fn len(&self) -> usize {
        self.values.len() / self.width.bytes()
    }

    pub fn get(&self, index: usize) -> Option<u64> {
        let size = self.width.bytes();
        let start = index.checked_mul(size)?;
        let bytes = self.values.get(start..start.checked_add(size)?)?;
        Some(self.base + word(bytes))
    }

    pub fn first(&self) -> Option<u64> {
        self.get(0)
    }

    pub fn last(&self) -> Option<u64> {
        self.get(self.len().checked_sub(1)?)
    }

    /// All values in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.values
            .chunks_exact(self.width.bytes())
            .map(|bytes| self.base + word(bytes))
    }

    /// The values at `start..end`, under the same base.
    pub fn slice(&self, start: usize, end: usize) -> Self {
        let size = self.width.bytes();
        let bound = |index: usize| index.min(self.len()) * size;
        let (start, end) = (bound(start), bound(end));
        Self {
            values: self.values.slice(start.min(end)..end),
            ..*self
        }
    }

    pub fn is_ascending(&self) -> bool {
        let mut before = None;
        self.iter().all(|value| {
            let rises = before.is_none_or(|before| before < value);
            before = Some(value);
            rises
        })
    }

    /// Binary search in an ascending array: the index of `value`, or how many values are below it.
    pub fn search(&self, value: u64) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).unwrap_or(u64::MAX).cmp(&value) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }
}

fn word(bytes: &[u8]) -> u64 {
    match *bytes {
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// The least and the greatest of some values; 0 and 0 of none.
pub(super) fn bounds(values: &[u64]) -> (u64, u64) {
    let least = values.iter().copied().min().unwrap_or(0);
    (least, values.iter().copied().max().unwrap_or(0))
}
