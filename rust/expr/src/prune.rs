//! Pruning: which groups of rows (files, row groups, pages) a condition cannot keep any row of, by interval arithmetic over the bounds of
//! their columns.
//!
//! The condition is evaluated with intervals instead of values: a column is an interval, with or without nulls; a condition is the set of
//! its possible truth values (true, false, null). An expression that is not understood may be anything, so that a group is pruned only if
//! none of its rows can make the condition true.
//!
//! Bounds of floats ignore NaN, which here is greater than every number (-NaN is less), and in Arrow compares with nothing. So a float
//! column is tried as numbers, as NaN, as -NaN and as an unordered NaN, one after the other: bounds rule out `x = 5`, but not `x > 5`.
//!
//! A condition that came as Substrait may be evaluated by Arrow. It is walked as written, since SQL's simplifications (`NOT (x > 5)` to
//! `x <= 5`) do not hold there, and by the rules of both.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use arrow_array::{Array, ArrayRef};
use datafusion_common::ScalarValue;
use datafusion_expr::expr::{Between, InList, Like, ScalarFunction};
use datafusion_expr::{BinaryExpr, Case, Expr, Operator};

use crate::depth::DEPTH_LIMIT;
use crate::functions::{exact_value, EXACT_TIME};
use crate::interval::{is_nan, Interval, Truth};
use crate::predicate::Predicate;
use crate::prune_columns::ruled_out;

/// How many float columns are tried as NaN: the combinations grow exponentially.
const NAN_COLUMNS: usize = 3;

/// The statistics of a column: a value for each group.
#[derive(Debug, Clone)]
pub struct ColumnRange {
    /// A lower bound of all values but NaN; null where unknown.
    pub min: ArrayRef,
    /// An upper bound of all values but NaN; null where unknown.
    pub max: ArrayRef,
    /// How many values are null; `None` where unknown.
    pub null_count: Vec<Option<u64>>,
}

/// Columns by their path: one name for a top-level column, more inside structs.
pub type ColumnRanges = BTreeMap<Vec<String>, ColumnRange>;

impl Predicate {
    /// For each group, whether the predicate may keep any of its rows. `rows` are the groups' row counts.
    pub fn prune(&self, ranges: &ColumnRanges, rows: &[u64]) -> Vec<bool> {
        let (expr, is_foreign) = (self.expr_to_prune_by(), self.is_foreign());
        let mut floats: Vec<&Vec<String>> = ranges
            .iter()
            .filter(|(_, range)| range.min.data_type().is_floating())
            .map(|(path, _)| path)
            .collect();
        // Further float columns are unknown.
        let unknown = floats.split_off(floats.len().min(NAN_COLUMNS));
        let out = ruled_out(expr, ranges, rows.len());
        let groups = rows.iter().zip(out).enumerate().map(|(group, (rows, out))| {
            if out {
                return false;
            }
            let mut known = BTreeMap::new();
            for (path, range) in ranges {
                if !unknown.contains(&path) {
                    known.insert(path.as_slice(), interval_of(range, group, *rows));
                }
            }
            *rows > 0 && may_keep(expr, is_foreign, &mut known, &floats)
        });
        groups.collect()
    }
}

/// Whether the condition may be true, with each column of `floats` tried as numbers and as NaN.
fn may_keep<'a>(
    expr: &Expr,
    is_foreign: bool,
    known: &mut BTreeMap<&'a [String], Interval>,
    floats: &[&'a Vec<String>],
) -> bool {
    let Some((path, rest)) = floats.split_first() else {
        return Walk { known, is_foreign }.truth(expr, 0).is_true;
    };
    let Some(numbers) = known.get(path.as_slice()).cloned() else {
        return may_keep(expr, is_foreign, known, rest);
    };
    let forms = [
        Some(numbers.clone()),
        numbers.nan(true),
        numbers.nan(false),
        numbers.unordered().filter(|_| is_foreign),
    ];
    let kept = forms.into_iter().flatten().any(|form| {
        known.insert(path.as_slice(), form);
        may_keep(expr, is_foreign, known, rest)
    });
    known.insert(path.as_slice(), numbers);
    kept
}

fn interval_of(range: &ColumnRange, group: usize, rows: u64) -> Interval {
    let bound = |array: &ArrayRef| {
        let known = group < array.len() && array.is_valid(group);
        let value = known.then(|| ScalarValue::try_from_array(array, group).ok()).flatten();
        value.filter(|value| !value.is_null())
    };
    let nulls = range.null_count.get(group).copied().flatten();
    Interval {
        low: bound(&range.min).map(|low| zero_as(low, -0.0)),
        high: bound(&range.max).map(|high| zero_as(high, 0.0)),
        has_values: nulls != Some(rows),
        has_nulls: nulls != Some(0),
        is_unordered: false,
    }
}

/// A bound of zero with the sign that covers both zeros: some writers order -0.0 before 0.0, others treat them as equal.
fn zero_as(bound: ScalarValue, zero: f32) -> ScalarValue {
    match bound {
        ScalarValue::Float32(Some(0.0)) => ScalarValue::Float32(Some(zero)),
        ScalarValue::Float64(Some(0.0)) => ScalarValue::Float64(Some(f64::from(zero))),
        other => other,
    }
}

/// One evaluation of a condition over intervals.
pub(crate) struct Walk<'a, 'b> {
    pub(crate) known: &'a BTreeMap<&'b [String], Interval>,
    /// Whether Arrow may evaluate it.
    pub(crate) is_foreign: bool,
}

impl Walk<'_, '_> {
    /// The possible truth values of a condition.
    pub(crate) fn truth(&self, expr: &Expr, depth: usize) -> Truth {
        if depth > DEPTH_LIMIT {
            return Truth::ANY;
        }
        let truth = |expr: &Expr| self.truth(expr, depth + 1);
        let interval = |expr: &Expr| self.interval(expr, depth + 1);
        match expr {
            Expr::Alias(alias) => truth(&alias.expr),
            Expr::Not(inner) => truth(inner).not(),
            Expr::IsNull(inner) => interval(inner).is_null(),
            Expr::IsNotNull(inner) => interval(inner).is_null().not(),
            Expr::IsTrue(inner) => Truth::known(truth(inner).is_true, truth(inner).is_false || truth(inner).is_null),
            Expr::IsNotTrue(inner) => Truth::known(truth(inner).is_false || truth(inner).is_null, truth(inner).is_true),
            Expr::IsFalse(inner) => Truth::known(truth(inner).is_false, truth(inner).is_true || truth(inner).is_null),
            Expr::IsNotFalse(inner) => {
                Truth::known(truth(inner).is_true || truth(inner).is_null, truth(inner).is_false)
            }
            Expr::IsUnknown(inner) => Truth::known(truth(inner).is_null, truth(inner).is_true || truth(inner).is_false),
            Expr::IsNotUnknown(inner) => {
                Truth::known(truth(inner).is_true || truth(inner).is_false, truth(inner).is_null)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
                Operator::And => truth(left).and(truth(right)),
                Operator::Or => truth(left).or(truth(right)),
                Operator::Eq => interval(left).equals(&interval(right)),
                Operator::NotEq => interval(left).equals(&interval(right)).not(),
                Operator::Lt => interval(left).is_less(&interval(right)),
                Operator::GtEq => interval(left).is_at_least(&interval(right)),
                Operator::Gt => interval(right).is_less(&interval(left)),
                Operator::LtEq => interval(right).is_at_least(&interval(left)),
                _ => Truth::ANY,
            },
            Expr::Between(Between {
                expr,
                negated,
                low,
                high,
            }) => {
                let value = interval(expr);
                let above = value.is_at_least(&interval(low));
                let below = interval(high).is_at_least(&value);
                above.and(below).negate_if(*negated)
            }
            Expr::InList(InList { expr, list, negated }) => {
                let value = interval(expr);
                let items = list.iter().filter(|item| !(self.is_foreign && is_null_literal(item)));
                let any = items.map(|item| value.equals(&interval(item)));
                let mut found = any.fold(Truth::FALSE, Truth::or);
                if self.is_foreign && value.has_nulls {
                    // Arrow's `is_in` treats null as a value: it is in the list, or it is not.
                    found.is_true |= list.iter().any(is_null_literal);
                    found.is_false = true;
                }
                found.negate_if(*negated)
            }
            Expr::Like(Like {
                negated,
                expr,
                pattern,
                escape_char: None,
                case_insensitive: false,
            }) => {
                let prefix = literal_text(pattern).map(prefix_of_pattern);
                starts_with(&interval(expr), prefix).negate_if(*negated)
            }
            Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "starts_with" => {
                match args.as_slice() {
                    [value, prefix] => starts_with(&interval(value), literal_text(prefix)),
                    _ => Truth::ANY,
                }
            }
            Expr::Case(case) => self.case(case, depth + 1),
            other => interval(other).truth(),
        }
    }

    /// The possible truth values of a CASE: those of every branch that may be reached.
    fn case(&self, case: &Case, depth: usize) -> Truth {
        let mut found = Truth::NONE;
        for (when, then) in &case.when_then_expr {
            let taken = match &case.expr {
                None => self.truth(when, depth),
                Some(value) => self.interval(value, depth).equals(&self.interval(when, depth)),
            };
            if taken.is_true {
                found = found.either(self.truth(then, depth));
            }
            if !taken.is_false && !taken.is_null {
                return found;
            }
        }
        let otherwise = case.else_expr.as_ref();
        found.either(otherwise.map_or(Truth::NULL, |otherwise| self.truth(otherwise, depth)))
    }

    /// The bounds of a value.
    fn interval(&self, expr: &Expr, depth: usize) -> Interval {
        if depth > DEPTH_LIMIT {
            return Interval::unknown();
        }
        match expr {
            Expr::Alias(alias) => self.interval(&alias.expr, depth + 1),
            // SQL and Arrow order NaN differently.
            Expr::Literal(value, _) if self.is_foreign && is_nan(value) => Interval {
                has_nulls: false,
                ..Interval::unknown()
            },
            Expr::Literal(value, _) => Interval::point(value),
            Expr::Cast(cast) => self.interval(&cast.expr, depth + 1).cast(cast.field.data_type(), false),
            Expr::TryCast(cast) => self.interval(&cast.expr, depth + 1).cast(cast.field.data_type(), true),
            Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == EXACT_TIME => match args.as_slice() {
                [time] => self.interval(time, depth + 1).mapped(exact_value),
                _ => Interval::unknown(),
            },
            _ => {
                let known = path_of(expr).and_then(|path| self.known.get(path.as_slice()).cloned());
                known.unwrap_or_else(Interval::unknown)
            }
        }
    }
}

fn is_null_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => is_null_literal(&cast.expr),
        _ => false,
    }
}

/// The path of a column or of a field inside structs.
pub(crate) fn path_of(expr: &Expr) -> Option<Vec<String>> {
    match expr {
        Expr::Column(column) => Some(vec![column.name().to_owned()]),
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "get_field" => {
            let (parent, names) = args.split_first()?;
            let mut path = path_of(parent)?;
            for name in names {
                path.push(literal_text(name)?.to_owned());
            }
            Some(path)
        }
        _ => None,
    }
}

fn literal_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

/// The literal prefix of a LIKE pattern: everything before the first wildcard or escape.
fn prefix_of_pattern(pattern: &str) -> &str {
    let end = pattern.find(['%', '_', '\\']).unwrap_or(pattern.len());
    pattern.get(..end).unwrap_or_default()
}

/// Whether texts may start with a prefix. It may always be false as well, since LIKE requires more than the prefix.
fn starts_with(value: &Interval, prefix: Option<&str>) -> Truth {
    let Some(prefix) = prefix else { return Truth::ANY };
    let bound = |bound: &Option<ScalarValue>| bound.as_ref().and_then(|b| b.try_as_str().flatten().map(str::to_owned));
    // Every text with the prefix is at least the prefix, and less than every greater text that does not start with it.
    let below = bound(&value.high).is_some_and(|high| high.as_str().cmp(prefix) == Ordering::Less);
    let above = bound(&value.low).is_some_and(|low| low.as_str() > prefix && !low.starts_with(prefix));
    Truth {
        is_true: value.has_values && !below && !above,
        is_false: value.has_values,
        is_null: value.has_nulls,
    }
}
