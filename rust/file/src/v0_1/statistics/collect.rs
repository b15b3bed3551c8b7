//! Collects the statistics of one page: the null count, and the bounds of the other values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, BooleanArray, PrimitiveArray};
use arrow_array::{BinaryArray, LargeBinaryArray, LargeStringArray, StringArray};
use arrow_schema::DataType;

use super::text::{greatest, least, Text};

/// The statistics of one page.
#[derive(Debug, Clone)]
pub(crate) struct PageStatistics {
    pub(crate) null_count: i64,
    /// One value of the column's type, null where it is not known.
    pub(crate) min: ArrayRef,
    pub(crate) max: ArrayRef,
}

/// Whether columns of the type have statistics: the types for which pylance writes them.
pub(crate) fn has_statistics(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64
            | DataType::Float32
            | DataType::Float64
            | DataType::Date32
            | DataType::Date64
            | DataType::Decimal128(_, _)
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Binary
            | DataType::LargeBinary
    )
}

/// The statistics of a page whose values come in `arrays`; none for a type without an order.
pub(crate) fn collect(data_type: &DataType, arrays: &[ArrayRef]) -> Option<PageStatistics> {
    let nulls: usize = arrays.iter().map(|a| a.null_count()).sum();
    let (min, max) = match data_type {
        DataType::Boolean => booleans(arrays),
        DataType::Int8 => numbers::<Int8Type>(data_type, arrays),
        DataType::Int16 => numbers::<Int16Type>(data_type, arrays),
        DataType::Int32 => numbers::<Int32Type>(data_type, arrays),
        DataType::Int64 => numbers::<Int64Type>(data_type, arrays),
        DataType::UInt8 => numbers::<UInt8Type>(data_type, arrays),
        DataType::UInt16 => numbers::<UInt16Type>(data_type, arrays),
        DataType::UInt32 => numbers::<UInt32Type>(data_type, arrays),
        DataType::UInt64 => numbers::<UInt64Type>(data_type, arrays),
        DataType::Date32 => numbers::<Date32Type>(data_type, arrays),
        DataType::Date64 => numbers::<Date64Type>(data_type, arrays),
        DataType::Decimal128(_, _) => numbers::<Decimal128Type>(data_type, arrays),
        DataType::Float32 => floats::<Float32Type>(data_type, arrays, -0.0, 0.0, f32::NEG_INFINITY, f32::INFINITY),
        DataType::Float64 => floats::<Float64Type>(data_type, arrays, -0.0, 0.0, f64::NEG_INFINITY, f64::INFINITY),
        DataType::Utf8 => {
            let (min, max) = strings::<Utf8Type>(arrays);
            (wrap(StringArray::from(vec![min])), wrap(StringArray::from(vec![max])))
        }
        DataType::LargeUtf8 => {
            let (min, max) = strings::<LargeUtf8Type>(arrays);
            (
                wrap(LargeStringArray::from(vec![min])),
                wrap(LargeStringArray::from(vec![max])),
            )
        }
        DataType::Binary => {
            let (min, max) = bytes::<BinaryType>(arrays);
            let array = |bound: Option<Vec<u8>>| wrap(BinaryArray::from(vec![bound.as_deref()]));
            (array(min), array(max))
        }
        DataType::LargeBinary => {
            let (min, max) = bytes::<LargeBinaryType>(arrays);
            let array = |bound: Option<Vec<u8>>| wrap(LargeBinaryArray::from(vec![bound.as_deref()]));
            (array(min), array(max))
        }
        _ => return None,
    };
    Some(PageStatistics {
        null_count: i64::try_from(nulls).ok()?,
        min,
        max,
    })
}

fn wrap(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}

fn booleans(arrays: &[ArrayRef]) -> (ArrayRef, ArrayRef) {
    let (mut trues, mut falses) = (false, false);
    for array in arrays {
        let array = array.as_boolean();
        trues |= array.true_count() > 0;
        falses |= array.false_count() > 0;
    }
    let value = |value: bool| wrap(BooleanArray::from(vec![value]));
    (value(trues && !falses), value(trues || !falses))
}

/// Calls `visit` on every value that is not null.
fn values<T: ArrowPrimitiveType>(arrays: &[ArrayRef], mut visit: impl FnMut(T::Native)) {
    for array in arrays {
        let array = array.as_primitive::<T>();
        match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => array.values().iter().for_each(|value| visit(*value)),
            Some(nulls) => {
                let valid = array.values().iter().zip(nulls).filter(|(_, valid)| *valid);
                valid.for_each(|(value, _)| visit(*value));
            }
        }
    }
}

fn pair<T: ArrowPrimitiveType>(data_type: &DataType, min: T::Native, max: T::Native) -> (ArrayRef, ArrayRef) {
    let value = |value: T::Native| wrap(PrimitiveArray::<T>::from_value(value, 1).with_data_type(data_type.clone()));
    (value(min), value(max))
}

fn numbers<T: ArrowPrimitiveType>(data_type: &DataType, arrays: &[ArrayRef]) -> (ArrayRef, ArrayRef) {
    let (lowest, highest) = (T::Native::MIN_TOTAL_ORDER, T::Native::MAX_TOTAL_ORDER);
    let (mut min, mut max, mut any) = (highest, lowest, false);
    values::<T>(arrays, |value| {
        any = true;
        min = if value.is_lt(min) { value } else { min };
        max = if value.is_gt(max) { value } else { max };
    });
    if any {
        pair::<T>(data_type, min, max)
    } else {
        pair::<T>(data_type, lowest, highest)
    }
}

fn floats<T: ArrowPrimitiveType>(
    data_type: &DataType,
    arrays: &[ArrayRef],
    least_zero: T::Native,
    greatest_zero: T::Native,
    lowest: T::Native,
    highest: T::Native,
) -> (ArrayRef, ArrayRef)
where
    T::Native: PartialOrd,
{
    let (mut min, mut max, mut any) = (highest, lowest, false);
    values::<T>(arrays, |value| {
        // Neither comparison holds for NaN.
        any |= value <= highest;
        min = if value < min { value } else { min };
        max = if value > max { value } else { max };
    });
    if !any {
        return pair::<T>(data_type, lowest, highest);
    }
    let min = if min == least_zero { least_zero } else { min };
    let max = if max == greatest_zero { greatest_zero } else { max };
    pair::<T>(data_type, min, max)
}

/// The least and the greatest of `arrays`, and whether one of the values is longer than a bound.
fn extremes<T: ByteArrayType>(arrays: &[ArrayRef], text: Text) -> (Option<&[u8]>, Option<&[u8]>, bool) {
    let (mut min, mut max, mut any_cut): (Option<&[u8]>, Option<&[u8]>, bool) = (None, None, false);
    for array in arrays {
        for value in array.as_bytes::<T>().iter().flatten() {
            let whole: &[u8] = value.as_ref();
            let value = least(whole, text);
            any_cut |= value.len() < whole.len();
            min = Some(min.map_or(value, |min| min.min(value)));
            max = Some(max.map_or(value, |max| max.max(value)));
        }
    }
    (min, max, any_cut)
}

fn bytes<T: ByteArrayType>(arrays: &[ArrayRef]) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let (min, max, any_cut) = extremes::<T>(arrays, Text::Binary);
    let max = max.and_then(|max| greatest(max, any_cut, Text::Binary));
    (min.map(<[u8]>::to_vec), max)
}

fn strings<T: ByteArrayType>(arrays: &[ArrayRef]) -> (Option<String>, Option<String>) {
    let (min, max, any_cut) = extremes::<T>(arrays, Text::Utf8);
    let max = max.and_then(|max| greatest(max, any_cut, Text::Utf8));
    let string = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
    (min.map(<[u8]>::to_vec).and_then(string), max.and_then(string))
}
