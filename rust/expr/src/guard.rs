//! Guarded AND and OR: the right side is computed only for the rows that the left side leaves open.
//!
//! DataFusion computes both sides for all rows of a batch unless the left one leaves few. That is fast, but fails where a condition
//! guards the next: `k <> 0 AND 10 / k > 1`. An expression that failed is evaluated again with guarded operators.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{DataType, Schema};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{exec_err, Result};
use datafusion_expr::{ColumnarValue, Operator};
use datafusion_physical_expr::expressions::BinaryExpr;
use datafusion_physical_expr::PhysicalExpr;

/// The same expression with each AND and OR guarded.
pub(crate) fn guarded(expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
    let guarded = expr.transform_up(|node| {
        let found: &dyn PhysicalExpr = &*node;
        let any: &dyn std::any::Any = found;
        let found = any.downcast_ref::<BinaryExpr>().and_then(|binary| {
            let is_and = match binary.op() {
                Operator::And => true,
                Operator::Or => false,
                _ => return None,
            };
            let (left, right) = (Arc::clone(binary.left()), Arc::clone(binary.right()));
            Some(Guard { left, right, is_and })
        });
        Ok(match found {
            Some(guard) => Transformed::yes(Arc::new(guard) as Arc<dyn PhysicalExpr>),
            None => Transformed::no(node),
        })
    });
    guarded.map(|guarded| guarded.data)
}

#[derive(Debug, Eq)]
struct Guard {
    left: Arc<dyn PhysicalExpr>,
    right: Arc<dyn PhysicalExpr>,
    /// Whether it is AND; otherwise it is OR.
    is_and: bool,
}

impl PartialEq for Guard {
    fn eq(&self, other: &Self) -> bool {
        self.is_and == other.is_and && self.left.eq(&other.left) && self.right.eq(&other.right)
    }
}

impl Hash for Guard {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.is_and.hash(state);
        self.left.hash(state);
        self.right.hash(state);
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {}",
            self.left,
            if self.is_and { "AND" } else { "OR" },
            self.right
        )
    }
}

fn booleans(value: ColumnarValue, rows: usize) -> Result<BooleanArray> {
    let array = value.into_array(rows)?;
    match array.as_boolean_opt() {
        Some(booleans) => Ok(booleans.clone()),
        None => exec_err!("expected a condition, found {}", array.data_type()),
    }
}

impl PhysicalExpr for Guard {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        Ok(self.left.nullable(schema)? || self.right.nullable(schema)?)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let left = booleans(self.left.evaluate(batch)?, rows)?;
        // False decides an AND, true decides an OR: such rows are not open.
        let open: BooleanArray = left.iter().map(|value| Some(value != Some(!self.is_and))).collect();
        if !open.has_true() {
            return Ok(ColumnarValue::Array(Arc::new(left)));
        }
        let right = booleans(self.right.evaluate_selection(batch, &open)?, rows)?;
        let both = left.iter().zip(&right).map(|(left, right)| match (left, right) {
            (Some(value), _) if value != self.is_and => Some(value),
            (_, Some(value)) if value != self.is_and => Some(value),
            (Some(_), Some(value)) => Some(value),
            _ => None,
        });
        Ok(ColumnarValue::Array(Arc::new(both.collect::<BooleanArray>())))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.left, &self.right]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let Ok([left, right]) = <[Arc<dyn PhysicalExpr>; 2]>::try_from(children) else {
            return exec_err!("expected two conditions");
        };
        let is_and = self.is_and;
        Ok(Arc::new(Guard { left, right, is_and }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
