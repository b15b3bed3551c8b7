//! `contains_tokens`: whether a text has all words of another, by Lance's rule of what a word is.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::DataType;
use datafusion_common::{exec_err, Result};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let types = vec![DataType::Utf8, DataType::LargeUtf8];
    Arc::new(ScalarUDF::new_from_impl(ContainsTokens {
        signature: Signature::uniform(2, types, Volatility::Immutable),
    }))
});

/// The function.
pub(crate) fn contains_tokens() -> Arc<ScalarUDF> {
    Arc::clone(&FUNCTION)
}

/// Words are runs of letters and digits of any script; case counts, their order and number do not. A query without words, or null, asks for
/// nothing.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ContainsTokens {
    signature: Signature,
}

impl ScalarUDFImpl for ContainsTokens {
    fn name(&self) -> &str {
        "contains_tokens"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = ColumnarValue::values_to_arrays(&args.args)?;
        let [texts, queries] = values.as_slice() else {
            return exec_err!("contains_tokens takes a text and words, found {} values", values.len());
        };
        // Most often one query is asked of all texts.
        let query = match args.args.get(1) {
            Some(ColumnarValue::Scalar(query)) => Some(query.try_as_str().flatten().unwrap_or_default().to_owned()),
            _ => None,
        };
        let words = query.as_deref().map(|query| words(query).collect::<BTreeSet<_>>());
        let found: BooleanArray = (0..texts.len())
            .map(|row| {
                let text = text_of(texts, row)?;
                Some(match &words {
                    Some(wanted) => has_words(text, wanted),
                    None => has_words(text, &self::words(text_of(queries, row).unwrap_or_default()).collect()),
                })
            })
            .collect();
        Ok(ColumnarValue::Array(Arc::new(found) as ArrayRef))
    }
}

fn text_of(array: &ArrayRef, row: usize) -> Option<&str> {
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row)),
        _ => None,
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

fn has_words(text: &str, wanted: &BTreeSet<&str>) -> bool {
    let mut missing = wanted.clone();
    if !missing.is_empty() {
        for word in words(text) {
            if missing.remove(word) && missing.is_empty() {
                break;
            }
        }
    }
    missing.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_all_words_are_there_in_any_order() {
        let has = |text, query: &str| has_words(text, &words(query).collect());
        assert!(has("a-b, c", "c a"));
        assert!(has("a", "a a"));
        assert!(has("", "- ,") && has("x", ""));
        assert!(has("straße 7", "7"));
        assert!(!has("A b", "a"));
        assert!(!has("ab", "a"));
        assert!(!has("a", "a b"));
    }
}
