//! Intervals that are compared with durations: lengths of time.
//!
//! DataFusion would make intervals of both, and compare days before nanoseconds: 100 days, which a duration has as nanoseconds, would be less
//! than one.

use arrow_schema::{DataType, TimeUnit};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::{Expr, ExprSchemable};

use crate::display;
use crate::error::{ExprError, Result};

const NANOSECONDS_PER_DAY: i128 = 86_400 * 1_000_000_000;

/// Makes durations of the intervals among the sides of a comparison, if one of the sides is a duration.
pub(crate) fn fit_lengths(sides: &mut [&mut Expr], schema: &DFSchema) -> Result<()> {
    let types: Vec<Option<DataType>> = sides.iter().map(|side| side.get_type(schema).ok()).collect();
    let is = |wanted: fn(&DataType) -> bool| types.iter().flatten().any(wanted);
    let is_interval = |found: &DataType| matches!(found, DataType::Interval(_));
    if !is(|found| matches!(found, DataType::Duration(_))) || !is(is_interval) {
        return Ok(());
    }
    for (side, found) in sides.iter_mut().zip(&types) {
        if !found.as_ref().is_some_and(is_interval) {
            continue;
        }
        let length = constant(side).and_then(|value| duration(&value));
        let Some(length) = length else {
            return Err(ExprError::invalid(format!(
                "expected an interval of days or less to compare with a duration, such as interval '36 hours', found {}; \
                 months have no fixed length",
                display::sql(side)
            )));
        };
        **side = Expr::Literal(length, None);
    }
    Ok(())
}

/// The value of a literal, or of a negated one.
fn constant(side: &Expr) -> Option<ScalarValue> {
    match side {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Negative(inner) => constant(inner)?.arithmetic_negate().ok(),
        _ => None,
    }
}

/// An interval without months as a duration, in the coarsest unit that holds it; null stays null.
fn duration(value: &ScalarValue) -> Option<ScalarValue> {
    let parts = match value {
        ScalarValue::IntervalMonthDayNano(parts) => {
            parts.map(|parts| (parts.months, parts.days, i128::from(parts.nanoseconds)))
        }
        ScalarValue::IntervalDayTime(parts) => {
            parts.map(|parts| (0, parts.days, i128::from(parts.milliseconds) * 1_000_000))
        }
        ScalarValue::IntervalYearMonth(months) => months.map(|months| (months, 0, 0)),
        _ => return None,
    };
    let Some((months, days, rest)) = parts else {
        return Some(ScalarValue::DurationNanosecond(None));
    };
    let nanoseconds = i128::from(days) * NANOSECONDS_PER_DAY + rest;
    if months != 0 {
        return None;
    }
    let units = [
        (1_000_000_000, TimeUnit::Second),
        (1_000_000, TimeUnit::Millisecond),
        (1_000, TimeUnit::Microsecond),
        (1, TimeUnit::Nanosecond),
    ];
    let (size, unit) = units.into_iter().find(|(size, _)| nanoseconds % size == 0)?;
    let length = Some(i64::try_from(nanoseconds / size).ok()?);
    Some(match unit {
        TimeUnit::Second => ScalarValue::DurationSecond(length),
        TimeUnit::Millisecond => ScalarValue::DurationMillisecond(length),
        TimeUnit::Microsecond => ScalarValue::DurationMicrosecond(length),
        TimeUnit::Nanosecond => ScalarValue::DurationNanosecond(length),
    })
}
