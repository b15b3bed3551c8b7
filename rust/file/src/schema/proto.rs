//! Converts between the schema tree and the flattened list of protobuf fields.

use std::collections::BTreeMap;

use bytes::Bytes;
use esker_proto::lance::file as pb;

use super::field::{Field, Schema};
use crate::error::{FileError, Result};

const EXTENSION_NAME: &str = "ARROW:extension:name";

/// The deepest schema: a deeper one is corrupt, or an attack on the stack.
const MAX_DEPTH: usize = 100;

impl Schema {
    /// A schema from the flattened list that files and manifests hold.
    pub fn from_protos(fields: &[pb::Field], metadata: &BTreeMap<String, Bytes>) -> Result<Schema> {
        // Files list the fields of blob descriptions like columns, but without ids. They are implied by the blob field.
        let fields: Vec<&pb::Field> = fields.iter().filter(|field| field.id >= 0).collect();
        let mut children: BTreeMap<i32, Vec<&pb::Field>> = BTreeMap::new();
        for &field in &fields {
            children.entry(field.parent_id).or_default().push(field);
        }
        let roots = children.get(&-1).cloned().unwrap_or_default();
        let mut placed = 0;
        let fields_tree = roots
            .iter()
            .map(|field| build(field, &children, 0, &mut placed))
            .collect::<Result<Vec<_>>>()?;
        if placed != fields.len() {
            return Err(FileError::invalid(format!(
                "expected every field of the schema to have a parent, found {} of {} without one; the schema is damaged",
                fields.len().saturating_sub(placed),
                fields.len()
            )));
        }
        let metadata = metadata.iter().map(|(k, v)| (k.clone(), v.to_vec())).collect();
        Ok(Schema {
            fields: fields_tree,
            metadata,
        })
    }

    /// The flattened list, parents before their children.
    pub fn to_protos(&self) -> Vec<pb::Field> {
        let mut out = Vec::new();
        for field in &self.fields {
            flatten(field, -1, &mut out);
        }
        out
    }

    /// The key-values as protobuf holds them.
    pub fn proto_metadata(&self) -> BTreeMap<String, Bytes> {
        self.metadata
            .iter()
            .map(|(k, v)| (k.clone(), Bytes::from(v.clone())))
            .collect()
    }
}

fn build(
    proto: &pb::Field,
    children: &BTreeMap<i32, Vec<&pb::Field>>,
    depth: usize,
    placed: &mut usize,
) -> Result<Field> {
    if depth > MAX_DEPTH {
        return Err(FileError::invalid(format!(
            "expected a schema at most {MAX_DEPTH} levels deep, found more at field '{}'",
            proto.name
        )));
    }
    *placed = placed.saturating_add(1);
    let below = children.get(&proto.id).filter(|_| proto.id >= 0);
    let below = below.map(Vec::as_slice).unwrap_or_default();
    let mut metadata: BTreeMap<String, Vec<u8>> = proto.metadata.iter().map(|(k, v)| (k.clone(), v.to_vec())).collect();
    if !proto.extension_name.is_empty() {
        metadata
            .entry(EXTENSION_NAME.into())
            .or_insert_with(|| proto.extension_name.clone().into_bytes());
    }
    Ok(Field {
        id: proto.id,
        name: proto.name.clone(),
        logical_type: proto.logical_type.clone(),
        nullable: proto.nullable,
        metadata,
        children: below
            .iter()
            .map(|c| build(c, children, depth + 1, placed))
            .collect::<Result<Vec<_>>>()?,
        unenforced_primary_key: proto.unenforced_primary_key,
        primary_key_position: proto.unenforced_primary_key_position,
        clustering_key_position: proto.unenforced_clustering_key_position,
        dictionary: proto.dictionary.as_ref().map(|d| (d.offset, d.length)),
        blob_view: None,
    })
}

fn flatten(field: &Field, parent_id: i32, out: &mut Vec<pb::Field>) {
    let kind = if field.is_struct() {
        pb::field::Type::Parent
    } else if field.is_list() {
        pb::field::Type::Repeated
    } else {
        pb::field::Type::Leaf
    };
    out.push(pb::Field {
        r#type: kind.into(),
        name: field.name.clone(),
        id: field.id,
        parent_id,
        logical_type: field.logical_type.clone(),
        nullable: field.nullable,
        encoding: encoding_of(field).into(),
        dictionary: field
            .dictionary
            .map(|(offset, length)| pb::Dictionary { offset, length }),
        extension_name: field.metadata_text(EXTENSION_NAME).unwrap_or_default().to_string(),
        metadata: field
            .metadata
            .iter()
            .map(|(k, v)| (k.clone(), Bytes::from(v.clone())))
            .collect(),
        unenforced_primary_key: field.unenforced_primary_key,
        unenforced_primary_key_position: field.primary_key_position,
        unenforced_clustering_key_position: field.clustering_key_position,
    });
    for child in &field.children {
        flatten(child, field.id, out);
    }
}

/// The encoding for 0.1 readers; other versions carry it along and ignore it.
fn encoding_of(field: &Field) -> pb::Encoding {
    match field.logical_type.as_str() {
        "struct" | "null" => pb::Encoding::None,
        "string" | "binary" | "large_string" | "large_binary" | "json" => pb::Encoding::VarBinary,
        name if name.starts_with("dict:") => pb::Encoding::Dictionary,
        _ => pb::Encoding::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
    use std::sync::Arc;

    #[test]
    fn test_a_nested_schema_survives_the_flattened_list() {
        let item = ArrowField::new(
            "item",
            DataType::Struct(vec![ArrowField::new("x", DataType::Int8, true)].into()),
            true,
        );
        let arrow = ArrowSchema::new(vec![
            ArrowField::new("a", DataType::LargeList(Arc::new(item)), true),
            ArrowField::new("b", DataType::Utf8, false).with_metadata([("k".to_string(), "v".to_string())].into()),
        ]);
        let schema = Schema::from_arrow(&arrow).unwrap();
        assert_eq!(
            schema.flat_fields().iter().map(|f| f.id).collect::<Vec<_>>(),
            vec![0, 1, 2, 3]
        );
        let again = Schema::from_protos(&schema.to_protos(), &schema.proto_metadata()).unwrap();
        assert_eq!(again, schema);
        assert_eq!(again.to_arrow().unwrap(), arrow);
    }

    #[test]
    fn test_fields_that_are_their_own_parents_are_refused() {
        let mut loops = pb::Field {
            id: 1,
            parent_id: 2,
            ..Default::default()
        };
        let mut other = pb::Field {
            id: 2,
            parent_id: 1,
            ..Default::default()
        };
        assert!(Schema::from_protos(&[loops.clone(), other.clone()], &BTreeMap::new()).is_err());
        loops.parent_id = -1;
        other.id = 1;
        assert!(Schema::from_protos(&[loops, other], &BTreeMap::new()).is_err());
    }
}
