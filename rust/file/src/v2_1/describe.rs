//! Layouts and compressions in words, for messages and `inspect`.

use esker_proto::lance::encodings21 as pb;
use esker_proto::lance::encodings21::compressive_encoding::Compression as Kind;
use esker_proto::lance::encodings21::page_layout::Layout;

use super::decode::Compression;
use super::fixed_size_list::decode::FixedSizeLists;
use super::variable_packed_struct::decode::PackedField;

impl Compression {
    /// The compression in a few words.
    pub(crate) fn describe(&self) -> String {
        match self {
            Compression::Flat(bits) => format!("flat({bits})"),
            Compression::Variable(bits) => format!("variable({bits})"),
            Compression::Constant(value) => format!("constant({} bytes)", value.len()),
            Compression::InlineBitpacking(bits) => format!("bitpacked({bits})"),
            Compression::OutOfLineBitpacking(bits, packed) => format!("bitpacked({packed} of {bits})"),
            Compression::Fsst(fsst) => format!("fsst({})", fsst.values.describe()),
            Compression::RunLength(rle) => format!("rle({}, {})", rle.values.describe(), rle.lengths.describe()),
            Compression::ByteStreamSplit(bits) => format!("byte_stream_split({bits})"),
            Compression::General(general) => format!("{}({})", general.scheme, general.values.describe()),
            Compression::FixedSizeList(lists) => describe_lists(lists),
            Compression::PackedStruct(packed) => format!("packed_struct({} fields)", packed.widths.len()),
            Compression::VariablePackedStruct(packed) => {
                let fields = packed.fields.iter().map(|field| match field {
                    PackedField::Fixed(values) => format!("flat({})", values.width * 8),
                    PackedField::Variable(_, compression) => compression.describe(),
                });
                format!("packed_struct({})", fields.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

fn describe_lists(lists: &FixedSizeLists) -> String {
    let mut text = format!("flat({})", lists.item_bits);
    for layer in lists.layers.iter().rev() {
        let nullable = if layer.has_validity { "nullable " } else { "" };
        text = format!("fixed_size_list({} x {nullable}{text})", layer.size);
    }
    text
}

fn compression(encoding: Option<&pb::CompressiveEncoding>) -> String {
    let Some(kind) = encoding.and_then(|encoding| encoding.compression.as_ref()) else {
        return "unknown".into();
    };
    match kind {
        Kind::Flat(flat) => format!("flat({})", flat.bits_per_value),
        Kind::Variable(variable) => {
            let offsets = compression(variable.offsets.as_deref());
            format!(
                "variable({})",
                offsets.trim_start_matches("flat(").trim_end_matches(')')
            )
        }
        Kind::Constant(constant) => format!("constant({} bytes)", constant.value.as_ref().map_or(0, |v| v.len())),
        Kind::OutOfLineBitpacking(packed) => {
            let values = compression(packed.values.as_deref());
            let width = values.trim_start_matches("flat(").trim_end_matches(')');
            format!("bitpacked({width} of {})", packed.uncompressed_bits_per_value)
        }
        Kind::InlineBitpacking(packed) => format!("bitpacked({})", packed.uncompressed_bits_per_value),
        Kind::Fsst(fsst) => format!("fsst({})", compression(fsst.values.as_deref())),
        Kind::Dictionary(dictionary) => format!("dictionary({} items)", dictionary.num_dictionary_items),
        Kind::Rle(rle) => format!(
            "rle({}, {})",
            compression(rle.values.as_deref()),
            compression(rle.run_lengths.as_deref())
        ),
        Kind::ByteStreamSplit(split) => format!("byte_stream_split({})", compression(split.values.as_deref())),
        Kind::General(general) => {
            let scheme = match general.compression.as_ref().map(pb::BufferCompression::scheme) {
                Some(pb::CompressionScheme::CompressionAlgorithmLz4) => "lz4",
                Some(pb::CompressionScheme::CompressionAlgorithmZstd) => "zstd",
                _ => "general",
            };
            format!("{scheme}({})", compression(general.values.as_deref()))
        }
        Kind::FixedSizeList(list) => {
            let nullable = if list.has_validity { "nullable " } else { "" };
            format!(
                "fixed_size_list({} x {nullable}{})",
                list.items_per_value,
                compression(list.values.as_deref())
            )
        }
        Kind::PackedStruct(packed) => format!("packed_struct({} fields)", packed.bits_per_value.len()),
        Kind::VariablePackedStruct(packed) => {
            let fields = packed.fields.iter().map(|field| compression(field.value.as_ref()));
            format!("packed_struct({})", fields.collect::<Vec<_>>().join(", "))
        }
    }
}

fn levels(rep: Option<&pb::CompressiveEncoding>, def: Option<&pb::CompressiveEncoding>) -> String {
    let side = |name: &str, encoding: Option<&pb::CompressiveEncoding>| {
        encoding.map(|encoding| format!("{name} {}", compression(Some(encoding))))
    };
    let sides: Vec<String> = side("rep", rep).into_iter().chain(side("def", def)).collect();
    if sides.is_empty() {
        String::new()
    } else {
        format!(", levels {}", sides.join(" "))
    }
}

/// A page's layout in a line, for example `mini_block(bitpacked(64)), levels def bitpacked(16)`.
pub(crate) fn describe(layout: &pb::PageLayout) -> String {
    match layout.layout.as_ref() {
        Some(Layout::MiniBlockLayout(page)) => {
            let values = compression(page.value_compression.as_ref());
            let values = match &page.dictionary {
                Some(items) => format!(
                    "dictionary({} of {} items {})",
                    values,
                    page.num_dictionary_items,
                    compression(Some(items))
                ),
                None => values,
            };
            let levels = levels(page.rep_compression.as_ref(), page.def_compression.as_ref());
            format!("mini_block({values}){levels}")
        }
        Some(Layout::FullZipLayout(page)) => {
            let levels = match (page.bits_rep, page.bits_def) {
                (0, 0) => String::new(),
                (rep, 0) => format!(", levels rep {rep}"),
                (0, def) => format!(", levels def {def}"),
                (rep, def) => format!(", levels rep {rep} def {def}"),
            };
            format!("full_zip({}){levels}", compression(page.value_compression.as_ref()))
        }
        Some(Layout::ConstantLayout(page)) => {
            let levels = levels(page.rep_compression.as_ref(), page.def_compression.as_ref());
            let value = match &page.inline_value {
                Some(value) => format!("{} bytes", value.len()),
                None => "null or buffer".into(),
            };
            format!("constant({value}){levels}")
        }
        Some(Layout::BlobLayout(page)) => match page.inner_layout.as_deref() {
            Some(inner) => format!("blob({})", describe(inner)),
            None => "blob".into(),
        },
        None => "unknown".into(),
    }
}
