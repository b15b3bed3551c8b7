//! `SortedNames`.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use esker_graveler::entry::{AddressType, Entry};
use esker_graveler::list::Listed;
use esker_graveler::sorted::{without, Name, Names};
use esker_graveler::value::Value;
use esker_graveler::GravelerError;
use esker_store::block_on;
use pyo3::prelude::*;

use super::error::graveler;
use super::imported_objects::LOCAL;
use super::listing::PyListing;
use crate::error::Result;
use crate::store::PyListedObjects;

type Found<T> = std::result::Result<T, GravelerError>;
/// A path, its address and its size in bytes.
type Imported = (String, String, i64);
/// Name, size, note, and the size among the others.
type Row = (String, u64, String, Option<u64>);

/// Entries of a content that are read at a time.
const AT_ONCE: u64 = 4096;

/// Sorts names with a size and a note each, in bounded memory.
#[pyclass(name = "SortedNames", module = "esker._native.graveler", frozen)]
pub(crate) struct PySortedNames(Mutex<Names>);

impl PySortedNames {
    fn held(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PySortedNames {
    #[new]
    #[pyo3(signature = (folder, name, *, memory_bytes = 33_554_432))]
    fn new(folder: PathBuf, name: &str, memory_bytes: usize) -> Self {
        PySortedNames(Mutex::new(Names::new(&folder, name, memory_bytes)))
    }

    #[pyo3(signature = (name, size_bytes = 0, note = ""))]
    fn add(&self, name: &str, size_bytes: u64, note: &str) -> Result<()> {
        self.held().add(name, size_bytes, note).map_err(graveler)
    }

    #[pyo3(signature = (listed, *, before_us = None, but = Vec::new()))]
    fn add_batch(
        &self,
        py: Python<'_>,
        listed: &PyListedObjects,
        before_us: Option<f64>,
        but: Vec<String>,
    ) -> Result<bool> {
        py.detach(|| {
            let Some(batch) = listed.next()? else {
                return Ok(false);
            };
            let mut names = self.held();
            for meta in batch.iter().filter(|meta| !but.contains(&meta.path)) {
                #[allow(clippy::cast_precision_loss)] // Microseconds of the next centuries fit a float well enough.
                let is_old = |before: f64| meta.last_modified_us.is_some_and(|time| (time as f64) < before);
                if before_us.is_none_or(is_old) {
                    names.add(&meta.path, meta.size, "").map_err(graveler)?;
                }
            }
            Ok(true)
        })
    }

    fn add_addresses(&self, py: Python<'_>, listing: &PyListing, count: u64, root: &str, below: &str) -> Result<()> {
        let added = py.detach(|| {
            let mut names = self.held();
            each_entry(listing, count, |_, entry| {
                let place = entry.address.strip_prefix(LOCAL).unwrap_or(&entry.address);
                let address = place.strip_prefix(root).unwrap_or(place);
                match address.starts_with(below) {
                    true => names.add(address, size_of(&entry), ""),
                    false => Ok(()),
                }
            })
        });
        added.map_err(graveler)
    }

    fn add_objects(
        &self,
        py: Python<'_>,
        listing: &PyListing,
        count: u64,
        note: &str,
        imports: bool,
    ) -> Result<Vec<Imported>> {
        let added = py.detach(|| {
            let (mut names, mut imported) = (self.held(), Vec::new());
            each_entry(listing, count, |path, entry| {
                if entry.address_type != AddressType::Full && !entry.address.contains("://") {
                    return names.add(&entry.address, size_of(&entry), &format!("{path}\0{note}"));
                }
                if imports {
                    imported.push((path, entry.address, entry.size));
                }
                Ok(())
            })?;
            Ok::<_, GravelerError>(imported)
        });
        added.map_err(graveler)
    }

    #[pyo3(signature = (others, *, or_size = false))]
    fn without(&self, py: Python<'_>, others: &PySortedNames, or_size: bool) -> Result<PyMissingNames> {
        let found = py.detach(|| {
            let (names, others) = (self.held().read()?, others.held().read()?);
            Ok::<_, GravelerError>(without(names, others, or_size))
        });
        Ok(PyMissingNames(Mutex::new(Box::new(found.map_err(graveler)?))))
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.held().len()).unwrap_or(usize::MAX)
    }
}

/// Calls `look` with the next entries of a content.
fn each_entry(listing: &PyListing, count: u64, mut look: impl FnMut(String, Entry) -> Found<()>) -> Found<()> {
    let mut list = listing.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut left = count;
    while left > 0 {
        let batch = block_on(list.next_batch(usize::try_from(left.min(AT_ONCE)).unwrap_or(1)))?;
        if batch.is_empty() {
            break;
        }
        left = left.saturating_sub(batch.len() as u64);
        for listed in batch {
            if let Listed::Record(path, value) = listed {
                look(text(path)?, Entry::decode(Value::decode(&value)?.data)?)?;
            }
        }
    }
    Ok(())
}

fn size_of(entry: &Entry) -> u64 {
    u64::try_from(entry.size).unwrap_or(0)
}

fn text(path: Vec<u8>) -> Found<String> {
    String::from_utf8(path).map_err(|error| {
        let shown = String::from_utf8_lossy(error.as_bytes()).into_owned();
        GravelerError::corrupt(shown, "expected a listed path in UTF-8, found other bytes")
    })
}

/// The names that the others lack, in batches.
#[pyclass(name = "MissingNames", module = "esker._native.graveler", frozen)]
pub(crate) struct PyMissingNames(Mutex<Box<dyn Iterator<Item = Found<Name>> + Send>>);

#[pymethods]
impl PyMissingNames {
    fn next_rows(&self, py: Python<'_>, count: usize) -> Result<Vec<Row>> {
        let rows = py.detach(|| {
            let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = names.by_ref().take(count);
            rows.map(|name| name.map(|name| (name.name, name.size, name.note, name.other)))
                .collect::<Found<Vec<Row>>>()
        });
        rows.map_err(graveler)
    }
}
