//! Bodies of fuzz targets: plain functions that take any bytes.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};

use crate::{Comparisons, Predicate};

/// The targets by their names.
pub const TARGETS: [&str; 2] = ["arrow_expression", "json"];

/// Columns of the kinds that expressions of the corpus are about.
fn schema() -> Schema {
    let field = |name: &str, data_type: DataType| Field::new(name, data_type, true);
    let inner = vec![field("a", DataType::Int64), field("b", DataType::Utf8)];
    Schema::new(vec![
        field("i", DataType::Int64),
        field("f", DataType::Float64),
        field("s", DataType::Utf8),
        field("st", DataType::Struct(inner.into())),
    ])
}

/// Runs a target; returns whether the input was valid. Unknown names accept nothing.
pub fn run(target: &str, data: &[u8]) -> bool {
    match target {
        "arrow_expression" => arrow_expression(data),
        "json" => json(data),
        _ => false,
    }
}

/// Decodes a serialized expression; a valid one is evaluated, and printed as SQL.
fn arrow_expression(data: &[u8]) -> bool {
    let schema = schema();
    let rows = RecordBatch::new_empty(schema.clone().into());
    [Comparisons::Sql, Comparisons::Arrow].into_iter().all(|comparisons| {
        let Ok(predicate) = Predicate::from_arrow_expression(data, &schema, comparisons) else {
            return false;
        };
        let _ = predicate.to_string();
        // An expression that fails during evaluation is valid all the same.
        let _ = predicate.evaluate(&rows);
        true
    })
}

/// Takes the bytes as JSONB and as JSON text, either of which may be valid; the text of a valid value means the same JSONB again.
fn json(data: &[u8]) -> bool {
    let decoded = crate::json::decode(data);
    if let Ok(text) = &decoded {
        let _ = crate::json::encode(text);
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return decoded.is_ok();
    };
    let _ = crate::json::Path::parse(text);
    let Ok(bytes) = crate::json::encode(text) else {
        return decoded.is_ok();
    };
    let again = crate::json::decode(&bytes).and_then(|text| crate::json::encode(&text));
    again.is_ok()
}
