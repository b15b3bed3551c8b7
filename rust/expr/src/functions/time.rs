//! `exact_time`: times of any unit as decimal numbers of nanoseconds, which cannot overflow.
//!
//! For comparisons of two units where one's values may lie beyond the other's range: nanoseconds reach from 1677 to 2262, dates to year
//! 5,881,580.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Decimal128Array};
use arrow_schema::{DataType, TimeUnit};
use datafusion_common::{exec_err, Result, ScalarValue};
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// The name of the function.
pub(crate) const EXACT_TIME: &str = "exact_time";

const DIGITS: u8 = 38;
const DAY: i128 = 86_400_000_000_000;

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(ExactTime {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

/// Nanoseconds since 1970, or the nanoseconds of a duration.
pub(crate) fn exact_time(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(value, metadata) => match exact_value(&value) {
            Some(exact) => Expr::Literal(exact, metadata),
            None => FUNCTION.call(vec![Expr::Literal(value, metadata)]),
        },
        other => FUNCTION.call(vec![other]),
    }
}

/// The same for one value; `None` if it is no time.
pub(crate) fn exact_value(value: &ScalarValue) -> Option<ScalarValue> {
    if value.is_null() {
        return Some(ScalarValue::Decimal128(None, DIGITS, 0));
    }
    let array = exact(&value.to_array().ok()?).ok()?;
    ScalarValue::try_from_array(&array, 0).ok()
}

fn exact(array: &ArrayRef) -> Result<ArrayRef> {
    let (width, step) = match array.data_type() {
        DataType::Date32 => (DataType::Int32, DAY),
        DataType::Date64 => (DataType::Int64, 1_000_000),
        DataType::Timestamp(unit, _) | DataType::Duration(unit) => (DataType::Int64, step(*unit)),
        other => return exec_err!("expected a time, found {other}"),
    };
    // Reinterprets the array as its integers, without any arithmetic that could overflow.
    let data = array.to_data().into_builder().data_type(width.clone()).build()?;
    let numbers = arrow_array::make_array(data);
    let exact: Decimal128Array = match width {
        DataType::Int32 => numbers
            .as_primitive::<Int32Type>()
            .unary::<_, Decimal128Type>(|n| i128::from(n) * step),
        _ => numbers
            .as_primitive::<Int64Type>()
            .unary::<_, Decimal128Type>(|n| i128::from(n) * step),
    };
    Ok(Arc::new(exact.with_precision_and_scale(DIGITS, 0)?))
}

fn step(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactTime {
    signature: Signature,
}

impl ScalarUDFImpl for ExactTime {
    fn name(&self) -> &str {
        EXACT_TIME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Decimal128(DIGITS, 0))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(ColumnarValue::Array(array)) => exact(&array).map(ColumnarValue::Array),
            Some(ColumnarValue::Scalar(value)) => match exact_value(&value) {
                Some(exact) => Ok(ColumnarValue::Scalar(exact)),
                None => exec_err!("expected a time, found {value}"),
            },
            None => exec_err!("expected a time, found nothing"),
        }
    }
}
