//! Maps Arrow's string functions, whose patterns are options.

use datafusion_expr::expr::Like;
use datafusion_expr::{binary_expr, Expr, Operator};

use super::functions::{sql, Call};
use crate::error::{ExprError, Result};

/// The expression that a call means, if it is one of these functions.
pub(super) fn call(call: &Call<'_>) -> Result<Option<Expr>> {
    let function = call.name;
    let one = || match call.arguments.as_slice() {
        [text] => Ok(text.clone()),
        other => Err(ExprError::invalid(format!(
            "expected 1 argument of Arrow function {function}, found {}",
            other.len()
        ))),
    };
    let options = &call.options;
    let option = |name: &str| options.text(name).map(literal);
    Ok(Some(match function {
        "starts_with" | "ends_with" | "match_substring" => {
            let name = if function == "match_substring" {
                "contains"
            } else {
                function
            };
            let (text, pattern) = (one()?, option("pattern")?);
            match options.flag("ignore_case") {
                true => sql(name, vec![sql("lower", vec![text])?, sql("lower", vec![pattern])?])?,
                false => sql(name, vec![text, pattern])?,
            }
        }
        "match_substring_regex" => {
            let operator = match options.flag("ignore_case") {
                true => Operator::RegexIMatch,
                false => Operator::RegexMatch,
            };
            binary_expr(one()?, operator, option("pattern")?)
        }
        "match_like" => {
            let (text, pattern) = (Box::new(one()?), Box::new(option("pattern")?));
            Expr::Like(Like::new(false, text, pattern, None, options.flag("ignore_case")))
        }
        "find_substring" if !options.flag("ignore_case") => {
            sql("strpos", vec![one()?, option("pattern")?])? - Expr::Literal(1_i64.into(), None)
        }
        "replace_substring" if options.number("max_replacements").is_none_or(|most| most < 0) => {
            sql("replace", vec![one()?, option("pattern")?, option("replacement")?])?
        }
        "utf8_slice_codeunits" => slice(call, one()?)?,
        "utf8_lower" | "ascii_lower" => sql("lower", vec![one()?])?,
        "utf8_upper" | "ascii_upper" => sql("upper", vec![one()?])?,
        "utf8_reverse" | "ascii_reverse" => sql("reverse", vec![one()?])?,
        "utf8_length" => sql("character_length", vec![one()?])?,
        "binary_length" => sql("octet_length", vec![one()?])?,
        "utf8_trim_whitespace" | "ascii_trim_whitespace" => sql("btrim", vec![one()?])?,
        "utf8_ltrim_whitespace" | "ascii_ltrim_whitespace" => sql("ltrim", vec![one()?])?,
        "utf8_rtrim_whitespace" | "ascii_rtrim_whitespace" => sql("rtrim", vec![one()?])?,
        "utf8_trim" | "ascii_trim" => sql("btrim", vec![one()?, option("characters")?])?,
        "utf8_ltrim" | "ascii_ltrim" => sql("ltrim", vec![one()?, option("characters")?])?,
        "utf8_rtrim" | "ascii_rtrim" => sql("rtrim", vec![one()?, option("characters")?])?,
        _ => return Ok(None),
    }))
}

fn literal(text: String) -> Expr {
    Expr::Literal(text.into(), None)
}

/// `utf8_slice_codeunits`: from one code point to another, both counted from the start.
fn slice(call: &Call<'_>, text: Expr) -> Result<Expr> {
    let start = call.options.number("start").unwrap_or_default();
    let stop = call.options.number("stop").unwrap_or(i64::MAX);
    let number = |value: i64| Expr::Literal(value.into(), None);
    if start < 0 || stop < 0 || call.options.number("step").unwrap_or(1) != 1 {
        return Err(ExprError::unsupported(
            "expected Arrow function utf8_slice_codeunits from the start and in steps of 1, found another slice",
        ));
    }
    let mut arguments = vec![text, number(start.saturating_add(1))];
    if stop < i64::MAX {
        arguments.push(number(stop.saturating_sub(start).max(0)));
    }
    sql("substr", arguments)
}
