//! The Arrow IPC file of a serialized expression: its steps, and the values that they refer to.
//!
//! It is read directly from the verified flatbuffers: the footer and the batches that it points to.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_ipc::{root_as_footer_with_opts, root_as_message, Block, Endianness, Field, Footer, Message, Schema};
use flatbuffers::VerifierOptions;

use super::arrays::{Columns, Dictionaries};
use super::types::arrow_field;
use crate::error::{ExprError, Result};

const MAGIC: &[u8] = b"ARROW1";
const CONTINUATION: [u8; 4] = [0xff; 4];
const WIDTH: usize = size_of::<u32>();

/// What the file holds.
pub(super) struct Container {
    /// Keys and values, in the order of the expression.
    pub(super) steps: Vec<(String, String)>,
    /// Columns of one row.
    pub(super) columns: Vec<ArrayRef>,
}

fn corrupt(what: &str) -> ExprError {
    ExprError::invalid(format!(
        "expected a serialized Arrow expression with {what}, found other bytes"
    ))
}

impl Container {
    pub(super) fn read(data: &[u8]) -> Result<Self> {
        let footer = footer(data)?;
        let schema = footer.schema().ok_or_else(|| corrupt("a schema"))?;
        if schema.endianness() != Endianness::Little {
            return Err(ExprError::unsupported("expected a little-endian Arrow expression"));
        }
        let steps = schema.custom_metadata().into_iter().flatten().map(|pair| {
            let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
            (text(pair.key()), text(pair.value()))
        });
        let steps = steps.collect();
        let dictionaries = dictionaries(data, &footer, &schema)?;
        let fields: Vec<Field<'_>> = schema.fields().into_iter().flatten().collect();
        let mut blocks = footer.recordBatches().into_iter().flatten();
        let block = blocks.next().ok_or_else(|| corrupt("a batch"))?;
        let (message, body) = message(data, block)?;
        let batch = message.header_as_record_batch().ok_or_else(|| corrupt("a batch"))?;
        let mut columns = Columns::new(&batch, body)?;
        let columns = fields.iter().map(|field| {
            let column = columns.column(field, &dictionaries)?;
            match column.len() {
                1 => Ok(column),
                _ => Err(corrupt("one row")),
            }
        });
        Ok(Self {
            columns: columns.collect::<Result<_>>()?,
            steps,
        })
    }
}

/// The values of all dictionaries. A dictionary within a dictionary precedes it, as in the file.
fn dictionaries(data: &[u8], footer: &Footer<'_>, schema: &Schema<'_>) -> Result<Dictionaries> {
    let mut found = Dictionaries::new();
    for block in footer.dictionaries().into_iter().flatten() {
        let (message, body) = message(data, block)?;
        let dictionary = message
            .header_as_dictionary_batch()
            .ok_or_else(|| corrupt("a dictionary"))?;
        let field = schema
            .fields()
            .into_iter()
            .flatten()
            .find_map(|field| keyed(&field, dictionary.id(), 0));
        let (Some(field), Some(batch)) = (field, dictionary.data()) else {
            return Err(corrupt("a dictionary that it uses"));
        };
        if dictionary.isDelta() {
            return Err(ExprError::unsupported(
                "expected dictionaries in one part in the Arrow expression",
            ));
        }
        let values = Columns::new(&batch, body)?.values(&field, &found)?;
        found.insert(dictionary.id(), values);
    }
    Ok(found)
}

/// The field whose dictionary has this id: a field itself or one nested in it.
fn keyed<'a>(field: &Field<'a>, id: i64, depth: usize) -> Option<Field<'a>> {
    if field.dictionary().is_some_and(|dictionary| dictionary.id() == id) {
        // Its type is checked before its values are read.
        return arrow_field(field, depth).ok().map(|_| *field);
    }
    let mut children = field.children().into_iter().flatten();
    (depth < 32)
        .then(|| children.find_map(|child| keyed(&child, id, depth + 1)))
        .flatten()
}

fn footer(data: &[u8]) -> Result<Footer<'_>> {
    let rest = data.strip_suffix(MAGIC).filter(|_| data.starts_with(MAGIC));
    let (rest, length) = rest
        .and_then(<[u8]>::split_last_chunk)
        .ok_or_else(|| corrupt("an Arrow IPC file around it"))?;
    let length = usize::try_from(i32::from_le_bytes(*length)).ok();
    let start = length.and_then(|length| rest.len().checked_sub(length));
    let footer = start
        .and_then(|start| rest.get(start..))
        .ok_or_else(|| corrupt("a footer"))?;
    let limits = VerifierOptions {
        // Each key-value pair is a flatbuffers table, and a table takes more than eight bytes.
        max_tables: footer.len() / 8,
        max_apparent_size: footer.len().saturating_mul(4),
        ..VerifierOptions::default()
    };
    root_as_footer_with_opts(&limits, footer).map_err(|_| corrupt("a footer"))
}

fn message<'a>(data: &'a [u8], block: &Block) -> Result<(Message<'a>, &'a [u8])> {
    let outside = || corrupt("its batches within the file");
    let metadata = range(block.offset(), i64::from(block.metaDataLength())).ok_or_else(outside)?;
    let body = i64::try_from(metadata.end)
        .ok()
        .and_then(|start| range(start, block.bodyLength()))
        .and_then(|range| data.get(range))
        .ok_or_else(outside)?;
    let metadata = data.get(metadata).ok_or_else(outside)?;
    // Files of Arrow before 0.15 have no continuation marker before the length.
    let metadata = metadata.strip_prefix(&CONTINUATION).unwrap_or(metadata);
    let message = root_as_message(metadata.get(WIDTH..).unwrap_or_default());
    Ok((message.map_err(|_| corrupt("a batch"))?, body))
}

fn range(start: i64, length: i64) -> Option<Range<usize>> {
    let start = usize::try_from(start).ok()?;
    Some(start..start.checked_add(usize::try_from(length).ok()?)?)
}
