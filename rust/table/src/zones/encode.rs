//! Encodes a seed.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_ipc::MetadataVersion;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bytes::Bytes;

use super::seed::{NAMES, NULL_ROWS};

/// What a seed says, a value for each zone.
#[derive(Debug)]
pub(super) struct ZoneColumns {
    pub(super) min: ArrayRef,
    pub(super) max: ArrayRef,
    pub(super) null_count: Vec<u32>,
    pub(super) nan_count: Vec<u32>,
    pub(super) zone_length: Vec<u64>,
}

/// The Arrow IPC file. Which rows are null is said only where none is: elsewhere the key is left out, which means that it is unknown.
pub(super) fn encode(zones: ZoneColumns) -> Result<Bytes, ArrowError> {
    let has_nulls = zones.null_count.iter().any(|nulls| *nulls > 0);
    let columns: Vec<ArrayRef> = vec![
        zones.min,
        zones.max,
        Arc::new(UInt32Array::from(zones.null_count)),
        Arc::new(UInt32Array::from(zones.nan_count)),
        Arc::new(UInt64Array::from(zones.zone_length)),
    ];
    let fields = columns.iter().zip(NAMES).map(|(column, name)| {
        let is_bound = name == "min" || name == "max";
        Field::new(name, DataType::clone(column.data_type()), is_bound)
    });
    let metadata: HashMap<String, String> = match has_nulls {
        true => HashMap::new(),
        false => HashMap::from([(NULL_ROWS.to_owned(), String::new())]),
    };
    let schema = Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata));
    let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5)?;
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &schema, options)?;
    writer.write(&RecordBatch::try_new(schema, columns)?)?;
    Ok(Bytes::from(writer.into_inner()?))
}
