//! Builds an array of bounds of one column, value by value. A value that is not of the column's type is unknown, never an error.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, TimestampMicrosecondType};
use arrow_array::{new_null_array, Array};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, Int8Array, StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, TimeUnit};

use crate::partition::{date, decimal, timestamp};

/// The kind of bound that a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Min,
    Max,
    /// The exact value.
    Exact,
}

/// Writers truncate timestamps to milliseconds.
const MILLISECOND: i64 = 1000;

/// The bounds of one column.
#[derive(Debug)]
pub(crate) struct ScalarColumn {
    data_type: DataType,
    bound: Bound,
    was_float: bool,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Booleans(Vec<Option<bool>>),
    /// Integers, dates and timestamps.
    Integers(Vec<Option<i64>>),
    Floats(Vec<Option<f64>>),
    Decimals(Vec<Option<i128>>),
    Texts(Vec<Option<Box<str>>>),
    /// A type that has no bounds.
    Unknown(usize),
}

macro_rules! each {
    ($values:expr, $name:ident => $do:expr, $count:ident => $otherwise:expr) => {
        match $values {
            Values::Booleans($name) => $do,
            Values::Integers($name) => $do,
            Values::Floats($name) => $do,
            Values::Decimals($name) => $do,
            Values::Texts($name) => $do,
            Values::Unknown($count) => $otherwise,
        }
    };
}

impl ScalarColumn {
    pub(crate) fn new(data_type: &DataType, bound: Bound, capacity: usize) -> Self {
        let values = match data_type {
            DataType::Boolean => Values::Booleans(Vec::with_capacity(capacity)),
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32 => {
                Values::Integers(Vec::with_capacity(capacity))
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => Values::Integers(Vec::with_capacity(capacity)),
            DataType::Float32 | DataType::Float64 => Values::Floats(Vec::with_capacity(capacity)),
            DataType::Decimal128(_, _) => Values::Decimals(Vec::with_capacity(capacity)),
            DataType::Utf8 => Values::Texts(Vec::with_capacity(capacity)),
            _ => Values::Unknown(0),
        };
        Self {
            data_type: data_type.clone(),
            bound,
            was_float: false,
            values,
        }
    }

    /// For a column that was widened from float32: the text of a 32-bit float parses to a slightly different double, so bounds are widened.
    pub(crate) fn widened(mut self, was_float: bool) -> Self {
        self.was_float = was_float;
        self
    }

    /// Resizes to `len` values: further ones are dropped, missing ones are unknown.
    pub(crate) fn resize(&mut self, len: usize) {
        each!(&mut self.values, values => values.resize(len, None), count => *count = len);
    }

    /// Adds a bound given as JSON.
    pub(crate) fn push_json(&mut self, json: &str) {
        if json.starts_with('"') {
            match serde_json::from_str::<String>(json) {
                Ok(text) => self.push_text(&text),
                Err(_) => self.push_unknown(),
            }
        } else if matches!(self.data_type, DataType::Utf8) {
            self.push_unknown();
        } else {
            self.push_text(json);
        }
    }

    fn push_unknown(&mut self) {
        each!(&mut self.values, values => values.push(None), count => *count += 1);
    }

    /// Adds a bound given as text.
    pub(crate) fn push_text(&mut self, text: &str) {
        let (data_type, is_max) = (&self.data_type, self.bound == Bound::Max);
        match &mut self.values {
            Values::Booleans(values) => values.push(text.parse().ok()),
            Values::Integers(values) => values.push(match data_type {
                DataType::Date32 => date(text).map(i64::from),
                DataType::Timestamp(_, zone) => {
                    let time = timestamp(text, zone.is_none());
                    if is_max {
                        time.map(|time| time.saturating_add(MILLISECOND))
                    } else {
                        time
                    }
                }
                _ => text.parse().ok(),
            }),
            // A NaN bound is unknown.
            Values::Floats(values) => values.push(text.parse().ok().filter(|value: &f64| !value.is_nan())),
            Values::Decimals(values) => values.push(match data_type {
                DataType::Decimal128(precision, scale) => decimal(text, *precision, *scale),
                _ => None,
            }),
            Values::Texts(values) => values.push(Some(text.into())),
            Values::Unknown(count) => *count += 1,
        }
    }

    pub(crate) fn finish(self) -> ArrayRef {
        let narrow = |value: Option<i64>| value;
        match (self.values, &self.data_type) {
            (Values::Booleans(values), _) => Arc::new(BooleanArray::from(values)),
            (Values::Integers(values), DataType::Int8) => {
                Arc::new(values.into_iter().map(|v| i8::try_from(v?).ok()).collect::<Int8Array>())
            }
            (Values::Integers(values), DataType::Int16) => Arc::new(
                values
                    .into_iter()
                    .map(|v| i16::try_from(v?).ok())
                    .collect::<Int16Array>(),
            ),
            (Values::Integers(values), DataType::Int32) => Arc::new(
                values
                    .into_iter()
                    .map(|v| i32::try_from(v?).ok())
                    .collect::<Int32Array>(),
            ),
            (Values::Integers(values), DataType::Date32) => Arc::new(
                values
                    .into_iter()
                    .map(|v| i32::try_from(v?).ok())
                    .collect::<Date32Array>(),
            ),
            (Values::Integers(values), DataType::Timestamp(_, zone)) => Arc::new(
                values
                    .into_iter()
                    .map(narrow)
                    .collect::<TimestampMicrosecondArray>()
                    .with_timezone_opt(zone.clone()),
            ),
            (Values::Integers(values), _) => Arc::new(values.into_iter().map(narrow).collect::<Int64Array>()),
            (Values::Floats(values), DataType::Float32) => {
                let bound = self.bound;
                Arc::new(
                    values
                        .into_iter()
                        .map(|v| Some(to_f32(v?, bound)))
                        .collect::<Float32Array>(),
                )
            }
            (Values::Floats(values), _) if self.was_float => {
                let bound = self.bound;
                Arc::new(
                    values
                        .into_iter()
                        .map(|v| Some(around_float(v?, bound)))
                        .collect::<Float64Array>(),
                )
            }
            (Values::Floats(values), _) => Arc::new(values.into_iter().collect::<Float64Array>()),
            (Values::Decimals(values), DataType::Decimal128(precision, scale)) => {
                let len = values.len();
                let array = values.into_iter().collect::<Decimal128Array>();
                match array.with_precision_and_scale(*precision, *scale) {
                    Ok(array) => Arc::new(array),
                    Err(_) => new_null_array(&self.data_type, len),
                }
            }
            (Values::Decimals(values), _) => new_null_array(&self.data_type, values.len()),
            (Values::Texts(values), _) => Arc::new(values.into_iter().collect::<StringArray>()),
            (Values::Unknown(count), _) => new_null_array(&self.data_type, count),
        }
    }
}

/// Widens bounds to undo what their writers may have truncated or rounded.
pub(crate) fn widened(bounds: &ArrayRef, bound: Bound) -> ArrayRef {
    match (bounds.data_type(), bound) {
        (DataType::Utf8, Bound::Max) => match bounds.as_string_opt::<i32>() {
            Some(texts) => Arc::new(texts.iter().map(|text| wide_text(text?)).collect::<StringArray>()),
            None => Arc::clone(bounds),
        },
        (DataType::Decimal128(precision, scale), _) => match bounds.as_primitive_opt::<Decimal128Type>() {
            Some(values) => {
                let wide = values.iter().map(|value| wide_decimal(value?, *precision, bound));
                let wide = wide.collect::<Decimal128Array>();
                match wide.with_precision_and_scale(*precision, *scale) {
                    Ok(wide) => Arc::new(wide),
                    Err(_) => new_null_array(bounds.data_type(), bounds.len()),
                }
            }
            None => Arc::clone(bounds),
        },
        (DataType::Timestamp(TimeUnit::Microsecond, zone), Bound::Min) => {
            match bounds.as_primitive_opt::<TimestampMicrosecondType>() {
                Some(times) => {
                    let wide = times.iter().map(|time| time.map(wide_time));
                    let wide = wide.collect::<TimestampMicrosecondArray>();
                    Arc::new(wide.with_timezone_opt(zone.clone()))
                }
                None => Arc::clone(bounds),
            }
        }
        _ => Arc::clone(bounds),
    }
}

/// Widens a minimal time: some writers truncate towards zero, which is upwards before 1970.
fn wide_time(time: i64) -> i64 {
    if time <= 0 {
        time.saturating_sub(MILLISECOND)
    } else {
        time
    }
}

/// Widens a decimal: writers that compute with doubles write the nearest one, which keeps fifteen digits; the text does not tell which
/// writers do.
fn wide_decimal(value: i128, precision: u8, bound: Bound) -> Option<i128> {
    // Units in the last place of a double, rounded up and doubled: one rounding for the digits, one for the point.
    const DOUBLE: i128 = 1 << 51;
    const EXACT: i128 = 1_000_000_000_000_000;
    let size = value.checked_abs()?;
    if size < EXACT {
        return Some(value);
    }
    // Some writers take whole numbers as 64 bits, and those beyond as the last one that there is.
    let is_last = match bound {
        Bound::Max => value == i128::from(i64::MAX),
        _ => value == i128::from(i64::MIN),
    };
    if is_last {
        return None;
    }
    let slack = size / DOUBLE + 2;
    let widest = 10i128.checked_pow(u32::from(precision))?.checked_sub(1)?;
    let wide = match bound {
        Bound::Max => value.checked_add(slack)?,
        _ => value.checked_sub(slack)?,
    };
    Some(wide.clamp(-widest, widest))
}

/// The length in characters to which some writers truncate a maximum.
const CUT_TEXT: usize = 32;

/// If the text may have been truncated: an upper bound of all texts that start with it; `None` if there is none.
fn wide_text(text: &str) -> Option<String> {
    if text.chars().nth(CUT_TEXT - 1).is_none() {
        return Some(text.to_owned());
    }
    let kept = text.trim_end_matches(char::MAX);
    let last = kept.chars().next_back()?;
    let start = kept.strip_suffix(last)?;
    // Skips surrogates, which are no characters.
    let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32)?;
    Some(format!("{start}{next}"))
}

/// A bound that holds for a double and for the 32-bit float with the same text.
#[allow(clippy::cast_possible_truncation)] // The float is looked for.
fn around_float(value: f64, bound: Bound) -> f64 {
    let float = f64::from(value as f32);
    match bound {
        Bound::Max => value.max(float),
        Bound::Min => value.min(float),
        Bound::Exact => value,
    }
}

/// The nearest 32-bit float; for a bound, rounded to the safe side.
#[allow(clippy::cast_possible_truncation)] // Rounding is what is wanted, and corrected below.
fn to_f32(value: f64, bound: Bound) -> f32 {
    let near = value as f32;
    match bound {
        Bound::Max if f64::from(near) < value => near.next_up(),
        Bound::Min if f64::from(near) > value => near.next_down(),
        _ => near,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::{Float64Type, Int8Type};

    #[test]
    fn test_what_is_not_of_the_type_is_unknown() {
        let mut column = ScalarColumn::new(&DataType::Int8, Bound::Max, 0);
        for json in ["3", "300", "\"4\"", "\"x\"", "1.5", "{}", "null"] {
            column.push_json(json);
        }
        let array = column.finish();
        let array = array.as_primitive::<Int8Type>();
        assert_eq!(
            array.iter().collect::<Vec<_>>(),
            [Some(3), None, Some(4), None, None, None, None]
        );
    }

    #[test]
    fn test_a_timestamp_maximum_is_widened_by_a_millisecond() {
        for (bound, expected) in [(Bound::Min, 123_000), (Bound::Max, 124_000)] {
            let mut column = ScalarColumn::new(
                &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
                bound,
                0,
            );
            column.push_json("\"1970-01-01T00:00:00.123Z\"");
            assert_eq!(
                column.finish().as_primitive::<TimestampMicrosecondType>().value(0),
                expected
            );
        }
    }

    #[test]
    fn test_bounds_of_decimals_hold_for_what_was_noted_as_a_double() {
        for (noted, value) in [
            (1_234_567_890_123_456_800_i128, 1_234_567_890_123_456_789_i128),
            (1_000_000_000_000_000_000, 1_000_000_000_000_000_001),
            (-1_234_567_890_123_456_800, -1_234_567_890_123_456_789),
            (9_999_999_999_999_999_000_000, 9_999_999_999_999_999_999_999),
            (1234, 1234),
        ] {
            let bounds = [Bound::Min, Bound::Max].map(|bound| wide_decimal(noted, 22, bound).unwrap());
            assert!(bounds[0] <= value && value <= bounds[1], "{noted}: {bounds:?}");
            assert!(
                bounds[1] - bounds[0] <= 4 + value.abs() / (1 << 49),
                "{noted}: {bounds:?}"
            );
        }
        assert_eq!(wide_decimal(1234, 22, Bound::Min), Some(1234));
        let (first, last) = (i128::from(i64::MIN), i128::from(i64::MAX));
        assert_eq!(wide_decimal(last, 38, Bound::Max), None, "of a number beyond 64 bits");
        assert_eq!(wide_decimal(first, 38, Bound::Min), None);
        assert!(wide_decimal(last, 38, Bound::Min).is_some_and(|min| min <= last));
        assert!(wide_decimal(first, 38, Bound::Max).is_some_and(|max| max >= first));
    }

    #[test]
    fn test_a_long_text_may_have_been_longer() {
        let long = |last: char| format!("{}{last}", "x".repeat(31));
        assert_eq!(wide_text("abc").as_deref(), Some("abc"));
        for last in ['x', '\u{d7ff}', char::MAX] {
            let longer = format!("{}{}", long(last), char::MAX);
            assert!(wide_text(&long(last)).unwrap() > longer, "{last:?}");
        }
        assert_eq!(wide_text(&char::MAX.to_string().repeat(32)), None);
    }

    #[test]
    fn test_times_before_1970_may_have_been_cut_upwards() {
        assert_eq!([wide_time(1), wide_time(0), wide_time(-1000)], [1, -1000, -2000]);
    }

    #[test]
    fn test_bounds_of_doubles_that_were_floats_hold_for_both() {
        for float in [3.4_f32, 0.1, -7.3, 1e-40, 16_777_217.0] {
            let text = float.to_string();
            let bounds = [Bound::Min, Bound::Max].map(|bound| {
                let mut column = ScalarColumn::new(&DataType::Float64, bound, 1).widened(true);
                column.push_json(&text);
                column.finish().as_primitive::<Float64Type>().value(0)
            });
            for value in [f64::from(float), text.parse().unwrap()] {
                assert!(bounds[0] <= value && value <= bounds[1], "{value} {bounds:?}");
            }
        }
    }

    #[test]
    fn test_floats_of_32_bits_stay_bounds() {
        assert!(f64::from(to_f32(0.1, Bound::Max)) >= 0.1);
        assert!(f64::from(to_f32(0.1, Bound::Min)) <= 0.1);
        let mut column = ScalarColumn::new(&DataType::Float64, Bound::Max, 0);
        column.push_json("\"NaN\"");
        column.push_json("NaN");
        assert_eq!(column.finish().null_count(), 2);
    }
}
