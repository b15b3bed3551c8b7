//! The SQL planner's context: scalar functions and type names. There are no tables, aggregates or variables.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{plan_err, Result, TableReference};
use datafusion_expr::planner::{ContextProvider, ExprPlanner, TypePlanner};
use datafusion_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use datafusion_functions::core::planner::CoreFunctionPlanner;
use datafusion_functions_nested::planner::{FieldAccessPlanner, NestedFunctionPlanner};
use sqlparser::ast::{DataType as SqlType, TimezoneInfo};

use crate::functions::{contains_tokens, json_functions, square_root};

/// Every scalar function by each of its names.
static FUNCTIONS: LazyLock<HashMap<String, Arc<ScalarUDF>>> = LazyLock::new(|| {
    let mut functions = HashMap::new();
    let nested = datafusion_functions_nested::all_default_nested_functions();
    for function in datafusion_functions::all_default_functions().into_iter().chain(nested) {
        for alias in function.aliases() {
            functions.insert(alias.clone(), Arc::clone(&function));
        }
        functions.insert(function.name().to_owned(), function);
    }
    for function in json_functions().chain([square_root(), contains_tokens()]) {
        functions.insert(function.name().to_owned(), function);
    }
    functions
});

/// The scalar function of this name, if there is one.
pub(crate) fn scalar_function(name: &str) -> Option<Arc<ScalarUDF>> {
    FUNCTIONS.get(name).cloned()
}

/// The names of all functions.
pub(crate) fn function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.keys().map(String::as_str)
}

/// The planner's context for one expression.
pub(crate) struct ExprContext {
    options: ConfigOptions,
    planners: Vec<Arc<dyn ExprPlanner>>,
}

impl ExprContext {
    pub(crate) fn new() -> Self {
        Self {
            options: ConfigOptions::default(),
            planners: vec![
                Arc::new(CoreFunctionPlanner::default()),
                Arc::new(NestedFunctionPlanner),
                Arc::new(FieldAccessPlanner),
                Arc::new(datafusion_functions::datetime::planner::DatetimeFunctionPlanner),
                Arc::new(datafusion_functions::unicode::planner::UnicodeFunctionPlanner),
            ],
        }
    }
}

impl ContextProvider for ExprContext {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        plan_err!("an expression cannot read from a table, found {name}")
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(TypeNames))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        scalar_function(name)
    }

    fn get_higher_order_meta(&self, _name: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, _name: &str) -> Option<Arc<AggregateUDF>> {
        None
    }

    fn get_window_meta(&self, _name: &str) -> Option<Arc<WindowUDF>> {
        None
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.options
    }

    fn udf_names(&self) -> Vec<String> {
        FUNCTIONS.keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udwf_names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Type names that the SQL planner lacks, and timestamps in microseconds where no precision is given (Arrow's and pylance's habit;
/// nanoseconds would end in the year 2262).
#[derive(Debug)]
struct TypeNames;

impl TypePlanner for TypeNames {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        let data_type = match sql_type {
            SqlType::Timestamp(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone)
            | SqlType::Datetime(precision) => DataType::Timestamp(time_unit(*precision)?, None),
            SqlType::Timestamp(precision, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
                DataType::Timestamp(time_unit(*precision)?, Some("UTC".into()))
            }
            SqlType::Binary(_) | SqlType::Varbinary(_) | SqlType::Blob(_) | SqlType::Bytes(_) => DataType::Binary,
            SqlType::Int16 => DataType::Int16,
            SqlType::Int32 => DataType::Int32,
            SqlType::Int64 => DataType::Int64,
            SqlType::UInt8 => DataType::UInt8,
            SqlType::UInt16 => DataType::UInt16,
            SqlType::UInt32 => DataType::UInt32,
            SqlType::UInt64 => DataType::UInt64,
            SqlType::Float32 => DataType::Float32,
            SqlType::Float64 => DataType::Float64,
            SqlType::Date32 => DataType::Date32,
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(Field::new("", data_type, true))))
    }
}

fn time_unit(precision: Option<u64>) -> Result<TimeUnit> {
    match precision {
        Some(0) => Ok(TimeUnit::Second),
        Some(3) => Ok(TimeUnit::Millisecond),
        None | Some(6) => Ok(TimeUnit::Microsecond),
        Some(9) => Ok(TimeUnit::Nanosecond),
        Some(other) => plan_err!("expected a timestamp precision of 0, 3, 6 or 9 digits, found {other}"),
    }
}
