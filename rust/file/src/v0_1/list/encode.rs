//! Writing lists: offsets that start at 0 in each group, and the items of the group as a column of their own.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericListArray, OffsetSizeTrait};
use arrow_schema::DataType;

use crate::error::{FileError, Result};
use crate::v0_1::column::ColumnNode;
use crate::v0_1::encode::{encode as encode_column, EncodeContext, PageWriter};

/// Adds the pages of a column of lists and of what is in them.
pub(crate) fn encode(
    context: EncodeContext<'_>,
    node: &ColumnNode,
    item: &ColumnNode,
    arrays: &[ArrayRef],
    out: &mut PageWriter,
) -> Result<()> {
    let nulls = arrays.iter().map(|a| a.null_count()).sum();
    context.check_loss(node, nulls, "null lists", "empty lists")?;
    let mut lists = Lists::default();
    for array in arrays {
        match array.data_type() {
            DataType::LargeList(_) => lists.append(array.as_list::<i64>()),
            _ => lists.append(array.as_list::<i32>()),
        }
    }
    let position = out.position();
    let mut encode_offsets = |width: usize, largest: u64| {
        if lists.ends.last().is_some_and(|end| *end > largest) {
            return Err(FileError::invalid(format!(
                "column '{}': expected at most {largest} items in a group; use a large_list or a smaller max_rows_per_group",
                node.path
            )));
        }
        for end in std::iter::once(&0).chain(&lists.ends) {
            out.buffer
                .extend_from_slice(end.to_le_bytes().get(..width).unwrap_or_default());
        }
        Ok(())
    };
    match &node.data_type {
        DataType::LargeList(_) => encode_offsets(8, i64::MAX.unsigned_abs())?,
        _ => encode_offsets(4, u64::from(i32::MAX.unsigned_abs()))?,
    }
    out.add(node.id, position, lists.ends.len().saturating_add(1) as u64);
    encode_column(context, item, &lists.items, out)
}

/// The lists of one group.
#[derive(Default)]
struct Lists {
    ends: Vec<u64>,
    items: Vec<ArrayRef>,
}

impl Lists {
    fn append<O: OffsetSizeTrait>(&mut self, array: &GenericListArray<O>) {
        let mut end = self.ends.last().copied().unwrap_or(0);
        let offsets = array.value_offsets();
        let bounds = offsets
            .iter()
            .zip(offsets.iter().skip(1))
            .map(|(a, b)| a.as_usize()..b.as_usize());
        // Runs of items that lie side by side; what lies at a null list is left out.
        let mut run = 0..0;
        for (row, bound) in bounds.enumerate() {
            let bound = if array.is_valid(row) {
                bound
            } else {
                bound.start..bound.start
            };
            end = end.saturating_add(bound.len() as u64);
            self.ends.push(end);
            if bound.is_empty() {
                continue;
            }
            if run.end == bound.start {
                run.end = bound.end;
            } else {
                self.items.push(array.values().slice(run.start, run.len()));
                run = bound;
            }
        }
        self.items.push(array.values().slice(run.start, run.len()));
    }
}
