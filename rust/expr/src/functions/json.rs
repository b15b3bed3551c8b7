//! `json_extract` and its siblings: functions of JSON columns, which are JSONB here.

use std::sync::{Arc, LazyLock};

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, LargeBinaryBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion_common::{exec_datafusion_err, exec_err, Result};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::json::{print, rounded, Node, Number, Path, View};

static FUNCTIONS: LazyLock<Vec<Arc<ScalarUDF>>> = LazyLock::new(|| {
    let all = [
        Kind::Extract,
        Kind::Exists,
        Kind::Get,
        Kind::GetString,
        Kind::GetInt,
        Kind::GetFloat,
        Kind::GetBool,
        Kind::ArrayContains,
        Kind::ArrayLength,
    ];
    let made = all.map(|kind| {
        let mut types = vec![DataType::LargeBinary, DataType::Utf8];
        types.extend((kind == Kind::ArrayContains).then_some(DataType::Utf8));
        let signature = Signature::exact(types, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(JsonFunction { kind, signature }))
    });
    made.to_vec()
});

/// All of them.
pub(crate) fn json_functions() -> impl Iterator<Item = Arc<ScalarUDF>> {
    FUNCTIONS.iter().cloned()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Extract,
    Exists,
    Get,
    GetString,
    GetInt,
    GetFloat,
    GetBool,
    ArrayContains,
    ArrayLength,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonFunction {
    kind: Kind,
    signature: Signature,
}

impl ScalarUDFImpl for JsonFunction {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Extract => "json_extract",
            Kind::Exists => "json_exists",
            Kind::Get => "json_get",
            Kind::GetString => "json_get_string",
            Kind::GetInt => "json_get_int",
            Kind::GetFloat => "json_get_float",
            Kind::GetBool => "json_get_bool",
            Kind::ArrayContains => "json_array_contains",
            Kind::ArrayLength => "json_array_length",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.kind {
            Kind::Extract | Kind::GetString => DataType::Utf8,
            Kind::Exists | Kind::GetBool | Kind::ArrayContains => DataType::Boolean,
            Kind::Get => DataType::LargeBinary,
            Kind::GetInt | Kind::ArrayLength => DataType::Int64,
            Kind::GetFloat => DataType::Float64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [values, keys, rest @ ..] = arrays.as_slice() else {
            return exec_err!("{} takes a JSON column and a path or a key", self.name());
        };
        let (Some(values), Some(keys)) = (values.as_binary_opt::<i64>(), keys.as_string_opt::<i32>()) else {
            return exec_err!(
                "{} takes a JSON column and text, found {} and {}",
                self.name(),
                values.data_type(),
                keys.data_type()
            );
        };
        let wanted = rest.first().and_then(|array| array.as_string_opt::<i32>());
        let mut out = Results::of(self.kind, values.len());
        let mut path: Option<(String, Path)> = None;
        for (row, pair) in values.iter().zip(keys.iter()).enumerate() {
            let (Some(bytes), Some(key)) = pair else {
                out.push(Found::Nothing)?;
                continue;
            };
            let root = View::root(bytes).map_err(failed)?;
            if matches!(
                self.kind,
                Kind::Get | Kind::GetString | Kind::GetInt | Kind::GetFloat | Kind::GetBool
            ) {
                let found = root.get(key).map_err(failed)?;
                out.push(found.map_or(Found::Nothing, Found::One))?;
                continue;
            }
            if path.as_ref().is_none_or(|(text, _)| text != key) {
                path = Some((key.to_owned(), Path::parse(key).map_err(failed)?));
            }
            let found = match &path {
                Some((_, path)) => path.select(root).map_err(failed)?,
                None => Vec::new(),
            };
            out.push(match (self.kind, wanted) {
                (Kind::ArrayContains, Some(wanted)) if wanted.is_null(row) => Found::Nothing,
                (Kind::ArrayContains, Some(wanted)) => {
                    let mut is_in = false;
                    for array in &found {
                        is_in |= contains(array, wanted.value(row))?;
                    }
                    Found::Truth(is_in)
                }
                (Kind::Exists, _) => Found::Truth(!found.is_empty()),
                (Kind::ArrayLength, _) => match found.first() {
                    None => Found::Nothing,
                    Some(view) => match view.node().map_err(failed)? {
                        Node::Array(items) => Found::Count(items.len()),
                        _ => Found::Count(0),
                    },
                },
                _ => match found.as_slice() {
                    [] => Found::Nothing,
                    [only] => Found::One(*only),
                    _ => Found::Many(found),
                },
            })?;
        }
        Ok(ColumnarValue::Array(out.finish()))
    }
}

fn failed(why: String) -> datafusion_common::DataFusionError {
    exec_datafusion_err!("{why}")
}

/// Whether an array has a value: as a text, or as JSON without blanks.
fn contains(array: &View<'_>, wanted: &str) -> Result<bool> {
    let Node::Array(items) = array.node().map_err(failed)? else {
        return Ok(false);
    };
    for item in items {
        if matches!(item.node().map_err(failed)?, Node::Text(text) if text == wanted) || printed(&item)? == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}

fn printed(view: &View<'_>) -> Result<String> {
    let mut out = String::new();
    print(view, &mut out).map_err(failed)?;
    Ok(out)
}

/// What a function found in one row.
enum Found<'a> {
    Nothing,
    One(View<'a>),
    Many(Vec<View<'a>>),
    Truth(bool),
    Count(usize),
}

/// The column of results.
enum Results {
    Text(StringBuilder, bool),
    Binary(LargeBinaryBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
}

impl Results {
    fn of(kind: Kind, rows: usize) -> Self {
        match kind {
            Kind::Extract => Results::Text(StringBuilder::new(), false),
            Kind::GetString => Results::Text(StringBuilder::new(), true),
            Kind::Get => Results::Binary(LargeBinaryBuilder::new()),
            Kind::GetInt | Kind::ArrayLength => Results::Int(Int64Builder::with_capacity(rows)),
            Kind::GetFloat => Results::Float(Float64Builder::with_capacity(rows)),
            Kind::Exists | Kind::GetBool | Kind::ArrayContains => Results::Bool(BooleanBuilder::with_capacity(rows)),
        }
    }

    fn push(&mut self, found: Found<'_>) -> Result<()> {
        match self {
            Results::Text(out, raw) => {
                let text = match found {
                    Found::One(view) if *raw => as_text(&view)?,
                    Found::One(view) => Some(printed(&view)?),
                    Found::Many(views) => {
                        let texts = views.iter().map(printed).collect::<Result<Vec<_>>>()?;
                        Some(format!("[{}]", texts.join(",")))
                    }
                    _ => None,
                };
                let length = out.values_slice().len() + text.as_ref().map_or(0, String::len);
                if i32::try_from(length).is_err() {
                    return exec_err!("expected less than 2 GiB of text in a batch; read with a smaller batch_size");
                }
                out.append_option(text);
            }
            Results::Binary(out) => match found {
                Found::One(view) => out.append_value(view.to_jsonb().map_err(failed)?),
                _ => out.append_null(),
            },
            Results::Int(out) => out.append_option(match found {
                Found::One(view) => as_int(&view)?,
                Found::Count(count) => i64::try_from(count).ok(),
                _ => None,
            }),
            Results::Float(out) => out.append_option(match found {
                Found::One(view) => as_float(&view)?,
                _ => None,
            }),
            Results::Bool(out) => out.append_option(match found {
                Found::One(view) => as_bool(&view)?,
                Found::Truth(truth) => Some(truth),
                _ => None,
            }),
        }
        Ok(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            Results::Text(mut out, _) => Arc::new(out.finish()),
            Results::Binary(mut out) => Arc::new(out.finish()),
            Results::Int(mut out) => Arc::new(out.finish()),
            Results::Float(mut out) => Arc::new(out.finish()),
            Results::Bool(mut out) => Arc::new(out.finish()),
        }
    }
}

fn no<T>(wanted: &str, view: &View<'_>) -> Result<T> {
    let mut found = printed(view)?;
    if let Some((end, _)) = found.char_indices().nth(60) {
        found.truncate(end);
    }
    exec_err!("json value: Failed to convert to {wanted}: InvalidCast of {found}; json_extract takes any value")
}

fn as_text(view: &View<'_>) -> Result<Option<String>> {
    Ok(match view.node().map_err(failed)? {
        Node::Null => None,
        Node::Text(text) => Some(text.to_owned()),
        Node::Array(_) | Node::Object(_) => return no("string", view),
        Node::Bool(_) | Node::Number(_) => Some(printed(view)?),
    })
}

fn as_int(view: &View<'_>) -> Result<Option<i64>> {
    let found = match view.node().map_err(failed)? {
        Node::Null => return Ok(None),
        Node::Bool(truth) => Some(i64::from(truth)),
        Node::Number(number) => number.as_int(),
        Node::Text(text) => text.parse().ok().or_else(|| text.parse().ok().and_then(rounded)),
        _ => None,
    };
    found.map_or_else(|| no("integer", view), |number| Ok(Some(number)))
}

fn as_float(view: &View<'_>) -> Result<Option<f64>> {
    let found = match view.node().map_err(failed)? {
        Node::Null => return Ok(None),
        Node::Bool(truth) => Some(f64::from(u8::from(truth))),
        Node::Number(number) => Some(Number::as_float(number)),
        Node::Text(text) => text.parse().ok(),
        _ => None,
    };
    found.map_or_else(|| no("float", view), |number| Ok(Some(number)))
}

fn as_bool(view: &View<'_>) -> Result<Option<bool>> {
    let found = match view.node().map_err(failed)? {
        Node::Null => return Ok(None),
        Node::Bool(truth) => Some(truth),
        Node::Text(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Node::Text(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    };
    found.map_or_else(|| no("boolean", view), |truth| Ok(Some(truth)))
}
