//! Converts statistics to bounds of the values as they are read: a 0.1 file loses most nulls, and reads "" as null.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{new_null_array, Array, ArrayRef, BooleanArray, Float32Array, Float64Array};
use arrow_schema::DataType;

use crate::nulls::replaced;
use crate::v0_1::column::{ColumnNode, Kind};

/// Bounds of a column, a value for each group.
#[derive(Debug, Clone)]
pub struct ColumnBounds {
    /// A lower bound of all values but NaN; null where unknown.
    pub min: ArrayRef,
    /// An upper bound of all values but NaN; null where unknown.
    pub max: ArrayRef,
    /// How many values read as null, where that is known.
    pub null_count: Vec<Option<u64>>,
}

/// The bounds that `statistics` of the column `node` stand for. `rows` are those of each group.
pub(crate) fn bounds(node: &ColumnNode, statistics: &ArrayRef, rows: &[u64]) -> Option<ColumnBounds> {
    let statistics = statistics.as_struct_opt()?;
    let null_count = statistics.column_by_name("null_count")?;
    let null_count = null_count.as_primitive_opt::<Int64Type>()?;
    let bound = |name: &str| {
        let array = statistics.column_by_name(name).cloned();
        let array = array.filter(|array| array.data_type() == &node.data_type);
        array.unwrap_or_else(|| new_null_array(&node.data_type, rows.len()))
    };
    let (min, max) = (bound("min_value"), bound("max_value"));
    let mut unknown = vec![false; rows.len()];
    let mut known_nulls = Vec::with_capacity(rows.len());
    let is_text = matches!(node.kind, Kind::VarBinary);
    for (group, rows) in rows.iter().enumerate() {
        let noted = (group < null_count.len()).then(|| null_count.value(group));
        let noted = noted
            .and_then(|count| u64::try_from(count).ok())
            .filter(|count| count <= rows);
        known_nulls.push(match (is_text, node.nullable) {
            // Nulls are read as arbitrary values, which the bounds do not cover.
            (false, _) => {
                if let (Some(flag), true) = (unknown.get_mut(group), noted != Some(0)) {
                    *flag = true;
                }
                Some(0)
            }
            (true, false) => Some(0),
            // Empty strings became nulls; a least value that is known is not empty.
            (true, true) => noted.filter(|count| count == rows || min.is_valid(group)),
        });
    }
    let keep = BooleanArray::from(unknown.into_iter().map(|flag| !flag).collect::<Vec<_>>());
    Some(ColumnBounds {
        min: zeros(masked(&min, &keep)?, -0.0),
        max: zeros(masked(&max, &keep)?, 0.0),
        null_count: known_nulls,
    })
}

fn masked(array: &ArrayRef, keep: &BooleanArray) -> Option<ArrayRef> {
    if keep.true_count() == keep.len() {
        return Some(array.clone());
    }
    let nulls = arrow_buffer::NullBuffer::union(
        array.nulls(),
        Some(&arrow_buffer::NullBuffer::new(keep.values().clone())),
    );
    replaced(array, nulls).ok()
}

/// Zero of either sign as the bound that covers both.
fn zeros(array: ArrayRef, bound: f32) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            let fixed: Float32Array = values.unary(|v| if v == 0.0 { bound } else { v });
            std::sync::Arc::new(fixed)
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            let fixed: Float64Array = values.unary(|v| if v == 0.0 { f64::from(bound) } else { v });
            std::sync::Arc::new(fixed)
        }
        _ => array,
    }
}
