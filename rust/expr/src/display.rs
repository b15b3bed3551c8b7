//! Expressions as SQL text that parses to the same expression.

use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, TimeUnit};
use datafusion_common::ScalarValue;
use datafusion_expr::expr::{Between, InList, Like, ScalarFunction};
use datafusion_expr::{BinaryExpr, Case, Expr, Operator};
use sqlparser::keywords::ALL_KEYWORDS;
use sqlparser::parser::Parser;

use crate::dialect::FilterDialect;

/// The whole expression.
pub(crate) fn sql(expr: &Expr) -> String {
    match expr {
        Expr::Column(column) => name(&column.name),
        Expr::Literal(value, _) => literal(value),
        Expr::Alias(alias) => sql(&alias.expr),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            format!(
                "{} {} {}",
                operand(left, Some(*op)),
                operator(*op),
                operand(right, Some(*op))
            )
        }
        Expr::Not(inner) => format!("NOT {}", operand(inner, None)),
        Expr::Negative(inner) => format!("-{}", operand(inner, None)),
        Expr::IsNull(inner) => format!("{} IS NULL", operand(inner, None)),
        Expr::IsNotNull(inner) => format!("{} IS NOT NULL", operand(inner, None)),
        Expr::IsTrue(inner) => format!("{} IS TRUE", operand(inner, None)),
        Expr::IsNotTrue(inner) => format!("{} IS NOT TRUE", operand(inner, None)),
        Expr::IsFalse(inner) => format!("{} IS FALSE", operand(inner, None)),
        Expr::IsNotFalse(inner) => format!("{} IS NOT FALSE", operand(inner, None)),
        Expr::InList(InList { expr, list, negated }) => {
            format!("{} {}IN ({})", operand(expr, None), not(*negated), listed(list))
        }
        Expr::Between(Between {
            expr,
            negated,
            low,
            high,
        }) => {
            let (low, high) = (operand(low, None), operand(high, None));
            format!("{} {}BETWEEN {low} AND {high}", operand(expr, None), not(*negated))
        }
        Expr::Like(Like {
            negated,
            expr,
            pattern,
            case_insensitive,
            ..
        }) => {
            let like = if *case_insensitive { "ILIKE" } else { "LIKE" };
            format!(
                "{} {}{like} {}",
                operand(expr, None),
                not(*negated),
                operand(pattern, None)
            )
        }
        Expr::Cast(cast) => format!("CAST({} AS {})", sql(&cast.expr), type_name(cast.field.data_type())),
        Expr::TryCast(cast) => format!("TRY_CAST({} AS {})", sql(&cast.expr), type_name(cast.field.data_type())),
        Expr::Case(case) => case_sql(case),
        Expr::ScalarFunction(function) => call(function),
        other => other.to_string(),
    }
}

fn operand(expr: &Expr, within: Option<Operator>) -> String {
    let text = sql(expr);
    match expr {
        Expr::BinaryExpr(binary) if within == Some(binary.op) && matches!(binary.op, Operator::And | Operator::Or) => {
            text
        }
        Expr::Column(_) | Expr::Literal(..) | Expr::ScalarFunction(_) | Expr::Cast(_) | Expr::TryCast(_) => text,
        _ => format!("({text})"),
    }
}

fn operator(op: Operator) -> String {
    match op {
        Operator::NotEq => "<>".to_owned(),
        other => other.to_string(),
    }
}

fn not(negated: bool) -> &'static str {
    if negated {
        "NOT "
    } else {
        ""
    }
}

fn listed(list: &[Expr]) -> String {
    list.iter().map(sql).collect::<Vec<_>>().join(", ")
}

fn case_sql(case: &Case) -> String {
    let mut text = "CASE".to_owned();
    if let Some(matched) = &case.expr {
        text.push_str(&format!(" {}", sql(matched)));
    }
    for (when, then) in &case.when_then_expr {
        text.push_str(&format!(" WHEN {} THEN {}", sql(when), sql(then)));
    }
    if let Some(otherwise) = &case.else_expr {
        text.push_str(&format!(" ELSE {}", sql(otherwise)));
    }
    text.push_str(" END");
    text
}

fn call(function: &ScalarFunction) -> String {
    match (function.name(), function.args.as_slice()) {
        ("get_field", [root, Expr::Literal(field, _)]) => match field.try_as_str().flatten() {
            Some(field) => format!("{}.{}", operand(root, None), name(field)),
            None => format!("get_field({})", listed(&function.args)),
        },
        ("array_element", [root, index]) => format!("{}[{}]", operand(root, None), sql(index)),
        (function_name, arguments) => format!("{function_name}({})", listed(arguments)),
    }
}

/// A column's name, in backticks unless it is a plain identifier.
pub(crate) fn name(name: &str) -> String {
    if is_plain(name) {
        name.to_owned()
    } else {
        format!("`{}`", name.replace('`', "``"))
    }
}

/// Whether a name needs no backticks: only letters, digits and underscores, and no keyword.
pub(crate) fn is_plain(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    name.starts_with(is_letter)
        && name.chars().all(|letter| is_letter(letter) || letter.is_ascii_digit())
        && (!ALL_KEYWORDS.contains(&name.to_uppercase().as_str()) || parses_as_name(name))
}

fn parses_as_name(name: &str) -> bool {
    let parsed = Parser::new(&FilterDialect)
        .try_with_sql(name)
        .and_then(|mut parser| parser.parse_expr());
    matches!(parsed, Ok(sqlparser::ast::Expr::Identifier(_)))
}

/// A literal in SQL.
pub(crate) fn literal(value: &ScalarValue) -> String {
    if value.is_null() {
        return "NULL".to_owned();
    }
    if let Some(Some(text)) = value.try_as_str() {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let text = value.to_array().and_then(|array| Ok(array_value_to_string(&array, 0)?));
    let text = text.unwrap_or_else(|_| value.to_string());
    match value.data_type() {
        data_type @ (DataType::Float16 | DataType::Float32 | DataType::Float64) if text.contains(['n', 'N']) => {
            format!("CAST('{text}' AS {})", type_name(&data_type))
        }
        // Without a point or an exponent it would parse as an integer.
        DataType::Float16 | DataType::Float32 | DataType::Float64 if !text.contains(['.', 'e']) => {
            format!("{text}.0")
        }
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision}, {scale}) '{text}'"),
        DataType::Date32 | DataType::Date64 => format!("DATE '{text}'"),
        data_type @ DataType::Timestamp(..) => format!("{} '{text}'", type_name(&data_type)),
        DataType::Time32(_) | DataType::Time64(_) => format!("TIME '{text}'"),
        DataType::Binary | DataType::LargeBinary | DataType::FixedSizeBinary(_) | DataType::BinaryView => {
            format!("X'{text}'")
        }
        _ => text,
    }
}

fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INT".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt8 => "TINYINT UNSIGNED".to_owned(),
        DataType::UInt16 => "SMALLINT UNSIGNED".to_owned(),
        DataType::UInt32 => "INT UNSIGNED".to_owned(),
        DataType::UInt64 => "BIGINT UNSIGNED".to_owned(),
        DataType::Float32 => "FLOAT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Utf8 => "STRING".to_owned(),
        DataType::Binary => "BINARY".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => "TIMESTAMP(0)".to_owned(),
            TimeUnit::Millisecond => "TIMESTAMP(3)".to_owned(),
            TimeUnit::Microsecond => "TIMESTAMP".to_owned(),
            TimeUnit::Nanosecond => "TIMESTAMP(9)".to_owned(),
        },
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision}, {scale})"),
        other => other.to_string().to_uppercase(),
    }
}
