//! The conditions of an AND, apart: a row is kept where all of them are true, in whatever order they are asked.

use datafusion_common::ScalarValue;
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use crate::error::Result;
use crate::plan::Plan;
use crate::predicate::Predicate;
use crate::stack;

/// What it costs to evaluate a condition on a row, in bytes that could be read and decoded in the same time, about.
const COMPARISON: u64 = 2;
const LIKE: u64 = 48;
const ITEM: u64 = 1;

/// One of the conditions that must all be true.
#[derive(Debug, Clone)]
pub struct Conjunct {
    /// The condition.
    pub predicate: Predicate,
    /// What it costs to evaluate on a row, in bytes that could be read in the same time. It says nothing of a condition that may fail.
    pub cost: u64,
}

/// A predicate's conditions.
#[derive(Debug, Clone)]
pub struct Conjuncts {
    /// Those that cannot fail, in their order. They may be asked in any order.
    pub total: Vec<Conjunct>,
    /// The first one that may fail and all behind it. It is to be asked only of rows for which those before it are true.
    pub rest: Option<Predicate>,
}

impl Predicate {
    /// What it costs to evaluate on a row, in bytes that could be read in the same time; none if it may fail for some row.
    pub fn cost(&self) -> Result<Option<u64>> {
        let expr = self.plan().expr();
        stack::run(stack::depth_of(expr), || Ok(cost(expr, self.plan())))
    }

    /// Takes the conditions apart that are joined by AND.
    pub fn conjuncts(&self) -> Result<Conjuncts> {
        let expr = self.plan().expr();
        // Those that may fail are joined again, one below the other.
        let depth = match stack::depth_of(expr) {
            usize::MAX => usize::MAX,
            depth => depth.saturating_add(joints(expr)),
        };
        stack::run(depth, || {
            let mut conditions = Vec::new();
            split(self.plan().expr(), &mut conditions);
            let first = conditions
                .iter()
                .position(|condition| cost(condition, self.plan()).is_none());
            let rest = conditions.split_off(first.unwrap_or(conditions.len()));
            let total = conditions.into_iter().map(|condition| {
                let cost = cost(condition, self.plan()).unwrap_or_default();
                let predicate = self.part(condition.clone())?;
                Ok(Conjunct { predicate, cost })
            });
            Ok(Conjuncts {
                total: total.collect::<Result<_>>()?,
                rest: match rest.into_iter().cloned().reduce(Expr::and) {
                    Some(rest) => Some(self.part(rest)?),
                    None => None,
                },
            })
        })
    }
}

/// How many ANDs join the conditions of an expression of few levels.
fn joints(expr: &Expr) -> usize {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And,
            right,
        }) => joints(left).saturating_add(joints(right)).saturating_add(1),
        _ => 0,
    }
}

fn split<'a>(expr: &'a Expr, out: &mut Vec<&'a Expr>) {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And,
            right,
        }) => {
            split(left, out);
            split(right, out);
        }
        other => out.push(other),
    }
}

/// What a condition costs; none if it may fail for some row.
fn cost(expr: &Expr, plan: &Plan) -> Option<u64> {
    let all = |parts: &[&Expr]| {
        parts
            .iter()
            .try_fold(0_u64, |sum, part| Some(sum.saturating_add(cost(part, plan)?)))
    };
    match expr {
        Expr::Column(_) | Expr::Literal(_, _) => Some(0),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And | Operator::Or => all(&[left, right]),
            Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom => {
                let flat = is_flat(left, plan) && is_flat(right, plan);
                Some(all(&[left, right])?.saturating_add(COMPARISON)).filter(|_| flat)
            }
            _ => None,
        },
        Expr::Not(inner)
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsUnknown(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsNotFalse(inner)
        | Expr::IsNotUnknown(inner) => Some(cost(inner, plan)?.saturating_add(1)),
        Expr::Between(between) => {
            let parts: [&Expr; 3] = [&between.expr, &between.low, &between.high];
            let flat = parts.iter().all(|part| is_flat(part, plan));
            Some(all(&parts)?.saturating_add(2 * COMPARISON)).filter(|_| flat)
        }
        Expr::InList(list) => {
            let literals = list.list.iter().all(|item| matches!(item, Expr::Literal(_, _)));
            let items = (list.list.len() as u64).saturating_mul(ITEM);
            Some(cost(&list.expr, plan)?.saturating_add(items)).filter(|_| literals && is_flat(&list.expr, plan))
        }
        Expr::Like(like) => {
            let is_text = matches!(&*like.pattern, Expr::Literal(ScalarValue::Utf8(Some(_)), _));
            Some(cost(&like.expr, plan)?.saturating_add(LIKE)).filter(|_| is_text && like.escape_char.is_none())
        }
        Expr::ScalarFunction(call) if call.name() == "get_field" => match call.args.as_slice() {
            [of, Expr::Literal(_, _)] => cost(of, plan),
            _ => None,
        },
        _ => None,
    }
}

/// Whether values are no lists, structs or maps: not all of those can be compared.
fn is_flat(expr: &Expr, plan: &Plan) -> bool {
    let Ok(schema) = datafusion_common::DFSchema::try_from(plan.schema().clone()) else {
        return false;
    };
    expr.get_type(&schema).is_ok_and(|data_type| !data_type.is_nested())
}
