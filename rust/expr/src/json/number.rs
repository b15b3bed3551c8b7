//! Numbers of JSON: their bytes and their text.

use super::JsonResult;

/// A number, in the narrowest form that holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Uint(u64),
    Float(f64),
}

impl Number {
    /// The number of a text; integers beyond 64 bits become floats.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // Without digits after it, the point says nothing.
        let text = text
            .strip_suffix('.')
            .filter(|text| text.ends_with(|last: char| last.is_ascii_digit()) && !text.contains('.'))
            .unwrap_or(text);
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        if digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty() {
            if let Ok(number) = text.parse::<u64>() {
                return Some(Number::Uint(number));
            }
            if let Ok(number) = text.parse::<i64>() {
                return Some(match u64::try_from(number) {
                    Ok(number) => Number::Uint(number),
                    Err(_) => Number::Int(number),
                });
            }
        }
        text.parse().ok().map(Number::Float)
    }

    /// The hexadecimal number at the start of a text, and the length of that.
    pub(crate) fn parse_hexadecimal(text: &str) -> Option<(usize, Self)> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let digits = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"))?;
        let count = |text: &str| text.bytes().take_while(u8::is_ascii_hexdigit).count();
        let whole = digits.get(..count(digits)).filter(|whole| !whole.is_empty())?;
        let fraction = digits.get(whole.len()..)?.strip_prefix('.');
        let fraction = fraction
            .and_then(|rest| rest.get(..count(rest)))
            .filter(|part| !part.is_empty());
        let length = text.len() - digits.len() + whole.len() + fraction.map_or(0, |part| part.len() + 1);
        let is_negative = text.starts_with('-');
        let signed = if is_negative {
            format!("-{whole}")
        } else {
            whole.to_owned()
        };
        let number = match (
            fraction,
            u64::from_str_radix(whole, 16),
            i64::from_str_radix(&signed, 16),
        ) {
            (None, Ok(number), _) if !is_negative || number == 0 => Number::Uint(number),
            (None, _, Ok(number)) => Number::Int(number),
            _ => {
                let value = |text: &str| {
                    text.chars()
                        .filter_map(|digit| digit.to_digit(16))
                        .fold(0.0, |sum, digit| sum * 16.0 + f64::from(digit))
                };
                let part = fraction.unwrap_or_default();
                let below = i32::try_from(part.len()).map_or(0.0, |places| value(part) / 16_f64.powi(places));
                let size = value(whole) + below;
                Number::Float(if is_negative { -size } else { size })
            }
        };
        Some((length, number))
    }

    /// Appends the bytes.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            Number::Int(0) | Number::Uint(0) => out.push(0x00),
            Number::Int(number) => {
                out.push(0x40);
                if let Ok(small) = i8::try_from(number) {
                    out.extend(small.to_be_bytes());
                } else if let Ok(small) = i16::try_from(number) {
                    out.extend(small.to_be_bytes());
                } else if let Ok(small) = i32::try_from(number) {
                    out.extend(small.to_be_bytes());
                } else {
                    out.extend(number.to_be_bytes());
                }
            }
            Number::Uint(number) => {
                out.push(0x50);
                if let Ok(small) = u8::try_from(number) {
                    out.push(small);
                } else if let Ok(small) = u16::try_from(number) {
                    out.extend(small.to_be_bytes());
                } else if let Ok(small) = u32::try_from(number) {
                    out.extend(small.to_be_bytes());
                } else {
                    out.extend(number.to_be_bytes());
                }
            }
            Number::Float(number) if number.is_nan() => out.push(0x10),
            Number::Float(f64::INFINITY) => out.push(0x20),
            Number::Float(f64::NEG_INFINITY) => out.push(0x30),
            Number::Float(number) => {
                out.push(0x60);
                out.extend(number.to_be_bytes());
            }
        }
    }

    /// Reads the bytes.
    pub(crate) fn read(bytes: &[u8]) -> JsonResult<Self> {
        let damaged = || {
            format!(
                "expected a number of JSONB, found {} bytes of another form",
                bytes.len()
            )
        };
        Ok(match bytes {
            [0x00] => Number::Uint(0),
            [0x10] => Number::Float(f64::NAN),
            [0x20] => Number::Float(f64::INFINITY),
            [0x30] => Number::Float(f64::NEG_INFINITY),
            [0x40, a] => Number::Int(i64::from(i8::from_be_bytes([*a]))),
            [0x40, a, b] => Number::Int(i64::from(i16::from_be_bytes([*a, *b]))),
            [0x40, a, b, c, d] => Number::Int(i64::from(i32::from_be_bytes([*a, *b, *c, *d]))),
            [0x40, rest @ ..] => Number::Int(i64::from_be_bytes(rest.try_into().map_err(|_| damaged())?)),
            [0x50, a] => Number::Uint(u64::from(*a)),
            [0x50, a, b] => Number::Uint(u64::from(u16::from_be_bytes([*a, *b]))),
            [0x50, a, b, c, d] => Number::Uint(u64::from(u32::from_be_bytes([*a, *b, *c, *d]))),
            [0x50, rest @ ..] => Number::Uint(u64::from_be_bytes(rest.try_into().map_err(|_| damaged())?)),
            [0x60, rest @ ..] => Number::Float(f64::from_be_bytes(rest.try_into().map_err(|_| damaged())?)),
            [kind, ..] => {
                return Err(format!(
                    "found a number of kind {kind:#04x} in JSONB; a newer esker may read it"
                ));
            }
            [] => return Err(damaged()),
        })
    }

    /// The value as a float.
    #[allow(clippy::cast_precision_loss)] // What a float of a large integer is.
    pub(crate) fn as_float(self) -> f64 {
        match self {
            Number::Int(number) => number as f64,
            Number::Uint(number) => number as f64,
            Number::Float(number) => number,
        }
    }

    /// The value as an integer, rounded; `None` beyond 64 bits.
    pub(crate) fn as_int(self) -> Option<i64> {
        match self {
            Number::Int(number) => Some(number),
            Number::Uint(number) => i64::try_from(number).ok(),
            Number::Float(number) => rounded(number),
        }
    }

    /// Appends the text: null for what JSON has no number for.
    pub(crate) fn print(self, out: &mut String) {
        match self {
            Number::Int(number) => out.push_str(&number.to_string()),
            Number::Uint(number) => out.push_str(&number.to_string()),
            Number::Float(number) if !number.is_finite() => out.push_str("null"),
            Number::Float(number) => print_float(number, out),
        }
    }
}

/// The integer nearest to a float, if there is one.
pub(crate) fn rounded(number: f64) -> Option<i64> {
    let whole = number.round();
    // Exact: both bounds are powers of two.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole) {
        #[allow(clippy::cast_possible_truncation)] // Checked just now.
        return Some(whole as i64);
    }
    None
}

/// The fewest digits that mean this float: plain from 1e-5 up to 1e16, with an exponent beyond.
fn print_float(number: f64, out: &mut String) {
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-5..16).contains(&exponent) {
        let plain = number.to_string();
        out.push_str(&plain);
        if !plain.contains('.') {
            out.push_str(".0");
        }
        return;
    }
    out.push_str(mantissa);
    out.push('e');
    if exponent > 0 {
        out.push('+');
    }
    out.push_str(&exponent.to_string());
}
