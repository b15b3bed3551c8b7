//! The sorter's buffer: records in one allocation.

use std::cmp::Reverse;

use crate::error::{GravelerError, Result};

/// Records in insertion order, or sorted.
#[derive(Debug, Default, Clone)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    rows: Vec<Row>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    start: usize,
    key: u32,
    value: u32,
}

impl Buffer {
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (Ok(key_len), Ok(value_len)) = (u32::try_from(key.len()), u32::try_from(value.len())) else {
            let found = key.len().max(value.len());
            return Err(GravelerError::invalid(format!(
                "expected a path and an entry of less than four gigabytes, found {found} bytes"
            )));
        };
        self.rows.push(Row {
            start: self.bytes.len(),
            key: key_len,
            value: value_len,
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        if key.is_empty() && value.is_empty() {
            // The start of a record tells which of two is newer, so even empty records take a byte.
            self.bytes.push(0);
        }
        Ok(())
    }

    /// Bytes of memory that the records take.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.rows.len() * size_of::<Row>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// Sorts by key; of equal keys the newest comes first.
    pub(super) fn sort(&mut self) {
        let Buffer { bytes, rows } = self;
        let order = |row: &Row| (key_of(bytes, *row), Reverse(row.start));
        if !rows.is_sorted_by(|left, right| order(left) <= order(right)) {
            rows.sort_unstable_by(|left, right| order(left).cmp(&order(right)));
        }
    }

    pub(super) fn first_key(&self) -> Option<&[u8]> {
        self.rows.first().map(|row| key_of(&self.bytes, *row))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.rows
            .iter()
            .map(|row| (key_of(&self.bytes, *row), value_of(&self.bytes, *row)))
    }

    pub(super) fn read(self) -> BufferCursor {
        BufferCursor { buffer: self, next: 0 }
    }
}

fn key_of(bytes: &[u8], row: Row) -> &[u8] {
    bytes.get(row.start..row.start + row.key as usize).unwrap_or_default()
}

fn value_of(bytes: &[u8], row: Row) -> &[u8] {
    let start = row.start + row.key as usize;
    bytes.get(start..start + row.value as usize).unwrap_or_default()
}

/// A cursor over a buffer: before the first record, at one, or after the last.
#[derive(Debug)]
pub(super) struct BufferCursor {
    buffer: Buffer,
    /// The number of the record after the current one.
    next: usize,
}

impl BufferCursor {
    pub(super) fn advance(&mut self) -> bool {
        self.next += 1;
        self.next <= self.buffer.rows.len()
    }

    fn row(&self) -> Option<Row> {
        self.buffer.rows.get(self.next.checked_sub(1)?).copied()
    }

    pub(super) fn key(&self) -> &[u8] {
        self.row().map_or(&[], |row| key_of(&self.buffer.bytes, row))
    }

    pub(super) fn value(&self) -> &[u8] {
        self.row().map_or(&[], |row| value_of(&self.buffer.bytes, row))
    }
}
