//! Converts typed statistics to JSON, for checkpoints of tables whose writers left the texts out.

use std::fmt::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use chrono::DateTime;

/// The statistics of a row as JSON; `None` where there are none.
pub(crate) fn statistics_json(statistics: &StructArray, row: usize) -> Option<String> {
    if row >= statistics.len() || statistics.is_null(row) {
        return None;
    }
    let mut text = String::new();
    object(&mut text, statistics, row);
    Some(text)
}

fn object(out: &mut String, array: &StructArray, row: usize) {
    out.push('{');
    let mut first = true;
    for (field, column) in array.fields().iter().zip(array.columns()) {
        let mut value = String::new();
        if column.is_null(row) || !scalar(&mut value, column, row) {
            continue;
        }
        if !first {
            out.push(',');
        }
        first = false;
        out.push_str(&quoted(field.name()));
        out.push(':');
        out.push_str(&value);
    }
    out.push('}');
}

/// Writes a value; false if JSON cannot represent it, so that the bound stays unknown.
fn scalar(out: &mut String, array: &ArrayRef, row: usize) -> bool {
    match array.data_type() {
        DataType::Struct(_) => object(out, array.as_struct(), row),
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Float32 => {
            return finite(
                out,
                f64::from(array.as_primitive::<Float32Type>().value(row)),
                array,
                row,
            )
        }
        DataType::Float64 => return finite(out, array.as_primitive::<Float64Type>().value(row), array, row),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            let Some(time) = DateTime::from_timestamp_micros(micros) else {
                return false;
            };
            // Writing to a String cannot fail.
            let _ = write!(out, "\"{}", time.format("%Y-%m-%dT%H:%M:%S%.3f"));
            out.push_str(if zone.is_some() { "Z\"" } else { "\"" });
        }
        DataType::Timestamp(_, zone) => {
            let micros = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
            let Ok(array) = cast(&array.slice(row, 1), &micros) else {
                return false;
            };
            return array.is_valid(0) && scalar(out, &array, 0);
        }
        other => {
            let Some(text) = as_text(array, row) else {
                return false;
            };
            if other.is_numeric() {
                out.push_str(&text);
            } else {
                out.push_str(&quoted(&text));
            }
        }
    }
    true
}

fn finite(out: &mut String, value: f64, array: &ArrayRef, row: usize) -> bool {
    let text = as_text(array, row).filter(|_| value.is_finite());
    out.push_str(text.as_deref().unwrap_or_default());
    text.is_some()
}

fn as_text(array: &ArrayRef, row: usize) -> Option<String> {
    let text = cast(&array.slice(row, 1), &DataType::Utf8).ok()?;
    let text = text.as_string_opt::<i32>()?;
    text.is_valid(0).then(|| text.value(0).to_owned())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow_array::{Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};
    use arrow_schema::Field;

    #[test]
    fn test_values_are_spelled_as_writers_do() {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("i", Arc::new(Int64Array::from(vec![7]))),
            (
                "d",
                Arc::new(
                    Decimal128Array::from(vec![-150])
                        .with_precision_and_scale(10, 2)
                        .unwrap(),
                ),
            ),
            (
                "t",
                Arc::new(TimestampMicrosecondArray::from(vec![1_123_456]).with_timezone("UTC")),
            ),
            ("w", Arc::new(TimestampMicrosecondArray::from(vec![1_123_456]))),
            ("day", Arc::new(Date32Array::from(vec![1]))),
            ("s", Arc::new(StringArray::from(vec!["a\"b"]))),
            ("f", Arc::new(Float64Array::from(vec![0.5]))),
            ("nan", Arc::new(Float64Array::from(vec![f64::NAN]))),
            ("none", Arc::new(Int64Array::from(vec![None]))),
        ];
        let columns = columns
            .into_iter()
            .map(|(name, array)| (Arc::new(Field::new(name, array.data_type().clone(), true)), array));
        let array = StructArray::from(columns.collect::<Vec<_>>());
        assert_eq!(
            statistics_json(&array, 0).unwrap(),
            r#"{"i":7,"d":-1.50,"t":"1970-01-01T00:00:01.123Z","w":"1970-01-01T00:00:01.123","day":"1970-01-02","s":"a\"b","f":0.5}"#
        );
    }
}
