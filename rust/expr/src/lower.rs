//! Lowering: expressions that DataFusion would evaluate unlike SQL are rewritten just before the physical expression is made.
//!
//! Pruning sees the expression before lowering.

use arrow_schema::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::DFSchema;
use datafusion_expr::expr::{InList, ScalarFunction};
use datafusion_expr::{binary_expr, BinaryExpr, Case, Expr, ExprSchemable, Operator};

use crate::coerce::is_comparison;
use crate::error::{ExprError, Result};
use crate::functions::{has_zeros, masked_field, positive_zero};

/// Lowers a typed expression; its type stays the same.
pub(crate) fn lower(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let lowered = expr.transform_up(|node| Ok(Transformed::yes(lower_node(node, schema))));
    lowered
        .map(|lowered| lowered.data)
        .map_err(|error| ExprError::from_datafusion("cannot plan", &error))
}

fn lower_node(node: Expr, schema: &DFSchema) -> Expr {
    let holds_zeros = |expr: &Expr| expr.get_type(schema).is_ok_and(|found| has_zeros(&found));
    match node {
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "get_field" => masked_field(args),
        // These functions compare values by their bits.
        Expr::ScalarFunction(ScalarFunction { func, args }) if compares(func.name()) => {
            let args = args
                .into_iter()
                .map(|arg| if holds_zeros(&arg) { positive_zero(arg) } else { arg });
            func.call(args.collect())
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "nullif" => {
            match <[Expr; 2]>::try_from(args) {
                Ok([value, null]) if holds_zeros(&value) => {
                    let kept = (
                        Box::new(binary_expr(value.clone(), Operator::IsDistinctFrom, null)),
                        Box::new(value),
                    );
                    Expr::Case(Case::new(None, vec![kept], None))
                }
                Ok(args) => func.call(args.into()),
                Err(args) => func.call(args),
            }
        }
        Expr::InList(InList { expr, list, negated }) if holds_zeros(&expr) => Expr::InList(InList::new(
            Box::new(positive_zero(*expr)),
            list.into_iter().map(positive_zero).collect(),
            negated,
        )),
        Expr::Case(Case {
            expr: Some(value),
            when_then_expr,
            else_expr,
        }) if holds_zeros(&value) => {
            let searched = when_then_expr.into_iter().map(|(when, then)| {
                let when = lower_node(value.as_ref().clone().eq(*when), schema);
                (Box::new(when), then)
            });
            Expr::Case(Case::new(None, searched.collect(), else_expr))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) && holds_nested(&left, schema) => {
            let sides = [left, right].map(|side| Box::new(positive_zero(*side)));
            let [left, right] = sides;
            Expr::BinaryExpr(BinaryExpr::new(left, op, right))
        }
        other => other,
    }
}

fn holds_nested(expr: &Expr, schema: &DFSchema) -> bool {
    let nested = |found: &DataType| match found {
        DataType::Dictionary(_, values) => values.is_nested(),
        other => other.is_nested(),
    };
    expr.get_type(schema)
        .is_ok_and(|found| nested(&found) && has_zeros(&found))
}

fn compares(function: &str) -> bool {
    function.starts_with("array_has") || function.starts_with("array_position") || function.starts_with("array_remove")
}
