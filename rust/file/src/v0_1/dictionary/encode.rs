//! Writes dictionary columns. All files of a table share one dictionary, which the manifest holds: new values are appended to it, so that
//! keys that were written stay valid.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{make_array, AnyDictionaryArray, Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::DataType;

use crate::error::{FileError, Result};
use crate::v0_1::column::{ColumnNode, Dictionaries};
use crate::v0_1::encode::{EncodeContext, PageWriter};
use crate::v2_0::flat::decode::byte_width;
use crate::v2_0::flat::encode::fixed_width_bytes;
use crate::version::FileVersion;

/// The values of dictionary columns while files are written, by field id. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct DictionaryWriters {
    by_field: Arc<Mutex<BTreeMap<i32, ValueSet>>>,
}

/// One dictionary: no value twice, so far as we added it.
#[derive(Debug)]
struct ValueSet {
    data_type: DataType,
    /// The bytes of each value; none for null.
    values: Vec<Option<Vec<u8>>>,
    places: HashMap<Option<Vec<u8>>, usize>,
    /// Fixed by the existing files of the table: no values can be added.
    is_fixed: bool,
    /// The dictionary of the batch before and its places here; most streams have one for all their batches.
    last: Option<(ArrayData, Arc<[Option<usize>]>)>,
}

impl DictionaryWriters {
    /// The dictionaries of a table that is appended to, to which nothing can be added.
    pub fn of_table(dictionaries: &Dictionaries) -> Result<DictionaryWriters> {
        let mut by_field = BTreeMap::new();
        for (id, values) in dictionaries {
            let mut set = ValueSet::new(values.data_type());
            for value in bytes_of(values)? {
                set.values.push(value.clone());
                let place = set.values.len() - 1;
                set.places.entry(value).or_insert(place);
            }
            set.is_fixed = true;
            by_field.insert(*id, set);
        }
        Ok(DictionaryWriters {
            by_field: Arc::new(Mutex::new(by_field)),
        })
    }

    /// The values so far.
    pub fn values(&self) -> Result<Dictionaries> {
        let sets = self.lock()?;
        sets.iter().map(|(id, set)| Ok((*id, set.to_array()?))).collect()
    }

    fn lock(&self) -> Result<MutexGuard<'_, BTreeMap<i32, ValueSet>>> {
        let poisoned = |_| FileError::invalid("expected the dictionaries of a write, found one that failed");
        self.by_field.lock().map_err(poisoned)
    }

    /// Adds the page of keys of a dictionary column.
    pub(crate) fn encode(
        &self,
        context: EncodeContext<'_>,
        node: &ColumnNode,
        arrays: &[ArrayRef],
        out: &mut PageWriter,
    ) -> Result<()> {
        let DataType::Dictionary(key_type, value_type) = &node.data_type else {
            return Err(FileError::invalid(format!(
                "expected a dictionary to write to a 0.1 file, found {}",
                node.data_type
            )));
        };
        let mut sets = self.lock()?;
        let set = sets.entry(node.id).or_insert_with(|| ValueSet::new(value_type));
        let position = out.position();
        let mut rows = 0;
        for array in arrays {
            rows += array.len() as u64;
            set.append(context, node, key_type, array.as_any_dictionary(), &mut out.buffer)?;
        }
        out.add(node.id, position, rows);
        Ok(())
    }
}

impl ValueSet {
    fn new(data_type: &DataType) -> ValueSet {
        ValueSet {
            data_type: data_type.clone(),
            values: Vec::new(),
            places: HashMap::new(),
            is_fixed: false,
            last: None,
        }
    }

    fn is_text(&self) -> bool {
        byte_width(&self.data_type).is_none()
    }

    /// The index of a value, which is added if it is missing and may be added.
    fn place(&mut self, value: Option<Vec<u8>>) -> Option<usize> {
        if let Some(place) = self.places.get(&value) {
            return Some(*place);
        }
        // Null and the empty string are the same in a file; numbers have no null at all.
        if self.is_fixed || (value.is_none() && !self.is_text()) {
            return None;
        }
        self.values.push(value.clone());
        self.places.insert(value, self.values.len() - 1);
        Some(self.values.len() - 1)
    }

    fn places_of(&mut self, values: &ArrayRef) -> Result<Arc<[Option<usize>]>> {
        let data = values.to_data();
        if let Some((_, places)) = self.last.as_ref().filter(|(last, _)| last.ptr_eq(&data)) {
            return Ok(places.clone());
        }
        let places: Arc<[Option<usize>]> = bytes_of(values)?.into_iter().map(|value| self.place(value)).collect();
        self.last = Some((data, places.clone()));
        Ok(places)
    }

    fn append(
        &mut self,
        context: EncodeContext<'_>,
        node: &ColumnNode,
        key_type: &DataType,
        array: &dyn AnyDictionaryArray,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let places = self.places_of(array.values())?;
        let keys = match array.values().is_empty() {
            true => vec![0; array.len()],
            false => array.normalized_keys(),
        };
        let width = usize::try_from(byte_width(key_type).unwrap_or(8)).unwrap_or(8);
        let largest = largest_key(key_type);
        let (mut lost, mut emptied) = (0, 0);
        for (row, key) in keys.into_iter().enumerate() {
            let is_null = array.keys().is_null(row) || array.values().is_empty() || array.values().is_null(key);
            let place = match is_null {
                true => self.place(None),
                false => match places.get(key).copied().flatten() {
                    Some(place) => Some(place),
                    None => return Err(self.unknown(node)),
                },
            };
            lost += usize::from(place.is_none());
            let place = place.unwrap_or(0);
            let is_empty = self
                .values
                .get(place)
                .and_then(Option::as_ref)
                .is_some_and(Vec::is_empty);
            emptied += usize::from(!is_null && is_empty && self.is_text());
            if place as u64 > largest {
                return Err(FileError::UnsupportedColumn {
                    column: node.path.clone(),
                    data_type: node.data_type.to_string(),
                    version: FileVersion::V0_1,
                    what: format!(
                        "more than {} distinct values with keys of that type; use wider keys",
                        largest + 1
                    ),
                });
            }
            out.extend_from_slice((place as u64).to_le_bytes().get(..width).unwrap_or_default());
        }
        context.check_loss(node, lost, "nulls", "the first value of the dictionary")?;
        context.check_loss(node, emptied, "empty values in a dictionary", "nulls")
    }

    fn unknown(&self, node: &ColumnNode) -> FileError {
        FileError::UnsupportedColumn {
            column: node.path.clone(),
            data_type: node.data_type.to_string(),
            version: FileVersion::V0_1,
            what: "a value that is not in the dictionary of the table, which its files share; \
                   append known values only, or overwrite the table with the column as plain values"
                .into(),
        }
    }

    fn to_array(&self) -> Result<ArrayRef> {
        let mut bytes = Vec::new();
        let mut ends: Vec<u64> = vec![0];
        let width = byte_width(&self.data_type).and_then(|width| usize::try_from(width).ok());
        for value in &self.values {
            match value {
                Some(value) => bytes.extend_from_slice(value),
                None => bytes.resize(bytes.len() + width.unwrap_or(0), 0),
            }
            ends.push(bytes.len() as u64);
        }
        let valid: BooleanBuffer = self.values.iter().map(Option::is_some).collect();
        let builder = ArrayDataBuilder::new(self.data_type.clone())
            .len(self.values.len())
            .nulls(Some(NullBuffer::new(valid)).filter(|nulls| nulls.null_count() > 0));
        let too_large = |_| FileError::invalid("expected at most 2 GiB of dictionary values; use a large_ type");
        let builder = match &self.data_type {
            DataType::Utf8 | DataType::Binary => {
                let ends = ends
                    .into_iter()
                    .map(i32::try_from)
                    .collect::<std::result::Result<Vec<_>, _>>();
                builder.add_buffer(Buffer::from_vec(ends.map_err(too_large)?))
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                let ends = ends
                    .into_iter()
                    .map(i64::try_from)
                    .collect::<std::result::Result<Vec<_>, _>>();
                builder.add_buffer(Buffer::from_vec(ends.map_err(too_large)?))
            }
            _ => builder,
        };
        let data = builder.add_buffer(Buffer::from_vec(bytes)).align_buffers(true).build();
        Ok(make_array(data.map_err(|e| FileError::invalid(e.to_string()))?))
    }
}

fn largest_key(key_type: &DataType) -> u64 {
    match key_type {
        DataType::Int8 => u64::from(i8::MAX.unsigned_abs()),
        DataType::UInt8 => u64::from(u8::MAX),
        DataType::Int16 => u64::from(i16::MAX.unsigned_abs()),
        DataType::UInt16 => u64::from(u16::MAX),
        DataType::Int32 => u64::from(i32::MAX.unsigned_abs()),
        DataType::UInt32 => u64::from(u32::MAX),
        _ => i64::MAX.unsigned_abs(),
    }
}

/// The bytes of each value of a dictionary.
fn bytes_of(values: &ArrayRef) -> Result<Vec<Option<Vec<u8>>>> {
    fn text<T: ByteArrayType>(values: &ArrayRef) -> Vec<Option<Vec<u8>>> {
        let values = values.as_bytes::<T>();
        let bounds = values.value_offsets().iter().zip(values.value_offsets().iter().skip(1));
        let bytes = bounds.map(|(start, end)| values.value_data().get(start.as_usize()..end.as_usize()));
        let bytes = bytes
            .enumerate()
            .map(|(row, bytes)| bytes.filter(|_| values.is_valid(row)).map(<[u8]>::to_vec));
        bytes.collect()
    }
    Ok(match values.data_type() {
        DataType::Utf8 => text::<Utf8Type>(values),
        DataType::LargeUtf8 => text::<LargeUtf8Type>(values),
        DataType::Binary => text::<BinaryType>(values),
        DataType::LargeBinary => text::<LargeBinaryType>(values),
        other => {
            let width = byte_width(other).filter(|width| *width > 0).ok_or_else(|| {
                FileError::unsupported(format!("a dictionary of {other} cannot be written in file version 0.1"))
            })?;
            let bytes = fixed_width_bytes(values, width)?;
            let width = usize::try_from(width).unwrap_or(1);
            let found = bytes.as_slice().chunks_exact(width).enumerate();
            found
                .map(|(row, bytes)| values.is_valid(row).then(|| bytes.to_vec()))
                .collect()
        }
    })
}
