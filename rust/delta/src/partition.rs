//! Parses partition values, which are texts in the log, to typed values.
//!
//! Spec: "Partition Value Serialization". Forms of other writers beyond the protocol are parsed, too: infinities and NaN of Spark, Java and
//! Rust, decimals with an exponent, timestamps with or without zone, seconds and fractions.

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, Decimal128Builder, StringBuilder};
use arrow_array::timezone::Tz;
use arrow_array::types::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Int8Type};
use arrow_array::{new_null_array, ArrayRef, Date32Array, PrimitiveArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, TimeUnit};
use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeDelta, TimeZone};
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{DeltaError, Result};

/// Parses a zone's name: `Europe/Berlin`, `UTC`, `+02:00`.
pub(crate) fn zone_of(name: &str) -> Result<Tz> {
    name.parse().map_err(|_| {
        DeltaError::invalid(format!(
            "expected a time zone such as Europe/Berlin or +02:00, found '{name}'"
        ))
    })
}

/// The values as an array of the column's type. `None` is null. A timestamp without a zone is in `local`, or in UTC.
pub(crate) fn typed(
    values: &[Option<&str>],
    data_type: &DataType,
    column: &str,
    local: Option<Tz>,
) -> Result<ArrayRef> {
    let bad = |text: &str| {
        DeltaError::invalid(format!(
            "partition column {column}: expected a value of type {data_type}, found '{text}'"
        ))
    };
    macro_rules! parsed {
        ($parse:expr) => {
            values
                .iter()
                .map(|value| {
                    value
                        .map(|text| $parse(text).ok_or_else(|| bad(text)))
                        .transpose()
                })
                .collect::<Result<Vec<_>>>()?
        };
    }
    macro_rules! integers {
        ($kind:ty) => {
            Arc::new(PrimitiveArray::<$kind>::from(parsed!(|text: &str| text
                .trim()
                .parse()
                .ok())))
        };
    }
    Ok(match data_type {
        DataType::Utf8 => {
            let mut builder = StringBuilder::new();
            values.iter().for_each(|value| builder.append_option(*value));
            Arc::new(builder.finish())
        }
        DataType::Binary => {
            let mut builder = BinaryBuilder::new();
            values.iter().for_each(|value| builder.append_option(value.map(binary)));
            Arc::new(builder.finish())
        }
        DataType::Boolean => {
            let mut builder = BooleanBuilder::new();
            parsed!(boolean)
                .into_iter()
                .for_each(|value| builder.append_option(value));
            Arc::new(builder.finish())
        }
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::Float32 => Arc::new(PrimitiveArray::<Float32Type>::from(parsed!(float::<f32>))),
        DataType::Float64 => Arc::new(PrimitiveArray::<Float64Type>::from(parsed!(float::<f64>))),
        DataType::Date32 => Arc::new(Date32Array::from(parsed!(date))),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let array = TimestampMicrosecondArray::from(parsed!(|text| timestamp_in(text, zone.is_none(), local)));
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        DataType::Decimal128(precision, scale) => {
            let mut builder = Decimal128Builder::new();
            let parse = |text: &str| decimal(text, *precision, *scale);
            parsed!(parse)
                .into_iter()
                .for_each(|value| builder.append_option(value));
            let array = builder.finish().with_precision_and_scale(*precision, *scale);
            Arc::new(array.map_err(|error| DeltaError::invalid(error.to_string()))?)
        }
        DataType::Null => new_null_array(&DataType::Null, values.len()),
        other => {
            return Err(DeltaError::unsupported(format!(
                "partition column {column}: values of type {other} are not known to the protocol"
            )))
        }
    })
}

fn boolean(text: &str) -> Option<bool> {
    match text.trim() {
        t if t.eq_ignore_ascii_case("true") => Some(true),
        t if t.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Rust parses `NaN`, `inf` and `Infinity`, with signs, in any case.
fn float<T: FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

/// The bytes of a text with `\u00FF` escapes, which some writers leave in it.
fn binary(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let escaped = rest.strip_prefix("\\u").and_then(|behind| {
            let code = u32::from_str_radix(behind.get(..4)?, 16).ok()?;
            Some((u8::try_from(code).ok()?, behind.get(4..)?))
        });
        if let Some((byte, behind)) = escaped {
            bytes.push(byte);
            rest = behind;
            continue;
        }
        let Some(first) = rest.chars().next() else { break };
        // Writers encode each byte as the character U+0000 to U+00FF of the same number.
        match u8::try_from(u32::from(first)) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend_from_slice(first.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    bytes
}

/// Days since the epoch. Years may have more than four digits, and a sign.
pub(crate) fn date(text: &str) -> Option<i32> {
    let text = text.trim();
    // Some writers write a date as the timestamp of its start.
    let text = text.split([' ', 'T']).next().unwrap_or_default();
    let date = year_month_day(text)?;
    let epoch = NaiveDate::from_ymd_opt(1970, 1, 1)?;
    i32::try_from(date.signed_duration_since(epoch).num_days()).ok()
}

fn year_month_day(text: &str) -> Option<NaiveDate> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut words = digits.split('-');
    let (year, month, day) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !(1..=6).contains(&year.len()) || month.len() > 2 || day.len() > 2 {
        return None;
    }
    let year: i32 = year.parse().ok()?;
    NaiveDate::from_ymd_opt(
        if negative { -year } else { year },
        month.parse().ok()?,
        day.parse().ok()?,
    )
}

/// Microseconds since the epoch. Without a zone, the wall clock is in UTC; with `wall_clock`, a zone is ignored.
pub(crate) fn timestamp(text: &str, wall_clock: bool) -> Option<i64> {
    timestamp_in(text, wall_clock, None)
}

fn timestamp_in(text: &str, wall_clock: bool, local: Option<Tz>) -> Option<i64> {
    let text = text.trim();
    if !wall_clock {
        if let Ok(time) = DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1)) {
            return Some(time.timestamp_micros());
        }
    }
    let (day, clock) = match text.split_once(['T', ' ']) {
        Some((day, clock)) => (day, clock.trim()),
        None => (text, "00:00:00"),
    };
    let (clock, named) = zone(clock)?;
    let time = clock_of(clock)?;
    let naive = year_month_day(day)?.and_hms_opt(0, 0, 0)?.checked_add_signed(time)?;
    let shift = match (wall_clock, named, local) {
        (false, Some(shift), _) => shift,
        (false, None, Some(zone)) => return Some(instant(naive, zone)?.timestamp_micros()),
        _ => TimeDelta::zero(),
    };
    Some(naive.checked_sub_signed(shift)?.and_utc().timestamp_micros())
}

/// The instant of a wall clock: the earlier one if it is ambiguous (clocks put back), an hour later if it does not exist (put forward).
fn instant(naive: NaiveDateTime, zone: Tz) -> Option<DateTime<Tz>> {
    let found = zone.from_local_datetime(&naive).earliest();
    found.or_else(|| {
        zone.from_local_datetime(&naive.checked_add_signed(TimeDelta::hours(1))?)
            .earliest()
    })
}

/// Splits a clock from its zone, given as the offset from UTC, if there is one.
fn zone(clock: &str) -> Option<(&str, Option<TimeDelta>)> {
    if let Some(clock) = clock.strip_suffix(['Z', 'z']) {
        return Some((clock, Some(TimeDelta::zero())));
    }
    let Some(at) = clock.find(['+', '-']) else {
        return Some((clock, None));
    };
    let (clock, zone) = clock.split_at_checked(at)?;
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = digits.get(2..4).map_or(Some(0), |m| m.parse().ok())?;
    Some((
        clock.trim_end(),
        Some(TimeDelta::try_minutes(sign * (hours * 60 + minutes))?),
    ))
}

fn clock_of(clock: &str) -> Option<TimeDelta> {
    let mut words = clock.split(':');
    let hours: i64 = words.next()?.parse().ok()?;
    let minutes: i64 = words.next()?.parse().ok()?;
    let seconds = words.next().unwrap_or("0");
    if words.next().is_some() || !(0..24).contains(&hours) || !(0..60).contains(&minutes) {
        return None;
    }
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let seconds: i64 = seconds.parse().ok()?;
    if !(0..60).contains(&seconds) || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    TimeDelta::try_seconds(hours * 3600 + minutes * 60 + seconds)?.checked_add(&TimeDelta::microseconds(micros))
}

/// Parses a decimal of a scale exactly. What one writer writes of negative ones is accepted: `-1.-50` for -1.50, `-1.-5` for -1.05, and
/// `0.0-1` for -0.001, where what follows the point is the remainder, of as many digits as the scale.
pub(crate) fn decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    // Digits beyond the scale must be zeros.
    decimal_cut(text, precision, scale).and_then(|(value, is_cut)| (!is_cut).then_some(value))
}

/// The same, truncated to the scale, and whether nonzero digits were cut.
pub(crate) fn decimal_cut(text: &str, precision: u8, scale: i8) -> Option<(i128, bool)> {
    let text = text.trim();
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let remainder = match fraction.split_once('-') {
        Some((zeros, digits)) if exponent == 0 && zeros.bytes().all(|digit| digit == b'0') => {
            let width = usize::try_from(scale)
                .ok()
                .filter(|width| (1..=*width).contains(&digits.len()))?;
            Some(format!("{digits:0>width$}"))
        }
        _ => None,
    };
    let negative = whole.starts_with('-') || remainder.is_some();
    let whole = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let fraction = remainder.as_deref().unwrap_or(fraction);
    let digits: String = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 200 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let mut is_cut = false;
    let shift = i32::from(scale) + exponent - i32::try_from(fraction.len()).ok()?;
    let digits = digits.trim_start_matches('0');
    let value: i128 = if shift >= 0 {
        let power = 10i128.checked_pow(u32::try_from(shift).ok()?);
        match digits {
            "" => 0,
            _ => digits.parse::<i128>().ok()?.checked_mul(power?)?,
        }
    } else {
        let cut = usize::try_from(-shift).ok()?;
        let keep = digits.len().saturating_sub(cut);
        let (kept, lost) = digits.split_at_checked(keep)?;
        is_cut = !lost.bytes().all(|digit| digit == b'0');
        if kept.is_empty() {
            0
        } else {
            kept.parse().ok()?
        }
    };
    let limit = 10i128.checked_pow(u32::from(precision))?;
    (value < limit).then_some((if negative { -value } else { value }, is_cut))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn test_decimals_are_exact_in_every_spelling() {
        for (text, value) in [
            ("-1.50", Some(-150)),
            ("-1.-50", Some(-150)),
            ("-1.-5", Some(-105)),
            ("0.-5", Some(-5)),
            ("0.-50", Some(-50)),
            ("0.0-5", Some(-5)),
            ("-1.-500", None),
            ("-1.-", None),
            ("1.5-0", None),
            ("-1.-5e1", None),
            ("1E+2", Some(10000)),
            ("15e-1", Some(150)),
            ("0.123", None),
            ("0.120", Some(12)),
            ("1e9", None),
            ("", None),
            ("x", None),
            ("00000000000000000000000000000000000000000000000001", Some(100)),
        ] {
            assert_eq!(decimal(text, 9, 2), value, "{text}");
        }
        assert_eq!(
            decimal("99999999999999999999999999999999999999", 38, 0),
            Some(10i128.pow(38) - 1)
        );
        assert_eq!(decimal("1e100000", 38, 0), None);
        assert_eq!(decimal("0.0-1", 9, 3), Some(-1));
        assert_eq!(decimal("-7.0-12", 9, 4), Some(-70012));
        assert_eq!(decimal("-1.-50", 9, 3), Some(-1050));
    }

    #[test]
    fn test_timestamps_are_read_with_and_without_zone() {
        for text in [
            "1970-01-01 00:00:01",
            "1970-01-01T00:00:01Z",
            "1970-01-01 00:00:01.000000",
            "1970-01-01T01:00:01+01:00",
            "1970-01-01 00:00:01.0Z",
        ] {
            assert_eq!(timestamp(text, false), Some(1_000_000), "{text}");
        }
        assert_eq!(timestamp("1970-01-01", false), Some(0));
        assert_eq!(timestamp("1970-01-01T01:00:01+01:00", true), Some(3_601_000_000));
        assert_eq!(timestamp("1969-12-31 23:59:59.5", false), Some(-500_000));
        assert_eq!(timestamp("1970-01-01 25:00:00", false), None);
    }

    #[test]
    fn test_a_zone_can_be_given_for_timestamps_without_one() {
        let zone = Some(zone_of("America/Los_Angeles").unwrap());
        assert_eq!(
            timestamp_in("1970-01-01 00:00:00", false, zone),
            Some(8 * 3_600_000_000)
        );
        assert_eq!(timestamp_in("1970-01-01 00:00:00Z", false, zone), Some(0));
        assert_eq!(timestamp_in("1970-01-01 00:00:00", true, zone), Some(0));
        assert!(timestamp_in("2024-03-10 02:30:00", false, zone).is_some());
        assert!(zone_of("Nowhere/None").is_err());
    }

    #[test]
    fn test_dates_may_lie_far_away() {
        assert_eq!(date("1970-01-02"), Some(1));
        assert_eq!(date("12024-01-01"), Some(3_672_148));
        assert_eq!(date("-0001-01-01"), Some(-719_893));
        assert_eq!(date("1970-13-01"), None);
    }

    #[test]
    fn test_floats_are_read_as_every_writer_spells_them() {
        for text in ["-Infinity", "-inf", "-INF"] {
            assert_eq!(float::<f64>(text), Some(f64::NEG_INFINITY), "{text}");
        }
        assert!(float::<f32>("NaN").unwrap().is_nan());
        assert_eq!(boolean("TRUE"), Some(true));
        assert_eq!(binary("a\\u00FF\u{1}"), [97, 255, 1]);
    }

    proptest! {
        #[test]
        fn test_any_text_is_a_value_or_none(text in "\\PC{0,30}") {
            let _ = (date(&text), timestamp(&text, true), timestamp(&text, false), decimal(&text, 38, 10), binary(&text));
        }

        #[test]
        fn test_decimals_round_trip(value in -10i64.pow(15)..10i64.pow(15), scale in 0u32..10) {
            let power = 10i64.pow(scale);
            let (whole, fraction) = (value.abs() / power, value.abs() % power);
            let sign = if value < 0 { "-" } else { "" };
            let text = if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction:0width$}", width = scale as usize) };
            prop_assert_eq!(decimal(&text, 38, scale as i8), Some(i128::from(value)));
        }
    }
}
