//! Maps Arrow's compute functions to operators and SQL functions.
//!
//! The common ones are mapped one by one; the others are looked up by their SQL name among DataFusion's functions.

use arrow_schema::DataType;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::expr::{Cast, InList};
use datafusion_expr::{binary_expr, Case, Expr, ExprSchemable, Operator};
use datafusion_functions::core::expr_fn::get_field;

use super::options::Options;
use super::{strings, Comparisons};
use crate::context::scalar_function;
use crate::error::{ExprError, Result};

/// Arrow's `null_matching_behavior` of `is_in`. By default nulls match each other.
const SKIP_NULLS: i64 = 1;
const EMIT_NULL: i64 = 2;
const INCONCLUSIVE: i64 = 3;

/// A call: the function, its arguments and its options.
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Vec<Expr>,
    /// The conditions of `case_when`.
    pub(super) conditions: Vec<Expr>,
    pub(super) options: Options<'a>,
    pub(super) schema: &'a DFSchema,
    pub(super) comparisons: Comparisons,
}

impl Call<'_> {
    pub(super) fn taking<const N: usize>(self) -> Result<[Expr; N]> {
        let (name, found) = (self.name, self.arguments.len());
        self.arguments.try_into().map_err(|_| {
            ExprError::invalid(format!(
                "expected {N} arguments of Arrow function {name}, found {found}"
            ))
        })
    }

    fn type_of(&self, argument: &Expr) -> Option<DataType> {
        argument.get_type(self.schema).ok()
    }
}

/// The expression that a call means.
pub(super) fn call(call: Call<'_>) -> Result<Expr> {
    if let Some(operator) = comparison(call.name) {
        return compare(call, operator);
    }
    if let Some(operator) = arithmetic(call.name) {
        return call.taking().map(|[left, right]| binary_expr(left, operator, right));
    }
    if let Some(part) = date_part(call.name) {
        let [time] = call.taking()?;
        return sql("date_part", vec![Expr::Literal(part.into(), None), time]);
    }
    if let Some(found) = strings::call(&call)? {
        return Ok(found);
    }
    match call.name {
        "invert" => call.taking().map(|[value]| !value),
        "and" => strict(call, Operator::And),
        "or" => strict(call, Operator::Or),
        "and_not" | "and_not_kleene" => call.taking().map(|[left, right]| left.and(!right)),
        // Two booleans differ: exclusive or.
        "xor" => call.taking().map(|[left, right]| left.not_eq(right)),
        "is_valid" => call.taking().map(|[value]| value.is_not_null()),
        "true_unless_null" => call
            .taking()
            .map(|[value]| case(vec![(value.is_not_null(), Expr::Literal(true.into(), None))], None)),
        "is_null" => is_null(call),
        "is_in" => is_in(call),
        "is_nan" => call.taking().and_then(|[value]| sql("isnan", vec![value])),
        "is_inf" => call.taking().map(|[value]| value.in_list(infinities(), false)),
        "is_finite" => {
            let [value] = call.taking()?;
            let is_nan = sql("isnan", vec![value.clone()])?;
            Ok(value.in_list(infinities(), true).and(!is_nan))
        }
        "cast" => {
            let wanted = call.options.data_type("to_type")?;
            call.taking()
                .map(|[value]| Expr::Cast(Cast::new(Box::new(value), wanted)))
        }
        "negate" | "negate_checked" => call.taking().map(|[value]| Expr::Negative(Box::new(value))),
        "struct_field" => struct_field(call),
        "if_else" => call
            .taking()
            .map(|[condition, yes, no]| case(vec![(condition.clone(), yes), (!condition, no)], None)),
        "case_when" => case_when(call),
        "list_element" => call
            .taking()
            .and_then(|[list, index]| sql("array_element", vec![list, index + Expr::Literal(1_i64.into(), None)])),
        "round" => round(call),
        name => match sql_name(name) {
            Some(known) => sql(known, call.arguments),
            None => Err(ExprError::unsupported(format!(
                "expected a function that esker knows, found Arrow function {name}"
            ))),
        },
    }
}

fn comparison(name: &str) -> Option<Operator> {
    Some(match name {
        "equal" => Operator::Eq,
        "not_equal" => Operator::NotEq,
        "less" => Operator::Lt,
        "less_equal" => Operator::LtEq,
        "greater" => Operator::Gt,
        "greater_equal" => Operator::GtEq,
        _ => return None,
    })
}

fn arithmetic(name: &str) -> Option<Operator> {
    Some(match name {
        "add" | "add_checked" => Operator::Plus,
        "subtract" | "subtract_checked" => Operator::Minus,
        "multiply" | "multiply_checked" => Operator::Multiply,
        "divide" | "divide_checked" => Operator::Divide,
        "bit_wise_and" => Operator::BitwiseAnd,
        "bit_wise_or" => Operator::BitwiseOr,
        "bit_wise_xor" => Operator::BitwiseXor,
        "shift_left" | "shift_left_checked" => Operator::BitwiseShiftLeft,
        "shift_right" | "shift_right_checked" => Operator::BitwiseShiftRight,
        _ => return None,
    })
}

fn date_part(name: &str) -> Option<&str> {
    matches!(
        name,
        "year" | "quarter" | "month" | "day" | "hour" | "minute" | "second"
    )
    .then_some(name)
}

/// A comparison. A narrow float and a double literal are compared as doubles, where SQL would narrow the literal.
fn compare(call: Call<'_>, operator: Operator) -> Result<Expr> {
    let types: Vec<Option<DataType>> = call.arguments.iter().map(|argument| call.type_of(argument)).collect();
    let is_narrow = |found: &Option<DataType>| matches!(found, Some(DataType::Float16 | DataType::Float32));
    let widen = types.iter().any(is_narrow) && types.contains(&Some(DataType::Float64));
    let comparisons = call.comparisons;
    let sides: [Expr; 2] = call.taking()?;
    let [left, right] = sides.map(|side| match side {
        Expr::Literal(value, metadata) if value.is_null() => Expr::Literal(value, metadata),
        side if widen => Expr::Cast(Cast::new(Box::new(side), DataType::Float64)),
        side => side,
    });
    let compared = binary_expr(left.clone(), operator, right.clone());
    if comparisons == Comparisons::Sql || !types.iter().flatten().any(DataType::is_floating) {
        return Ok(compared);
    }
    // NaN is unequal to everything, and neither less nor greater.
    [left, right].into_iter().try_fold(compared, |compared, side| {
        if matches!(&side, Expr::Literal(value, _) if !is_nan(value)) {
            return Ok(compared);
        }
        let is_nan = sql("isnan", vec![side])?;
        Ok(match operator {
            Operator::NotEq => compared.or(is_nan),
            _ => compared.and(!is_nan),
        })
    })
}

fn is_nan(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float32(Some(number)) => number.is_nan(),
        ScalarValue::Float64(Some(number)) => number.is_nan(),
        _ => false,
    }
}

/// AND or OR that is null if either side is, whatever the other side is.
fn strict(call: Call<'_>, operator: Operator) -> Result<Expr> {
    let [left, right] = call.taking()?;
    let known = left.clone().is_not_null().and(right.clone().is_not_null());
    Ok(case(vec![(known, binary_expr(left, operator, right))], None))
}

fn is_null(call: Call<'_>) -> Result<Expr> {
    let nan_is_null = call.options.flag("nan_is_null");
    let is_float = call
        .arguments
        .first()
        .and_then(|value| call.type_of(value))
        .is_some_and(|t| t.is_floating());
    let [value] = call.taking()?;
    if nan_is_null && is_float {
        return Ok(value.clone().is_null().or(sql("isnan", vec![value])?));
    }
    Ok(value.is_null())
}

/// SQL's IN, except that a null in the list matches nulls, unless the options say otherwise.
fn is_in(call: Call<'_>) -> Result<Expr> {
    let set = call.options.values("value_set")?;
    let skip = if call.options.flag("skip_nulls") { SKIP_NULLS } else { 0 };
    let nulls = call.options.number("null_matching_behavior").unwrap_or(skip);
    let set = match set.data_type() {
        DataType::Dictionary(_, values) => arrow_cast::cast(&set, values),
        _ => Ok(set),
    };
    let unreadable = || ExprError::unsupported("expected values of a simple type in Arrow function is_in");
    let set = set.map_err(|_| unreadable())?;
    let mut list = Vec::with_capacity(set.len());
    let mut has_null = false;
    for row in 0..set.len() {
        let value = ScalarValue::try_from_array(&set, row).map_err(|_| unreadable())?;
        if value.is_null() {
            has_null = true;
        } else {
            list.push(Expr::Literal(value, None));
        }
    }
    let comparisons = call.comparisons;
    let [value] = call.taking()?;
    if has_null && nulls == INCONCLUSIVE {
        list.push(Expr::Literal(ScalarValue::Null, None));
    }
    let is_match = has_null && !matches!(nulls, SKIP_NULLS | EMIT_NULL | INCONCLUSIVE);
    let null = is_match.then(|| value.clone().is_null());
    let found = match list.is_empty() {
        // An empty list: false even for a null, for which IN would be null.
        true => Expr::Literal(false.into(), None),
        false => Expr::InList(InList::new(Box::new(value), list, false)),
    };
    // Arrow's result is never null, so that its negation keeps the nulls.
    let found = match comparisons == Comparisons::Arrow && !matches!(nulls, EMIT_NULL | INCONCLUSIVE) {
        true => found.is_true(),
        false => found,
    };
    Ok(match null {
        Some(null) => found.or(null),
        None => found,
    })
}

/// `struct_field` by its path: `.name` or `[position]`, repeated for nested fields.
fn struct_field(call: Call<'_>) -> Result<Expr> {
    let path = call.options.text("field_ref")?;
    let mut expr = match call.arguments.as_slice() {
        [parent] => parent.clone(),
        other => {
            return Err(ExprError::invalid(format!(
                "expected 1 argument of Arrow function struct_field, found {}",
                other.len()
            )))
        }
    };
    for part in parts(&path) {
        let data_type = expr.get_type(call.schema).ok();
        let fields = match &data_type {
            Some(DataType::Struct(fields)) => fields,
            other => {
                return Err(ExprError::invalid(format!(
                    "expected a struct to take field {path} from, found {other:?}"
                )))
            }
        };
        let field = match part.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(position) => position.parse::<usize>().ok().and_then(|position| fields.get(position)),
            None => fields
                .iter()
                .find(|field| Some(field.name().as_str()) == part.strip_prefix('.')),
        };
        let name = field.map(|field| field.name().clone());
        let name = name.ok_or_else(|| ExprError::invalid(format!("expected a field of a struct, found {path}")))?;
        expr = get_field(expr, name);
    }
    Ok(expr)
}

/// The parts of a path, each with its leading `.` or `[`; a backslash escapes the next character.
fn parts(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut letters = path.chars();
    while let Some(letter) = letters.next() {
        if matches!(letter, '.' | '[') || parts.is_empty() {
            parts.push(letter.to_string());
            continue;
        }
        let letter = if letter == '\\' { letters.next() } else { Some(letter) };
        if let Some(part) = parts.last_mut() {
            part.extend(letter);
        }
    }
    parts
}

fn case(branches: Vec<(Expr, Expr)>, otherwise: Option<Expr>) -> Expr {
    let branches = branches
        .into_iter()
        .map(|(when, then)| (Box::new(when), Box::new(then)));
    Expr::Case(Case::new(None, branches.collect(), otherwise.map(Box::new)))
}

fn case_when(call: Call<'_>) -> Result<Expr> {
    let count = call.conditions.len();
    let mut values = call.arguments;
    let otherwise = if values.len() == count + 1 { values.pop() } else { None };
    if values.len() != count || count == 0 {
        return Err(ExprError::invalid(format!(
            "expected a value for each condition of Arrow function case_when, found {count} and {}",
            values.len()
        )));
    }
    Ok(case(call.conditions.into_iter().zip(values).collect(), otherwise))
}

/// Rounds ties away from zero, as SQL does. Arrow's default rounds them to even.
fn round(call: Call<'_>) -> Result<Expr> {
    const HALF_TOWARDS_INFINITY: i64 = 7;
    if call.options.number("round_mode") != Some(HALF_TOWARDS_INFINITY) {
        return Err(ExprError::unsupported(
            "expected Arrow function round with round_mode='half_towards_infinity', found another mode",
        ));
    }
    let digits = call.options.number("ndigits").unwrap_or_default();
    let [value] = call.taking()?;
    sql("round", vec![value, Expr::Literal(digits.into(), None)])
}

fn infinities() -> Vec<Expr> {
    let ends = [f64::INFINITY, f64::NEG_INFINITY];
    ends.map(|end| Expr::Literal(end.into(), None)).to_vec()
}

/// The SQL name of a function that takes no options.
fn sql_name(name: &str) -> Option<&str> {
    Some(match name {
        "abs" | "abs_checked" => "abs",
        "sign" => "signum",
        "power" | "power_checked" => "power",
        "sqrt" | "sqrt_checked" => "sqrt",
        "ln" | "ln_checked" => "ln",
        "log10" | "log10_checked" => "log10",
        "log2" | "log2_checked" => "log2",
        "exp" | "ceil" | "floor" | "trunc" | "atan" | "atan2" | "sinh" | "cosh" | "tanh" | "asinh" | "coalesce" => name,
        "sin" | "sin_checked" => "sin",
        "cos" | "cos_checked" => "cos",
        "tan" | "tan_checked" => "tan",
        "asin" | "asin_checked" => "asin",
        "acos" | "acos_checked" => "acos",
        "list_value_length" => "array_length",
        "max_element_wise" => "greatest",
        "min_element_wise" => "least",
        _ => return None,
    })
}

pub(super) fn sql(name: &str, arguments: Vec<Expr>) -> Result<Expr> {
    let function = scalar_function(name)
        .ok_or_else(|| ExprError::unsupported(format!("expected a function that esker knows, found {name}")))?;
    Ok(function.call(arguments))
}
