//! Converts between the schema tree and Arrow's schema.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema};

use super::field::{Field, Schema};
use super::keys::DeclaredKeys;
use super::logical_type::{data_type_from_logical, logical_from_data_type};
use super::names::check_siblings;
use crate::error::{FileError, Result};
use crate::version::FileVersion;

const EXTENSION_NAME: &str = "ARROW:extension:name";

impl Field {
    /// The Arrow type of this field, children included.
    pub fn data_type(&self) -> Result<DataType> {
        if let Some(data_type) = self.viewed_type() {
            return Ok(data_type);
        }
        match self.logical_type.as_str() {
            "struct" => {
                let children = self.children.iter().map(Field::to_arrow).collect::<Result<Vec<_>>>()?;
                Ok(DataType::Struct(Fields::from(children)))
            }
            "list" | "list.struct" => Ok(DataType::List(Arc::new(self.item()?.to_arrow()?))),
            "large_list" | "large_list.struct" => Ok(DataType::LargeList(Arc::new(self.item()?.to_arrow()?))),
            "map" => Ok(DataType::Map(Arc::new(self.item()?.to_arrow()?), false)),
            name if !self.children.is_empty() => {
                let size = name
                    .strip_prefix("fixed_size_list:struct:")
                    .and_then(|size| size.parse().ok());
                let size = size.filter(|size| *size >= 0).ok_or_else(|| {
                    FileError::unsupported(format!(
                        "column '{}': expected a nested type that this release knows, found '{name}'; a newer esker may read it",
                        self.name
                    ))
                })?;
                Ok(DataType::FixedSizeList(Arc::new(self.item()?.to_arrow()?), size))
            }
            name => {
                data_type_from_logical(name).map_err(|e| FileError::unsupported(format!("column '{}': {e}", self.name)))
            }
        }
    }

    /// The item field of a list.
    pub fn item(&self) -> Result<&Field> {
        match self.children.as_slice() {
            [item] => Ok(item),
            other => Err(FileError::invalid(format!(
                "column '{}': expected one item field below a list, found {}; the schema is damaged",
                self.name,
                other.len()
            ))),
        }
    }

    /// This field as Arrow knows it.
    pub fn to_arrow(&self) -> Result<ArrowField> {
        if let Some(field) = self.viewed_field() {
            return Ok(field);
        }
        let mut metadata: HashMap<String, String> = self
            .metadata
            .iter()
            .map(|(k, v)| (k.clone(), String::from_utf8_lossy(v).into_owned()))
            .collect();
        if self.logical_type == "json" {
            metadata.insert(EXTENSION_NAME.into(), "lance.json".into());
        }
        Ok(ArrowField::new(&self.name, self.data_type()?, self.nullable).with_metadata(metadata))
    }

    /// A field, without an id, from Arrow's. View types are taken as the plain types that they are cast to.
    pub fn from_arrow(field: &ArrowField) -> Result<Field> {
        let data_type = plain_type(field.data_type());
        let unsupported = || FileError::UnsupportedColumn {
            column: field.name().clone(),
            data_type: field.data_type().to_string(),
            version: FileVersion::V2_0,
            what: "it, and no other file version can; cast it first".into(),
        };
        let children = match &data_type {
            DataType::Struct(fields) => fields
                .iter()
                .map(|f| Field::from_arrow(f))
                .collect::<Result<Vec<_>>>()?,
            DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => vec![Field::from_arrow(item)?],
            DataType::FixedSizeList(item, _) if matches!(item.data_type(), DataType::Struct(_)) => {
                vec![Field::from_arrow(item)?]
            }
            _ => vec![],
        };
        let extension = field.metadata().get(EXTENSION_NAME).map(String::as_str);
        let logical_type = match extension {
            Some("lance.json" | "arrow.json") => "json".to_string(),
            _ => logical_from_data_type(&data_type).ok_or_else(unsupported)?,
        };
        let mut metadata: BTreeMap<String, Vec<u8>> = field
            .metadata()
            .iter()
            .map(|(k, v)| (k.clone(), v.clone().into_bytes()))
            .collect();
        if logical_type == "json" {
            metadata.insert(EXTENSION_NAME.into(), b"lance.json".to_vec());
        }
        let declared = DeclaredKeys::of(|key| field.metadata().get(key).map(String::as_str));
        Ok(Field {
            id: -1,
            name: field.name().clone(),
            logical_type,
            nullable: field.is_nullable(),
            metadata,
            children,
            unenforced_primary_key: declared.is_primary,
            primary_key_position: declared.primary_position,
            clustering_key_position: declared.clustering_position,
            dictionary: None,
            blob_view: None,
        })
    }
}

/// The type that a view type is cast to before it is written.
fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::ListView(item) => DataType::List(item.clone()),
        DataType::LargeListView(item) => DataType::LargeList(item.clone()),
        other => other.clone(),
    }
}

impl Schema {
    /// The schema as Arrow knows it.
    pub fn to_arrow(&self) -> Result<ArrowSchema> {
        let fields = self.fields.iter().map(Field::to_arrow).collect::<Result<Vec<_>>>()?;
        Ok(ArrowSchema::new_with_metadata(fields, self.arrow_metadata()))
    }

    /// The schema's own key-values as Arrow knows them.
    pub fn arrow_metadata(&self) -> HashMap<String, String> {
        let pairs = self.metadata.iter();
        pairs
            .map(|(k, v)| (k.clone(), String::from_utf8_lossy(v).into_owned()))
            .collect()
    }

    /// A schema from Arrow's, its fields numbered from 0, parents before their children.
    pub fn from_arrow(schema: &ArrowSchema) -> Result<Schema> {
        let fields = schema
            .fields()
            .iter()
            .map(|f| Field::from_arrow(f))
            .collect::<Result<Vec<_>>>()?;
        let metadata = schema
            .metadata()
            .iter()
            .map(|(k, v)| (k.clone(), v.clone().into_bytes()))
            .collect();
        check_siblings(&fields)?;
        let mut schema = Schema { fields, metadata };
        schema.assign_ids(0);
        Ok(schema)
    }
}
