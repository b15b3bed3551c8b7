//! An expression bound to a schema: typed, simplified, and evaluated on batches that hold only the columns it reads.

use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{DFSchema, DataFusionError};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::expr::Cast;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::simplify::SimplifyContext;
use datafusion_expr::{Expr, ExprSchemable};
use datafusion_optimizer::simplify_expressions::ExprSimplifier;
use datafusion_physical_expr::{create_physical_expr, PhysicalExpr};

use crate::cases;
use crate::coerce::{fit_arithmetic, fit_literals};
use crate::error::{ExprError, Result};
use crate::guard::guarded;
use crate::lower::lower;
use crate::overflow;
use crate::within::Within;

/// A bound expression.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The expression after coercion and simplification.
    expr: Expr,
    /// The expression after coercion.
    typed: Expr,
    /// Names of the top-level columns it reads, in the schema's order.
    columns: Vec<String>,
    /// Those columns' fields.
    schema: SchemaRef,
    data_type: DataType,
    nullable: bool,
    physical: Arc<dyn PhysicalExpr>,
    /// The range of its one column, where it says nothing else.
    within: Option<Within>,
    /// The guarded expression, evaluated if `physical` fails: each condition only on the rows that those before it leave open.
    careful: OnceLock<Option<Arc<dyn PhysicalExpr>>>,
}

impl Plan {
    /// Types `expr` over the columns of `schema` and makes it ready to run.
    pub(crate) fn bind(expr: Expr, schema: &Schema) -> Result<Self> {
        Self::bind_as(expr, schema, false, false)
    }

    /// [`Self::bind`], where arithmetic whose result does not fit its type is an error instead of wrapping. With `fits`, the type of `a + 1` is
    /// that of `a`.
    pub(crate) fn bind_checked(expr: Expr, schema: &Schema, fits: bool) -> Result<Self> {
        Self::bind_as(expr, schema, true, fits)
    }

    fn bind_as(expr: Expr, schema: &Schema, checked: bool, fits: bool) -> Result<Self> {
        let fail = |error: DataFusionError| ExprError::from_datafusion("cannot type", &error);
        let all = Arc::new(DFSchema::try_from(nullable(schema.fields().iter().map(AsRef::as_ref))).map_err(fail)?);
        // First: a literal that was cast to another type keeps that.
        let expr = if fits { fit_arithmetic(expr, &all) } else { expr };
        let expr = fit_literals(expr, &all)?;
        let context = SimplifyContext::builder()
            .with_schema(Arc::clone(&all))
            .with_current_time()
            .build();
        let simplifier = ExprSimplifier::new(context);
        let mut typed = simplifier.coerce(expr, &all).map_err(fail)?;
        let mut data_type = typed.get_type(all.as_ref()).map_err(fail)?;
        if let DataType::Dictionary(_, values) = &data_type {
            if checked && makes_values(&typed) {
                data_type = values.as_ref().clone();
                typed = Expr::Cast(Cast::new(Box::new(typed), data_type.clone()));
            }
        }
        if checked {
            overflow::check_constants(&typed).map_err(fail)?;
        }
        let expr = cases::simplify(typed.clone(), &all).map_err(fail)?;
        // Simplification may have changed the types of comparisons.
        let expr = simplifier.coerce(expr, &all).map_err(fail)?;

        let read = expr.column_refs();
        let fields = schema
            .fields()
            .iter()
            .filter(|field| read.iter().any(|column| column.name() == field.name()));
        let promised = Schema::new(fields.clone().cloned().collect::<Vec<_>>());
        let promised = DFSchema::try_from(promised).map_err(fail)?;
        let schema = Arc::new(nullable(fields.map(AsRef::as_ref)));
        let bound = DFSchema::try_from(Arc::clone(&schema)).map_err(fail)?;
        let physical = create_physical_expr(
            &lower(expr.clone(), &bound)?,
            &bound,
            &ExecutionProps::new(),
            &PhysicalPlanningContext::default(),
        )
        .map_err(fail)?;
        let physical = match checked {
            true => overflow::checked(physical, &schema).map_err(fail)?,
            false => physical,
        };
        let within = match schema.fields().as_ref() {
            [field] => Within::of(&expr, field.name(), field.data_type()),
            _ => None,
        };
        Ok(Self {
            within,
            columns: schema.fields().iter().map(|field| field.name().clone()).collect(),
            nullable: expr.nullable(&promised).unwrap_or(true),
            data_type,
            physical,
            careful: OnceLock::new(),
            expr,
            typed,
            schema,
        })
    }

    pub(crate) fn expr(&self) -> &Expr {
        &self.expr
    }

    /// The expression after coercion and before simplification.
    pub(crate) fn typed(&self) -> &Expr {
        &self.typed
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn is_nullable(&self) -> bool {
        self.nullable
    }

    pub(crate) fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// One value per row of `batch`, which must hold [`Self::columns`], in any order, and may hold more.
    pub(crate) fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        if let (Some(within), [field]) = (self.within, self.schema.fields().as_ref()) {
            if let Some(found) = within.ask(&column(batch, field)?) {
                return Ok(Arc::new(found));
            }
        }
        self.evaluate_physical(batch)
    }

    /// [`Self::evaluate`] by DataFusion: the baseline of what has a kernel of its own.
    pub(crate) fn evaluate_physical(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let fail = |error: DataFusionError| ExprError::from_datafusion("cannot evaluate", &error);
        let input = self.input(batch)?;
        let run = |physical: &Arc<dyn PhysicalExpr>| physical.evaluate(&input)?.into_array(batch.num_rows());
        let array = run(&self.physical)
            .or_else(|error| {
                // Found outside of the cell: a process may be forked meanwhile, in which nobody would ever be done with it.
                let known = self.careful.get().cloned();
                let found = known.unwrap_or_else(|| guarded(Arc::clone(&self.physical)).ok());
                let careful = self.careful.get_or_init(|| found);
                careful.as_ref().and_then(|careful| run(careful).ok()).ok_or(error)
            })
            .map_err(fail)?;
        if array.data_type() == &self.data_type {
            return Ok(array);
        }
        arrow_cast::cast(&array, &self.data_type).map_err(|error| fail(error.into()))
    }

    /// Whether it has a kernel of its own.
    #[cfg(test)]
    pub(crate) fn is_within(&self) -> bool {
        self.within.is_some()
    }

    /// The columns of `batch` in the order and with the types that the physical expression expects.
    fn input(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let arrays: Vec<ArrayRef> = self
            .schema
            .fields()
            .iter()
            .map(|field| column(batch, field))
            .collect::<Result<_>>()?;
        let same = arrays
            .iter()
            .zip(self.schema.fields())
            .all(|(array, field)| array.data_type() == field.data_type());
        let schema = if same {
            Arc::clone(&self.schema)
        } else {
            // The types may differ in the nullability of nested fields.
            let actual = arrays.iter().zip(self.schema.fields());
            let actual = actual.map(|(array, field)| Field::new(field.name(), array.data_type().clone(), true));
            Arc::new(Schema::new(actual.collect::<Vec<_>>()))
        };
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(schema, arrays, &options)
            .map_err(|error| ExprError::invalid(format!("cannot evaluate: {error}")))
    }
}

/// Whether an expression is a function of new values, which are no dictionary's even if DataFusion computes each item once: not one that
/// hands over what it was given.
fn makes_values(expr: &Expr) -> bool {
    const HANDED_OVER: [&str; 7] = ["get_field", "coalesce", "nullif", "nvl", "nvl2", "greatest", "least"];
    match expr {
        Expr::Alias(named) => makes_values(&named.expr),
        Expr::ScalarFunction(call) => !HANDED_OVER.contains(&call.name()),
        _ => false,
    }
}

/// The batch's column for a field, cast if it has another type (for example a dictionary of the schema's type).
fn column(batch: &RecordBatch, field: &Field) -> Result<ArrayRef> {
    let array = batch.column_by_name(field.name()).ok_or_else(|| {
        let names: Vec<&str> = batch
            .schema_ref()
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        ExprError::invalid(format!(
            "expected column {} in the batch, found only {}",
            field.name(),
            names.join(", ")
        ))
    })?;
    if array.data_type().equals_datatype(field.data_type()) {
        return Ok(Arc::clone(array));
    }
    arrow_cast::cast(array, field.data_type()).map_err(|error| {
        let (name, wanted, found) = (field.name(), field.data_type(), array.data_type());
        ExprError::invalid(format!(
            "expected column {name} of type {wanted}, found {found}: {error}"
        ))
    })
}

/// The fields, all nullable: not every writer keeps a schema's promise of no nulls.
fn nullable<'a>(fields: impl Iterator<Item = &'a Field>) -> Schema {
    Schema::new(
        fields
            .map(|field| field.clone().with_nullable(true))
            .collect::<Vec<_>>(),
    )
}
