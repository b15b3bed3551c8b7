//! Converts entries to Arrow columns and back.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Int64Builder, MapBuilder, MapFieldNames, NullBufferBuilder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, MapArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use esker_graveler::entry::{AddressType, Entry, EntryEncoder, EntryRef};
use esker_graveler::value::Value;
use esker_graveler::GravelerError;

/// Microseconds in a second.
const SECOND: i64 = 1_000_000;

fn map_type() -> DataType {
    let key = Field::new("key", DataType::Utf8, false);
    let value = Field::new("value", DataType::Utf8, true);
    let entries = Field::new("entries", DataType::Struct(vec![key, value].into()), false);
    DataType::Map(Arc::new(entries), false)
}

/// The fields of an entry's struct column.
pub(super) fn fields() -> Fields {
    let utf8 = |name: &str| Field::new(name, DataType::Utf8, true);
    Fields::from(vec![
        utf8("physical_address"),
        utf8("address_type"),
        Field::new("size_bytes", DataType::Int64, true),
        utf8("checksum"),
        Field::new(
            "mtime",
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            true,
        ),
        utf8("content_type"),
        Field::new("metadata", map_type(), true),
        Field::new("identity", DataType::Binary, true),
    ])
}

/// Framed values as a struct column; null for `None`.
pub(super) fn entries<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> Result<StructArray, GravelerError> {
    let mut address = StringBuilder::new();
    let mut address_type = StringBuilder::new();
    let mut size = Int64Builder::new();
    let mut checksum = StringBuilder::new();
    let mut mtime = TimestampMicrosecondBuilder::new().with_timezone("UTC");
    let mut content_type = StringBuilder::new();
    let names = MapFieldNames {
        entry: "entries".into(),
        key: "key".into(),
        value: "value".into(),
    };
    let mut metadata = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    let mut identity = BinaryBuilder::new();
    let mut valid = NullBufferBuilder::new(0);
    for value in values {
        valid.append(value.is_some());
        let value = value.map(Value::decode).transpose()?;
        let entry = value.map(|value| Entry::decode(value.data)).transpose()?;
        identity.append_option(value.map(|value| value.identity));
        if let Some(entry) = &entry {
            for (key, text) in &entry.metadata {
                metadata.keys().append_value(key);
                metadata.values().append_value(text);
            }
        }
        metadata.append(entry.is_some()).map_err(arrow)?;
        address.append_option(entry.as_ref().map(|entry| &entry.address));
        address_type.append_option(entry.as_ref().map(|entry| name_of(entry.address_type)));
        size.append_option(entry.as_ref().map(|entry| entry.size));
        checksum.append_option(entry.as_ref().map(|entry| &entry.e_tag));
        let time = entry.as_ref().and_then(|entry| entry.last_modified);
        mtime.append_option(
            time.map(|(seconds, nanos)| seconds.saturating_mul(SECOND).saturating_add(i64::from(nanos) / 1000)),
        );
        content_type.append_option(entry.as_ref().map(|entry| &entry.content_type));
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(address.finish()),
        Arc::new(address_type.finish()),
        Arc::new(size.finish()),
        Arc::new(checksum.finish()),
        Arc::new(mtime.finish()),
        Arc::new(content_type.finish()),
        Arc::new(metadata.finish()),
        Arc::new(identity.finish()),
    ];
    StructArray::try_new(fields(), columns, valid.finish()).map_err(arrow)
}

/// Paths as a string column; an error for paths that are not UTF-8.
pub(super) fn paths<'a>(paths: impl Iterator<Item = &'a [u8]>) -> Result<StringArray, GravelerError> {
    let mut column = StringBuilder::new();
    for path in paths {
        let text = std::str::from_utf8(path);
        column.append_value(text.map_err(|_| {
            let shown = String::from_utf8_lossy(path).into_owned();
            GravelerError::corrupt(shown, "expected a path in UTF-8, found other bytes")
        })?);
    }
    Ok(column.finish())
}

/// Converts an Arrow error, which is a bug here or invalid input.
pub(super) fn arrow(error: arrow_schema::ArrowError) -> GravelerError {
    GravelerError::invalid(error.to_string())
}

pub(super) fn name_of(address_type: AddressType) -> &'static str {
    match address_type {
        AddressType::ByPrefix => "by_prefix",
        AddressType::Relative => "relative",
        AddressType::Full => "full",
    }
}

pub(super) fn type_of(name: &str) -> Result<AddressType, GravelerError> {
    match name {
        "by_prefix" => Ok(AddressType::ByPrefix),
        "relative" => Ok(AddressType::Relative),
        "full" => Ok(AddressType::Full),
        other => Err(GravelerError::invalid(format!(
            "expected the address type \"relative\" or \"full\", found {other:?}"
        ))),
    }
}

/// The columns of a batch of changes, checked once per batch.
pub(super) struct EntryColumns {
    path: StringArray,
    deleted: Option<BooleanArray>,
    address: Option<StringArray>,
    address_type: Option<StringArray>,
    size: Option<Int64Array>,
    checksum: Option<StringArray>,
    mtime: Option<TimestampMicrosecondArray>,
    content_type: Option<StringArray>,
    metadata: Option<MapArray>,
}

fn column(batch: &RecordBatch, name: &str, data_type: &DataType) -> Result<Option<ArrayRef>, GravelerError> {
    match batch.column_by_name(name) {
        None => Ok(None),
        Some(column) if column.data_type() == data_type => Ok(Some(column.clone())),
        Some(column) => Err(GravelerError::invalid(format!(
            "column {name:?}: expected {data_type}, found {}; cast it",
            column.data_type()
        ))),
    }
}

impl EntryColumns {
    pub(super) fn new(batch: &RecordBatch) -> Result<Self, GravelerError> {
        let utf8 = |name: &str| {
            Ok::<_, GravelerError>(column(batch, name, &DataType::Utf8)?.map(|c| c.as_string::<i32>().clone()))
        };
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let path = utf8("path")?.filter(|path| path.null_count() == 0);
        Ok(EntryColumns {
            path: path.ok_or_else(|| GravelerError::invalid("expected a column \"path\" of strings without nulls"))?,
            deleted: column(batch, "deleted", &DataType::Boolean)?.map(|c| c.as_boolean().clone()),
            address: utf8("physical_address")?,
            address_type: utf8("address_type")?,
            size: column(batch, "size_bytes", &DataType::Int64)?.map(|c| c.as_primitive::<Int64Type>().clone()),
            checksum: utf8("checksum")?,
            mtime: column(batch, "mtime", &time)?.map(|c| c.as_primitive::<TimestampMicrosecondType>().clone()),
            content_type: utf8("content_type")?,
            metadata: column(batch, "metadata", &map_type())?.map(|c| c.as_map().clone()),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.path.len()
    }

    pub(super) fn path(&self, row: usize) -> &str {
        self.path.value(row)
    }

    pub(super) fn is_deleted(&self, row: usize) -> bool {
        self.deleted
            .as_ref()
            .is_some_and(|deleted| deleted.is_valid(row) && deleted.value(row))
    }

    /// Appends a row's framed value.
    pub(super) fn encode_to(
        &self,
        row: usize,
        encoder: &mut EntryEncoder,
        buffer: &mut Vec<u8>,
    ) -> Result<(), GravelerError> {
        let time = self
            .mtime
            .as_ref()
            .filter(|mtime| mtime.is_valid(row))
            .map(|mtime| mtime.value(row));
        let last_modified = time.map(|time| {
            // The remainder of a second is below 10^9.
            let nanos = i32::try_from(time.rem_euclid(SECOND) * 1000).unwrap_or(0);
            (time.div_euclid(SECOND), nanos)
        });
        let size = self
            .size
            .as_ref()
            .filter(|size| size.is_valid(row))
            .map_or(0, |size| size.value(row));
        let address_type = match text(&self.address_type, row) {
            "" => AddressType::Relative,
            name => type_of(name)?,
        };
        let entry = EntryRef {
            address: text(&self.address, row),
            address_type,
            last_modified,
            size,
            e_tag: text(&self.checksum, row),
            content_type: text(&self.content_type, row),
        };
        let metadata = self
            .metadata
            .as_ref()
            .filter(|metadata| metadata.is_valid(row) && metadata.value_length(row) > 0);
        let Some(metadata) = metadata else {
            encoder.encode_value_to(entry, buffer);
            return Ok(());
        };
        let pairs = metadata.value(row);
        let (keys, values) = (pairs.column(0).as_string::<i32>(), pairs.column(1).as_string::<i32>());
        let pairs = keys.iter().zip(values.iter());
        let owned = Entry {
            address: entry.address.to_owned(),
            address_type,
            last_modified,
            size,
            e_tag: entry.e_tag.to_owned(),
            content_type: entry.content_type.to_owned(),
            metadata: pairs
                .map(|(key, value)| (key.unwrap_or_default().to_owned(), value.unwrap_or_default().to_owned()))
                .collect(),
        };
        buffer.extend_from_slice(&owned.encode_value());
        Ok(())
    }
}

fn text(column: &Option<StringArray>, row: usize) -> &str {
    column
        .as_ref()
        .filter(|column| column.is_valid(row))
        .map_or("", |column| column.value(row))
}
