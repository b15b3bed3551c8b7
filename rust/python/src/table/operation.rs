//! `Operation`.

use std::collections::BTreeMap;

use bytes::Bytes;
use esker_proto::lance::table::transaction as op;
use esker_table::index::parse_uuid;
use esker_table::operation::{
    MapUpdate, NewSchema, Operation, Rewrite, RewriteGroup, RewrittenIndex, Update, UpdateConfig, UpdateMode,
};
use esker_table::TableError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::base_path::{base_path, base_path_parts, PyBasePath};
use super::data_file::PyDataFile;
use super::fragment::PyFragment;
use super::index::PyIndex;
use crate::error::Result;
use crate::schema::PySchema;

/// What a transaction does.
#[pyclass(name = "Operation", module = "esker._native.table", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct PyOperation(pub(crate) Operation);

/// Old and new fragments of a group.
type Group = (Vec<PyFragment>, Vec<PyFragment>);
/// Old id, new id, type URL and bytes of the details, version.
type Reindexed = (String, String, String, Vec<u8>, u32);
/// Entries, and whether they replace all others.
type MapChange = (BTreeMap<String, Option<String>>, bool);

fn fragments(fragments: Vec<PyFragment>) -> Vec<esker_table::fragment::Fragment> {
    fragments.into_iter().map(|fragment| fragment.0).collect()
}

fn py_fragments(fragments: &[esker_table::fragment::Fragment]) -> Vec<PyFragment> {
    fragments.iter().cloned().map(PyFragment).collect()
}

fn py_schema(schema: &NewSchema) -> Result<PySchema> {
    Ok(schema.schema()?.into())
}

fn map_update((entries, replace): MapChange) -> MapUpdate {
    MapUpdate { entries, replace }
}

fn map_change(update: &MapUpdate) -> MapChange {
    (update.entries.clone(), update.replace)
}

#[pymethods]
impl PyOperation {
    #[staticmethod]
    #[pyo3(name = "append")]
    fn append(fragments: Vec<PyFragment>) -> Self {
        let fragments = self::fragments(fragments);
        PyOperation(Operation::Append { fragments })
    }

    #[staticmethod]
    fn delete(updated_fragments: Vec<PyFragment>, deleted_fragment_ids: Vec<u64>, predicate: String) -> Self {
        PyOperation(Operation::Delete {
            updated_fragments: fragments(updated_fragments),
            deleted_fragment_ids,
            predicate,
        })
    }

    #[staticmethod]
    #[pyo3(signature = (fragments, schema, *, config = None, initial_bases = Vec::new()))]
    fn overwrite(
        fragments: Vec<PyFragment>,
        schema: &PySchema,
        config: Option<BTreeMap<String, String>>,
        initial_bases: Vec<PyBasePath>,
    ) -> Self {
        PyOperation(Operation::Overwrite {
            fragments: self::fragments(fragments),
            schema: NewSchema::from(schema.0.as_ref()),
            config: config.unwrap_or_default(),
            initial_bases: initial_bases.into_iter().map(base_path).collect(),
        })
    }

    #[staticmethod]
    fn update_bases(new_bases: Vec<PyBasePath>) -> Self {
        PyOperation(Operation::UpdateBases {
            new_bases: new_bases.into_iter().map(base_path).collect(),
        })
    }

    #[staticmethod]
    #[pyo3(signature = (*, is_shallow, ref_name, ref_version, ref_path))]
    fn clone_of(is_shallow: bool, ref_name: Option<String>, ref_version: u64, ref_path: String) -> Self {
        PyOperation(Operation::Clone(op::Clone {
            is_shallow,
            ref_name,
            ref_version,
            ref_path,
            branch_name: None,
        }))
    }

    #[staticmethod]
    fn create_index(new_indices: Vec<PyIndex>, removed_indices: Vec<PyIndex>) -> Self {
        let indices = |indices: Vec<PyIndex>| indices.into_iter().map(|index| index.0).collect();
        PyOperation(Operation::CreateIndex {
            new_indices: indices(new_indices),
            removed_indices: indices(removed_indices),
        })
    }

    #[staticmethod]
    fn rewrite(groups: Vec<Group>, rewritten_indices: Vec<Reindexed>) -> Result<Self> {
        let group = |(old, new)| RewriteGroup {
            old_fragments: fragments(old),
            new_fragments: fragments(new),
        };
        let index = |(old_id, new_id, type_url, value, new_version): Reindexed| -> Result<RewrittenIndex> {
            Ok(RewrittenIndex {
                old_id: parse_uuid(&old_id)?,
                new_id: parse_uuid(&new_id)?,
                new_details: (!type_url.is_empty()).then(|| (type_url, Bytes::from(value))),
                new_version,
                new_files: Vec::new(),
            })
        };
        Ok(PyOperation(Operation::Rewrite(Rewrite {
            groups: groups.into_iter().map(group).collect(),
            rewritten_indices: rewritten_indices.into_iter().map(index).collect::<Result<_>>()?,
        })))
    }

    #[staticmethod]
    #[pyo3(signature = (fragments, schema, *, preserves_nullability = false))]
    fn merge(fragments: Vec<PyFragment>, schema: &PySchema, preserves_nullability: bool) -> Self {
        PyOperation(Operation::Merge {
            fragments: self::fragments(fragments),
            schema: NewSchema::from(schema.0.as_ref()),
            preserves_nullability,
        })
    }

    #[staticmethod]
    fn restore(version: u64) -> Self {
        PyOperation(Operation::Restore { version })
    }

    #[staticmethod]
    fn reserve_fragments(num_fragments: u32) -> Self {
        PyOperation(Operation::ReserveFragments { num_fragments })
    }

    #[staticmethod]
    #[pyo3(signature = (*, removed_fragment_ids = Vec::new(), updated_fragments = Vec::new(), new_fragments = Vec::new(), fields_modified = Vec::new(), fields_for_preserving_frag_bitmap = Vec::new(), update_mode = "rewrite_rows", inserted_rows = Vec::new(), updated_fragment_offsets = BTreeMap::new()))]
    #[allow(clippy::too_many_arguments)]
    fn update(
        removed_fragment_ids: Vec<u64>,
        updated_fragments: Vec<PyFragment>,
        new_fragments: Vec<PyFragment>,
        fields_modified: Vec<u32>,
        fields_for_preserving_frag_bitmap: Vec<u32>,
        update_mode: &str,
        inserted_rows: Vec<u8>,
        updated_fragment_offsets: BTreeMap<u64, Vec<u8>>,
    ) -> Result<Self> {
        let update_mode = match update_mode {
            "rewrite_rows" => UpdateMode::RewriteRows,
            "rewrite_columns" => UpdateMode::RewriteColumns,
            other => {
                let message = format!("expected update_mode rewrite_rows or rewrite_columns, found {other:?}");
                return Err(TableError::invalid(message).into());
            }
        };
        let offsets = updated_fragment_offsets.into_iter();
        let update = Update {
            removed_fragment_ids,
            updated_fragments: fragments(updated_fragments),
            new_fragments: fragments(new_fragments),
            fields_modified,
            fields_for_preserving_frag_bitmap,
            update_mode,
            mem_wal_to_merge: Bytes::new(),
            inserted_rows: Bytes::from(inserted_rows),
            updated_fragment_offsets: offsets.map(|(id, rows)| (id, Bytes::from(rows))).collect(),
        };
        update.check()?;
        Ok(PyOperation(Operation::Update(update)))
    }

    #[staticmethod]
    #[pyo3(signature = (schema, *, preserves_nullability = false))]
    fn project(schema: &PySchema, preserves_nullability: bool) -> Self {
        PyOperation(Operation::Project {
            schema: NewSchema::from(schema.0.as_ref()),
            preserves_nullability,
        })
    }

    #[staticmethod]
    #[pyo3(signature = (*, config_updates = None, table_metadata_updates = None, schema_metadata_updates = None, field_metadata_updates = BTreeMap::new()))]
    fn update_config(
        config_updates: Option<MapChange>,
        table_metadata_updates: Option<MapChange>,
        schema_metadata_updates: Option<MapChange>,
        field_metadata_updates: BTreeMap<i32, MapChange>,
    ) -> Self {
        let fields = field_metadata_updates.into_iter();
        PyOperation(Operation::UpdateConfig(UpdateConfig {
            config: config_updates.map(map_update),
            table_metadata: table_metadata_updates.map(map_update),
            schema_metadata: schema_metadata_updates.map(map_update),
            field_metadata: fields.map(|(id, change)| (id, map_update(change))).collect(),
        }))
    }

    #[staticmethod]
    fn data_replacement(replacements: Vec<(u64, PyDataFile)>) -> Self {
        let replacements = replacements.into_iter().map(|(id, file)| (id, file.0)).collect();
        PyOperation(Operation::DataReplacement { replacements })
    }

    #[getter]
    fn name(&self) -> &'static str {
        self.0.kind().name()
    }

    /// The arguments that make it, by name.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        match &self.0 {
            Operation::Append { fragments } => dict.set_item("fragments", py_fragments(fragments))?,
            Operation::Delete {
                updated_fragments,
                deleted_fragment_ids,
                predicate,
            } => {
                dict.set_item("updated_fragments", py_fragments(updated_fragments))?;
                dict.set_item("deleted_fragment_ids", deleted_fragment_ids)?;
                dict.set_item("predicate", predicate)?;
            }
            Operation::Overwrite {
                fragments,
                schema,
                config,
                initial_bases,
            } => {
                dict.set_item("fragments", py_fragments(fragments))?;
                dict.set_item("schema", py_schema(schema)?)?;
                dict.set_item("config", config)?;
                dict.set_item(
                    "initial_bases",
                    initial_bases.iter().map(base_path_parts).collect::<Vec<_>>(),
                )?;
            }
            Operation::CreateIndex {
                new_indices,
                removed_indices,
            } => {
                let indices = |indices: &[_]| indices.iter().cloned().map(PyIndex).collect::<Vec<_>>();
                dict.set_item("new_indices", indices(new_indices))?;
                dict.set_item("removed_indices", indices(removed_indices))?;
            }
            Operation::Rewrite(rewrite) => {
                let group = |group: &RewriteGroup| -> Group {
                    (py_fragments(&group.old_fragments), py_fragments(&group.new_fragments))
                };
                let groups: Vec<Group> = rewrite.groups.iter().map(group).collect();
                dict.set_item("groups", groups)?;
                let index = |index: &RewrittenIndex| {
                    let (type_url, value) = index.new_details.clone().unwrap_or_default();
                    let (old, new) = (index.old_id.to_string(), index.new_id.to_string());
                    (old, new, type_url, PyBytes::new(py, &value), index.new_version)
                };
                let indices: Vec<_> = rewrite.rewritten_indices.iter().map(index).collect();
                dict.set_item("rewritten_indices", indices)?;
            }
            Operation::Merge {
                fragments,
                schema,
                preserves_nullability,
            } => {
                dict.set_item("fragments", py_fragments(fragments))?;
                dict.set_item("schema", py_schema(schema)?)?;
                dict.set_item("preserves_nullability", preserves_nullability)?;
            }
            Operation::Restore { version } => dict.set_item("version", version)?,
            Operation::ReserveFragments { num_fragments } => dict.set_item("num_fragments", num_fragments)?,
            Operation::Update(update) => {
                dict.set_item("removed_fragment_ids", &update.removed_fragment_ids)?;
                dict.set_item("updated_fragments", py_fragments(&update.updated_fragments))?;
                dict.set_item("new_fragments", py_fragments(&update.new_fragments))?;
                dict.set_item("fields_modified", &update.fields_modified)?;
                let preserving = &update.fields_for_preserving_frag_bitmap;
                dict.set_item("fields_for_preserving_frag_bitmap", preserving)?;
                let mode = match update.update_mode {
                    UpdateMode::RewriteRows => "rewrite_rows",
                    UpdateMode::RewriteColumns => "rewrite_columns",
                };
                dict.set_item("update_mode", mode)?;
                dict.set_item("inserted_rows", PyBytes::new(py, &update.inserted_rows))?;
                let offsets = PyDict::new(py);
                for (id, rows) in &update.updated_fragment_offsets {
                    offsets.set_item(id, PyBytes::new(py, rows))?;
                }
                dict.set_item("updated_fragment_offsets", offsets)?;
            }
            Operation::Project {
                schema,
                preserves_nullability,
            } => {
                dict.set_item("schema", py_schema(schema)?)?;
                dict.set_item("preserves_nullability", preserves_nullability)?;
            }
            Operation::UpdateConfig(update) => {
                dict.set_item("config_updates", update.config.as_ref().map(map_change))?;
                dict.set_item("table_metadata_updates", update.table_metadata.as_ref().map(map_change))?;
                dict.set_item(
                    "schema_metadata_updates",
                    update.schema_metadata.as_ref().map(map_change),
                )?;
                let fields = update.field_metadata.iter();
                let fields: BTreeMap<i32, MapChange> = fields.map(|(id, update)| (*id, map_change(update))).collect();
                dict.set_item("field_metadata_updates", fields)?;
            }
            Operation::DataReplacement { replacements } => {
                let replacements = replacements.iter().map(|(id, file)| (*id, PyDataFile(file.clone())));
                dict.set_item("replacements", replacements.collect::<Vec<_>>())?;
            }
            Operation::Clone(clone) => {
                dict.set_item("is_shallow", clone.is_shallow)?;
                dict.set_item("ref_name", &clone.ref_name)?;
                dict.set_item("ref_version", clone.ref_version)?;
                dict.set_item("ref_path", &clone.ref_path)?;
                dict.set_item("branch_name", &clone.branch_name)?;
            }
            Operation::UpdateBases { new_bases } => {
                dict.set_item("new_bases", new_bases.iter().map(base_path_parts).collect::<Vec<_>>())?;
            }
            Operation::Other { .. } => {}
        }
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!("Operation({})", self.name())
    }
}
