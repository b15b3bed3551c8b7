//! The schema of a table: its JSON form, and its conversion to Arrow.
//!
//! Spec: "Schema Serialization Format" and "Column Mapping". A field has a logical name, which users see, and a physical one, which files,
//! partition values and statistics use. They differ only where column mapping is on.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use serde_json::{Map, Value};

use crate::actions::Metadata;
use crate::error::{DeltaError, Result};
use crate::listing::commit_path;

/// The deepest nesting of types; a deeper schema is refused.
const DEPTH_LIMIT: usize = 100;
/// The metadata key of an Arrow field whose type this release does not read; its value is the type's name.
const UNREAD: &str = "esker.unread";
const TYPE_CHANGES: &str = "delta.typeChanges";
const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";
const COLUMN_ID: &str = "delta.columnMapping.id";
const COLUMN_MAPPING_MODE: &str = "delta.columnMapping.mode";

/// How logical names map to physical ones. Spec: "Column Mapping".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnMapping {
    /// They are the same.
    None,
    /// Columns of files are found by physical name.
    Name,
    /// Columns of files are found by field id.
    Id,
}

/// A type of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub enum DeltaType {
    /// A type without others inside, in Arrow's terms.
    Primitive(DataType),
    /// Named fields.
    Struct(Vec<DeltaField>),
    /// A list of one type; whether items may be null.
    Array(Box<DeltaType>, bool),
    /// Keys, values, and whether values may be null.
    Map(Box<DeltaType>, Box<DeltaType>, bool),
    /// A type that this release does not read, by its name. In Arrow it is the null type.
    Unread(String),
}

/// A column or a field of a struct.
#[derive(Debug, Clone, PartialEq)]
pub struct DeltaField {
    /// The name that users see.
    pub name: String,
    /// What it holds.
    pub data_type: DeltaType,
    /// Whether it may be null.
    pub nullable: bool,
    /// Its metadata, used by features.
    pub metadata: Map<String, Value>,
}

impl DeltaField {
    /// The name in files, partition values and statistics.
    pub fn physical_name(&self, mapping: ColumnMapping) -> &str {
        let mapped = match mapping {
            ColumnMapping::None => None,
            _ => self.metadata.get(PHYSICAL_NAME).and_then(Value::as_str),
        };
        mapped.unwrap_or(&self.name)
    }

    /// Its column mapping id, if there is one.
    pub fn id(&self) -> Option<i64> {
        self.metadata.get(COLUMN_ID).and_then(Value::as_i64)
    }

    /// Whether older files may hold it as float32. Spec: "Type Widening", "Type Change Metadata".
    pub fn was_float(&self) -> bool {
        let changes = self.metadata.get(TYPE_CHANGES).and_then(Value::as_array);
        changes.is_some_and(|changes| {
            changes
                .iter()
                .any(|change| change.get("fromType") == Some(&"float".into()))
        })
    }

    fn to_arrow(&self) -> Field {
        let metadata: Vec<(String, String)> = self
            .metadata
            .iter()
            .map(|(key, value)| {
                (
                    key.clone(),
                    value.as_str().map_or_else(|| value.to_string(), str::to_owned),
                )
            })
            .collect();
        let unread = self
            .data_type
            .unread(0)
            .map(|name| (UNREAD.to_owned(), name.to_owned()));
        let metadata: HashMap<String, String> = metadata.into_iter().chain(unread).collect();
        Field::new(&self.name, self.data_type.to_arrow(), self.nullable).with_metadata(metadata)
    }
}

impl DeltaType {
    /// The first type in it that this release does not read.
    fn unread(&self, depth: usize) -> Option<&str> {
        match self {
            _ if depth > DEPTH_LIMIT => None,
            Self::Unread(name) => Some(name),
            Self::Primitive(_) => None,
            Self::Struct(fields) => fields.iter().find_map(|field| field.data_type.unread(depth + 1)),
            Self::Array(item, _) => item.unread(depth + 1),
            Self::Map(key, value, _) => key.unread(depth + 1).or_else(|| value.unread(depth + 1)),
        }
    }

    /// The type in Arrow: fields keep their metadata.
    pub fn to_arrow(&self) -> DataType {
        match self {
            Self::Primitive(data_type) => data_type.clone(),
            Self::Unread(_) => DataType::Null,
            Self::Struct(fields) => DataType::Struct(fields.iter().map(DeltaField::to_arrow).collect()),
            Self::Array(item, nullable) => DataType::List(Arc::new(Field::new("element", item.to_arrow(), *nullable))),
            Self::Map(key, value, nullable) => {
                let entries: Fields = vec![
                    Field::new("key", key.to_arrow(), false),
                    Field::new("value", value.to_arrow(), *nullable),
                ]
                .into();
                DataType::Map(
                    Arc::new(Field::new("key_value", DataType::Struct(entries), false)),
                    false,
                )
            }
        }
    }
}

/// The columns of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct DeltaSchema {
    /// In their order.
    pub fields: Vec<DeltaField>,
    /// How they map to the columns of files.
    pub mapping: ColumnMapping,
    /// Logical names of the partition columns.
    pub partition_columns: Vec<String>,
}

impl DeltaSchema {
    /// The schema of a table; `version` is for errors.
    pub fn of_metadata(metadata: &Metadata, version: u64) -> Result<Self> {
        let corrupt =
            |message: String| DeltaError::corrupt(commit_path(version), format!("version {version}: {message}"));
        let mapping = match metadata.configuration.get(COLUMN_MAPPING_MODE).map(String::as_str) {
            None | Some("none") => ColumnMapping::None,
            Some("name") => ColumnMapping::Name,
            Some("id") => ColumnMapping::Id,
            Some(other) => {
                return Err(DeltaError::unsupported(format!(
                    "expected column mapping by name or by id, found mode {other}; upgrade esker to read the table"
                )))
            }
        };
        let text = metadata
            .schema_string
            .as_deref()
            .ok_or_else(|| corrupt("expected a schemaString in the metaData action, found none".to_owned()))?;
        let value: Value = serde_json::from_str(text)
            .map_err(|error| corrupt(format!("expected a schema as JSON, found: {error}")))?;
        let fields = parse_fields(&value, 0).map_err(|error| match error {
            DeltaError::InvalidArgument(message) => corrupt(message),
            other => other,
        })?;
        let schema = Self {
            fields,
            mapping,
            partition_columns: metadata.partition_columns.clone(),
        };
        for name in &schema.partition_columns {
            let field = schema.field(name);
            match field.map(|field| &field.data_type) {
                Some(DeltaType::Primitive(_)) => {}
                Some(_) => return Err(corrupt(format!("partition column {name} is of a nested type"))),
                None => return Err(corrupt(format!("partition column {name} is no column of the schema"))),
            }
        }
        Ok(schema)
    }

    /// A column by its logical name.
    pub fn field(&self, name: &str) -> Option<&DeltaField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The partition columns, in the order of the metadata.
    pub fn partition_fields(&self) -> impl Iterator<Item = &DeltaField> {
        self.partition_columns.iter().filter_map(|name| self.field(name))
    }

    /// The schema in Arrow, with the metadata of fields.
    pub fn to_arrow(&self) -> SchemaRef {
        Arc::new(Schema::new(
            self.fields.iter().map(DeltaField::to_arrow).collect::<Vec<_>>(),
        ))
    }
}

fn parse_fields(value: &Value, depth: usize) -> Result<Vec<DeltaField>> {
    let fields = value.get("fields").and_then(Value::as_array);
    let fields =
        fields.ok_or_else(|| DeltaError::invalid("expected a struct with fields in the schema, found none"))?;
    fields.iter().map(|field| parse_field(field, depth)).collect()
}

fn parse_field(value: &Value, depth: usize) -> Result<DeltaField> {
    let name = value.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| DeltaError::invalid("expected a field with a name in the schema, found none"))?;
    let of_type = value
        .get("type")
        .ok_or_else(|| DeltaError::invalid(format!("expected a type of field {name}, found none")))?;
    Ok(DeltaField {
        name: name.to_owned(),
        data_type: parse_type(of_type, name, depth + 1)?,
        nullable: value.get("nullable").and_then(Value::as_bool).unwrap_or(true),
        metadata: value
            .get("metadata")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default(),
    })
}

fn parse_type(value: &Value, field: &str, depth: usize) -> Result<DeltaType> {
    if depth > DEPTH_LIMIT {
        return Err(DeltaError::invalid(format!(
            "field {field} has types within types {DEPTH_LIMIT} levels deep"
        )));
    }
    if let Some(name) = value.as_str() {
        return match is_unread(name) {
            true => Ok(DeltaType::Unread(name.to_owned())),
            false => Ok(DeltaType::Primitive(primitive(name, field)?)),
        };
    }
    let inner = |key: &str| {
        let found = value.get(key);
        found.ok_or_else(|| DeltaError::invalid(format!("expected {key} in the type of field {field}, found none")))
    };
    let flag = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or(true);
    match value.get("type").and_then(Value::as_str) {
        Some("struct") => Ok(DeltaType::Struct(parse_fields(value, depth)?)),
        Some("array") => {
            let item = parse_type(inner("elementType")?, field, depth + 1)?;
            Ok(DeltaType::Array(Box::new(item), flag("containsNull")))
        }
        Some("map") => {
            let key = parse_type(inner("keyType")?, field, depth + 1)?;
            let item = parse_type(inner("valueType")?, field, depth + 1)?;
            Ok(DeltaType::Map(Box::new(key), Box::new(item), flag("valueContainsNull")))
        }
        _ => Err(DeltaError::unsupported(format!(
            "field {field} has a type that this release does not know: {value}"
        ))),
    }
}

/// Types of features that do not affect other columns. Spec: "Variant Data Type", "Geospatial Types".
fn is_unread(name: &str) -> bool {
    name == "variant" || name.starts_with("geometry") || name.starts_with("geography")
}

fn primitive(name: &str, field: &str) -> Result<DataType> {
    Ok(match name {
        "string" => DataType::Utf8,
        "long" => DataType::Int64,
        "integer" => DataType::Int32,
        "short" => DataType::Int16,
        "byte" => DataType::Int8,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "boolean" => DataType::Boolean,
        "binary" => DataType::Binary,
        "date" => DataType::Date32,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
        // A column that is null in every row and that files do not hold.
        "void" => DataType::Null,
        // Their lengths concern writers only.
        _ if name.starts_with("char(") || name.starts_with("varchar(") => DataType::Utf8,
        "decimal" => DataType::Decimal128(10, 0),
        _ => match name.strip_prefix("decimal(").and_then(|rest| rest.strip_suffix(')')) {
            Some(numbers) => decimal(numbers, field)?,
            None => {
                return Err(DeltaError::unsupported(format!(
                    "field {field} is of type {name}, which this release does not have; upgrade esker to read it"
                )))
            }
        },
    })
}

fn decimal(numbers: &str, field: &str) -> Result<DataType> {
    let parsed = numbers.split_once(',').and_then(|(precision, scale)| {
        let precision = u8::from_str(precision.trim()).ok()?;
        let scale = i8::from_str(scale.trim()).ok()?;
        let fits = (1..=38).contains(&precision) && scale >= 0 && i16::from(scale) <= i16::from(precision);
        fits.then_some(DataType::Decimal128(precision, scale))
    });
    parsed.ok_or_else(|| {
        DeltaError::invalid(format!(
            "field {field} is of type decimal({numbers}), which there is not"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(fields: &str, extra: &str) -> Result<DeltaSchema> {
        let text = Value::String(format!("{{\"type\":\"struct\",\"fields\":[{fields}]}}"));
        let metadata = serde_json::from_str(&format!("{{\"schemaString\":{text}{extra}}}")).unwrap();
        DeltaSchema::of_metadata(&metadata, 7)
    }

    #[test]
    fn test_every_type_has_one_in_arrow() {
        let schema = parse(
            r#"{"name":"a","type":"decimal(38,18)"},{"name":"b","type":{"type":"array","elementType":"void","containsNull":false}},
            {"name":"c","type":{"type":"map","keyType":"string","valueType":{"type":"struct","fields":[]},"valueContainsNull":true},"nullable":false},
            {"name":"d","type":"varchar(3)","metadata":{"x":1}},{"name":"e","type":"timestamp_ntz"}"#,
            "",
        )
        .unwrap();
        let arrow = schema.to_arrow();
        assert_eq!(arrow.field(0).data_type(), &DataType::Decimal128(38, 18));
        assert_eq!(arrow.field(3).data_type(), &DataType::Utf8);
        assert_eq!(arrow.field(3).metadata()["x"], "1");
        assert!(!arrow.field(2).is_nullable());
    }

    #[test]
    fn test_what_is_no_schema_is_an_error_with_its_version() {
        for fields in [
            r#"{"name":"a"}"#,
            r#"{"type":"long"}"#,
            r#"{"name":"a","type":"decimal(39,1)"}"#,
            r#"{"name":"a","type":{"type":"array"}}"#,
        ] {
            let message = parse(fields, "").unwrap_err().to_string();
            assert!(
                message.contains("version 7") && message.contains("00007.json"),
                "{message}"
            );
        }
        assert!(parse("", r#","partitionColumns":["p"]"#).is_err());
        let message = parse(r#"{"name":"a","type":"colour"}"#, "").unwrap_err().to_string();
        assert!(message.contains("colour"), "{message}");
    }

    #[test]
    fn test_columns_of_types_that_are_not_read_are_named_and_leave_the_others_alone() {
        let schema = parse(
            r#"{"name":"a","type":"long"},{"name":"v","type":"variant"},
            {"name":"s","type":{"type":"array","elementType":{"type":"struct","fields":[{"name":"g","type":"geometry(OGC:CRS84)"}]}}}"#,
            "",
        )
        .unwrap();
        let arrow = schema.to_arrow();
        assert!(arrow.field(0).metadata().is_empty());
        assert_eq!(arrow.field(1).metadata()[UNREAD], "variant");
        assert_eq!(arrow.field(2).metadata()[UNREAD], "geometry(OGC:CRS84)");
        assert!(parse(r#"{"name":"v","type":"variant"}"#, r#","partitionColumns":["v"]"#).is_err());
    }

    #[test]
    fn test_a_schema_may_not_be_too_deep() {
        let mut of_type = "\"long\"".to_owned();
        for _ in 0..60 {
            of_type = format!("{{\"type\":\"array\",\"elementType\":{of_type}}}");
        }
        parse(&format!("{{\"name\":\"a\",\"type\":{of_type}}}"), "").unwrap();
        for _ in 0..60 {
            of_type = format!("{{\"type\":\"array\",\"elementType\":{of_type}}}");
        }
        assert!(parse(&format!("{{\"name\":\"a\",\"type\":{of_type}}}"), "").is_err());
    }

    proptest! {
        #[test]
        fn test_any_type_name_is_a_type_or_an_error(name in "[a-z(),0-9 ]{0,20}") {
            let _ = primitive(&name, "a");
        }
    }
}
