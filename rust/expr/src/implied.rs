//! Implied terms: comparisons of single columns that hold for every row that a predicate keeps.
//!
//! `a > 3 AND (b = 'x' OR c) AND f(d)` implies `a > 3`. They are for pushdown into other readers, which prune row groups by the statistics
//! of single columns with an evaluator of their own. So only terms that mean the same everywhere are returned: no order of floats, as NaN
//! is ordered differently, and no times, as their units differ.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::expr::{Between, Cast, InList};
use datafusion_expr::{BinaryExpr, Expr, Operator};

use crate::depth::DEPTH_LIMIT;
use crate::error::{ExprError, Result};
use crate::interval::is_nan;
use crate::predicate::Predicate;
use crate::stack;

/// A comparison of a top-level column with literals of its type.
#[derive(Debug, Clone)]
pub struct ImpliedTerm {
    /// The column.
    pub column: String,
    /// `=`, `<`, `<=`, `>`, `>=`, `in`, `is null` or `is not null`.
    pub operator: &'static str,
    /// The literals that it is compared with: several for `in`, `None` for `is null` and `is not null`.
    pub values: Option<ArrayRef>,
}

/// A term before its values are made an array.
type Term = (String, &'static str, Vec<ScalarValue>);

impl Predicate {
    /// The comparisons of single columns that hold for every row that the predicate keeps.
    pub fn implied(&self) -> Result<Vec<ImpliedTerm>> {
        let mut found = Vec::new();
        stack::run(stack::depth_of(self.expr_to_prune_by()), || {
            self.collect(self.expr_to_prune_by(), &mut found, 0);
            Ok(())
        })?;
        found
            .into_iter()
            .map(|(column, operator, values)| {
                let values = match values.is_empty() {
                    true => None,
                    false => Some(
                        ScalarValue::iter_to_array(values)
                            .map_err(|error| ExprError::from_datafusion("cannot read", &error))?,
                    ),
                };
                Ok(ImpliedTerm {
                    column,
                    operator,
                    values,
                })
            })
            .collect()
    }

    fn collect(&self, expr: &Expr, found: &mut Vec<Term>, depth: usize) {
        if depth > DEPTH_LIMIT {
            return;
        }
        match expr {
            Expr::Alias(alias) => self.collect(&alias.expr, found, depth + 1),
            Expr::IsTrue(inner) => self.collect(inner, found, depth + 1),
            Expr::IsNull(inner) => found.extend(self.flat_column(inner).map(|name| (name, "is null", Vec::new()))),
            Expr::IsNotNull(inner) => {
                found.extend(self.flat_column(inner).map(|name| (name, "is not null", Vec::new())));
            }
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::And,
                right,
            }) => {
                self.collect(left, found, depth + 1);
                self.collect(right, found, depth + 1);
            }
            // Simplification turns a short IN list into a chain of OR.
            Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => found.extend(self.one_of(expr)),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                found.extend(self.compared(left, *op, right));
                if let Some(op) = op.swap() {
                    found.extend(self.compared(right, op, left));
                }
            }
            Expr::Between(Between {
                expr,
                negated: false,
                low,
                high,
            }) => {
                found.extend(self.compared(expr, Operator::GtEq, low));
                found.extend(self.compared(expr, Operator::LtEq, high));
            }
            Expr::InList(InList {
                expr,
                list,
                negated: false,
            }) => {
                if let Some(name) = self.column_in_list(expr) {
                    let values: Option<Vec<ScalarValue>> = list.iter().map(|item| self.value(expr, item)).collect();
                    found.extend(
                        values
                            .filter(|values| !values.is_empty())
                            .map(|values| (name, "in", values)),
                    );
                }
            }
            _ => {}
        }
    }

    fn compared(&self, column: &Expr, op: Operator, literal: &Expr) -> Option<Term> {
        let operator = match op {
            Operator::Eq => "=",
            Operator::Lt => "<",
            Operator::LtEq => "<=",
            Operator::Gt => ">",
            Operator::GtEq => ">=",
            _ => return None,
        };
        let (name, data_type) = self.column(column)?;
        if data_type.is_floating() && operator != "=" {
            return None;
        }
        let value = self.value(column, literal)?;
        Some((name, operator, vec![value]))
    }

    /// `x = 1 OR x = 2 OR ...` as one list.
    fn one_of(&self, expr: &Expr) -> Option<Term> {
        let (mut name, mut values, mut left) = (None, Vec::new(), vec![expr]);
        while let Some(part) = left.pop() {
            match part {
                Expr::BinaryExpr(BinaryExpr {
                    left: one,
                    op: Operator::Or,
                    right: other,
                }) => left.extend([other.as_ref(), one.as_ref()]),
                Expr::BinaryExpr(BinaryExpr {
                    left: column,
                    op: Operator::Eq,
                    right: literal,
                }) => {
                    let found = self.column_in_list(column)?;
                    if *name.get_or_insert_with(|| found.clone()) != found {
                        return None;
                    }
                    values.push(self.value(column, literal)?);
                }
                _ => return None,
            }
        }
        Some((name?, "in", values))
    }

    fn column_in_list(&self, expr: &Expr) -> Option<String> {
        let (name, data_type) = self.column(expr)?;
        (!data_type.is_floating()).then_some(name)
    }

    /// The literal as a value of the column's type, if it is one.
    fn value(&self, column: &Expr, literal: &Expr) -> Option<ScalarValue> {
        let (_, wanted) = self.column(column)?;
        let Expr::Literal(value, _) = literal else { return None };
        if value.is_null() || is_nan(value) {
            return None;
        }
        if value.data_type() == wanted {
            return Some(value.clone());
        }
        let found = value.cast_to(&wanted).ok().filter(|found| !found.is_null())?;
        let back = found.cast_to(&value.data_type()).ok()?;
        (back == *value).then_some(found)
    }

    /// A column whose comparisons mean the same to every reader, or a widening cast of one; and its type.
    fn column(&self, expr: &Expr) -> Option<(String, DataType)> {
        let is_exact = |t: &DataType| t.is_signed_integer() || matches!(t, DataType::Decimal128(_, _));
        match expr {
            Expr::Column(column) => {
                let data_type = self.plan().schema().field_with_name(column.name()).ok()?.data_type();
                let is_known = is_exact(data_type)
                    || matches!(
                        data_type,
                        DataType::Utf8 | DataType::Date32 | DataType::Float32 | DataType::Float64
                    );
                is_known.then(|| (column.name().to_owned(), data_type.clone()))
            }
            Expr::Cast(Cast { expr, field, .. }) if is_exact(field.data_type()) => {
                self.column(expr).filter(|(_, data_type)| is_exact(data_type))
            }
            _ => None,
        }
    }

    fn flat_column(&self, expr: &Expr) -> Option<String> {
        let Expr::Column(column) = expr else { return None };
        let field = self.plan().schema().field_with_name(column.name()).ok()?;
        (!field.data_type().is_nested()).then(|| column.name().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_schema::{Field, Schema};

    fn implied(sql: &str) -> String {
        let schema = Schema::new(vec![
            Field::new("a", DataType::Int32, true),
            Field::new("b", DataType::Utf8, true),
            Field::new("f", DataType::Float64, true),
            Field::new("d", DataType::Decimal128(10, 2), true),
            Field::new(
                "st",
                DataType::Struct(vec![Field::new("x", DataType::Int32, true)].into()),
                true,
            ),
        ]);
        let terms = Predicate::parse_sql(sql, &schema).unwrap().implied().unwrap();
        let shown = terms.iter().map(|term| {
            let count = term.values.as_ref().map_or(0, |values| values.len());
            format!("{} {} {count}", term.column, term.operator)
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn test_what_must_hold_of_single_columns_is_told() {
        for (sql, expected) in [
            ("a > 3 AND (b = 'x' OR f > 1) AND abs(a) > 2", "a > 1"),
            ("a BETWEEN 1 AND 3", "a >= 1, a <= 1"),
            ("a IN (1, 2)", "a in 2"),
            ("a IN (1, 2, 3, 4, 5, 6)", "a in 6"),
            ("3 < a", "a > 1"),
            ("d = 75.00", "d = 1"),
            ("a IS NOT NULL AND b IS NULL", "a is not null 0, b is null 0"),
            ("a > 0\n-- and b = 'x'", "a > 1"),
            ("a > 0 /* was: x and b = 'x' and y */", "a > 1"),
            ("b = 'x -- and a = 3'", "b = 1"),
        ] {
            assert_eq!(implied(sql), expected, "{sql}");
        }
    }

    #[test]
    fn test_what_others_may_see_otherwise_is_not_told() {
        for sql in [
            "f > 1",
            "f < 1",
            "f IN (1, 2)",
            "f = CAST('NaN' AS DOUBLE)",
            "a = 1 OR b = 'x'",
            "NOT (a = 1 AND b = 'x')",
            "st.x = 1",
            "st IS NOT NULL",
            "a = f",
            "CAST(a AS DOUBLE) < 3",
            "CAST(a AS STRING) < '3'",
        ] {
            let found = implied(sql);
            assert!(
                found.is_empty() || sql.starts_with("CAST(a AS DOUBLE)"),
                "{sql}: {found}"
            );
        }
    }
}
