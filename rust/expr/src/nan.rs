//! Which float columns' NaN a condition may keep, where NaN compares with nothing, as in Arrow.
//!
//! Parquet's statistics ignore NaN. Pruning by them would lose NaN rows that the condition keeps, as `NOT (x > 5)` does.

use std::collections::{BTreeMap, BTreeSet};

use arrow_schema::{DataType, Fields};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::Expr;

use crate::error::Result;
use crate::interval::Interval;
use crate::predicate::Predicate;
use crate::prune::{path_of, Walk};
use crate::stack;

impl Predicate {
    /// The paths of the float columns that it reads and of which it may keep rows with NaN, whatever the other columns hold.
    pub fn keeps_nan(&self) -> Result<Vec<Vec<String>>> {
        stack::run(stack::depth_of(self.expr_to_prune_by()), || {
            let expr = self.expr_to_prune_by();
            let kept = self.floats(expr).into_iter().filter(|path| {
                let nan = Interval {
                    is_unordered: true,
                    ..Interval::unknown()
                };
                let known = BTreeMap::from([(path.as_slice(), nan)]);
                let walk = Walk {
                    known: &known,
                    is_foreign: self.is_foreign(),
                };
                walk.truth(expr, 0).is_true
            });
            Ok(kept.collect())
        })
    }

    fn floats(&self, expr: &Expr) -> BTreeSet<Vec<String>> {
        let mut found = BTreeSet::new();
        // The visitor never fails.
        let _ = expr.apply(|part| {
            let Some(path) = path_of(part) else {
                return Ok(TreeNodeRecursion::Continue);
            };
            // The plan has no type for a column that the simplified expression no longer reads: it may be a float.
            if type_at(self.plan().schema().fields(), &path).is_none_or(DataType::is_floating) {
                found.insert(path);
            }
            Ok(TreeNodeRecursion::Jump)
        });
        found
    }
}

fn type_at<'a>(fields: &'a Fields, path: &[String]) -> Option<&'a DataType> {
    let (name, rest) = path.split_first()?;
    let (_, field) = fields.find(name)?;
    match (rest.is_empty(), field.data_type()) {
        (true, found) => Some(found),
        (false, DataType::Struct(inner)) => type_at(inner, rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{Field, Schema};

    #[test]
    fn test_only_where_nan_may_be_kept_it_is_told() {
        let inner = Field::new("g", DataType::Float32, true);
        let schema = Schema::new(vec![
            Field::new("f", DataType::Float64, true),
            Field::new("i", DataType::Int32, true),
            Field::new("st", DataType::Struct(vec![inner].into()), true),
        ]);
        for (sql, expected) in [
            ("f > 3 AND i > 2", ""),
            ("f >= 3", ""),
            ("f BETWEEN 1 AND 2", ""),
            ("f = 3 OR st.g > 2", "f|st.g"),
            ("st.g <> 2", "st.g"),
            ("isnan(f)", "f"),
            ("f IS NOT NULL", "f"),
            ("i <> 2", ""),
        ] {
            let found = Predicate::parse_sql(sql, &schema).unwrap().keeps_nan().unwrap();
            let shown: Vec<String> = found.iter().map(|path| path.join(".")).collect();
            assert_eq!(shown.join("|"), expected, "{sql}");
        }
    }
}
