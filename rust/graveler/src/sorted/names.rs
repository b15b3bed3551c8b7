//! Set differences of names, each with a size and a note.

use std::path::Path;

use super::{Merge, Sorter};
use crate::error::{GravelerError, Result};
use crate::varint::{put_uvarint, uvarint};

/// A name that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub name: String,
    /// In bytes.
    pub size: u64,
    /// Its note.
    pub note: String,
    /// The size of the same name among the others, if it is there.
    pub other: Option<u64>,
}

/// Collects names in any order.
#[derive(Debug)]
pub struct Names {
    sorter: Sorter,
    value: Vec<u8>,
}

impl Names {
    /// See [`Sorter::new`].
    pub fn new(folder: &Path, name: &str, memory: usize) -> Self {
        Names {
            sorter: Sorter::new(folder, name, memory),
            value: Vec::new(),
        }
    }

    /// Adds a name. A name that is added twice is returned twice.
    pub fn add(&mut self, name: &str, size: u64, note: &str) -> Result<()> {
        self.value.clear();
        put_uvarint(&mut self.value, size);
        self.value.extend_from_slice(note.as_bytes());
        self.sorter.push(name.as_bytes(), &self.value)
    }

    /// How many were added.
    pub fn len(&self) -> u64 {
        self.sorter.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.sorter.is_empty()
    }

    /// The names added so far, sorted.
    pub fn read(&mut self) -> Result<Merge> {
        self.sorter.read()
    }
}

/// The names that the others lack, or with `or_size` have with another size, sorted.
pub fn without(names: Merge, others: Merge, or_size: bool) -> impl Iterator<Item = Result<Name>> {
    let mut sides = Sides {
        names,
        others,
        started: false,
        others_left: true,
    };
    std::iter::from_fn(move || sides.next(or_size).transpose())
}

struct Sides {
    names: Merge,
    others: Merge,
    started: bool,
    others_left: bool,
}

impl Sides {
    fn next(&mut self, or_size: bool) -> Result<Option<Name>> {
        if !self.started {
            self.started = true;
            self.others_left = self.others.advance()?;
        }
        while self.names.advance()? {
            while self.others_left && self.others.key() < self.names.key() {
                self.others_left = self.others.advance()?;
            }
            let (size, note) = parts(&self.names)?;
            let other = match self.others_left && self.others.key() == self.names.key() {
                true => Some(parts(&self.others)?.0),
                false => None,
            };
            if other.is_none_or(|other| or_size && other != size) {
                return Ok(Some(Name {
                    name: text(self.names.key())?,
                    size,
                    note: text(note)?,
                    other,
                }));
            }
        }
        Ok(None)
    }
}

fn parts(merge: &Merge) -> Result<(u64, &[u8])> {
    let (size, used) = uvarint(merge.value()).ok_or_else(damaged)?;
    Ok((size, merge.value().get(used..).unwrap_or_default()))
}

fn text(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| damaged())
}

fn damaged() -> GravelerError {
    GravelerError::corrupt(
        "names",
        "expected a name with a size, found other bytes; somebody else wrote to a temporary file",
    )
}
