//! Simplification around CASE: a CASE decides for which rows its branches are computed, so it must stay opaque.
//!
//! DataFusion turns a CASE of conditions into AND and OR, which compute every branch for every row: `CASE WHEN k = 0 THEN false ELSE
//! 10 / k > 1 END` would divide by zero. So each CASE (`coalesce` and `nvl`, too) is replaced by a column while the rest is simplified.

use std::sync::Arc;

use arrow_schema::Field;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, DataFusionError};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::simplify::SimplifyContext;
use datafusion_expr::{Case, Expr, ExprSchemable};
use datafusion_optimizer::simplify_expressions::ExprSimplifier;

type Result<T> = std::result::Result<T, DataFusionError>;

/// The placeholder column of a CASE, whose name no real column has.
fn hidden(number: usize) -> Column {
    Column::new_unqualified(format!("\u{0}case {number}"))
}

/// Simplifies an expression whose types are settled.
pub(crate) fn simplify(expr: Expr, schema: &Arc<DFSchema>) -> Result<Expr> {
    let mut cases = Vec::new();
    let opaque = expr.transform_down(|node| {
        Ok(match as_case(node) {
            Ok(case) => {
                let column = hidden(cases.len());
                cases.push(case);
                Transformed::new(Expr::Column(column), true, TreeNodeRecursion::Jump)
            }
            Err(other) => Transformed::no(other),
        })
    })?;
    if cases.is_empty() {
        return simplifier(schema).simplify(opaque.data);
    }
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
    let mut simplified = Vec::with_capacity(cases.len());
    for (number, case) in cases.into_iter().enumerate() {
        let data_type = Expr::Case(case.clone()).get_type(schema.as_ref())?;
        fields.push(Arc::new(Field::new(hidden(number).name, data_type, true)));
        simplified.push(Expr::Case(branches(case, schema)?));
    }
    let wider = DFSchema::try_from(arrow_schema::Schema::new(fields))?;
    let rest = simplifier(&Arc::new(wider)).simplify(opaque.data)?;
    let restored = rest.transform_down(|node| {
        let number = match &node {
            Expr::Column(column) => column
                .name
                .strip_prefix("\u{0}case ")
                .and_then(|number| number.parse().ok()),
            _ => None,
        };
        let case = number.and_then(|number: usize| simplified.get(number));
        Ok(match case {
            Some(case) => Transformed::new(case.clone(), true, TreeNodeRecursion::Jump),
            None => Transformed::no(node),
        })
    })?;
    Ok(restored.data)
}

fn simplifier(schema: &Arc<DFSchema>) -> ExprSimplifier {
    let context = SimplifyContext::builder()
        .with_schema(Arc::clone(schema))
        .with_current_time();
    ExprSimplifier::new(context.build())
}

fn branches(case: Case, schema: &Arc<DFSchema>) -> Result<Case> {
    let boxed = |expr: Box<Expr>| simplify(*expr, schema).map(Box::new);
    let pairs = case
        .when_then_expr
        .into_iter()
        .map(|(when, then)| Ok((boxed(when)?, boxed(then)?)));
    Ok(Case {
        when_then_expr: pairs.collect::<Result<_>>()?,
        expr: case.expr.map(boxed).transpose()?,
        else_expr: case.else_expr.map(boxed).transpose()?,
    })
}

/// The expression as a CASE: a CASE itself, or `coalesce`, `nvl` or `nvl2` written as one.
fn as_case(node: Expr) -> std::result::Result<Case, Expr> {
    let (func, mut args) = match node {
        Expr::Case(case) => return Ok(case),
        Expr::ScalarFunction(ScalarFunction { func, args }) => (func, args),
        other => return Err(other),
    };
    let unless_null = |value: Expr| (Box::new(value.clone().is_not_null()), Box::new(value));
    match (func.name(), args.len()) {
        ("coalesce" | "nvl", 2..) => {
            let last = args.pop().map(Box::new);
            Ok(Case::new(None, args.into_iter().map(unless_null).collect(), last))
        }
        ("nvl2", 3) => {
            let (null, value) = (args.pop(), args.pop());
            let tested = args.pop().map(Expr::is_not_null);
            let branch = tested.zip(value).map(|(when, then)| (Box::new(when), Box::new(then)));
            Ok(Case::new(None, branch.into_iter().collect(), null.map(Box::new)))
        }
        _ => Err(Expr::ScalarFunction(ScalarFunction { func, args })),
    }
}
