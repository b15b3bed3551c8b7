//! Projections: the fields to read, and the columns of the output.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Schema as ArrowSchema, SchemaRef};
use esker_file::schema::{parts_of, BlobView, Field, Schema};
use esker_file::Dictionaries;

use super::top_fields::TopFields;
use crate::error::{Result, TableError};

/// The columns of a read, in output order.
#[derive(Debug, Clone)]
pub struct Projection {
    columns: Vec<Column>,
    schema: SchemaRef,
    dictionaries: Arc<Dictionaries>,
}

#[derive(Debug, Clone)]
struct Column {
    /// The top-level field to read, pruned to the wanted children.
    read: Field,
    /// The path from the field that is read to the output value.
    path: Vec<String>,
    output: FieldRef,
}

impl Projection {
    /// All columns, or those named: top-level columns and dotted paths. A dotted path becomes a column of that name.
    pub fn new(schema: &Schema, names: Option<&[String]>) -> Result<Projection> {
        let columns = match names {
            None => schema.fields.iter().map(Column::whole).collect::<Result<Vec<_>>>()?,
            Some(names) => {
                let known = TopFields::of(schema, names.len());
                let columns = names.iter().map(|name| Column::named(&known, name));
                columns.collect::<Result<Vec<_>>>()?
            }
        };
        let fields: Vec<FieldRef> = columns.iter().map(|c| c.output.clone()).collect();
        let metadata = schema.arrow_metadata();
        Ok(Projection {
            columns,
            schema: Arc::new(ArrowSchema::new_with_metadata(fields, metadata)),
            dictionaries: Arc::default(),
        })
    }

    /// The same columns, with the values that a table's manifest holds for dictionary columns.
    #[must_use]
    pub fn with_dictionaries(self, dictionaries: Arc<Dictionaries>) -> Projection {
        Projection { dictionaries, ..self }
    }

    /// The values of dictionary columns that the table has.
    pub fn dictionaries(&self) -> &Arc<Dictionaries> {
        &self.dictionaries
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether a column has a dictionary, of which arrays that are read apart have one each.
    pub(super) fn has_dictionaries(&self) -> bool {
        let mut fields = self.schema.fields().iter();
        fields.any(|field| has_dictionary(field.data_type()))
    }

    /// The fields to read, one for each output column.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.columns.iter().map(|c| &c.read)
    }

    /// The field of an output column that is a top-level one as a whole.
    pub(super) fn top_level(&self, index: usize) -> Option<&Field> {
        let column = self.columns.get(index).filter(|column| column.path.is_empty())?;
        Some(&column.read)
    }

    /// The same columns with the descriptions of blobs instead of their bytes.
    pub(super) fn located(&self) -> Projection {
        let columns = self.columns.iter().map(|column| Column {
            read: column.read.with_blob_view(BlobView::Located),
            ..column.clone()
        });
        Projection {
            columns: columns.collect(),
            ..self.clone()
        }
    }

    /// Extracts the output column `index` from the array that was read for it.
    pub fn extract(&self, index: usize, array: ArrayRef) -> ArrayRef {
        let path = self.columns.get(index).map(|c| c.path.as_slice()).unwrap_or_default();
        let mut array = array;
        for name in path {
            let Some(parent) = array.as_struct_opt() else {
                return array;
            };
            let Some(child) = parent.column_by_name(name).cloned() else {
                return array;
            };
            array = match (parent.nulls(), child.nulls()) {
                (None, _) => child,
                (Some(nulls), _) => with_parent_nulls(&child, nulls),
            };
        }
        array
    }
}

fn has_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, _) => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_dictionary(field.data_type())),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_dictionary(item.data_type()),
        _ => false,
    }
}

/// The child, masked by the nulls of its parent.
fn with_parent_nulls(child: &ArrayRef, nulls: &arrow_buffer::NullBuffer) -> ArrayRef {
    let nulls = arrow_buffer::NullBuffer::union(Some(nulls), child.nulls());
    let data = child.to_data().into_builder().nulls(nulls).build();
    data.map_or_else(|_| child.clone(), arrow_array::make_array)
}

impl Column {
    fn whole(field: &Field) -> Result<Column> {
        Ok(Column {
            read: field.clone(),
            path: Vec::new(),
            output: Arc::new(field.to_arrow()?),
        })
    }

    fn named(known: &TopFields<'_>, name: &str) -> Result<Column> {
        if let Some(field) = known.get(name) {
            return Column::whole(field);
        }
        let parts = parts_of(name);
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let unknown = || {
            let known: Vec<&str> = known.schema().fields.iter().map(|f| f.name.as_str()).collect();
            TableError::UnknownColumn {
                column: name.to_string(),
                message: format!(
                    "expected a column of the table, found '{name}'; there are: {}",
                    known.join(", ")
                ),
            }
        };
        let (first, rest) = parts.split_first().ok_or_else(unknown)?;
        let root = known.get(first).ok_or_else(unknown)?;
        let (read, leaf) = cut(root, rest).ok_or_else(unknown)?;
        let leaf_arrow = leaf.to_arrow()?;
        let output = ArrowField::new(name, leaf_arrow.data_type().clone(), any_nullable(root, rest))
            .with_metadata(leaf_arrow.metadata().clone());
        Ok(Column {
            read,
            path: rest.iter().map(ToString::to_string).collect(),
            output: Arc::new(output),
        })
    }
}

/// Whether the value at the end of `path` may be null, which it may if any field along the path may be.
fn any_nullable(field: &Field, path: &[&str]) -> bool {
    let below = path
        .split_first()
        .and_then(|(name, rest)| Some((field.child(name)?, rest)));
    field.nullable || below.is_some_and(|(child, rest)| any_nullable(&child, rest))
}

/// The field pruned to the children along `path`, and the field at its end. A packed struct and the description of a blob are not pruned.
fn cut(field: &Field, path: &[&str]) -> Option<(Field, Field)> {
    let Some((name, rest)) = path.split_first() else {
        return Some((field.clone(), field.clone()));
    };
    if !field.is_struct() && !field.is_blob() {
        return None;
    }
    let (child, leaf) = cut(&field.child(name)?, rest)?;
    let children = if field.is_packed_struct() || field.is_blob() {
        field.children.clone()
    } else {
        vec![child]
    };
    Some((
        Field {
            children,
            ..field.clone()
        },
        leaf,
    ))
}
