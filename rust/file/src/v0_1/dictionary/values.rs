//! The values of a dictionary column, as a data file or the manifest file of a table keeps them: one page, plain or of strings.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use bytes::Bytes;

use crate::error::{FileError, Result};
use crate::schema::{Field, Schema};
use crate::v0_1::column::{ColumnNode, Dictionaries, Kind, ReadContext, Rounds};
use crate::v0_1::dictionary::encode::DictionaryWriters;
use crate::v0_1::encode::{encode, EncodeContext, PageWriter};
use crate::v0_1::page::{Page, PageRows, PageTable};

/// Where the values of one dictionary column lie.
#[derive(Debug)]
pub(crate) struct DictionaryValues {
    node: ColumnNode,
    page: Page,
}

impl DictionaryValues {
    /// Those of `field`; none if it is no dictionary or names no place.
    pub(crate) fn of(field: &Field, path: &str, file_size: u64) -> Result<Option<DictionaryValues>> {
        let (DataType::Dictionary(_, value), Some((offset, length))) = (field.data_type()?, field.dictionary) else {
            return Ok(None);
        };
        let place = u64::try_from(offset).ok().zip(u64::try_from(length).ok());
        let (position, length) = place.filter(|(position, _)| *position <= file_size).ok_or_else(|| {
            FileError::corrupt(
                path,
                format!(
                    "column '{}': expected {length} dictionary values within {file_size} bytes, found them at {offset}",
                    field.name
                ),
            )
        })?;
        let kind = match value.as_ref() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => Kind::VarBinary,
            _ => Kind::Plain,
        };
        Ok(Some(DictionaryValues {
            node: ColumnNode {
                id: field.id,
                name: field.name.clone(),
                path: format!("{} (dictionary values)", field.name),
                data_type: *value,
                nullable: true,
                kind,
            },
            page: Page { position, length },
        }))
    }

    pub(crate) fn node(&self) -> &ColumnNode {
        &self.node
    }

    pub(crate) fn page_table(&self) -> PageTable {
        PageTable::of_one_page(self.node.id, self.page, self.page.length)
    }

    pub(crate) fn rows(&self) -> Vec<PageRows> {
        self.page_table().split(&[0..self.page.length])
    }
}

/// The values of all dictionary columns of `schema` that lie in `bytes`, the whole file at `path`.
pub fn read_dictionaries(schema: &Schema, bytes: &Bytes, path: &str) -> Result<Dictionaries> {
    let size = bytes.len() as u64;
    let mut out = Dictionaries::new();
    for field in schema.flat_fields() {
        if field.dictionary.is_none_or(|(_, length)| length == 0) {
            continue;
        }
        let Some(values) = DictionaryValues::of(field, path, size)? else {
            continue;
        };
        let (table, rows) = (values.page_table(), values.rows());
        let none = Dictionaries::new();
        let context = ReadContext {
            path,
            file_size: size,
            table: &table,
            dictionaries: &none,
        };
        let mut rounds = Rounds::new(context, std::slice::from_ref(values.node()), &rows)?;
        while let Some(wanted) = rounds.next() {
            // The ranges were checked against the size.
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
            let parts = wanted
                .iter()
                .map(|range| bytes.slice(place(range.start)..place(range.end)));
            rounds.receive(parts.collect())?;
        }
        let array: Option<ArrayRef> = rounds.finish()?.pop();
        out.extend(array.map(|array| (field.id, array)));
    }
    Ok(out)
}

/// Appends the values of the dictionary columns of `schema`, and gives the schema that says where they are.
pub(crate) fn encode_values(schema: &Schema, values: &Dictionaries, out: &mut PageWriter) -> Result<Schema> {
    let mut placed = schema.clone();
    let mut failed = Ok(());
    placed.for_each_mut(&mut |field| {
        if failed.is_ok() && field.logical_type.starts_with("dict:") {
            failed = place_values(field, values.get(&field.id), out);
        }
    });
    failed.map(|()| placed)
}

fn place_values(field: &mut Field, values: Option<&ArrayRef>, out: &mut PageWriter) -> Result<()> {
    let DataType::Dictionary(_, value_type) = field.data_type()? else {
        return Ok(());
    };
    let values = values
        .cloned()
        .unwrap_or_else(|| arrow_array::new_empty_array(&value_type));
    let mut node_field = field.clone();
    node_field.dictionary = Some((0, 0));
    let context = EncodeContext {
        // Whether a value is lost was decided when it was taken in.
        allow_null_loss: true,
        dictionaries: &DictionaryWriters::default(),
    };
    let Some(place) = DictionaryValues::of(&node_field, "", u64::MAX)? else {
        return Ok(());
    };
    encode(context, place.node(), std::slice::from_ref(&values), out)?;
    let place = out.pages.pop().map(|(_, page)| page);
    let place = place.and_then(|page| Some((i64::try_from(page.position).ok()?, i64::try_from(page.length).ok()?)));
    field.dictionary = place;
    Ok(())
}

/// The values of dictionary columns as the start of a manifest file, and the schema that says where they are.
pub fn write_dictionaries(schema: &Schema, values: &Dictionaries) -> Result<(Schema, Vec<u8>)> {
    let mut out = PageWriter::default();
    let placed = encode_values(schema, values, &mut out)?;
    Ok((placed, out.buffer))
}
