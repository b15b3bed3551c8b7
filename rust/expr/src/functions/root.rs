//! Square roots: NaN for a negative number, as other functions return NaN outside of their domain.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion_common::{exec_err, Result};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let types = vec![DataType::Float64, DataType::Float32];
    Arc::new(ScalarUDF::new_from_impl(SquareRoot {
        signature: Signature::uniform(1, types, Volatility::Immutable),
    }))
});

/// The function.
pub(crate) fn square_root() -> Arc<ScalarUDF> {
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SquareRoot {
    signature: Signature,
}

impl ScalarUDFImpl for SquareRoot {
    fn name(&self) -> &str {
        "sqrt"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match types.first() {
            Some(DataType::Float32) => DataType::Float32,
            _ => DataType::Float64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(array) = values.first() else {
            return exec_err!("sqrt takes a number, found nothing");
        };
        let roots: ArrayRef = if let Some(numbers) = array.as_primitive_opt::<Float32Type>() {
            Arc::new(numbers.unary::<_, Float32Type>(f32::sqrt))
        } else if let Some(numbers) = array.as_primitive_opt::<Float64Type>() {
            Arc::new(numbers.unary::<_, Float64Type>(f64::sqrt))
        } else {
            return exec_err!("sqrt takes a number, found {}", array.data_type());
        };
        Ok(ColumnarValue::Array(roots))
    }
}
