//! Reading: the compressed values like any binary, each then put through the page's symbols.

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType};
use arrow_array::{make_array, Array, GenericByteArray};
use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use esker_codec::ends::Offset;
use esker_codec::fsst::Decoder;
use esker_proto::lance::encodings as pb;

use crate::error::{FileError, Result};
use crate::v2_0::decode;
use crate::v2_0::page::{PageContext, Rows};

/// Decodes `rows` compressed strings or binaries.
pub(crate) async fn decode(
    page: &PageContext<'_>,
    fsst: &pb::Fsst,
    data_type: &DataType,
    rows: Rows<'_>,
) -> Result<ArrayData> {
    let decoder = Decoder::new(&fsst.symbol_table).map_err(|e| page.kernel(e))?;
    let is_large = match data_type {
        DataType::Utf8 | DataType::Binary => false,
        DataType::LargeUtf8 | DataType::LargeBinary => true,
        other => {
            return Err(page.corrupt(format!(
                "expected a string or binary type for encoding fsst, found {other}"
            )))
        }
    };
    // What is compressed is no text yet.
    let stored = if is_large {
        DataType::LargeBinary
    } else {
        DataType::Binary
    };
    let compressed = make_array(decode::decode(page, fsst.binary.as_deref(), &stored, rows).await?);
    if is_large {
        expand::<LargeBinaryType>(page, &decoder, compressed.as_bytes(), data_type)
    } else {
        expand::<BinaryType>(page, &decoder, compressed.as_bytes(), data_type)
    }
}

fn expand<T: ByteArrayType>(
    page: &PageContext<'_>,
    decoder: &Decoder,
    compressed: &GenericByteArray<T>,
    data_type: &DataType,
) -> Result<ArrayData>
where
    T::Offset: Offset + ArrowNativeType,
{
    let mut bytes = Vec::with_capacity(compressed.values().len().saturating_mul(2));
    let mut offsets: Vec<T::Offset> = Vec::with_capacity(compressed.len().saturating_add(1));
    offsets.push(T::Offset::default());
    let ends = compressed.value_offsets();
    let (first, last) = match (ends.first(), ends.last()) {
        (Some(first), Some(last)) => (first.as_usize(), last.as_usize()),
        _ => (0, 0),
    };
    let codes = compressed.value_data().get(first..last).ok_or_else(|| {
        page.corrupt(format!(
            "expected codes within {} bytes, found none there",
            compressed.value_data().len()
        ))
    })?;
    let bounds = ends.iter().skip(1).map(|end| end.as_usize().wrapping_sub(first));
    let decoded = decoder.decode_values(codes, bounds, &mut bytes, |end| {
        offsets.push(T::Offset::from_u64(end as u64))
    });
    decoded.map_err(|e| page.kernel(e))?;
    if bytes.len() as u64 > T::Offset::MAX {
        return Err(FileError::invalid(format!(
            "the values of one batch hold more than {} bytes; read fewer rows at a time or use a large_ type",
            T::Offset::MAX
        )));
    }
    ArrayData::builder(data_type.clone())
        .len(compressed.len())
        .add_buffer(Buffer::from_vec(offsets))
        .add_buffer(Buffer::from_vec(bytes))
        .nulls(compressed.nulls().cloned())
        .build()
        .map_err(|e| page.corrupt(e))
}
