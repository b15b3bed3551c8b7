//! Literals as SQL text.

use datafusion_common::ScalarValue;

/// A literal as one would write it in a filter.
pub(crate) fn literal(value: &ScalarValue) -> String {
    match value.try_as_str() {
        Some(Some(text)) => format!("'{}'", text.replace('\'', "''")),
        _ if value.is_null() => "NULL".to_owned(),
        _ => value.to_string(),
    }
}
