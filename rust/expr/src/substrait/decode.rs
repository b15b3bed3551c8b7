//! Decodes Substrait expressions to DataFusion's.

use arrow_schema::Schema;
use bytes::Bytes;
use datafusion_common::{Column, ScalarValue};
use datafusion_expr::expr::{Cast, InList, TryCast};
use datafusion_expr::{Case, Expr, Operator};
use datafusion_functions::core::expr_fn::get_field;
use datafusion_functions_nested::expr_fn::array_element;
use prost::Message;

use super::extensions::Extensions;
use super::fields::{named_fields, NamedField};
use super::functions::{call, operator, Call};
use super::literals::scalar;
use super::messages as proto;
use super::messages::{ArgumentKind, ReferenceRoot, ReferenceType, Referred, Rex, Segment};
use super::types::data_type;
use crate::columns;
use crate::error::{ExprError, Result};

/// The deepest nesting of calls, not counting chains of `and` or `or`.
const NESTING_LIMIT: usize = 100;

/// A cast's `failure_behavior`: a value that cannot be cast becomes null.
const RETURN_NULL: i32 = 1;

/// The one expression in `bytes`, an `ExtendedExpression`, over the columns of `schema`.
pub(crate) fn decode(bytes: &[u8], schema: &Schema) -> Result<Expr> {
    let message = proto::ExtendedExpression::decode(Bytes::copy_from_slice(bytes)).map_err(|error| {
        ExprError::invalid(format!(
            "expected a Substrait extended expression, found other bytes: {error}"
        ))
    })?;
    let expression = match message.referred_expr.as_slice() {
        [proto::ExpressionReference {
            referred: Some(Referred::Expression(expression)),
        }] => expression,
        [one] if one.referred.is_some() => {
            return Err(ExprError::invalid(
                "expected a Substrait expression over one row, found an aggregate",
            ))
        }
        other => {
            return Err(ExprError::invalid(format!(
                "expected one Substrait expression, found {}",
                other.len()
            )));
        }
    };
    let fields = message.base_schema.as_ref().map_or(Ok(Vec::new()), named_fields)?;
    let decoder = Decoder {
        extensions: Extensions::new(&message.extensions),
        fields,
        schema,
    };
    decoder.expression(expression, 0)
}

struct Decoder<'a> {
    extensions: Extensions,
    fields: Vec<NamedField>,
    schema: &'a Schema,
}

impl Decoder<'_> {
    fn expression(&self, expression: &proto::Expression, depth: usize) -> Result<Expr> {
        if depth > NESTING_LIMIT {
            return Err(ExprError::invalid(format!(
                "expected at most {NESTING_LIMIT} levels of nesting, found more"
            )));
        }
        let unsupported = |what| {
            Err(ExprError::unsupported(format!(
                "expected a Substrait expression over one row, found {what}"
            )))
        };
        match &expression.rex {
            Some(Rex::Literal(literal)) => Ok(Expr::Literal(scalar(literal, &self.extensions)?, None)),
            Some(Rex::Selection(reference)) => self.field(reference, depth),
            Some(Rex::ScalarFunction(function)) => self.function(function, depth + 1),
            Some(Rex::IfThen(branches)) => self.if_then(branches, depth),
            Some(Rex::Switch(switch)) => self.switch(switch, depth),
            Some(Rex::SingularOrList(list)) => {
                let options = list
                    .options
                    .iter()
                    .map(|option| self.expression(option, depth))
                    .collect::<Result<_>>()?;
                Ok(Expr::InList(InList::new(
                    Box::new(self.required(list.value.as_deref(), depth)?),
                    options,
                    false,
                )))
            }
            Some(Rex::Cast(cast)) => self.cast(cast, depth),
            Some(Rex::WindowFunction(_)) => unsupported("a window function"),
            Some(Rex::MultiOrList(_)) => unsupported("a list of rows"),
            Some(Rex::Subquery(_)) => unsupported("a subquery"),
            Some(Rex::Nested(_)) => unsupported("a constructor of structs or lists"),
            None => unsupported("one of an unknown kind"),
        }
    }

    fn required(&self, expression: Option<&proto::Expression>, depth: usize) -> Result<Expr> {
        match expression {
            Some(expression) => self.expression(expression, depth),
            None => Err(ExprError::invalid(
                "expected an operand in the Substrait expression, found none",
            )),
        }
    }

    fn field(&self, reference: &proto::FieldReference, depth: usize) -> Result<Expr> {
        let Some(ReferenceType::Direct(segment)) = &reference.reference else {
            return Err(ExprError::unsupported(
                "expected a Substrait reference to one field, found a mask",
            ));
        };
        match &reference.root {
            Some(ReferenceRoot::Expression(root)) => descend(self.expression(root, depth)?, &[], Some(segment)),
            Some(ReferenceRoot::Outer(_)) => Err(ExprError::unsupported(
                "expected a Substrait reference to a field, found one to an outer query",
            )),
            Some(ReferenceRoot::Root(_)) | None => {
                let Some(Segment::StructField(top)) = &segment.segment else {
                    return Err(ExprError::invalid(
                        "expected a Substrait reference to a column, found another",
                    ));
                };
                let field = at(&self.fields, top.position)?;
                let name = columns::resolve(self.schema, &[field.name.as_str()])?.concat();
                descend(
                    Expr::Column(Column::new_unqualified(name)),
                    &field.children,
                    top.child.as_deref(),
                )
            }
        }
    }

    fn function(&self, function: &proto::ScalarFunction, depth: usize) -> Result<Expr> {
        let name = self.extensions.function_name(function.function_reference)?;
        if let Some(Operator::And | Operator::Or) = operator(name) {
            let arguments = self.operands(function, depth)?;
            return call(Call {
                name,
                arguments,
                enums: Vec::new(),
                options: &[],
            });
        }
        let (values, enums) = split_arguments(function);
        let arguments = values
            .into_iter()
            .map(|value| self.encoded(value, depth))
            .collect::<Result<_>>()?;
        call(Call {
            name,
            arguments,
            enums,
            options: &function.options,
        })
    }

    /// The operands of a chain of one operator, which is as deep as it is long. Unfolded in a loop, so that a chain of thousands does not
    /// overflow the stack.
    fn operands(&self, function: &proto::ScalarFunction, depth: usize) -> Result<Vec<Expr>> {
        let mut waiting: Vec<Bytes> = split_arguments(function).0.into_iter().rev().cloned().collect();
        let mut operands = Vec::new();
        while let Some(encoded) = waiting.pop() {
            let operand = decode_expression(&encoded)?;
            match &operand.rex {
                Some(Rex::ScalarFunction(same)) if same.function_reference == function.function_reference => {
                    waiting.extend(split_arguments(same).0.into_iter().rev().cloned());
                }
                _ => operands.push(self.expression(&operand, depth)?),
            }
        }
        Ok(operands)
    }

    fn encoded(&self, encoded: &Bytes, depth: usize) -> Result<Expr> {
        self.expression(&decode_expression(encoded)?, depth)
    }

    fn if_then(&self, branches: &proto::IfThen, depth: usize) -> Result<Expr> {
        let clauses = branches.ifs.iter().map(|clause| {
            let condition = self.required(clause.condition.as_ref(), depth)?;
            Ok((
                Box::new(condition),
                Box::new(self.required(clause.then.as_ref(), depth)?),
            ))
        });
        let otherwise = branches
            .otherwise
            .as_deref()
            .map(|expression| self.expression(expression, depth))
            .transpose()?;
        Ok(Expr::Case(Case::new(
            None,
            clauses.collect::<Result<_>>()?,
            otherwise.map(Box::new),
        )))
    }

    fn switch(&self, switch: &proto::Switch, depth: usize) -> Result<Expr> {
        let clauses = switch.ifs.iter().map(|clause| {
            let value = clause
                .value
                .as_ref()
                .map_or(Ok(ScalarValue::Null), |value| scalar(value, &self.extensions))?;
            Ok((
                Box::new(Expr::Literal(value, None)),
                Box::new(self.required(clause.then.as_ref(), depth)?),
            ))
        });
        let matched = self.required(switch.matched.as_deref(), depth)?;
        let otherwise = switch
            .otherwise
            .as_deref()
            .map(|expression| self.expression(expression, depth))
            .transpose()?;
        Ok(Expr::Case(Case::new(
            Some(Box::new(matched)),
            clauses.collect::<Result<_>>()?,
            otherwise.map(Box::new),
        )))
    }

    fn cast(&self, cast: &proto::Cast, depth: usize) -> Result<Expr> {
        let input = Box::new(self.required(cast.input.as_deref(), depth)?);
        let to = cast
            .to
            .as_ref()
            .ok_or_else(|| ExprError::invalid("expected a type to cast to, found none"))?;
        let to = data_type(to, &self.extensions)?;
        Ok(match cast.failure_behavior {
            RETURN_NULL => Expr::TryCast(TryCast::new(input, to)),
            _ => Expr::Cast(Cast::new(input, to)),
        })
    }
}

/// The arguments: values, still encoded, and enumerations.
fn split_arguments(function: &proto::ScalarFunction) -> (Vec<&Bytes>, Vec<String>) {
    let (mut values, mut enums) = (Vec::new(), Vec::new());
    for argument in &function.arguments {
        match &argument.kind {
            Some(ArgumentKind::Value(value)) => values.push(value),
            Some(ArgumentKind::Enum(value)) => enums.push(value.clone()),
            Some(ArgumentKind::Type(_)) | None => {}
        }
    }
    values.extend(&function.old_arguments);
    (values, enums)
}

fn decode_expression(encoded: &Bytes) -> Result<proto::Expression> {
    proto::Expression::decode(encoded.clone())
        .map_err(|error| ExprError::invalid(format!("expected a Substrait expression, found other bytes: {error}")))
}

/// Follows the rest of a reference: into structs by field name, into lists by position.
fn descend(root: Expr, fields: &[NamedField], segment: Option<&proto::ReferenceSegment>) -> Result<Expr> {
    let (mut expr, mut fields, mut rest) = (root, fields, segment);
    while let Some(segment) = rest {
        match &segment.segment {
            Some(Segment::StructField(step)) => {
                let field = at(fields, step.position)?;
                expr = get_field(expr, field.name.as_str());
                fields = &field.children;
                rest = step.child.as_deref();
            }
            Some(Segment::ListElement(step)) => {
                // SQL counts elements from 1.
                expr = array_element(
                    expr,
                    Expr::Literal(ScalarValue::from(i64::from(step.position) + 1), None),
                );
                rest = step.child.as_deref();
            }
            Some(Segment::MapKey(_)) | None => {
                return Err(ExprError::unsupported(
                    "expected a Substrait reference to a field or element, found one to a map's key",
                ));
            }
        }
    }
    Ok(expr)
}

fn at(fields: &[NamedField], position: i32) -> Result<&NamedField> {
    let found = usize::try_from(position).ok().and_then(|position| fields.get(position));
    found.ok_or_else(|| {
        ExprError::invalid(format!(
            "expected a field position below {}, found {position}",
            fields.len()
        ))
    })
}
