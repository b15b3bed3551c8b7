//! Column expressions: a column computed from others.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};
use datafusion_common::Column;
use datafusion_expr::Expr;

use crate::error::{ExprError, Result};
use crate::numbers_as_text::Numbers;
use crate::overflow::cast_checked;
use crate::plan::Plan;
use crate::sql::{in_context, Source};
use crate::stack;

/// A value for each row, bound to a schema. Cloning is cheap, and clones evaluate in parallel.
#[derive(Debug, Clone)]
pub struct Expression {
    plan: Arc<Plan>,
    text: Arc<str>,
}

impl Expression {
    /// Parses an expression over the columns of `schema`, in the SQL of [`crate::Predicate::parse_sql`].
    ///
    /// A word that is a column's name is that column, and so is any other text that is one and no SQL over the columns. An integer sum, difference or product that overflows
    /// its type is an error and does not wrap.
    pub fn parse_sql(text: &str, schema: &Schema) -> Result<Self> {
        Self::parse_sql_with(text, schema, Numbers::Refused)
    }

    /// [`Self::parse_sql`], with a meaning of numbers that are compared with text.
    pub fn parse_sql_with(text: &str, schema: &Schema, numbers: Numbers) -> Result<Self> {
        Self::parse_as(text, schema, numbers, false)
    }

    /// [`Self::parse_sql`] of what a new column becomes: the type of `a + 1` is that of `a`, if that holds the number.
    pub fn parse_column(text: &str, schema: &Schema) -> Result<Self> {
        Self::parse_as(text, schema, Numbers::Refused, true)
    }

    fn parse_as(text: &str, schema: &Schema, numbers: Numbers, fits: bool) -> Result<Self> {
        if schema.field_with_name(text).is_err() {
            return Self::parse(text, schema, numbers, fits);
        }
        // `1` and `a-b` may be names of columns, too.
        let parsed = match is_word(text) {
            true => None,
            false => Self::parse(text, schema, numbers, fits).ok(),
        };
        parsed.map_or_else(|| Self::column(text, schema), Ok)
    }

    fn column(name: &str, schema: &Schema) -> Result<Self> {
        let column = Expr::Column(Column::new_unqualified(name));
        Ok(Self {
            plan: Arc::new(Plan::bind(column, schema)?),
            text: name.into(),
        })
    }

    fn parse(text: &str, schema: &Schema, numbers: Numbers, fits: bool) -> Result<Self> {
        let source = Source::expression(text)?.with_numbers(numbers);
        stack::run(source.depth(), || {
            let parsed = source.parse(schema)?;
            let plan = Plan::bind_checked(parsed.expr, schema, fits);
            let plan = plan.map_err(|error| in_context("expression", text, schema, error))?;
            Ok(Self {
                plan: Arc::new(plan),
                text: parsed.text.into(),
            })
        })
    }

    /// The type of its values.
    pub fn data_type(&self) -> &DataType {
        self.plan.data_type()
    }

    /// Whether it may be null, if the columns of the schema that are not nullable hold no nulls.
    pub fn is_nullable(&self) -> bool {
        self.plan.is_nullable()
    }

    /// Names of the top-level columns that it reads, in the schema's order.
    pub fn columns(&self) -> &[String] {
        self.plan.columns()
    }

    /// One value per row of `batch`, which must hold [`Self::columns`], found by name.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let values = self.plan.evaluate(batch);
        values.map_err(|error| in_context("expression", &self.text, batch.schema_ref(), error))
    }

    /// Its values cast to another type, as in an assignment to a column of that type: numbers are truncated to integers, text is parsed, and
    /// a value that does not fit is an error.
    pub fn evaluate_as(&self, batch: &RecordBatch, data_type: &DataType) -> Result<ArrayRef> {
        let values = self.evaluate(batch)?;
        if values.data_type() == data_type {
            return Ok(values);
        }
        cast_checked(&values, data_type).map_err(|error| {
            let found = values.data_type();
            ExprError::invalid(format!(
                "the values of expression '{}' cannot be {data_type}, found {found}: {error}",
                self.text
            ))
        })
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether a text is a word that is no literal in SQL.
fn is_word(text: &str) -> bool {
    let is_name = text.chars().all(|c| c == '_' || c.is_alphanumeric()) && !text.starts_with(|c: char| c.is_numeric());
    is_name
        && !["null", "true", "false"]
            .iter()
            .any(|literal| text.eq_ignore_ascii_case(literal))
}
