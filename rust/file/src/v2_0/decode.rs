//! Dispatches an array encoding to its decoder.

use arrow_data::ArrayData;
use arrow_schema::DataType;
use esker_proto::lance::encodings as pb;
use esker_proto::lance::encodings::array_encoding::ArrayEncoding as Kind;
use futures::future::BoxFuture;
use futures::FutureExt;

use super::fixed_width::FixedWidth;
use super::page::{PageContext, Rows};
use super::{binary, dictionary, fixed_size_list, flat, fsst, nullable, packed_struct};
use crate::error::Result;

/// Decodes the `rows` of a page as an array of `data_type`.
pub(crate) fn decode<'a>(
    page: &'a PageContext<'a>,
    encoding: Option<&'a pb::ArrayEncoding>,
    data_type: &'a DataType,
    rows: Rows<'a>,
) -> BoxFuture<'a, Result<ArrayData>> {
    async move {
        let kind = encoding
            .and_then(|e| e.array_encoding.as_ref())
            .ok_or_else(|| page.corrupt("expected an array encoding, found none or one of a newer version"))?;
        match kind {
            Kind::Flat(flat) => flat::decode::decode(page, flat, data_type, rows).await,
            Kind::Nullable(nullable) => nullable::decode::decode(page, nullable, data_type, rows).await,
            Kind::FixedSizeList(list) => fixed_size_list::decode::decode(page, list, data_type, rows).await,
            Kind::Binary(binary) => binary::decode::decode(page, binary, data_type, rows).await,
            Kind::FixedSizeBinary(binary) => binary::decode::decode_fixed(page, binary, data_type, rows).await,
            Kind::Dictionary(dictionary) => dictionary::decode::decode(page, dictionary, data_type, rows).await,
            Kind::PackedStruct(packed) => packed_struct::decode::decode(page, packed, data_type, rows).await,
            Kind::Fsst(fsst) => fsst::decode::decode(page, fsst, data_type, rows).await,
            Kind::Bitpacked(packed) => FixedWidth::Bitpacked(packed).decode(page, data_type, rows).await,
            Kind::BitpackedForNonNeg(packed) => {
                FixedWidth::BitpackedForNonNeg(packed)
                    .decode(page, data_type, rows)
                    .await
            }
            Kind::Constant(_) => Err(page.unsupported("constant")),
            Kind::List(_) => Err(page.unsupported("list, for a column that is no list,")),
            Kind::Struct(_) => Err(page.unsupported("struct, for a column that is no struct,")),
        }
    }
    .boxed()
}

/// The name of an encoding, as messages and `inspect` show it.
pub(crate) fn describe(encoding: Option<&pb::ArrayEncoding>) -> String {
    let Some(kind) = encoding.and_then(|e| e.array_encoding.as_ref()) else {
        return "unknown".into();
    };
    match kind {
        Kind::Flat(flat) => match &flat.compression {
            Some(compression) => format!("flat({}, {})", flat.bits_per_value, compression.scheme),
            None => format!("flat({})", flat.bits_per_value),
        },
        Kind::Nullable(n) => match n.nullability.as_ref() {
            Some(pb::nullable::Nullability::NoNulls(no)) => describe(no.values.as_deref()),
            Some(pb::nullable::Nullability::SomeNulls(some)) => {
                format!("nullable({})", describe(some.values.as_deref()))
            }
            Some(pb::nullable::Nullability::AllNulls(_)) => "all_nulls".into(),
            None => "nullable(unknown)".into(),
        },
        Kind::FixedSizeList(l) => format!("fixed_size_list({} x {})", l.dimension, describe(l.items.as_deref())),
        Kind::List(l) => format!("list({})", describe(l.offsets.as_deref())),
        Kind::Struct(_) => "struct".into(),
        Kind::Binary(b) => format!(
            "binary({}, {})",
            describe(b.indices.as_deref()),
            describe(b.bytes.as_deref())
        ),
        Kind::Dictionary(d) => {
            format!(
                "dictionary({} items, {} of {})",
                d.num_dictionary_items,
                describe(d.indices.as_deref()),
                describe(d.items.as_deref())
            )
        }
        Kind::Fsst(f) => format!("fsst({})", describe(f.binary.as_deref())),
        Kind::PackedStruct(p) => format!("packed_struct({} fields)", p.inner.len()),
        Kind::Bitpacked(b) => format!(
            "bitpacked({} of {})",
            b.compressed_bits_per_value, b.uncompressed_bits_per_value
        ),
        Kind::BitpackedForNonNeg(b) => {
            format!(
                "bitpacked_for_non_neg({} of {})",
                b.compressed_bits_per_value, b.uncompressed_bits_per_value
            )
        }
        Kind::FixedSizeBinary(f) => format!("fixed_size_binary({} bytes)", f.byte_width),
        Kind::Constant(_) => "constant".into(),
    }
}
