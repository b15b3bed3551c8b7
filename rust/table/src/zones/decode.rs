//! Decodes a seed. Whatever is odd about one makes it say nothing: statistics are a help, and their lack is no error.
//!
//! It is read directly from the verified flatbuffers: a general IPC reader allocates what the file claims to hold, and panics on what no
//! writer writes.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt32Type, UInt64Type};
use arrow_array::{make_array, Array, ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_ipc::{root_as_footer, root_as_message, Block, DateUnit, Field, FieldNode, Footer, Precision, RecordBatch};
use arrow_ipc::{Buffer as Place, TimeUnit as IpcUnit, Type};
use arrow_schema::{DataType, TimeUnit};

use super::seed::{is_zoned, ZoneMap, NAMES};

const MAGIC: &[u8] = b"ARROW1";
const CONTINUATION: [u8; 4] = [0xff; 4];
/// The length of a message, in front of it.
const LENGTH: usize = 4;

/// The zone map of a column of `data_type` in a file of `rows` rows; `None` if the bytes are no seed of such a column.
pub(crate) fn decode(bytes: &[u8], data_type: &DataType, rows: u64) -> Option<ZoneMap> {
    if !is_zoned(data_type) {
        return None;
    }
    let footer = footer_of(bytes)?;
    let fields: Vec<Field<'_>> = footer.schema()?.fields()?.into_iter().collect();
    let types = [
        data_type.clone(),
        data_type.clone(),
        DataType::UInt32,
        DataType::UInt32,
        DataType::UInt64,
    ];
    let agree = |((field, name), data_type): ((&Field<'_>, &str), &DataType)| {
        field.name() == Some(name) && field.dictionary().is_none() && is_type(field, data_type)
    };
    if fields.len() != NAMES.len() || !fields.iter().zip(NAMES).zip(&types).all(agree) {
        return None;
    }
    let blocks: Vec<&Block> = footer.recordBatches()?.into_iter().collect();
    let [block] = blocks.as_slice() else { return None };
    let (batch, body) = batch_of(bytes, block)?;
    let mut parts = Parts {
        zones: usize::try_from(batch.length()).ok().filter(|zones| *zones > 0)?,
        nodes: batch.nodes()?.into_iter().collect::<Vec<_>>().into_iter(),
        places: batch.buffers()?.into_iter().collect::<Vec<_>>().into_iter(),
        body,
    };
    let arrays = types
        .iter()
        .map(|data_type| parts.next(data_type))
        .collect::<Option<Vec<_>>>()?;
    let [min, max, nulls, nans, lengths] = <[ArrayRef; 5]>::try_from(arrays).ok()?;
    let nulls = nulls
        .as_primitive_opt::<UInt32Type>()
        .filter(|array| array.null_count() == 0)?;
    let nans = nans
        .as_primitive_opt::<UInt32Type>()
        .filter(|array| array.null_count() == 0)?;
    let lengths = lengths
        .as_primitive_opt::<UInt64Type>()
        .filter(|array| array.null_count() == 0)?;
    let mut offsets = vec![0_u64];
    let mut end = 0_u64;
    for (length, nulls) in lengths.values().iter().zip(nulls.values()) {
        if *length == 0 || u64::from(*nulls) > *length {
            return None;
        }
        end = end.checked_add(*length)?;
        offsets.push(end);
    }
    if end != rows {
        return None;
    }
    let no_nan: BooleanBuffer = nans.values().iter().map(|nans| *nans == 0).collect();
    let map = ZoneMap {
        min: without_nan(&min)?,
        max: masked(&without_nan(&max)?, no_nan)?,
        null_count: nulls.values().iter().map(|nulls| u64::from(*nulls)).collect(),
        offsets,
    };
    let crossed: BooleanArray = arrow_ord::cmp::gt(&map.min, &map.max).ok()?;
    (crossed.true_count() == 0).then_some(map)
}

fn footer_of(bytes: &[u8]) -> Option<Footer<'_>> {
    let rest = bytes.strip_suffix(MAGIC).filter(|_| bytes.starts_with(MAGIC))?;
    let (rest, length) = rest.split_last_chunk::<LENGTH>()?;
    let length = usize::try_from(i32::from_le_bytes(*length)).ok()?;
    root_as_footer(rest.get(rest.len().checked_sub(length)?..)?).ok()
}

fn range(start: i64, length: i64) -> Option<Range<usize>> {
    let start = usize::try_from(start).ok()?;
    Some(start..start.checked_add(usize::try_from(length).ok()?)?)
}

fn batch_of<'a>(bytes: &'a [u8], block: &Block) -> Option<(RecordBatch<'a>, &'a [u8])> {
    let metadata = range(block.offset(), i64::from(block.metaDataLength()))?;
    let body = bytes.get(range(i64::try_from(metadata.end).ok()?, block.bodyLength())?)?;
    let metadata = bytes.get(metadata)?;
    let metadata = metadata.strip_prefix(&CONTINUATION).unwrap_or(metadata);
    let message = root_as_message(metadata.get(LENGTH..)?).ok()?;
    let batch = message.header_as_record_batch()?;
    batch.compression().is_none().then_some((batch, body))
}

/// The arrays of a batch, in order.
struct Parts<'a> {
    zones: usize,
    nodes: std::vec::IntoIter<&'a FieldNode>,
    places: std::vec::IntoIter<&'a Place>,
    body: &'a [u8],
}

impl Parts<'_> {
    fn buffer(&mut self) -> Option<Buffer> {
        let place = self.places.next()?;
        let bytes = self.body.get(range(place.offset(), place.length())?)?;
        // Copied, as an array's buffers are aligned.
        Some(Buffer::from(bytes))
    }

    fn next(&mut self, data_type: &DataType) -> Option<ArrayRef> {
        let node = self.nodes.next()?;
        if usize::try_from(node.length()).ok()? != self.zones {
            return None;
        }
        let validity = self.buffer()?;
        if node.null_count() != 0 && validity.len() < self.zones.div_ceil(8) {
            return None;
        }
        let values = match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => 2,
            _ => 1,
        };
        let mut builder = ArrayData::builder(data_type.clone()).len(self.zones);
        if node.null_count() != 0 {
            builder = builder.null_bit_buffer(Some(validity));
        }
        let width = match data_type {
            DataType::Utf8 | DataType::Binary => Some((4, self.zones.checked_add(1)?)),
            DataType::LargeUtf8 | DataType::LargeBinary => Some((8, self.zones.checked_add(1)?)),
            other => other.primitive_width().map(|width| (width, self.zones)),
        };
        for index in 0..values {
            let mut buffer = self.buffer()?;
            if let Some((width, count)) = width.filter(|_| index == 0) {
                // Whole values, and no more: Arrow panics on a part of one.
                let length = count.checked_mul(width).filter(|length| *length <= buffer.len())?;
                buffer = buffer.slice_with_length(0, length);
            }
            builder = builder.add_buffer(buffer);
        }
        Some(make_array(builder.build().ok()?))
    }
}

/// The bounds without those that are NaN.
fn without_nan(bounds: &ArrayRef) -> Option<ArrayRef> {
    let numbers: BooleanBuffer = if let Some(bounds) = bounds.as_primitive_opt::<Float32Type>() {
        bounds.values().iter().map(|bound| !bound.is_nan()).collect()
    } else if let Some(bounds) = bounds.as_primitive_opt::<Float64Type>() {
        bounds.values().iter().map(|bound| !bound.is_nan()).collect()
    } else {
        return Some(bounds.clone());
    };
    masked(bounds, numbers)
}

/// The bounds where they are `known`.
fn masked(bounds: &ArrayRef, known: BooleanBuffer) -> Option<ArrayRef> {
    if known.count_set_bits() == known.len() {
        return Some(bounds.clone());
    }
    let known = NullBuffer::union(bounds.nulls(), Some(&NullBuffer::new(known)));
    Some(make_array(bounds.to_data().into_builder().nulls(known).build().ok()?))
}

fn is_type(field: &Field<'_>, data_type: &DataType) -> bool {
    let int = |width: i32, signed: bool| {
        field
            .type_as_int()
            .is_some_and(|int| int.bitWidth() == width && int.is_signed() == signed)
    };
    let float = |precision: Precision| {
        field
            .type_as_floating_point()
            .is_some_and(|float| float.precision() == precision)
    };
    let decimal = |precision: u8, scale: i8, width: i32| {
        field.type_as_decimal().is_some_and(|decimal| {
            decimal.precision() == i32::from(precision)
                && decimal.scale() == i32::from(scale)
                && decimal.bitWidth() == width
        })
    };
    let time = |unit: TimeUnit, width: i32| {
        field
            .type_as_time()
            .is_some_and(|time| time.unit() == ipc_unit(unit) && time.bitWidth() == width)
    };
    let date = |unit: DateUnit| field.type_as_date().is_some_and(|date| date.unit() == unit);
    match data_type {
        DataType::Int8 => int(8, true),
        DataType::Int16 => int(16, true),
        DataType::Int32 => int(32, true),
        DataType::Int64 => int(64, true),
        DataType::UInt8 => int(8, false),
        DataType::UInt16 => int(16, false),
        DataType::UInt32 => int(32, false),
        DataType::UInt64 => int(64, false),
        DataType::Float32 => float(Precision::SINGLE),
        DataType::Float64 => float(Precision::DOUBLE),
        DataType::Decimal128(precision, scale) => decimal(*precision, *scale, 128),
        DataType::Decimal256(precision, scale) => decimal(*precision, *scale, 256),
        DataType::Date32 => date(DateUnit::DAY),
        DataType::Date64 => date(DateUnit::MILLISECOND),
        DataType::Time32(unit) => time(*unit, 32),
        DataType::Time64(unit) => time(*unit, 64),
        DataType::Timestamp(unit, zone) => field
            .type_as_timestamp()
            .is_some_and(|time| time.unit() == ipc_unit(*unit) && time.timezone() == zone.as_deref()),
        DataType::Duration(unit) => field
            .type_as_duration()
            .is_some_and(|duration| duration.unit() == ipc_unit(*unit)),
        DataType::Boolean => field.type_type() == Type::Bool,
        DataType::Utf8 => field.type_type() == Type::Utf8,
        DataType::LargeUtf8 => field.type_type() == Type::LargeUtf8,
        DataType::Binary => field.type_type() == Type::Binary,
        DataType::LargeBinary => field.type_type() == Type::LargeBinary,
        DataType::FixedSizeBinary(size) => field
            .type_as_fixed_size_binary()
            .is_some_and(|binary| binary.byteWidth() == *size),
        _ => false,
    }
}

fn ipc_unit(unit: TimeUnit) -> IpcUnit {
    match unit {
        TimeUnit::Second => IpcUnit::SECOND,
        TimeUnit::Millisecond => IpcUnit::MILLISECOND,
        TimeUnit::Microsecond => IpcUnit::MICROSECOND,
        TimeUnit::Nanosecond => IpcUnit::NANOSECOND,
    }
}
