//! Simplification around what DataFusion would simplify to something else.
//!
//! A CASE decides for which rows its branches are computed, so it must stay opaque:
//! DataFusion turns a CASE of conditions into AND and OR, which compute every branch for every row: `CASE WHEN k = 0 THEN false ELSE
//! 10 / k > 1 END` would divide by zero. So each CASE (`coalesce` and `nvl`, too) is replaced by a column while the rest is simplified.

use std::sync::Arc;

use arrow_schema::Field;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, DataFusionError};
use datafusion_expr::expr::{InList, ScalarFunction};
use datafusion_expr::simplify::SimplifyContext;
use datafusion_expr::{Case, Expr, ExprSchemable};
use datafusion_optimizer::simplify_expressions::ExprSimplifier;

type Result<T> = std::result::Result<T, DataFusionError>;

/// Simplifies an expression whose types are settled.
pub(crate) fn simplify(expr: Expr, schema: &Arc<DFSchema>) -> Result<Expr> {
    let mut cases = Hidden::new("case");
    let opaque = cases.hide(expr, |node| as_case(node).map(Expr::Case))?;
    let wider = cases.beside(schema)?;
    let rest = simplify_lists(opaque, &wider)?;
    cases.restore(rest, |case| match case {
        Expr::Case(case) => branches(case, schema).map(Expr::Case),
        other => Ok(other),
    })
}

/// Simplifies an expression without CASE. DataFusion joins lists over one value as if it were never null: it takes `x NOT IN (1) OR x NOT
/// IN (2)` for true, and `x IN (1, 2) AND x NOT IN (2, NULL)` for `x IN (1)`. So such lists are simplified one by one.
fn simplify_lists(expr: Expr, schema: &Arc<DFSchema>) -> Result<Expr> {
    let mut tested: Vec<(Expr, usize)> = Vec::new();
    expr.apply(|node| {
        if let Expr::InList(list) = node {
            match tested.iter_mut().find(|(value, _)| value == list.expr.as_ref()) {
                Some((_, times)) => *times += 1,
                None => tested.push((list.expr.as_ref().clone(), 1)),
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let is_shared = |list: &InList| {
        let mut tested = tested.iter();
        tested.any(|(value, times)| *times > 1 && value == list.expr.as_ref())
    };
    let mut lists = Hidden::new("list");
    let opaque = lists.hide(expr, |node| match node {
        Expr::InList(list) if is_shared(&list) => Ok(Expr::InList(list)),
        other => Err(other),
    })?;
    let rest = simplifier(&lists.beside(schema)?).simplify(opaque)?;
    lists.restore(rest, |list| simplifier(schema).simplify(list))
}

/// Parts of an expression that columns stand for while the rest is simplified.
struct Hidden {
    kind: &'static str,
    parts: Vec<Expr>,
}

impl Hidden {
    fn new(kind: &'static str) -> Self {
        Hidden {
            kind,
            parts: Vec::new(),
        }
    }

    /// The name of the column of a part, which no real column has.
    fn name(&self, number: usize) -> String {
        format!("\u{0}{} {number}", self.kind)
    }

    /// The expression with a column for each part that `pick` picks.
    fn hide(&mut self, expr: Expr, pick: impl Fn(Expr) -> std::result::Result<Expr, Expr>) -> Result<Expr> {
        let opaque = expr.transform_down(|node| {
            Ok(match pick(node) {
                Ok(part) => {
                    let column = Column::new_unqualified(self.name(self.parts.len()));
                    self.parts.push(part);
                    Transformed::new(Expr::Column(column), true, TreeNodeRecursion::Jump)
                }
                Err(other) => Transformed::no(other),
            })
        })?;
        Ok(opaque.data)
    }

    /// The schema with the columns that stand for parts.
    fn beside(&self, schema: &Arc<DFSchema>) -> Result<Arc<DFSchema>> {
        if self.parts.is_empty() {
            return Ok(Arc::clone(schema));
        }
        let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
        for (number, part) in self.parts.iter().enumerate() {
            let data_type = part.get_type(schema.as_ref())?;
            fields.push(Arc::new(Field::new(self.name(number), data_type, true)));
        }
        Ok(Arc::new(DFSchema::try_from(arrow_schema::Schema::new(fields))?))
    }

    /// The expression with its parts, as `simplify` makes them.
    fn restore(self, expr: Expr, simplify: impl Fn(Expr) -> Result<Expr>) -> Result<Expr> {
        if self.parts.is_empty() {
            return Ok(expr);
        }
        let names: Vec<String> = (0..self.parts.len()).map(|number| self.name(number)).collect();
        let parts = self.parts.into_iter().map(simplify).collect::<Result<Vec<_>>>()?;
        let restored = expr.transform_down(|node| {
            let number = match &node {
                Expr::Column(column) => names.iter().position(|name| *name == column.name),
                _ => None,
            };
            Ok(match number.and_then(|number| parts.get(number)) {
                Some(part) => Transformed::new(part.clone(), true, TreeNodeRecursion::Jump),
                None => Transformed::no(node),
            })
        })?;
        Ok(restored.data)
    }
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
