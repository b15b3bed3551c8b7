//! Functions and operators of other SQL dialects: rewritten if they mean the same in all of them, else refused with advice.

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType as SqlType, ExactNumberInfo, Expr as SqlExpr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, ObjectName, TimezoneInfo, Value, ValueWithSpan,
};

use crate::columns::edit_distance;
use crate::context::{function_names, scalar_function};
use crate::error::{ExprError, Result};
use crate::similar::regular_expression;

/// Functions under their names in other dialects.
const SYNONYMS: [(&str, &str); 20] = [
    ("startswith", "starts_with"),
    ("endswith", "ends_with"),
    ("len", "character_length"),
    ("strlen", "character_length"),
    ("lcase", "lower"),
    ("ucase", "upper"),
    ("ceiling", "ceil"),
    ("sign", "signum"),
    ("rand", "random"),
    ("size", "array_length"),
    ("array_size", "array_length"),
    ("array_len", "array_length"),
    ("list_size", "array_length"),
    ("charindex", "locate"),
    ("log_2", "log2"),
    ("log_10", "log10"),
    ("getdate", "now"),
    ("curdate", "current_date"),
    ("is_nan", "isnan"),
    ("regexp_substr", "regexp_match"),
];

/// Advice for functions whose meaning differs between dialects, or that need more than another name.
const ADVICE: [(&str, &str); 25] = [
    ("dayofweek", "date_part('dow', x), which counts from Sunday as 0"),
    ("weekday", "date_part('dow', x), which counts from Sunday as 0"),
    ("dayname", "date_part('dow', x)"),
    ("monthname", "date_part('month', x)"),
    ("datediff", "a - b of two dates or timestamps"),
    ("date_diff", "a - b of two dates or timestamps"),
    ("date_add", "x + INTERVAL '1 day'"),
    ("dateadd", "x + INTERVAL '1 day'"),
    ("date_sub", "x - INTERVAL '1 day'"),
    ("add_months", "x + INTERVAL '1 month'"),
    ("from_unixtime", "to_timestamp(x)"),
    ("unix_timestamp", "to_unixtime(x)"),
    ("date_format", "to_char(x, format)"),
    ("strftime", "to_char(x, format)"),
    ("strptime", "to_timestamp(x, format)"),
    ("regexp_full_match", "x ~ '^(...)$'"),
    ("regexp_extract", "regexp_match(x, pattern)[1]"),
    ("decode", "CASE x WHEN ... THEN ... END"),
    ("to_number", "CAST(x AS DOUBLE)"),
    ("try_cast", "TRY_CAST(x AS type)"),
    ("exists", "array_has(list, x)"),
    ("any_match", "array_has(list, x)"),
    ("filter", "array_has(list, x)"),
    ("element_at", "list[n] or struct.field"),
    ("get_json_object", "json_extract(x, path) of a JSON column"),
];

/// The expression rewritten to this dialect; `None` if there is nothing to rewrite.
pub(crate) fn translated(expr: &SqlExpr) -> Result<Option<SqlExpr>> {
    Ok(match expr {
        SqlExpr::Function(function) => call(function)?,
        SqlExpr::RLike {
            negated, expr, pattern, ..
        } => Some(matching(expr, *negated, pattern.as_ref().clone())),
        SqlExpr::SimilarTo {
            negated,
            expr,
            pattern,
            escape_char,
        } => {
            let text = text_of(pattern).ok_or_else(|| {
                ExprError::invalid(format!(
                    "expected the pattern of SIMILAR TO as text, found {pattern}: write x ~ regex"
                ))
            })?;
            let regex = regular_expression(text, escape(escape_char.as_ref())?)?;
            Some(matching(expr, *negated, literal(regex)))
        }
        SqlExpr::Like {
            negated,
            any,
            expr,
            pattern,
            escape_char: Some(escape_char),
        } => {
            let pattern = like_pattern(pattern, escape(Some(escape_char))?)?;
            let (expr, escape_char) = (expr.clone(), None);
            Some(SqlExpr::Like {
                negated: *negated,
                any: *any,
                expr,
                pattern,
                escape_char,
            })
        }
        SqlExpr::ILike {
            negated,
            any,
            expr,
            pattern,
            escape_char: Some(escape_char),
        } => {
            let pattern = like_pattern(pattern, escape(Some(escape_char))?)?;
            let (expr, escape_char) = (expr.clone(), None);
            Some(SqlExpr::ILike {
                negated: *negated,
                any: *any,
                expr,
                pattern,
                escape_char,
            })
        }
        _ => None,
    })
}

fn matching(expr: &SqlExpr, negated: bool, pattern: SqlExpr) -> SqlExpr {
    let op = if negated {
        BinaryOperator::PGRegexNotMatch
    } else {
        BinaryOperator::PGRegexMatch
    };
    SqlExpr::BinaryOp {
        left: Box::new(expr.clone()),
        op,
        right: Box::new(pattern),
    }
}

fn literal(text: String) -> SqlExpr {
    SqlExpr::value(Value::SingleQuotedString(text))
}

fn text_of(expr: &SqlExpr) -> Option<&str> {
    match expr {
        SqlExpr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(text) | Value::DoubleQuotedString(text),
            ..
        }) => Some(text),
        SqlExpr::Nested(inner) => text_of(inner),
        _ => None,
    }
}

/// The escape character: a backslash by default, none if ESCAPE is empty.
fn escape(named: Option<&ValueWithSpan>) -> Result<Option<char>> {
    let Some(named) = named else { return Ok(Some('\\')) };
    let text = match &named.value {
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.as_str(),
        _ => "  ",
    };
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (escape, None) => Ok(escape),
        _ => Err(ExprError::invalid(format!(
            "expected one letter behind ESCAPE, found {named}"
        ))),
    }
}

/// A LIKE pattern, rewritten so that its escape character is the backslash.
fn like_pattern(pattern: &SqlExpr, escape: Option<char>) -> Result<Box<SqlExpr>> {
    let text = text_of(pattern);
    let text = text.ok_or_else(|| ExprError::invalid(format!("expected text before ESCAPE, found {pattern}")))?;
    let mut escaped = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let letter = if Some(letter) == escape {
            let next = letters.next();
            escaped.push('\\');
            next.ok_or_else(|| {
                ExprError::invalid(format!("expected a letter behind the escape character of {pattern}"))
            })?
        } else {
            if letter == '\\' {
                escaped.push('\\');
            }
            letter
        };
        escaped.push(letter);
    }
    Ok(Box::new(literal(escaped)))
}

fn call(function: &Function) -> Result<Option<SqlExpr>> {
    let name = function.name.to_string().to_lowercase();
    let arguments = arguments(function);
    let cast = |data_type: SqlType| match arguments.as_deref() {
        Some([value]) => Some(SqlExpr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(value.clone()),
            data_type,
            array: false,
            format: None,
        }),
        _ => None,
    };
    let part = |part: &str| match arguments.as_deref() {
        Some([time]) => Some(called("date_part", vec![literal(part.to_owned()), time.clone()])),
        _ => None,
    };
    let boxed = |value: &SqlExpr| Box::new(value.clone());
    let found = match (name.as_str(), arguments.as_deref()) {
        ("is_valid" | "isnotnull" | "is_not_null" | "notnull", Some([value])) => Some(SqlExpr::IsNotNull(boxed(value))),
        ("isnull" | "is_null", Some([value])) => Some(SqlExpr::IsNull(boxed(value))),
        ("rlike" | "regexp" | "regexp_contains" | "regexp_matches", Some([value, pattern])) => {
            Some(matching(value, false, pattern.clone()))
        }
        ("mod", Some([left, right])) => Some(SqlExpr::Nested(Box::new(SqlExpr::BinaryOp {
            left: boxed(left),
            op: BinaryOperator::Modulo,
            right: boxed(right),
        }))),
        ("locate" | "charindex", Some([part, text])) => Some(called("strpos", vec![text.clone(), part.clone()])),
        ("if" | "iff" | "iif", Some([condition, yes, no])) => Some(SqlExpr::Case {
            case_token: AttachedToken::empty(),
            end_token: AttachedToken::empty(),
            operand: None,
            conditions: vec![CaseWhen {
                condition: condition.clone(),
                result: yes.clone(),
            }],
            else_result: Some(boxed(no)),
        }),
        ("year" | "quarter" | "month" | "week" | "day" | "hour" | "minute" | "second", _) => part(&name),
        ("dayofmonth", _) => part("day"),
        ("dayofyear", _) => part("doy"),
        ("weekofyear", _) => part("week"),
        ("date", _) => cast(SqlType::Date),
        ("timestamp", _) => cast(SqlType::Timestamp(None, TimezoneInfo::None)),
        ("int" | "integer", _) => cast(SqlType::Int(None)),
        ("bigint", _) => cast(SqlType::BigInt(None)),
        ("double", _) => cast(SqlType::Double(ExactNumberInfo::None)),
        ("float", _) => cast(SqlType::Float(ExactNumberInfo::None)),
        ("string", _) => cast(SqlType::String(None)),
        ("boolean", _) => cast(SqlType::Boolean),
        _ => None,
    };
    if found.is_some() {
        return Ok(found);
    }
    if let Some((_, known)) = SYNONYMS.iter().find(|(synonym, _)| *synonym == name) {
        let mut renamed = function.clone();
        renamed.name = ObjectName::from(vec![Ident::new(*known)]);
        return Ok(Some(SqlExpr::Function(renamed)));
    }
    if scalar_function(&name).is_some() {
        return Ok(None);
    }
    Err(unknown(&name))
}

/// The error for an unknown function: one line with the closest names.
fn unknown(name: &str) -> ExprError {
    if let Some((_, instead)) = ADVICE.iter().find(|(advised, _)| *advised == name) {
        return ExprError::invalid(format!(
            "expected a function that esker knows, found {name}: write {instead}"
        ));
    }
    let nearest = function_names().min_by_key(|known| (edit_distance(known, name), *known));
    let near = nearest.filter(|known| edit_distance(known, name) <= known.len().div_ceil(3));
    ExprError::invalid(match near {
        Some(near) => format!("expected a function that esker knows, found {name}: there is {near}"),
        None => format!("expected a function that esker knows, found {name}: compute it after reading"),
    })
}

fn called(name: &str, arguments: Vec<SqlExpr>) -> SqlExpr {
    let arguments = arguments
        .into_iter()
        .map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)));
    SqlExpr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(sqlparser::ast::FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// The arguments, if all of them are plain positional values.
fn arguments(function: &Function) -> Option<Vec<SqlExpr>> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let values = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    });
    values.collect()
}
