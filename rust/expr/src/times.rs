//! Comparisons of dates, timestamps and durations: in the unit of one side if that is lossless, else as exact numbers.
//!
//! DataFusion would take the finer unit for both, or nanoseconds for a date, and fail for values beyond its range.

use arrow_schema::DataType;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::expr::Cast;
use datafusion_expr::{Expr, ExprSchemable};

use crate::functions::exact_time;

/// Whether values of the type are points in time or durations, and of which kind: with or without a zone.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Local,
    Zoned,
    Duration,
}

fn kind(data_type: &DataType) -> Option<Kind> {
    match data_type {
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None) => Some(Kind::Local),
        DataType::Timestamp(_, Some(_)) => Some(Kind::Zoned),
        DataType::Duration(_) => Some(Kind::Duration),
        _ => None,
    }
}

/// Whether the type is a date, a timestamp or a duration.
pub(crate) fn is_time(data_type: &DataType) -> bool {
    kind(data_type).is_some()
}

/// Brings the sides of a comparison to one type, if all of them are times of one kind.
pub(crate) fn fit_times(sides: &mut [Expr], schema: &DFSchema) {
    let types: Vec<Option<DataType>> = sides.iter().map(|side| side.get_type(schema).ok()).collect();
    let is_null = |side: &Expr| matches!(side, Expr::Literal(value, _) if value.is_null());
    let is_literal = |side: &Expr| matches!(side, Expr::Literal(..));
    // The first side that is no literal sets the type; if all are literals, the first does.
    let wanted = sides.iter().zip(&types).find(|(side, _)| !is_literal(side));
    let Some(wanted) = wanted
        .or(sides.iter().zip(&types).next())
        .and_then(|(_, found)| found.clone())
    else {
        return;
    };
    let Some(wanted_kind) = kind(&wanted) else { return };
    let times = sides.iter().zip(&types).all(|(side, found)| {
        let found = found.as_ref().and_then(kind);
        // A literal without a zone is in the column's zone.
        is_null(side)
            || found == Some(wanted_kind)
            || (is_literal(side) && (found, wanted_kind) == (Some(Kind::Local), Kind::Zoned))
    });
    if !times {
        return;
    }
    let mut fits = true;
    for (side, found) in sides.iter_mut().zip(&types) {
        if is_null(side) || found.as_ref() == Some(&wanted) {
            continue;
        }
        let fitted = match &*side {
            Expr::Literal(value, metadata) => {
                lossless(value, &wanted).map(|value| Expr::Literal(value, metadata.clone()))
            }
            _ => None,
        };
        match fitted {
            Some(fitted) => *side = fitted,
            None => fits = false,
        }
    }
    if fits {
        return;
    }
    for side in sides {
        let taken = zoned(std::mem::take(side), &wanted);
        *side = exact_time(taken);
    }
}

/// A literal without a zone in the zone of the column that it is compared with.
fn zoned(side: Expr, wanted: &DataType) -> Expr {
    let (Expr::Literal(value, metadata), DataType::Timestamp(_, Some(zone))) = (&side, wanted) else {
        return side;
    };
    let unit = match value.data_type() {
        DataType::Timestamp(unit, None) => unit,
        DataType::Date32 | DataType::Date64 => arrow_schema::TimeUnit::Second,
        _ => return side,
    };
    let there = value.cast_to(&DataType::Timestamp(unit, Some(zone.clone()))).ok();
    there.map_or(side.clone(), |value| Expr::Literal(value, metadata.clone()))
}

/// The value in another type, if the conversion is lossless.
pub(crate) fn lossless(value: &ScalarValue, wanted: &DataType) -> Option<ScalarValue> {
    let cast = value.cast_to(wanted).ok().filter(|cast| !cast.is_null())?;
    let back = cast.cast_to(&value.data_type()).ok()?;
    (back == *value).then_some(cast)
}

/// A cast of a literal, folded to a literal.
pub(crate) fn folded(cast: &Cast) -> Option<Expr> {
    match cast.expr.as_ref() {
        Expr::Literal(value, None) if !value.is_null() => {
            let value = value.cast_to(cast.field.data_type()).ok();
            value
                .filter(|value| !value.is_null())
                .map(|value| Expr::Literal(value, None))
        }
        _ => None,
    }
}
