//! Describes the layout of a 0.1 file, for `inspect`: each field with pages is a column.

use arrow_schema::DataType;

use super::plain::decode::row_bits;
use super::read::GroupFile;
use crate::container::BufferRange;
use crate::error::Result;
use crate::inspect::{ColumnLayout, FileLayout, PageLayout};
use crate::schema::Field;
use crate::version::FileVersion;

/// Describes an open file. Nothing but its metadata is read.
pub(crate) fn inspect(file: &GroupFile) -> Result<FileLayout> {
    let mut columns = Vec::new();
    for field in &file.schema().fields {
        describe(file, field, &field.name, &mut columns)?;
    }
    let pages = columns
        .iter()
        .flat_map(|c: &ColumnLayout| &c.pages)
        .flat_map(|p| &p.buffers);
    let data_bytes = pages.map(|b| b.end).max().unwrap_or(0);
    Ok(FileLayout {
        path: file.path().to_string(),
        size: file.size(),
        version: FileVersion::V0_1.to_string(),
        num_rows: file.num_rows(),
        columns,
        data_bytes,
        column_metadata_bytes: file.size().saturating_sub(data_bytes),
        global_buffer_bytes: 0,
        global_buffers: Vec::new(),
    })
}

fn describe(file: &GroupFile, field: &Field, path: &str, out: &mut Vec<ColumnLayout>) -> Result<()> {
    if !field.is_struct() {
        let pages = pages(file, field)?;
        let buffers = pages.iter().flat_map(|p| &p.buffers);
        let bytes = buffers
            .map(|b| b.end.saturating_sub(b.start))
            .fold(0, u64::saturating_add);
        out.push(ColumnLayout {
            index: out.len(),
            field: path.to_string(),
            logical_type: field.logical_type.clone(),
            pages,
            buffers: Vec::new(),
            bytes,
        });
    }
    for child in &field.children {
        describe(file, child, &format!("{path}.{}", child.name), out)?;
    }
    Ok(())
}

fn pages(file: &GroupFile, field: &Field) -> Result<Vec<PageLayout>> {
    let data_type = field.data_type()?;
    let encoding = encoding_name(&data_type);
    let is_list = field.is_list();
    let table = file.page_table();
    let extents = file.extents();
    let mut first_value = 0_u64;
    let mut out = Vec::new();
    for group in 0..table.num_groups() {
        let Some(page) = table.page(field.id, group) else {
            continue;
        };
        let num_values = page.length.saturating_sub(u64::from(is_list));
        let extent = extents.page(field.id, group);
        out.push(PageLayout {
            first_value,
            num_values,
            encoding: encoding.clone(),
            buffers: extent.map(|range| buffers(range, page.position)).unwrap_or_default(),
        });
        first_value = first_value.saturating_add(num_values);
    }
    Ok(out)
}

/// The bytes of strings and their offsets are two buffers.
fn buffers(extent: &BufferRange, position: u64) -> Vec<BufferRange> {
    if extent.start == position {
        return vec![extent.clone()];
    }
    vec![extent.start..position, position..extent.end]
}

fn encoding_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "null".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => "var_binary".into(),
        DataType::Dictionary(key, _) => format!("dictionary({} bits)", row_bits(key).unwrap_or(0)),
        DataType::List(_) => "plain(32 bits, offsets)".into(),
        DataType::LargeList(_) => "plain(64 bits, offsets)".into(),
        other => format!("plain({} bits)", row_bits(other).unwrap_or(0)),
    }
}

/// Bytes that the values of a column take in memory, by what the page table says.
pub(crate) fn plain_bytes(file: &GroupFile, column: usize) -> Result<Option<u64>> {
    let layout = inspect(file)?;
    let Some(column) = layout.columns.get(column) else {
        return Ok(None);
    };
    let saved = match column.logical_type.as_str() {
        // Offsets of four bytes rather than eight.
        "string" | "binary" => column.pages.iter().map(|p| p.num_values.saturating_mul(4)).sum(),
        _ => 0_u64,
    };
    Ok(Some(column.bytes.saturating_sub(saved)))
}
