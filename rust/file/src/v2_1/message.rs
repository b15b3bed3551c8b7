//! The messages that describe compressions, built.

use bytes::Bytes;
use esker_proto::lance::encodings21 as pb;
use esker_proto::lance::encodings21::compressive_encoding::Compression;
use esker_proto::lance::encodings21::variable_packed_struct::field_encoding::Layout as FieldLayout;
use esker_proto::lance::encodings21::variable_packed_struct::FieldEncoding;

/// How a page's encoding is named in its column's metadata.
pub(crate) const PAGE_LAYOUT: &str = "/lance.encodings21.PageLayout";

fn compressive(compression: Compression) -> pb::CompressiveEncoding {
    pb::CompressiveEncoding {
        compression: Some(compression),
    }
}

/// Values of `bits` each, as they are.
pub(crate) fn flat(bits: u64) -> pb::CompressiveEncoding {
    compressive(Compression::Flat(pb::Flat {
        bits_per_value: bits,
        data: None,
    }))
}

/// Nothing but nulls, which take no bytes.
pub(crate) fn nothing() -> pb::CompressiveEncoding {
    compressive(Compression::Constant(pb::Constant { value: None }))
}

/// Offsets of `offset_bits`, then bytes.
pub(crate) fn variable(offset_bits: u64) -> pb::CompressiveEncoding {
    compressive(Compression::Variable(Box::new(pb::Variable {
        offsets: Some(Box::new(flat(offset_bits))),
        values: None,
    })))
}

/// All values in `packed_bits` each.
pub(crate) fn out_of_line_bitpacking(bits: u64, packed_bits: u64) -> pb::CompressiveEncoding {
    compressive(Compression::OutOfLineBitpacking(Box::new(pb::OutOfLineBitpacking {
        uncompressed_bits_per_value: bits,
        values: Some(Box::new(flat(packed_bits))),
    })))
}

/// Each 1,024 values in a width of their own.
pub(crate) fn inline_bitpacking(bits: u64) -> pb::CompressiveEncoding {
    compressive(Compression::InlineBitpacking(pb::InlineBitpacking {
        uncompressed_bits_per_value: bits,
        values: None,
    }))
}

/// Lists of one length around `items`.
pub(crate) fn fixed_size_list(
    size: u64,
    has_validity: bool,
    items: pb::CompressiveEncoding,
) -> pb::CompressiveEncoding {
    compressive(Compression::FixedSizeList(Box::new(pb::FixedSizeList {
        items_per_value: size,
        values: Some(Box::new(items)),
        has_validity,
    })))
}

/// Runs: their values, and their lengths in a byte each.
pub(crate) fn run_length(bits: u64) -> pb::CompressiveEncoding {
    compressive(Compression::Rle(Box::new(pb::Rle {
        values: Some(Box::new(flat(bits))),
        run_lengths: Some(Box::new(flat(8))),
    })))
}

/// Strings of symbols around `values`.
pub(crate) fn fsst(symbol_table: Vec<u8>, values: pb::CompressiveEncoding) -> pb::CompressiveEncoding {
    compressive(Compression::Fsst(Box::new(pb::Fsst {
        symbol_table: Bytes::from(symbol_table),
        values: Some(Box::new(values)),
    })))
}

/// All first bytes, then all second bytes, and so on.
pub(crate) fn byte_stream_split(bits: u64) -> pb::CompressiveEncoding {
    compressive(Compression::ByteStreamSplit(Box::new(pb::ByteStreamSplit {
        values: Some(Box::new(flat(bits))),
    })))
}

/// Rows of fields of fixed width.
pub(crate) fn packed_struct(bits: Vec<u64>) -> pb::CompressiveEncoding {
    let row_bits = bits.iter().sum();
    compressive(Compression::PackedStruct(Box::new(pb::PackedStruct {
        bits_per_value: bits,
        values: Some(Box::new(flat(row_bits))),
    })))
}

/// Rows of fields of any width: how each is compressed, and how its width is known.
pub(crate) fn variable_packed_struct(fields: Vec<(pb::CompressiveEncoding, FieldLayout)>) -> pb::CompressiveEncoding {
    let fields = fields.into_iter().map(|(value, layout)| FieldEncoding {
        value: Some(value),
        layout: Some(layout),
    });
    compressive(Compression::VariablePackedStruct(pb::VariablePackedStruct {
        fields: fields.collect(),
    }))
}

/// General compression around `values`.
pub(crate) fn general(
    scheme: pb::CompressionScheme,
    level: Option<i32>,
    values: pb::CompressiveEncoding,
) -> pb::CompressiveEncoding {
    compressive(Compression::General(Box::new(pb::General {
        compression: Some(pb::BufferCompression {
            scheme: scheme.into(),
            level,
        }),
        values: Some(Box::new(values)),
    })))
}

/// A layout as a page's encoding.
pub(crate) fn page_layout(layout: pb::page_layout::Layout) -> pb::PageLayout {
    pb::PageLayout { layout: Some(layout) }
}
