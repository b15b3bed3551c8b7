//! Columns of float32 that are compared with fractions, as doubles, where the caller's SQL has them so.
//!
//! To Spark `0.1` is a decimal, which meets a float32 as a double, and no float32 equals it. Lance makes the fraction a float32, as this crate
//! does unless it is asked for.

use arrow_schema::DataType;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, DataFusionError, ScalarValue};
use datafusion_expr::expr::{Between, Cast, InList};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable};

use crate::coerce::is_comparison;

/// Makes doubles of what is compared with a fraction.
pub(crate) fn widened(expr: Expr, schema: &DFSchema) -> Result<Expr, DataFusionError> {
    let made = expr.transform_up(|node| {
        Ok(match node {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
                let [left, right] = sides([*left, *right], schema);
                Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
            }
            Expr::Between(Between {
                expr,
                negated,
                low,
                high,
            }) => {
                let [expr, low, high] = sides([*expr, *low, *high], schema);
                let (low, high) = (Box::new(low), Box::new(high));
                Transformed::yes(Expr::Between(Between::new(Box::new(expr), negated, low, high)))
            }
            Expr::InList(InList { expr, list, negated }) => {
                let mut all = sides(std::iter::once(*expr).chain(list).collect::<Vec<_>>(), schema);
                let expr = Box::new(all.remove(0));
                Transformed::yes(Expr::InList(InList::new(expr, all, negated)))
            }
            other => Transformed::no(other),
        })
    });
    made.map(|made| made.data)
}

/// The sides of a comparison: where one is a fraction, those of float32 are doubles.
fn sides<Sides: AsMut<[Expr]>>(mut sides: Sides, schema: &DFSchema) -> Sides {
    if sides.as_mut().iter().any(is_fraction) {
        for side in sides.as_mut() {
            if side.get_type(schema).is_ok_and(|found| found == DataType::Float32) {
                *side = Expr::Cast(Cast::new(Box::new(std::mem::take(side)), DataType::Float64));
            }
        }
    }
    sides
}

fn is_fraction(side: &Expr) -> bool {
    match side {
        Expr::Literal(ScalarValue::Float64(value), _) => value.is_some(),
        Expr::Negative(inner) => is_fraction(inner),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::{ArrayRef, Float32Array, RecordBatch};

    use crate::{Expression, Numbers};

    #[test]
    fn test_a_fraction_is_no_float_of_32_bits_to_spark() {
        let values: ArrayRef = Arc::new(Float32Array::from(vec![Some(0.1), Some(0.5), Some(-0.1), None]));
        let rows = RecordBatch::try_from_iter([("f", values)]).unwrap();
        let ask = |sql: &str, numbers: Numbers| {
            let found = Expression::parse_sql_with(sql, &rows.schema(), numbers).unwrap();
            let found = found.evaluate(&rows).unwrap();
            found
                .as_boolean()
                .iter()
                .map(|held| held.map(u8::from))
                .collect::<Vec<_>>()
        };
        for (sql, as_lance, as_spark) in [
            ("f = 0.1", [1, 0, 0], [0, 0, 0]),
            ("0.1 < f", [0, 1, 0], [1, 1, 0]),
            ("f <= 0.1", [1, 0, 1], [0, 0, 1]),
            ("f in (0.5, 0.1)", [1, 1, 0], [0, 1, 0]),
            ("f between -0.1 and 0.1", [1, 0, 1], [0, 0, 0]),
            ("f >= -0.1", [1, 1, 1], [1, 1, 0]),
            ("f = cast(0.1 as float)", [1, 0, 0], [1, 0, 0]),
            ("f = 0.5", [0, 1, 0], [0, 1, 0]),
            ("f > 0", [1, 1, 0], [1, 1, 0]),
        ] {
            let with_null = |found: [u8; 3]| found.map(Some).into_iter().chain([None]).collect::<Vec<_>>();
            assert_eq!(ask(sql, Numbers::Refused), with_null(as_lance), "{sql}");
            assert_eq!(ask(sql, Numbers::AsDoubles), with_null(as_spark), "{sql}");
        }
    }
}
