//! `ImportedObjects`.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use esker_graveler::entry::{AddressType, EntryEncoder, EntryRef};
use esker_graveler::sorted::{NewestChanges, Sorter};
use esker_graveler::GravelerError;
use esker_store::{ObjectMeta, StoreError};
use pyo3::prelude::*;

use super::change_stream::PyChangeStream;
use super::error::graveler;
use crate::error::Result;
use crate::store::PyListedObjects;

/// The prefix of the addresses of local files.
pub(super) const LOCAL: &str = "local://";
/// Microseconds in a second.
const SECOND: i64 = 1_000_000;

/// Imported objects (references to objects elsewhere, or to the repository's own), sorted by path in bounded memory.
#[pyclass(name = "ImportedObjects", module = "esker._native.graveler", frozen)]
pub(crate) struct PyImportedObjects(Mutex<Imported>);

struct Imported {
    sorter: Sorter,
    encoder: EntryEncoder,
    own_roots: Vec<String>,
    own_below: String,
    path: String,
    address: String,
    checksum: String,
    value: Vec<u8>,
}

impl Imported {
    fn add(&mut self, root: &str, below: &str, meta: &ObjectMeta) -> std::result::Result<(), GravelerError> {
        join(&mut self.path, below, &meta.path);
        if self.path.is_empty() {
            return Err(GravelerError::invalid(
                "expected a path to import to, found an empty one",
            ));
        }
        join(&mut self.address, root, &meta.path);
        let address_type = match own_start(&self.address, &self.own_roots, &self.own_below) {
            Some(start) => {
                self.address.drain(..start);
                AddressType::Relative
            }
            None => AddressType::Full,
        };
        checksum_of(&mut self.checksum, meta, &self.address);
        let time = meta.last_modified_us.map(|time| {
            // The remainder of a second is below 10^9.
            let nanos = i32::try_from(time.rem_euclid(SECOND) * 1000).unwrap_or(0);
            (time.div_euclid(SECOND), nanos)
        });
        let entry = EntryRef {
            address: &self.address,
            address_type,
            last_modified: time,
            size: i64::try_from(meta.size).map_err(|_| {
                GravelerError::invalid(format!("{}: expected a size, found {}", self.address, meta.size))
            })?,
            e_tag: &self.checksum,
            content_type: "",
        };
        self.value.clear();
        self.encoder.encode_value_to(entry, &mut self.value);
        self.sorter.push(self.path.as_bytes(), &self.value)
    }
}

fn join(text: &mut String, start: &str, end: &str) {
    text.clear();
    text.push_str(start);
    text.push_str(end);
}

/// Where the address of one of the repository's own objects, which lie in folders below `below`, goes on behind its root.
fn own_start(address: &str, roots: &[String], below: &str) -> Option<usize> {
    let place = address.strip_prefix(LOCAL).unwrap_or(address);
    let own = roots.iter().find_map(|root| place.strip_prefix(root.as_str()))?;
    let in_folder = own.strip_prefix(below)?.contains('/');
    in_folder.then(|| address.len() - own.len())
}

/// A substitute for the hash of the bytes, which an import does not read: made of the object's metadata, so that it changes when the object
/// is replaced.
fn checksum_of(text: &mut String, meta: &ObjectMeta, address: &str) {
    let time = meta.last_modified_us.unwrap_or(0);
    let sign = if time < 0 { "-" } else { "" };
    let place = address.strip_prefix(LOCAL).unwrap_or(address);
    *text = format!("{:x}-{sign}{:x}-{place}", meta.size, time.unsigned_abs());
}

impl PyImportedObjects {
    fn held(&self) -> MutexGuard<'_, Imported> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyImportedObjects {
    #[new]
    #[pyo3(signature = (folder, *, own_roots, own_below, memory_bytes = 33_554_432))]
    fn new(folder: PathBuf, own_roots: Vec<String>, own_below: String, memory_bytes: usize) -> Self {
        PyImportedObjects(Mutex::new(Imported {
            sorter: Sorter::new(&folder, "import", memory_bytes),
            encoder: EntryEncoder::default(),
            own_roots,
            own_below,
            path: String::new(),
            address: String::new(),
            checksum: String::new(),
            value: Vec::new(),
        }))
    }

    fn add_batch(&self, py: Python<'_>, listed: &PyListedObjects, root: &str, below: &str) -> Result<bool> {
        py.detach(|| {
            let Some(batch) = listed.next()? else {
                return Ok(false);
            };
            let mut held = self.held();
            for meta in &batch {
                if meta.path.contains(|letter: char| letter.is_ascii_control()) {
                    let message = "expected objects whose names have no control characters, found one that no store of esker's could read; rename it";
                    return Err(StoreError::invalid_argument(meta.path.escape_debug().to_string(), message).into());
                }
                held.add(root, below, meta).map_err(graveler)?;
            }
            Ok(true)
        })
    }

    fn add(&self, path: &str, address: &str, size_bytes: u64, modified_us: Option<i64>) -> Result<()> {
        // The prefixes are the whole path and address, so nothing is appended to them.
        let meta = ObjectMeta {
            path: String::new(),
            size: size_bytes,
            last_modified_us: modified_us,
        };
        self.held().add(address, path, &meta).map_err(graveler)
    }

    fn __len__(&self) -> Result<usize> {
        Ok(usize::try_from(self.held().sorter.len()).unwrap_or(usize::MAX))
    }

    fn changes(&self, py: Python<'_>) -> Result<PyChangeStream> {
        let merge = py.detach(|| self.held().sorter.read()).map_err(graveler)?;
        Ok(PyChangeStream::new(NewestChanges::new(merge)))
    }
}
