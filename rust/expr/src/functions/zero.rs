//! `positive_zero`: replaces -0.0 by 0.0. The two are equal, but some of DataFusion's comparisons (hashes, dictionaries of literals, nested
//! values) compare bits, so their operands are normalised first.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, OffsetSizeTrait, PrimitiveArray, StructArray,
};
use arrow_schema::DataType;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(PositiveZero {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

/// The same values, where -0.0 is 0.0.
pub(crate) fn positive_zero(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(value, metadata) => Expr::Literal(positive_zero_of(value), metadata),
        other => FUNCTION.call(vec![other]),
    }
}

/// The same value, where -0.0 is 0.0.
pub(crate) fn positive_zero_of(value: ScalarValue) -> ScalarValue {
    if !has_zeros(&value.data_type()) {
        return value;
    }
    let changed = value.to_array().ok().map(|array| without_negative(&array));
    let changed = changed.and_then(|array| ScalarValue::try_from_array(&array, 0).ok());
    changed.unwrap_or(value)
}

/// Whether the type is a float or contains one.
pub(crate) fn has_zeros(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => has_zeros(values),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_zeros(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_zeros(field.data_type())),
        other => other.is_floating(),
    }
}

fn without_negative(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float16 => floats::<Float16Type>(array, |value| value.is_sign_negative() && value.to_f32() == 0.0),
        DataType::Float32 => floats::<Float32Type>(array, |value| value == 0.0),
        DataType::Float64 => floats::<Float64Type>(array, |value| value == 0.0),
        DataType::Dictionary(_, values) if has_zeros(values) => match array.as_any_dictionary_opt() {
            Some(dictionary) => dictionary.with_values(without_negative(dictionary.values())),
            None => Arc::clone(array),
        },
        DataType::List(item) if has_zeros(item.data_type()) => list::<i32>(array),
        DataType::LargeList(item) if has_zeros(item.data_type()) => list::<i64>(array),
        DataType::FixedSizeList(item, size) if has_zeros(item.data_type()) => {
            let Some(lists) = array.as_fixed_size_list_opt() else {
                return Arc::clone(array);
            };
            let values = without_negative(lists.values());
            let changed = FixedSizeListArray::try_new(Arc::clone(item), *size, values, lists.nulls().cloned());
            changed.map_or_else(|_| Arc::clone(array), |lists| Arc::new(lists) as ArrayRef)
        }
        DataType::Struct(fields) if has_zeros(array.data_type()) => {
            let Some(structs) = array.as_struct_opt() else {
                return Arc::clone(array);
            };
            let columns = structs.columns().iter().map(without_negative).collect();
            let changed = StructArray::try_new(fields.clone(), columns, structs.nulls().cloned());
            changed.map_or_else(|_| Arc::clone(array), |structs| Arc::new(structs) as ArrayRef)
        }
        _ => Arc::clone(array),
    }
}

fn floats<T: ArrowPrimitiveType>(array: &ArrayRef, is_zero: fn(T::Native) -> bool) -> ArrayRef {
    let Some(values) = array.as_primitive_opt::<T>() else {
        return Arc::clone(array);
    };
    let changed: PrimitiveArray<T> = values.unary(|value| if is_zero(value) { T::Native::default() } else { value });
    Arc::new(changed)
}

fn list<Offset: OffsetSizeTrait>(array: &ArrayRef) -> ArrayRef {
    let (Some(lists), DataType::List(item) | DataType::LargeList(item)) =
        (array.as_list_opt::<Offset>(), array.data_type())
    else {
        return Arc::clone(array);
    };
    let values = without_negative(lists.values());
    let offsets = lists.offsets().clone();
    let changed = GenericListArray::<Offset>::try_new(Arc::clone(item), offsets, values, lists.nulls().cloned());
    changed.map_or_else(|_| Arc::clone(array), |lists| Arc::new(lists) as ArrayRef)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PositiveZero {
    signature: Signature,
}

impl ScalarUDFImpl for PositiveZero {
    fn name(&self) -> &str {
        "positive_zero"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match args.args.into_iter().next() {
            Some(ColumnarValue::Array(array)) => ColumnarValue::Array(without_negative(&array)),
            Some(ColumnarValue::Scalar(value)) => ColumnarValue::Scalar(positive_zero_of(value)),
            None => ColumnarValue::Scalar(ScalarValue::Null),
        })
    }
}
