//! SQL text to an expression tree.
//!
//! The text is parsed in [`FilterDialect`], the tree is checked and its names are found in the schema, then DataFusion's planner takes over.

use std::ops::ControlFlow;

use arrow_schema::Schema;
use datafusion_common::DFSchema;
use datafusion_expr::Expr;
use datafusion_sql::planner::{NullOrdering, ParserOptions, PlannerContext, SqlToRel};
use sqlparser::ast::{BinaryOperator, Expr as SqlExpr, Function, FunctionArg, FunctionArgExpr, FunctionArguments};
use sqlparser::ast::{Ident, UnaryOperator, VisitMut, VisitorMut};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::columns;
use crate::context::{scalar_function, ExprContext};
use crate::depth;
use crate::dialect::FilterDialect;
use crate::display;
use crate::error::{lower_first, ExprError, Result};

/// Parentheses and calls may nest so deep.
const NESTING_LIMIT: usize = 100;

/// An expression as written: its tree, and its text in one canonical spelling.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) expr: Expr,
    pub(crate) text: String,
}

/// Parses a condition over the columns of `schema`.
pub(crate) fn parse_filter(text: &str, schema: &Schema) -> Result<Parsed> {
    parse("filter", text, schema, as_condition)
}

/// Parses an expression of any type over the columns of `schema`.
pub(crate) fn parse_expression(text: &str, schema: &Schema) -> Result<Parsed> {
    parse("expression", text, schema, |tree| tree)
}

/// `what` names the expression in error messages.
fn parse(what: &str, text: &str, schema: &Schema, adapt: fn(SqlExpr) -> SqlExpr) -> Result<Parsed> {
    let mut tree = parse_tree(what, text)?;
    let mut names = NameResolution { schema };
    if let ControlFlow::Break(error) = tree.visit(&mut names) {
        return Err(in_context(what, text, *error));
    }
    let tree = adapt(tree);
    let canonical = tree.to_string();
    let expr = to_expr(tree, schema).map_err(|error| in_context(what, text, error))?;
    Ok(Parsed { expr, text: canonical })
}

fn in_context(what: &str, text: &str, error: ExprError) -> ExprError {
    match error {
        ExprError::InvalidArgument(message) => ExprError::invalid(format!("{message}, in {what} {}", quoted(text))),
        ExprError::Unsupported(message) => ExprError::unsupported(format!("{message}, in {what} {}", quoted(text))),
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

fn parse_tree(what: &str, text: &str) -> Result<SqlExpr> {
    if text.trim().is_empty() {
        return Err(ExprError::invalid(format!("expected a {what}, found an empty string")));
    }
    let dialect = FilterDialect;
    let tokens = Tokenizer::new(&dialect, text)
        .tokenize_with_location()
        .map_err(|error| {
            let place = format!("line {}, column {}", error.location.line, error.location.column);
            ExprError::invalid(format!(
                "cannot parse {what} {}: {} at {place}",
                quoted(text),
                lower_first(&error.message)
            ))
        })?;
    if let Some(limit) = depth::exceeds_limit(&tokens) {
        return Err(ExprError::invalid(format!(
            "cannot parse {what} {}: expected at most {limit} operators on one operand, found more",
            quoted(text)
        )));
    }
    let mut parser = Parser::new(&dialect)
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

fn to_expr(tree: SqlExpr, schema: &Schema) -> Result<Expr> {
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
    let columns = DFSchema::try_from(schema.clone()).map_err(fail)?;
    SqlToRel::new_with_options(&context, options)
        .sql_to_expr(tree, &columns, &mut PlannerContext::new())
        .map_err(fail)
}

/// Replaces each name by the one in the schema, and refuses what is more than a function of one row.
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
            SqlExpr::Function(function) => {
                check_function(function)?;
                if let Some(argument) = argument_of_is_valid(function) {
                    *expr = SqlExpr::IsNotNull(Box::new(argument));
                }
            }
            SqlExpr::Subquery(_)
            | SqlExpr::Exists { .. }
            | SqlExpr::InSubquery { .. }
            | SqlExpr::AnyOp { .. }
            | SqlExpr::AllOp { .. } => {
                return Err(ExprError::invalid(format!(
                    "expected an expression over one row, found subquery {expr}"
                )));
            }
            _ => {}
        }
        Ok(())
    }
}

/// A name that is printed in backticks where it must be.
fn column_name(name: String) -> Ident {
    if display::is_plain(&name) {
        Ident::new(name)
    } else {
        Ident::with_quote('`', name)
    }
}

/// Turns a chain `a AND b AND c ...`, which parses as deep as it is long, into a tree as deep as its logarithm.
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

/// `regexp_match` gives the matched groups; as a condition it asks whether there was a match.
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

/// Aggregates that somebody may try; DataFusion's own message would propose a function of a similar name.
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

/// `is_valid(x)`, which pylance takes for `x IS NOT NULL`.
fn argument_of_is_valid(function: &Function) -> Option<SqlExpr> {
    if !function.name.to_string().eq_ignore_ascii_case("is_valid") {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => Some(argument.clone()),
        _ => None,
    }
}
