//! Builds the expression tree from its steps: a loop with an explicit stack, since an expression may be as deep as it is long.

use std::collections::VecDeque;

use arrow_array::cast::AsArray;
use arrow_schema::Schema;
use datafusion_common::{Column, DFSchema, ScalarValue};
use datafusion_expr::{binary_expr, Expr, Operator};
use datafusion_functions::core::expr_fn::get_field;

use super::container::Container;
use super::functions::{call, Call};
use super::options::Options;
use super::Comparisons;
use crate::columns;
use crate::error::{ExprError, Result};

/// The deepest nesting of calls, not counting chains of `and_kleene` or `or_kleene`.
const NESTING_LIMIT: usize = 100;

/// The expression in `bytes` over the columns of `schema`.
pub(crate) fn decode(bytes: &[u8], schema: &Schema, comparisons: Comparisons) -> Result<Expr> {
    let container = Container::read(bytes)?;
    let typed = DFSchema::try_from(schema.clone())
        .map_err(|error| ExprError::from_datafusion("cannot read the columns", &error))?;
    let mut decoder = Decoder {
        container: &container,
        schema,
        typed: &typed,
        comparisons,
        calls: Vec::new(),
        path: Vec::new(),
        names_left: 0,
        whole: None,
    };
    for (key, value) in &container.steps {
        decoder.step(key, value)?;
    }
    match decoder.whole {
        Some(node) if decoder.calls.is_empty() && decoder.names_left == 0 => Ok(node.into_expr()?.0),
        _ => Err(ExprError::invalid(
            "expected a whole Arrow expression, found a part of one",
        )),
    }
}

/// A complete subexpression.
enum Node {
    Expr(Expr, usize),
    /// A chain of one operator: its operands, and the depth of the deepest.
    Chain(Operator, VecDeque<Expr>, usize),
    /// A `make_struct` of values, which only some functions take, with its depth.
    Fields(Vec<Expr>, usize),
}

impl Node {
    /// The expression, and how deep it is.
    fn into_expr(self) -> Result<(Expr, usize)> {
        match self {
            Node::Expr(expr, depth) => Ok((expr, depth)),
            Node::Chain(operator, operands, depth) => Ok((balanced(operator, operands.into()), depth + 1)),
            Node::Fields(..) => Err(ExprError::unsupported(
                "expected an Arrow function that esker knows, found make_struct",
            )),
        }
    }
}

/// Combines the operands pairwise, so that many of them make no deep tree.
fn balanced(operator: Operator, operands: Vec<Expr>) -> Expr {
    let mut operands = operands;
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
    let nothing = Expr::Literal(ScalarValue::from(operator == Operator::And), None);
    operands.pop().unwrap_or(nothing)
}

/// A call whose `end` was not read yet.
struct Begun<'a> {
    name: &'a str,
    arguments: Vec<Node>,
    options: Option<usize>,
}

struct Decoder<'a> {
    container: &'a Container,
    schema: &'a Schema,
    typed: &'a DFSchema,
    comparisons: Comparisons,
    calls: Vec<Begun<'a>>,
    /// The names of a nested reference so far, and how many follow.
    path: Vec<String>,
    names_left: usize,
    whole: Option<Node>,
}

impl<'a> Decoder<'a> {
    fn step(&mut self, key: &str, value: &'a str) -> Result<()> {
        if self.names_left > 0 && !matches!(key, "field_ref" | "nested_field_ref") {
            return Err(ExprError::invalid(format!(
                "expected a name in the Arrow expression, found {key}"
            )));
        }
        match key {
            "call" => self.calls.push(Begun {
                name: value,
                arguments: Vec::new(),
                options: None,
            }),
            "field_ref" => {
                self.path.push(value.to_owned());
                self.names_left = self.names_left.saturating_sub(1);
                if self.names_left == 0 {
                    let node = self.field()?;
                    return self.found(node);
                }
            }
            "nested_field_ref" => {
                let names = value.parse().ok().filter(|names| (1..=NESTING_LIMIT).contains(names));
                let names: usize = names.ok_or_else(|| {
                    ExprError::invalid(format!("expected the number of names to a field, found {value}"))
                })?;
                self.names_left = self.names_left.saturating_sub(1) + names;
            }
            "literal" => {
                let column = self.column(value)?;
                let column = self.container.columns.get(column);
                let scalar = column.map(|column| ScalarValue::try_from_array(column, 0));
                let scalar = scalar.and_then(std::result::Result::ok).ok_or_else(|| {
                    ExprError::unsupported("expected a literal of a type that esker knows in the Arrow expression")
                })?;
                return self.found(Node::Expr(Expr::Literal(scalar, None), 0));
            }
            "options" => {
                let column = self.column(value)?;
                match self.calls.last_mut() {
                    Some(begun) => begun.options = Some(column),
                    None => return Err(ExprError::invalid("expected options within a call, found them outside")),
                }
            }
            "end" => {
                let begun = self.calls.pop();
                let begun = begun.ok_or_else(|| ExprError::invalid("expected a call before its end, found none"))?;
                let node = self.finish(begun)?;
                return self.found(node);
            }
            other => {
                return Err(ExprError::invalid(format!(
                    "expected an Arrow expression, found step {other}"
                )));
            }
        }
        Ok(())
    }

    fn column(&self, value: &str) -> Result<usize> {
        let column = value
            .parse()
            .ok()
            .filter(|column| *column < self.container.columns.len());
        column.ok_or_else(|| ExprError::invalid(format!("expected the number of a value, found {value}")))
    }

    fn found(&mut self, node: Node) -> Result<()> {
        match self.calls.last_mut() {
            Some(begun) => begun.arguments.push(node),
            None if self.whole.is_none() => self.whole = Some(node),
            None => return Err(ExprError::invalid("expected one Arrow expression, found more")),
        }
        Ok(())
    }

    /// The field that the path leads to.
    fn field(&mut self) -> Result<Node> {
        let written: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let names = columns::resolve(self.schema, &written)?;
        let depth = names.len();
        self.path.clear();
        let mut names = names.into_iter();
        let root = Expr::Column(Column::new_unqualified(names.next().unwrap_or_default()));
        let field = names.fold(root, get_field);
        Ok(Node::Expr(field, depth))
    }

    fn finish(&self, begun: Begun<'_>) -> Result<Node> {
        let operator = match begun.name {
            "and_kleene" => Some(Operator::And),
            "or_kleene" => Some(Operator::Or),
            _ => None,
        };
        if let Some(operator) = operator {
            return chain(begun, operator);
        }
        let mut arguments = Vec::with_capacity(begun.arguments.len());
        let mut fields = None;
        let mut depth = 0;
        for node in begun.arguments {
            let (node, below) = match node {
                Node::Fields(values, below) if begun.name == "case_when" && fields.is_none() => {
                    fields = Some(values);
                    depth = depth.max(below);
                    continue;
                }
                other => other.into_expr()?,
            };
            arguments.push(node);
            depth = depth.max(below);
        }
        if depth >= NESTING_LIMIT {
            return Err(ExprError::invalid(format!(
                "expected at most {NESTING_LIMIT} levels of nesting, found more"
            )));
        }
        if begun.name == "make_struct" {
            return Ok(Node::Fields(arguments, depth + 1));
        }
        let options = begun.options.and_then(|column| self.container.columns.get(column));
        let options = Options {
            function: begun.name,
            fields: options.and_then(|column| column.as_struct_opt()),
        };
        let expr = call(Call {
            name: begun.name,
            arguments,
            conditions: fields.unwrap_or_default(),
            options,
            schema: self.typed,
            comparisons: self.comparisons,
        })?;
        Ok(Node::Expr(expr, depth + 1))
    }
}

/// One chain of all operands in their order: chains of the same operator among them are merged, the shorter into the longer.
fn chain(begun: Begun<'_>, operator: Operator) -> Result<Node> {
    let mut all: VecDeque<Expr> = VecDeque::new();
    let mut depth = 0;
    for node in begun.arguments {
        match node {
            Node::Chain(same, operands, below) if same == operator => {
                depth = depth.max(below);
                if all.len() >= operands.len() {
                    all.extend(operands);
                } else {
                    let mut operands = operands;
                    while let Some(before) = all.pop_back() {
                        operands.push_front(before);
                    }
                    all = operands;
                }
            }
            other => {
                let (operand, below) = other.into_expr()?;
                all.push_back(operand);
                depth = depth.max(below);
            }
        }
    }
    if all.is_empty() || depth >= NESTING_LIMIT {
        return Err(ExprError::invalid(format!(
            "expected operands of at most {NESTING_LIMIT} levels for Arrow function {}, found {} operands of {depth}",
            begun.name,
            all.len(),
        )));
    }
    Ok(Node::Chain(operator, all, depth))
}
