//! The options of a call: a struct of one row.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, Int8Type, UInt32Type};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::DataType;

use crate::error::{ExprError, Result};

/// Options of the function of this name, if it was given any.
pub(super) struct Options<'a> {
    pub(super) function: &'a str,
    pub(super) fields: Option<&'a StructArray>,
}

impl Options<'_> {
    fn field(&self, name: &str) -> Option<&ArrayRef> {
        let field = self.fields.and_then(|fields| fields.column_by_name(name));
        field.filter(|field| !field.is_empty())
    }

    fn missing(&self, name: &str, what: &str) -> ExprError {
        let function = self.function;
        ExprError::invalid(format!(
            "expected option {name} of Arrow function {function} as {what}, found none"
        ))
    }

    /// A flag; false if it is missing.
    pub(super) fn flag(&self, name: &str) -> bool {
        let flags = self.field(name).and_then(|field| field.as_boolean_opt());
        flags.is_some_and(|flags| flags.is_valid(0) && flags.value(0))
    }

    /// Text.
    pub(super) fn text(&self, name: &str) -> Result<String> {
        let field = self.field(name).ok_or_else(|| self.missing(name, "text"))?;
        let bytes = arrow_cast::cast(field, &DataType::Utf8).map_err(|_| self.missing(name, "text"))?;
        let text = bytes
            .as_string_opt::<i32>()
            .filter(|text| text.is_valid(0))
            .map(|text| text.value(0).to_owned());
        text.ok_or_else(|| self.missing(name, "text"))
    }

    /// A whole number of any width.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        let field = self.field(name).filter(|field| field.is_valid(0))?;
        match field.data_type() {
            DataType::Int8 => field.as_primitive_opt::<Int8Type>().map(|n| i64::from(n.value(0))),
            DataType::Int32 => field.as_primitive_opt::<Int32Type>().map(|n| i64::from(n.value(0))),
            DataType::UInt32 => field.as_primitive_opt::<UInt32Type>().map(|n| i64::from(n.value(0))),
            DataType::Int64 => field.as_primitive_opt::<Int64Type>().map(|n| n.value(0)),
            _ => None,
        }
    }

    /// A type option: the type of the option's column, whose value is ignored.
    pub(super) fn data_type(&self, name: &str) -> Result<DataType> {
        let field = self.field(name).ok_or_else(|| self.missing(name, "a type"))?;
        Ok(field.data_type().clone())
    }

    /// The values of a list.
    pub(super) fn values(&self, name: &str) -> Result<ArrayRef> {
        let field = self.field(name).filter(|field| field.is_valid(0));
        let values = field.and_then(|field| match field.data_type() {
            DataType::List(_) => field.as_list_opt::<i32>().map(|list| list.value(0)),
            DataType::LargeList(_) => field.as_list_opt::<i64>().map(|list| list.value(0)),
            _ => None,
        });
        values.ok_or_else(|| self.missing(name, "an array"))
    }
}
