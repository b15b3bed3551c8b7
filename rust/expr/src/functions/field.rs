//! A struct's field, masked: it is null wherever the struct is null.
//!
//! DataFusion's own `get_field` returns the child's value there, and writers leave arbitrary values below a null.

use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, StructArray};
use arrow_schema::{DataType, FieldRef};
use arrow_select::nullif::nullif;
use datafusion_common::{exec_err, Result};
use datafusion_expr::{ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature};
use datafusion_functions::core::getfield::GetFieldFunc;

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(MaskedField {
        plain: GetFieldFunc::new(),
    }))
});

/// `get_field` of these arguments: a struct, and the path of field names.
pub(crate) fn masked_field(arguments: Vec<Expr>) -> Expr {
    FUNCTION.call(arguments)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct MaskedField {
    plain: GetFieldFunc,
}

impl ScalarUDFImpl for MaskedField {
    fn name(&self) -> &str {
        self.plain.name()
    }

    fn signature(&self) -> &Signature {
        self.plain.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.plain.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = self.plain.return_field_from_args(args)?;
        Ok(Arc::new(field.as_ref().clone().with_nullable(true)))
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.plain.coerce_types(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut values = args.args.clone().into_iter();
        let Some(mut current) = values.next() else {
            return exec_err!("get_field takes a struct and names, found nothing");
        };
        for name in values {
            let masked = match (&current, &name) {
                (ColumnarValue::Array(array), ColumnarValue::Scalar(name)) => name
                    .try_as_str()
                    .flatten()
                    .and_then(|name| child(array, name))
                    .transpose()?,
                _ => None,
            };
            current = match masked {
                Some(array) => ColumnarValue::Array(array),
                None => self.plain.invoke_with_args(ScalarFunctionArgs {
                    args: vec![current, name],
                    arg_fields: args.arg_fields.clone(),
                    number_rows: args.number_rows,
                    return_field: Arc::clone(&args.return_field),
                    config_options: Arc::clone(&args.config_options),
                })?,
            };
        }
        Ok(current)
    }
}

/// The child of an array of structs, or of a dictionary of structs; `None` if it is another array or has no such child.
fn child(array: &ArrayRef, name: &str) -> Option<Result<ArrayRef>> {
    if let Some(parent) = array.as_struct_opt() {
        return masked(parent, name);
    }
    let dictionary = array.as_any_dictionary_opt()?;
    let values = masked(dictionary.values().as_struct_opt()?, name)?;
    Some(values.map(|values| dictionary.with_values(values)))
}

fn masked(parent: &StructArray, name: &str) -> Option<Result<ArrayRef>> {
    let child = parent.column_by_name(name)?;
    Some(match parent.nulls() {
        None => Ok(Arc::clone(child)),
        Some(nulls) => {
            let is_null = BooleanArray::new(!nulls.inner(), None);
            nullif(child, &is_null).map_err(Into::into)
        }
    })
}
