//! Blob columns: large values stored outside of the pages, and the forms in which they can be read.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field as ArrowField, Fields};

use super::field::{Field, Schema};
use crate::error::Result;

/// Field metadata that marks a large_binary column as blobs; whatever its value, as in other readers.
pub(super) const BLOB_KEY: &str = "lance-encoding:blob";

/// The Arrow extension that marks a blob column of the second kind.
pub const BLOB_V2_EXTENSION: &str = "lance.blob.v2";

const EXTENSION_NAME: &str = "ARROW:extension:name";

/// The two kinds of blob columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobKind {
    /// large_binary with `lance-encoding:blob`: payloads within the data file.
    V1,
    /// The extension type `lance.blob.v2`: payloads within the data file, in files beside it, or anywhere.
    V2,
}

/// How a read shows blob columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlobView {
    /// The values themselves.
    Bytes,
    /// Their descriptions as stored: a null of a 2.0 file has position 1 and size 0.
    #[default]
    Descriptions,
    /// Their descriptions with proper nulls in every version: for filters, and for locating the bytes.
    Located,
}

static DESCRIPTION_V1: LazyLock<Fields> = LazyLock::new(|| {
    Fields::from(vec![
        ArrowField::new("position", DataType::UInt64, true),
        ArrowField::new("size", DataType::UInt64, true),
    ])
});

static DESCRIPTION_V2: LazyLock<Fields> = LazyLock::new(|| {
    Fields::from(vec![
        ArrowField::new("kind", DataType::UInt8, false),
        ArrowField::new("position", DataType::UInt64, false),
        ArrowField::new("size", DataType::UInt64, false),
        ArrowField::new("blob_id", DataType::UInt32, false),
        ArrowField::new("blob_uri", DataType::Utf8, false),
    ])
});

impl BlobKind {
    /// The fields of a description.
    pub fn description(self) -> &'static Fields {
        match self {
            BlobKind::V1 => &DESCRIPTION_V1,
            BlobKind::V2 => &DESCRIPTION_V2,
        }
    }
}

impl Field {
    /// The kind of blob column; `None` for any other column.
    pub fn blob_kind(&self) -> Option<BlobKind> {
        if self.metadata_text(EXTENSION_NAME) == Some(BLOB_V2_EXTENSION) {
            return Some(BlobKind::V2);
        }
        let is_marked = self.metadata.contains_key(BLOB_KEY);
        // A file of version 2.2 marks the struct of descriptions itself.
        is_marked.then_some(if self.is_struct() { BlobKind::V2 } else { BlobKind::V1 })
    }

    /// True for a column whose values are stored out of line.
    pub fn is_blob(&self) -> bool {
        self.blob_kind().is_some()
    }

    /// True for a blob column, and for one that holds such.
    pub fn has_blobs(&self) -> bool {
        self.is_blob() || self.children.iter().any(Field::has_blobs)
    }

    /// The same field, with the blobs at it and below it shown in a form.
    pub fn with_blob_view(&self, view: BlobView) -> Field {
        let mut field = self.clone();
        field.set_blob_view(view);
        field
    }

    /// The child of that name: of a struct, or of a blob column's descriptions.
    pub fn child(&self, name: &str) -> Option<Field> {
        let described = matches!(self.blob_view, Some(BlobView::Descriptions | BlobView::Located));
        let Some(kind) = self.blob_kind().filter(|_| described) else {
            return self.children.iter().find(|child| child.name == name).cloned();
        };
        let found = kind.description().iter().find(|field| field.name() == name)?;
        Field::from_arrow(found).ok()
    }

    fn set_blob_view(&mut self, view: BlobView) {
        if self.is_blob() {
            self.blob_view = Some(view);
            return;
        }
        for child in &mut self.children {
            child.set_blob_view(view);
        }
    }

    /// The type of what a writer puts into pages: descriptions for blobs.
    pub(crate) fn stored_type(&self) -> Result<DataType> {
        match self.blob_kind() {
            Some(kind) => Ok(description_type(kind)),
            None => self.data_type(),
        }
    }

    /// The field as a data file of version 2.2 describes itself: blobs of the second kind are packed structs of descriptions.
    fn described(&self) -> Result<Field> {
        if self.blob_kind() != Some(BlobKind::V2) {
            let children = self.children.iter().map(Field::described).collect::<Result<_>>()?;
            return Ok(Field {
                children,
                ..self.clone()
            });
        }
        let children = BlobKind::V2.description().iter().map(|field| Field::from_arrow(field));
        let marks = [BLOB_KEY, "lance-encoding:packed"].map(|key| (key.to_string(), b"true".to_vec()));
        Ok(Field {
            children: children.collect::<Result<_>>()?,
            metadata: marks.into(),
            ..self.clone()
        })
    }

    /// The form that was asked for; descriptions where a file of version 2.2 itself knows no other.
    fn view(&self) -> Option<BlobView> {
        let bare = self.is_struct() && self.children.is_empty();
        self.blob_view.or(bare.then_some(BlobView::Descriptions))
    }

    /// The type that a read shows a blob column as; none for a column as it is stored.
    pub(super) fn viewed_type(&self) -> Option<DataType> {
        let kind = self.blob_kind()?;
        Some(match self.view()? {
            BlobView::Bytes => DataType::LargeBinary,
            BlobView::Descriptions | BlobView::Located => DataType::Struct(kind.description().clone()),
        })
    }

    /// The Arrow field that a read shows a blob column as; none for a column as it is stored.
    pub(super) fn viewed_field(&self) -> Option<ArrowField> {
        let field = ArrowField::new(&self.name, self.viewed_type()?, self.nullable);
        let text = |value: &str| value.to_string();
        let metadata = match (self.blob_kind()?, self.view()?) {
            (BlobKind::V1, _) => self
                .metadata
                .iter()
                .map(|(k, v)| (k.clone(), String::from_utf8_lossy(v).into_owned()))
                .collect(),
            (BlobKind::V2, BlobView::Bytes) => Default::default(),
            (BlobKind::V2, _) => [(BLOB_KEY, "true"), ("lance-encoding:packed", "true")]
                .map(|(k, v)| (text(k), text(v)))
                .into(),
        };
        Some(field.with_metadata(metadata))
    }
}

impl Schema {
    /// The schema as a data file holds it.
    pub(crate) fn described(&self) -> Result<Schema> {
        Ok(Schema {
            fields: self.fields.iter().map(Field::described).collect::<Result<_>>()?,
            metadata: self.metadata.clone(),
        })
    }

    /// The same schema, with all blobs shown in a form. One without blobs is not copied.
    pub fn with_blob_view(self: &Arc<Self>, view: BlobView) -> Arc<Schema> {
        if !self.fields.iter().any(Field::has_blobs) {
            return self.clone();
        }
        Arc::new(Schema {
            fields: self.fields.iter().map(|field| field.with_blob_view(view)).collect(),
            metadata: self.metadata.clone(),
        })
    }
}

/// The description type of a kind.
pub(crate) fn description_type(kind: BlobKind) -> DataType {
    DataType::Struct(kind.description().clone())
}

/// An item field with another type, for lists whose items are shown otherwise.
pub(crate) fn retyped(field: &Arc<ArrowField>, data_type: &DataType) -> Arc<ArrowField> {
    Arc::new(field.as_ref().clone().with_data_type(data_type.clone()))
}
