//! The columns that an operation gives a table.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use esker_file::schema::Schema;
use esker_proto::lance::file;
use prost::Message;

use crate::error::{Result, TableError};

/// All columns of a table, as encoded fields in depth-first order, and the schema's own key-values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewSchema {
    fields: Vec<Bytes>,
    metadata: BTreeMap<String, Bytes>,
}

impl NewSchema {
    pub(super) fn new(fields: Vec<Bytes>, metadata: BTreeMap<String, Bytes>) -> Self {
        Self { fields, metadata }
    }

    /// The encoded fields.
    pub fn fields(&self) -> &[Bytes] {
        &self.fields
    }

    /// The schema's own key-values.
    pub fn metadata(&self) -> &BTreeMap<String, Bytes> {
        &self.metadata
    }

    pub(super) fn encoded_fields(&self) -> Vec<Vec<u8>> {
        self.fields.iter().map(|field| field.to_vec()).collect()
    }

    pub(crate) fn decoded(&self) -> Result<Vec<file::Field>> {
        let decode = |field: &Bytes| file::Field::decode(field.clone());
        let decoded = self.fields.iter().map(decode).collect::<Result<Vec<_>, _>>();
        decoded.map_err(|error| TableError::corrupt("schema of a transaction", error.to_string()))
    }

    /// The ids of all fields, nested ones included.
    pub fn field_ids(&self) -> Result<HashSet<i32>> {
        Ok(self.decoded()?.into_iter().map(|field| field.id).collect())
    }

    /// The columns as a tree.
    pub fn schema(&self) -> Result<Schema> {
        Ok(Schema::from_protos(&self.decoded()?, &self.metadata)?)
    }
}

impl From<&Schema> for NewSchema {
    fn from(schema: &Schema) -> Self {
        let encode = |field: file::Field| Bytes::from(field.encode_to_vec());
        Self {
            fields: schema.to_protos().into_iter().map(encode).collect(),
            metadata: schema.proto_metadata(),
        }
    }
}
