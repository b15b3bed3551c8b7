//! Writing: symbols trained on the page's values, the compressed values written like any binary.

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, Utf8Type};
use arrow_array::{ArrayRef, GenericByteArray};
use arrow_schema::DataType;
use bytes::Bytes;
use esker_codec::fsst::Encoder;
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;

use crate::error::{FileError, Result};
use crate::v2_0::binary;
use crate::v2_0::encode::{encoding, PageBuffers};

/// Encodes strings or binary; other readers take no large_ types in this encoding.
pub(crate) fn encode(arrays: &[ArrayRef], data_type: &DataType, out: &mut PageBuffers) -> Result<pb::ArrayEncoding> {
    let (symbol_table, compressed) = match data_type {
        DataType::Utf8 => compress::<Utf8Type>(arrays),
        DataType::Binary => compress::<BinaryType>(arrays),
        other => {
            return Err(FileError::invalid(format!(
                "expected string or binary for encoding fsst, found {other}"
            )))
        }
    };
    let binary = binary::encode::encode(&[compressed], &DataType::Binary, None, out)?;
    Ok(encoding(Kind::Fsst(Box::new(pb::Fsst {
        binary: Some(Box::new(binary)),
        symbol_table: Bytes::from(symbol_table),
    }))))
}

fn compress<T: ByteArrayType<Offset = i32>>(arrays: &[ArrayRef]) -> (Vec<u8>, ArrayRef)
where
    T::Native: AsRef<[u8]>,
{
    let arrays: Vec<&GenericByteArray<T>> = arrays.iter().map(|a| a.as_bytes::<T>()).collect();
    let values: Vec<Option<&[u8]>> = arrays
        .iter()
        .flat_map(|a| a.iter())
        .map(|v| v.map(AsRef::as_ref))
        .collect();
    let samples: Vec<&[u8]> = values.iter().flatten().copied().collect();
    let encoder = Encoder::train(&samples);
    let mut compressed = BinaryBuilder::new();
    let mut buffer = Vec::new();
    for value in &values {
        match value {
            None => compressed.append_null(),
            Some(value) => {
                buffer.clear();
                encoder.encode(value, &mut buffer);
                compressed.append_value(&buffer);
            }
        }
    }
    (encoder.symbol_table(), Arc::new(compressed.finish()))
}
