//! Predicates: which rows to keep.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{DataType, Schema};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::ScalarValue;
use datafusion_expr::Expr;

use crate::arrow_expression::{self, Comparisons};
use crate::display;
use crate::error::{ExprError, Result};
use crate::numbers_as_text::Numbers;
use crate::plan::Plan;
use crate::sql::{in_context, Source};
use crate::stack;
use crate::substrait;

/// A condition on one row, bound to a schema. A row is kept where it is true; false and null drop it.
///
/// Cloning is cheap, and clones evaluate in parallel.
#[derive(Debug, Clone)]
pub struct Predicate {
    plan: Arc<Plan>,
    text: Arc<str>,
    /// Whether it came as Substrait, so that Arrow may evaluate it by its own rules.
    is_foreign: bool,
}

impl Predicate {
    /// Parses a condition over the columns of `schema`.
    ///
    /// Names keep their case; `` `backticks` `` quote a name, `'single'` and `"double"` quotes make strings, `a.b` is field `b` of struct `a`.
    /// An error says where the text does not parse, which column does not exist, or that the result is no boolean.
    pub fn parse_sql(text: &str, schema: &Schema) -> Result<Self> {
        Self::parse_sql_with(text, schema, Numbers::Refused)
    }

    /// [`Self::parse_sql`], with a meaning of numbers that are compared with text, and, as deltalake has both, of a condition that is NULL.
    pub fn parse_sql_with(text: &str, schema: &Schema, numbers: Numbers) -> Result<Self> {
        let source = Source::filter(text)?.with_numbers(numbers);
        stack::run(source.depth(), || {
            let parsed = source.parse(schema)?;
            let expr = match parsed.expr {
                // As deltalake has it, a condition that is true for no row; Lance refuses it.
                Expr::Literal(ScalarValue::Null, _) if numbers == Numbers::AsText => {
                    Expr::Literal(ScalarValue::Boolean(None), None)
                }
                expr => expr,
            };
            Self::bind(expr, parsed.text, schema).map_err(|error| in_context("filter", text, schema, error))
        })
    }

    /// Decodes a condition from a Substrait `ExtendedExpression`, as `pyarrow.compute.Expression.to_substrait(schema)` returns it.
    ///
    /// Columns are resolved by their names in the message.
    pub fn from_substrait(bytes: &[u8], schema: &Schema) -> Result<Self> {
        // The depth is not known before decoding.
        stack::run(usize::MAX, || {
            let expr = substrait::decode(bytes, schema)?;
            let text = display::sql(&expr);
            let bound = Self::bind(expr, text, schema)?;
            Ok(Self {
                is_foreign: true,
                ..bound
            })
        })
    }

    /// Decodes a condition from Arrow's serialized form of an expression, as a pickled `pyarrow.compute.Expression` holds it.
    pub fn from_arrow_expression(bytes: &[u8], schema: &Schema, comparisons: Comparisons) -> Result<Self> {
        stack::run(usize::MAX, || {
            let expr = arrow_expression::decode(bytes, schema, comparisons)?;
            let text = display::sql(&expr);
            Self::bind(expr, text, schema)
        })
    }

    fn bind(expr: Expr, text: String, schema: &Schema) -> Result<Self> {
        let plan = Plan::bind(expr, schema)?;
        if plan.data_type() != &DataType::Boolean {
            return Err(ExprError::invalid(format!(
                "expected a filter that is true or false for each row, found {text} of type {}, which does not return a boolean",
                plan.data_type()
            )));
        }
        Ok(Self {
            plan: Arc::new(plan),
            text: text.into(),
            is_foreign: false,
        })
    }

    /// Names of the top-level columns that it reads, in the schema's order.
    pub fn columns(&self) -> &[String] {
        self.plan.columns()
    }

    /// What it reads: a top-level column and a field of it, or the whole column with `None`.
    pub fn paths(&self) -> Result<Vec<(String, Option<String>)>> {
        stack::run(stack::depth_of(self.plan.expr()), || {
            let mut paths = BTreeSet::new();
            read_paths(self.plan.expr(), &mut paths);
            Ok(paths.into_iter().collect())
        })
    }

    /// Whether it is false, or unknown, whatever a row holds.
    pub fn is_never(&self) -> bool {
        let expr = self.expr_to_prune_by();
        matches!(expr, Expr::Literal(ScalarValue::Boolean(None | Some(false)), _))
    }

    pub(crate) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// The expression for pruning: as written if Arrow may evaluate it, else simplified.
    pub(crate) fn expr_to_prune_by(&self) -> &Expr {
        if self.is_foreign {
            self.plan.typed()
        } else {
            self.plan.expr()
        }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// One boolean per row of `batch`, null where SQL says unknown.
    ///
    /// The batch must hold [`Self::columns`], which are found by name, and may hold others.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let array = self.plan.evaluate(batch).map_err(|error| self.name_in(error, batch))?;
        let booleans = array.as_boolean_opt().cloned();
        booleans
            .ok_or_else(|| ExprError::invalid(format!("expected booleans from {self}, found {}", array.data_type())))
    }

    /// A part of this condition, which errors name as a whole.
    pub(crate) fn part(&self, expr: Expr) -> Result<Self> {
        let bound = Self::bind(expr, self.text.to_string(), self.plan.schema())?;
        Ok(Self {
            is_foreign: self.is_foreign,
            ..bound
        })
    }

    fn name_in(&self, error: ExprError, batch: &RecordBatch) -> ExprError {
        in_context("filter", &self.text, batch.schema_ref(), error)
    }

    /// The conjunction: it keeps the rows that both keep.
    pub fn and(&self, other: &Self) -> Result<Self> {
        let expr = self.expr_to_prune_by().clone().and(other.expr_to_prune_by().clone());
        let fields = [
            self.plan.schema().as_ref().clone(),
            other.plan.schema().as_ref().clone(),
        ];
        let schema = Schema::try_merge(fields)
            .map_err(|error| ExprError::invalid(format!("expected two filters over one schema: {error}")))?;
        let text = format!("({self}) AND ({other})");
        let bound = stack::run(stack::depth_of(&expr), || Self::bind(expr, text, &schema))?;
        Ok(Self {
            is_foreign: self.is_foreign || other.is_foreign,
            ..bound
        })
    }
}

fn read_paths(expr: &Expr, paths: &mut BTreeSet<(String, Option<String>)>) {
    // The visitor never fails.
    let _ = expr.apply(|part| {
        match part {
            Expr::ScalarFunction(call) if call.name() == "get_field" => {
                if let [Expr::Column(column), Expr::Literal(field, _), ..] = call.args.as_slice() {
                    let field = field.try_as_str().flatten().map(str::to_owned);
                    paths.insert((column.name.clone(), field));
                    return Ok(TreeNodeRecursion::Jump);
                }
            }
            Expr::Column(column) => {
                paths.insert((column.name.clone(), None));
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    });
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
