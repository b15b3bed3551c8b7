//! Checked arithmetic: an overflow is an error, since values that are computed to be stored must not wrap.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float16Array, Float32Array, Float64Array, RecordBatch, RecordBatchOptions};
use arrow_cast::{cast_with_options, CastOptions};
use arrow_schema::{ArrowError, DataType, Schema, TimeUnit};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, DataFusionError, Result as DataFusionResult, ScalarValue};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{Expr, Operator};
use datafusion_physical_expr::expressions::{BinaryExpr, Literal, NegativeExpr};
use datafusion_physical_expr::{create_physical_expr, PhysicalExpr};

/// The same expression over columns of `schema`, whose sums, differences, products and negations of integers are checked.
pub(crate) fn checked(expr: Arc<dyn PhysicalExpr>, schema: &Schema) -> DataFusionResult<Arc<dyn PhysicalExpr>> {
    let checked = expr.transform_up(|node| {
        if let Some(binary) = node.downcast_ref::<BinaryExpr>() {
            if matches!(binary.op(), Operator::Plus | Operator::Minus | Operator::Multiply) {
                let strict: Arc<dyn PhysicalExpr> = Arc::new(binary.clone().with_fail_on_overflow(true));
                return Ok(Transformed::yes(strict));
            }
        }
        if let Some(negative) = node.downcast_ref::<NegativeExpr>() {
            let data_type = negative.arg().data_type(schema)?;
            if data_type.is_integer() {
                let zero: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(ScalarValue::new_zero(&data_type)?));
                let difference = BinaryExpr::new(zero, Operator::Minus, Arc::clone(negative.arg()));
                let strict: Arc<dyn PhysicalExpr> = Arc::new(difference.with_fail_on_overflow(true));
                return Ok(Transformed::yes(strict));
            }
        }
        Ok(Transformed::no(node))
    });
    checked.map(|checked| checked.data)
}

/// Refuses arithmetic on constants that overflows, before simplification folds it to a wrapped value.
pub(crate) fn check_constants(typed: &Expr) -> DataFusionResult<()> {
    let row = RecordBatch::try_new_with_options(
        Arc::new(Schema::empty()),
        Vec::new(),
        &RecordBatchOptions::new().with_row_count(Some(1)),
    )?;
    typed.apply(|node| {
        let is_arithmetic = match node {
            Expr::BinaryExpr(binary) => {
                matches!(binary.op, Operator::Plus | Operator::Minus | Operator::Multiply)
            }
            Expr::Negative(_) => true,
            _ => false,
        };
        if !is_arithmetic || !node.column_refs().is_empty() || node.is_volatile() {
            return Ok(TreeNodeRecursion::Continue);
        }
        let physical = create_physical_expr(
            node,
            &DFSchema::empty(),
            &ExecutionProps::new(),
            &PhysicalPlanningContext::default(),
        );
        // An expression that cannot be planned by itself is not folded either.
        if let Ok(physical) = physical {
            match checked(physical, &Schema::empty())?.evaluate(&row) {
                Err(DataFusionError::ArrowError(error, trace))
                    if matches!(*error, ArrowError::ArithmeticOverflow(_)) =>
                {
                    return Err(DataFusionError::ArrowError(error, trace));
                }
                _ => return Ok(TreeNodeRecursion::Jump),
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Casts values: one that does not fit (or would become infinite) is an error, and numbers are truncated to integers.
pub(crate) fn cast_checked(values: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let cast = match (values.data_type(), data_type) {
        // Cast by way of a timestamp in milliseconds, which is checked, where the direct cast would wrap.
        (DataType::Date64, DataType::Timestamp(TimeUnit::Nanosecond, _)) => {
            let millis = cast_with_options(values, &DataType::Timestamp(TimeUnit::Millisecond, None), &options)?;
            cast_with_options(&millis, data_type, &options)?
        }
        _ => cast_with_options(values, data_type, &options)?,
    };
    if data_type.is_floating() && values.data_type().is_numeric() && infinite(&cast) > infinite(values) {
        return Err(ArrowError::CastError(format!(
            "expected numbers within the range of {data_type}, found larger ones"
        )));
    }
    Ok(cast)
}

/// How many values are infinite.
fn infinite(values: &ArrayRef) -> usize {
    let any = values.as_any();
    if let Some(values) = any.downcast_ref::<Float64Array>() {
        values.iter().flatten().filter(|value| value.is_infinite()).count()
    } else if let Some(values) = any.downcast_ref::<Float32Array>() {
        values.iter().flatten().filter(|value| value.is_infinite()).count()
    } else if let Some(values) = any.downcast_ref::<Float16Array>() {
        values.iter().flatten().filter(|value| value.is_infinite()).count()
    } else {
        0
    }
}
