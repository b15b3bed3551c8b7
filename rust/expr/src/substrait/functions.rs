//! Maps Substrait functions to operators and SQL functions.
//!
//! Names are those of Substrait's standard extensions and, where these lack one, of Arrow's compute functions. A function is identified by
//! its name alone: the extension file that declares it adds only the argument types, which are checked when the expression is typed.

use datafusion_expr::{binary_expr, Between, Expr, Operator};

use super::messages::FunctionOption;
use crate::context::scalar_function;
use crate::error::{ExprError, Result};

/// A call: the function and its arguments.
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Vec<Expr>,
    pub(super) enums: Vec<String>,
    pub(super) options: &'a [FunctionOption],
}

impl Call<'_> {
    fn has_option(&self, name: &str, value: &str) -> bool {
        self.options
            .iter()
            .any(|option| option.name == name && option.preference.first().is_some_and(|first| first == value))
    }

    fn taking<const N: usize>(self) -> Result<[Expr; N]> {
        let found = self.arguments.len();
        self.arguments.try_into().map_err(|_| {
            ExprError::invalid(format!(
                "expected {N} arguments of Substrait function {}, found {found}",
                self.name
            ))
        })
    }
}

/// The expression that a call means.
pub(super) fn call(call: Call<'_>) -> Result<Expr> {
    if let Some(operator) = operator(call.name) {
        return chain(operator, call);
    }
    if let "starts_with" | "ends_with" | "contains" = call.name {
        return substring_test(call);
    }
    match call.name {
        "not" | "invert" => call.taking().map(|[value]| Expr::Not(Box::new(value))),
        "is_null" => call.taking().map(|[value]| value.is_null()),
        "is_not_null" | "is_valid" => call.taking().map(|[value]| value.is_not_null()),
        "negate" | "negate_checked" => call.taking().map(|[value]| Expr::Negative(Box::new(value))),
        "and_not" | "and_not_kleene" => call.taking().map(|[left, right]| left.and(Expr::Not(Box::new(right)))),
        "between" => call.taking().map(|[value, low, high]| {
            Expr::Between(Between::new(Box::new(value), false, Box::new(low), Box::new(high)))
        }),
        "is_finite" | "is_infinite" | "is_inf" => finiteness(call),
        "like" => call.taking().map(|[value, pattern]| value.like(pattern)),
        "extract" => extract(call),
        "year" | "month" | "day" | "hour" | "minute" | "second" | "quarter" => {
            let part = call.name.to_owned();
            call.taking()
                .and_then(|[value]| sql("date_part", vec![text(&part), value]))
        }
        name => {
            let name = sql_name(name);
            sql(name, call.arguments)
        }
    }
}

/// The operator of a function, if it is one.
pub(super) fn operator(name: &str) -> Option<Operator> {
    Some(match name {
        "equal" => Operator::Eq,
        "not_equal" => Operator::NotEq,
        "lt" | "less" => Operator::Lt,
        "lte" | "less_equal" => Operator::LtEq,
        "gt" | "greater" => Operator::Gt,
        "gte" | "greater_equal" => Operator::GtEq,
        "is_distinct_from" => Operator::IsDistinctFrom,
        "is_not_distinct_from" => Operator::IsNotDistinctFrom,
        "and" | "and_kleene" => Operator::And,
        "or" | "or_kleene" => Operator::Or,
        // Two booleans differ: exclusive or.
        "xor" => Operator::NotEq,
        "add" | "add_checked" => Operator::Plus,
        "subtract" | "subtract_checked" => Operator::Minus,
        "multiply" | "multiply_checked" => Operator::Multiply,
        "divide" | "divide_checked" => Operator::Divide,
        "modulus" | "modulo" | "mod" => Operator::Modulo,
        "bitwise_and" | "bit_wise_and" => Operator::BitwiseAnd,
        "bitwise_or" | "bit_wise_or" => Operator::BitwiseOr,
        "bitwise_xor" | "bit_wise_xor" => Operator::BitwiseXor,
        "shift_left" | "shift_left_checked" => Operator::BitwiseShiftLeft,
        "shift_right" | "shift_right_checked" => Operator::BitwiseShiftRight,
        _ => return None,
    })
}

/// `and` and `or` take any number of operands, the others two.
fn chain(operator: Operator, call: Call<'_>) -> Result<Expr> {
    if !matches!(operator, Operator::And | Operator::Or) {
        return call.taking().map(|[left, right]| binary_expr(left, operator, right));
    }
    let name = call.name;
    let mut operands = call.arguments;
    // Combined pairwise, so that many operands make no deep tree.
    while operands.len() > 1 {
        let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
        let mut rest = operands.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => binary_expr(left, operator, right),
                None => left,
            });
        }
        operands = pairs;
    }
    operands
        .pop()
        .ok_or_else(|| ExprError::invalid(format!("expected operands of Substrait function {name}, found none")))
}

fn substring_test(call: Call<'_>) -> Result<Expr> {
    let name = call.name;
    let fold = call.has_option("case_sensitivity", "CASE_INSENSITIVE")
        || call.has_option("case_sensitivity", "CASE_INSENSITIVE_ASCII");
    let [value, pattern] = call.taking()?;
    if !fold {
        return sql(name, vec![value, pattern]);
    }
    sql(name, vec![sql("lower", vec![value])?, sql("lower", vec![pattern])?])
}

/// `is_finite` and `is_infinite`: both are false for NaN.
fn finiteness(call: Call<'_>) -> Result<Expr> {
    let finite = call.name == "is_finite";
    let [value] = call.taking()?;
    let infinite = [f64::INFINITY, f64::NEG_INFINITY]
        .map(|end| Expr::Literal(end.into(), None))
        .to_vec();
    if !finite {
        return Ok(value.in_list(infinite, false));
    }
    let not_a_number = sql("isnan", vec![value.clone()])?;
    Ok(value.in_list(infinite, true).and(Expr::Not(Box::new(not_a_number))))
}

fn extract(call: Call<'_>) -> Result<Expr> {
    let part = call.enums.first().map(|part| part.to_lowercase());
    let part = part.ok_or_else(|| ExprError::invalid("expected a part of a date to extract, found none"))?;
    match part.as_str() {
        "year" | "month" | "day" | "hour" | "minute" | "second" | "quarter" => call
            .taking()
            .and_then(|[value]| sql("date_part", vec![text(&part), value])),
        other => Err(ExprError::unsupported(format!(
            "expected a part of a date that esker can extract, found {other}"
        ))),
    }
}

/// The SQL name of a Substrait or Arrow function.
fn sql_name(name: &str) -> &str {
    match name {
        "is_nan" => "isnan",
        "sign" => "signum",
        "log" | "logb" => "log",
        "sqrt_checked" => "sqrt",
        "abs_checked" => "abs",
        "power_checked" => "power",
        "utf8_lower" | "ascii_lower" => "lower",
        "utf8_upper" | "ascii_upper" => "upper",
        "utf8_length" => "character_length",
        "binary_length" => "octet_length",
        "utf8_reverse" | "ascii_reverse" => "reverse",
        "utf8_trim_whitespace" | "ascii_trim_whitespace" => "btrim",
        "utf8_ltrim_whitespace" | "ascii_ltrim_whitespace" => "ltrim",
        "utf8_rtrim_whitespace" | "ascii_rtrim_whitespace" => "rtrim",
        "list_value_length" => "cardinality",
        "max_element_wise" => "greatest",
        "min_element_wise" => "least",
        "ceiling" => "ceil",
        "char_length" => "character_length",
        other => other,
    }
}

fn sql(name: &str, arguments: Vec<Expr>) -> Result<Expr> {
    let function = scalar_function(name).ok_or_else(|| {
        ExprError::unsupported(format!(
            "expected a function that esker knows, found Substrait function {name}"
        ))
    })?;
    Ok(function.call(arguments))
}

fn text(value: &str) -> Expr {
    Expr::Literal(value.into(), None)
}
