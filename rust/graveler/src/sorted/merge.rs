//! A k-way merge of sorted sources.

use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;
use std::collections::BinaryHeap;

use super::buffer::BufferCursor;
use super::run::RunReader;
use crate::error::Result;

/// A source of sorted records.
#[derive(Debug)]
pub(super) enum Source {
    Buffer(BufferCursor),
    Run(RunReader),
}

impl Source {
    fn advance(&mut self) -> Result<bool> {
        match self {
            Source::Buffer(cursor) => Ok(cursor.advance()),
            Source::Run(reader) => reader.advance(),
        }
    }

    fn key(&self) -> &[u8] {
        match self {
            Source::Buffer(cursor) => cursor.key(),
            Source::Run(reader) => reader.key(),
        }
    }

    fn value(&self) -> &[u8] {
        match self {
            Source::Buffer(cursor) => cursor.value(),
            Source::Run(reader) => reader.value(),
        }
    }
}

/// A source and its current record. The greatest head's record comes next.
#[derive(Debug)]
struct Head {
    source: Source,
    /// Higher for newer sources.
    number: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        let keys = other.source.key().cmp(self.source.key());
        keys.then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

/// A cursor over sorted records: before the first, at one, or after the last. Of equal keys the newest record comes first.
#[derive(Debug)]
pub struct Merge {
    heads: BinaryHeap<Head>,
    started: bool,
    last: Vec<u8>,
}

impl Merge {
    /// A merge of sources, given oldest first.
    pub(super) fn new(sources: impl Iterator<Item = Result<Source>>) -> Result<Self> {
        let mut heads = BinaryHeap::new();
        for (number, source) in sources.enumerate() {
            let mut source = source?;
            if source.advance()? {
                heads.push(Head { source, number });
            }
        }
        Ok(Merge {
            heads,
            started: false,
            last: Vec::new(),
        })
    }

    /// To the next record; false after the last.
    pub fn advance(&mut self) -> Result<bool> {
        if self.started {
            if let Some(mut head) = self.heads.peek_mut() {
                if !head.source.advance()? {
                    PeekMut::pop(head);
                }
            }
        }
        self.started = true;
        Ok(!self.heads.is_empty())
    }

    /// To the first record of the next key; false after the last.
    pub fn advance_to_next_key(&mut self) -> Result<bool> {
        if !self.started {
            return self.advance();
        }
        self.last.clear();
        if let Some(head) = self.heads.peek() {
            self.last.extend_from_slice(head.source.key());
        }
        while self.advance()? {
            if self.key() != self.last {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The record's key; empty before the first and after the last.
    pub fn key(&self) -> &[u8] {
        self.heads.peek().map_or(&[], |head| head.source.key())
    }

    /// The record's value.
    pub fn value(&self) -> &[u8] {
        self.heads.peek().map_or(&[], |head| head.source.value())
    }
}
