//! Parses SQL text to an expression tree.
//!
//! The text is parsed in [`FilterDialect`], the tree is checked and its names are resolved in the schema, then DataFusion plans it.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Fields, Schema, TimeUnit};
use datafusion_common::DFSchema;
use datafusion_expr::Expr;
use datafusion_sql::planner::{NullOrdering, ParserOptions, PlannerContext, SqlToRel};
use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr as SqlExpr, Function, Ident, Subscript, UnaryOperator, VisitMut, VisitorMut,
};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::columns;
use crate::context::{scalar_function, ExprContext};
use crate::depth::{self, DEPTH_LIMIT};
use crate::dialect::FilterDialect;
use crate::dialect_functions::translated;
use crate::display;
use crate::error::{lower_first, ExprError, Result};
use crate::numbers_as_text::{spelled, Numbers};
use crate::wide_floats::widened;

/// The deepest nesting of parentheses and calls.
const NESTING_LIMIT: usize = 100;

/// An expression as written: its tree, and its text in one canonical spelling.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) expr: Expr,
    pub(crate) text: String,
}

/// An expression as its user wrote it, with its tokens.
pub(crate) struct Source<'a> {
    text: &'a str,
    tokens: Vec<TokenWithSpan>,
    depth: usize,
    use_as: UseAs,
    numbers: Numbers,
}

/// What an expression is used as.
#[derive(Clone, Copy, PartialEq)]
enum UseAs {
    Filter,
    Column,
}

impl UseAs {
    fn name(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Column => "expression",
        }
    }
}

impl<'a> Source<'a> {
    /// Reads a condition.
    pub(crate) fn filter(text: &'a str) -> Result<Self> {
        Self::read(text, UseAs::Filter)
    }

    /// Reads an expression of any type.
    pub(crate) fn expression(text: &'a str) -> Result<Self> {
        Self::read(text, UseAs::Column)
    }

    fn read(text: &'a str, use_as: UseAs) -> Result<Self> {
        let what = use_as.name();
        if text.trim().is_empty() {
            let article = if use_as == UseAs::Column { "an" } else { "a" };
            return Err(ExprError::invalid(format!(
                "expected {article} {what}, found an empty string"
            )));
        }
        let tokens = Tokenizer::new(&FilterDialect, text)
            .tokenize_with_location()
            .map_err(|error| {
                let place = format!("line {}, column {}", error.location.line, error.location.column);
                let message = lower_first(&error.message);
                ExprError::invalid(format!("cannot parse {what} {}: {message} at {place}", quoted(text)))
            })?;
        let depth = depth::depth(&tokens);
        if depth > DEPTH_LIMIT {
            return Err(ExprError::invalid(format!(
                "cannot parse {what} {}: expected at most {DEPTH_LIMIT} levels, found {depth}",
                quoted(text)
            )));
        }
        Ok(Self {
            text,
            depth: depth.saturating_add(depth::cases(&tokens)),
            tokens,
            use_as,
            numbers: Numbers::Refused,
        })
    }

    /// The same source, with a meaning of numbers that are compared with text.
    pub(crate) fn with_numbers(self, numbers: Numbers) -> Self {
        Self { numbers, ..self }
    }

    /// An upper bound on the expression's depth: that of the stack that it takes.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Parses it over the columns of `schema`.
    pub(crate) fn parse(self, schema: &Schema) -> Result<Parsed> {
        let (what, text, use_as, numbers) = (self.use_as.name(), self.text, self.use_as, self.numbers);
        let mut tree = parse_tree(what, text, self.tokens)?;
        if let ControlFlow::Break(error) = tree.visit(&mut NameResolution { schema }) {
            return Err(in_context(what, text, schema, *error));
        }
        if use_as == UseAs::Filter {
            tree = as_condition(tree);
        }
        let canonical = tree.to_string();
        let expr = to_expr(tree, schema, numbers).map_err(|error| in_context(what, text, schema, error))?;
        Ok(Parsed { expr, text: canonical })
    }
}

/// Adds the text to an error, and a hint at what its writer may have meant.
pub(crate) fn in_context(what: &str, text: &str, schema: &Schema, error: ExprError) -> ExprError {
    let place = format!("in {what} {}{}", quoted(text), hint(text, schema));
    match error {
        ExprError::InvalidArgument(message) => ExprError::invalid(format!("{message}, {place}")),
        ExprError::Unsupported(message) => ExprError::unsupported(format!("{message}, {place}")),
    }
}

/// A hint for a column in double quotes, as other dialects write it.
fn hint(text: &str, schema: &Schema) -> String {
    let names = schema.fields().iter().map(|field| field.name());
    match names.into_iter().find(|name| text.contains(&format!("\"{name}\""))) {
        Some(name) => format!(" (\"{name}\" is a string: write `{name}` for the column)"),
        None => String::new(),
    }
}

/// The text for an error message, cut where it gets long.
fn quoted(text: &str) -> String {
    const SHOWN: usize = 200;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

fn parse_tree(what: &str, text: &str, tokens: Vec<TokenWithSpan>) -> Result<SqlExpr> {
    let mut parser = Parser::new(&FilterDialect)
        .with_recursion_limit(NESTING_LIMIT)
        .with_tokens_with_locations(tokens);
    let parsed = parser.parse_expr().and_then(|tree| match parser.peek_token().token {
        Token::EOF => Ok(tree),
        _ => parser.expected("end of text", parser.peek_token()),
    });
    parsed.map_err(|error| {
        let message = match error {
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
            ParserError::RecursionLimitExceeded => {
                format!("expected at most {NESTING_LIMIT} levels of nesting, found more")
            }
        };
        let message = message
            .replace(" at Line: ", " at line ")
            .replace(", Column: ", ", column ");
        ExprError::invalid(format!(
            "cannot parse {what} {}: {}",
            quoted(text),
            lower_first(&message)
        ))
    })
}

fn to_expr(tree: SqlExpr, schema: &Schema, numbers: Numbers) -> Result<Expr> {
    let fail = |error| ExprError::from_datafusion("cannot plan", &error);
    let options = ParserOptions {
        parse_float_as_decimal: false,
        enable_ident_normalization: false,
        support_varchar_with_length: true,
        enable_options_value_normalization: false,
        collect_spans: false,
        map_string_types_to_utf8view: false,
        default_null_ordering: NullOrdering::NullsMax,
    };
    let context = ExprContext::new();
    let columns = |schema: Schema| DFSchema::try_from(schema).map_err(fail);
    let expr = SqlToRel::new_with_options(&context, options)
        .sql_to_expr(tree, &columns(with_literal_times(schema))?, &mut PlannerContext::new())
        .map_err(fail)?;
    match numbers {
        Numbers::Refused => Ok(expr),
        Numbers::AsText => spelled(expr, &columns(schema.clone())?).map_err(fail),
        Numbers::AsDoubles => widened(expr, &columns(schema.clone())?).map_err(fail),
    }
}

/// The schema with times of day in the unit of literals. The planner looks into some operands, such as that of NOT, before literals take the
/// types of columns, and finds no common type for two units; what it makes of them does not depend on the unit.
fn with_literal_times(schema: &Schema) -> Schema {
    fn shown(field: &FieldRef) -> FieldRef {
        let data_type = match field.data_type() {
            DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Nanosecond),
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(shown).collect()),
            _ => return field.clone(),
        };
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    }
    Schema::new_with_metadata(
        schema.fields().iter().map(shown).collect::<Fields>(),
        schema.metadata().clone(),
    )
}

/// Resolves each name in the schema, and refuses subqueries, aggregates and window functions.
struct NameResolution<'a> {
    schema: &'a Schema,
}

impl VisitorMut for NameResolution<'_> {
    type Break = Box<ExprError>;

    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<Self::Break> {
        match self.rewrite(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

impl NameResolution<'_> {
    fn rewrite(&self, expr: &mut SqlExpr) -> Result<()> {
        if let SqlExpr::Function(function) = expr {
            check_function(function)?;
        }
        if let Some(translated) = translated(expr)? {
            *expr = translated;
            // The result may need another rewrite.
            return self.rewrite(expr);
        }
        if let Some(names) = field_names(expr) {
            *expr = names;
            return self.rewrite(expr);
        }
        match expr {
            SqlExpr::BinaryOp {
                op: BinaryOperator::And | BinaryOperator::Or,
                ..
            } => balance(expr),
            SqlExpr::Identifier(name) => {
                let found = columns::resolve(self.schema, &[name.value.as_str()])?;
                if let Some(found) = found.into_iter().next() {
                    *name = column_name(found);
                }
            }
            SqlExpr::CompoundIdentifier(names) => {
                let written: Vec<&str> = names.iter().map(|name| name.value.as_str()).collect();
                *names = columns::resolve(self.schema, &written)?
                    .into_iter()
                    .map(column_name)
                    .collect();
            }
            SqlExpr::UnaryOp {
                op: op @ UnaryOperator::BitwiseNot,
                ..
            } => *op = UnaryOperator::Not,
            SqlExpr::Subquery(_) | SqlExpr::Exists { .. } | SqlExpr::InSubquery { .. } => {
                return Err(ExprError::invalid(format!(
                    "expected an expression over one row, found subquery {expr}"
                )));
            }
            _ => {}
        }
        Ok(())
    }
}

/// `a.b['c'].d`, which parses as names that hang on `a` one by one, as one name `a.b` and subscripts; a name alone if there are none.
/// `None` if it is so already, or no such expression.
fn field_names(expr: &mut SqlExpr) -> Option<SqlExpr> {
    let SqlExpr::CompoundFieldAccess { root, access_chain } = expr else {
        return None;
    };
    let is_name = |access: &AccessExpr| matches!(access, AccessExpr::Dot(SqlExpr::Identifier(_)));
    if !access_chain.iter().any(is_name) {
        return None;
    }
    let mut names = match root.as_ref() {
        SqlExpr::Identifier(name) => vec![name.clone()],
        SqlExpr::CompoundIdentifier(names) => names.clone(),
        _ => Vec::new(),
    };
    let has_name = !names.is_empty();
    let mut chain = Vec::with_capacity(access_chain.len());
    for access in std::mem::take(access_chain) {
        match access {
            AccessExpr::Dot(SqlExpr::Identifier(name)) if has_name && chain.is_empty() => names.push(name),
            AccessExpr::Dot(SqlExpr::Identifier(name)) => {
                let index = SqlExpr::value(sqlparser::ast::Value::SingleQuotedString(name.value));
                chain.push(AccessExpr::Subscript(Subscript::Index { index }));
            }
            other => chain.push(other),
        }
    }
    if names.len() > 1 {
        **root = SqlExpr::CompoundIdentifier(names);
    }
    let root = std::mem::replace(root, Box::new(SqlExpr::value(sqlparser::ast::Value::Null)));
    if chain.is_empty() {
        return Some(*root);
    }
    Some(SqlExpr::CompoundFieldAccess {
        root,
        access_chain: chain,
    })
}

/// An identifier, printed in backticks where necessary.
fn column_name(name: String) -> Ident {
    if display::is_plain(&name) {
        Ident::new(name)
    } else {
        Ident::with_quote('`', name)
    }
}

/// Balances a chain `a AND b AND c ...`, which parses as deep as it is long, to logarithmic depth.
fn balance(expr: &mut SqlExpr) {
    let SqlExpr::BinaryOp { op: chain, .. } = expr else {
        return;
    };
    let chain = chain.clone();
    let mut operands = Vec::new();
    let mut rest = std::mem::replace(expr, SqlExpr::value(sqlparser::ast::Value::Null));
    loop {
        match rest {
            SqlExpr::BinaryOp { left, op, right } if op == chain => {
                operands.push(*right);
                rest = *left;
            }
            first => {
                operands.push(first);
                break;
            }
        }
    }
    operands.reverse();
    while operands.len() > 1 {
        let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
        let mut remaining = operands.into_iter();
        while let Some(left) = remaining.next() {
            pairs.push(match remaining.next() {
                Some(right) => SqlExpr::BinaryOp {
                    left: Box::new(left),
                    op: chain.clone(),
                    right: Box::new(right),
                },
                None => left,
            });
        }
        operands = pairs;
    }
    if let Some(balanced) = operands.pop() {
        *expr = balanced;
    }
}

/// `regexp_match` returns the matched groups; as a condition it becomes a test for a match.
fn as_condition(tree: SqlExpr) -> SqlExpr {
    match tree {
        SqlExpr::Function(call) if call.name.to_string().eq_ignore_ascii_case("regexp_match") => {
            SqlExpr::IsNotNull(Box::new(SqlExpr::Function(call)))
        }
        SqlExpr::BinaryOp {
            left,
            op: op @ (BinaryOperator::And | BinaryOperator::Or),
            right,
        } => {
            let (left, right) = (Box::new(as_condition(*left)), Box::new(as_condition(*right)));
            SqlExpr::BinaryOp { left, op, right }
        }
        SqlExpr::UnaryOp {
            op: op @ UnaryOperator::Not,
            expr,
        } => SqlExpr::UnaryOp {
            op,
            expr: Box::new(as_condition(*expr)),
        },
        SqlExpr::Nested(inner) => SqlExpr::Nested(Box::new(as_condition(*inner))),
        other => other,
    }
}

/// Aggregates that users may try; DataFusion's own message would propose a function of a similar name.
const AGGREGATES: [&str; 14] = [
    "count",
    "sum",
    "avg",
    "mean",
    "min",
    "max",
    "median",
    "stddev",
    "variance",
    "first_value",
    "last_value",
    "array_agg",
    "string_agg",
    "approx_distinct",
];

fn check_function(function: &Function) -> Result<()> {
    let name = function.name.to_string().to_lowercase();
    if function.over.is_some() {
        return Err(ExprError::invalid(format!(
            "expected an expression over one row, found window function {name}"
        )));
    }
    if AGGREGATES.contains(&name.as_str()) && scalar_function(&name).is_none() {
        return Err(ExprError::invalid(format!(
            "expected an expression over one row, found aggregate {name}"
        )));
    }
    Ok(())
}
