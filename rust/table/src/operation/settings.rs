//! UpdateConfig: key-values of the table, its schema and its fields.

use std::collections::BTreeMap;

use esker_proto::lance::table::transaction as op;

/// A change to one map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MapUpdate {
    /// Keys to set, and with `None` to remove.
    pub entries: BTreeMap<String, Option<String>>,
    /// What is not named goes.
    pub replace: bool,
}

impl MapUpdate {
    /// Changes `map`.
    pub fn apply<V: From<String>>(&self, map: &mut BTreeMap<String, V>) {
        if self.replace {
            map.clear();
        }
        for (key, value) in &self.entries {
            match value {
                Some(value) => {
                    map.insert(key.clone(), V::from(value.clone()));
                }
                None => {
                    map.remove(key);
                }
            }
        }
    }

    fn from_proto(proto: op::UpdateMap) -> Self {
        let entries = proto.update_entries.into_iter();
        Self {
            entries: entries.map(|entry| (entry.key, entry.value)).collect(),
            replace: proto.replace,
        }
    }

    fn to_proto(&self) -> op::UpdateMap {
        let entry = |(key, value): (&String, &Option<String>)| op::UpdateMapEntry {
            key: key.clone(),
            value: value.clone(),
        };
        op::UpdateMap {
            update_entries: self.entries.iter().map(entry).collect(),
            replace: self.replace,
        }
    }

    fn set(values: BTreeMap<String, String>, replace: bool) -> Self {
        let entries = values.into_iter().map(|(key, value)| (key, Some(value))).collect();
        Self { entries, replace }
    }
}

/// Key-values of the table, its schema and its fields. `None` leaves a map as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpdateConfig {
    /// Settings that steer writers.
    pub config: Option<MapUpdate>,
    /// What the user wants to remember about the table.
    pub table_metadata: Option<MapUpdate>,
    /// The Arrow schema's own.
    pub schema_metadata: Option<MapUpdate>,
    /// By field id, the Arrow field's own.
    pub field_metadata: BTreeMap<i32, MapUpdate>,
}

impl UpdateConfig {
    pub(super) fn from_proto(proto: op::UpdateConfig) -> Self {
        let mut config = proto.config_updates.map(MapUpdate::from_proto);
        let mut schema_metadata = proto.schema_metadata_updates.map(MapUpdate::from_proto);
        let fields = proto.field_metadata_updates.into_iter();
        let mut field_metadata: BTreeMap<_, _> = fields.map(|(id, map)| (id, MapUpdate::from_proto(map))).collect();
        // How releases before late 2025 said it.
        if config.is_none() && !(proto.upsert_values.is_empty() && proto.delete_keys.is_empty()) {
            let mut update = MapUpdate::set(proto.upsert_values, false);
            update
                .entries
                .extend(proto.delete_keys.into_iter().map(|key| (key, None)));
            config = Some(update);
        }
        if schema_metadata.is_none() && !proto.schema_metadata.is_empty() {
            schema_metadata = Some(MapUpdate::set(proto.schema_metadata, true));
        }
        for (id, field) in proto.field_metadata {
            if let Ok(id) = i32::try_from(id) {
                let update = MapUpdate::set(field.metadata, true);
                field_metadata.entry(id).or_insert(update);
            }
        }
        Self {
            config,
            table_metadata: proto.table_metadata_updates.map(MapUpdate::from_proto),
            schema_metadata,
            field_metadata,
        }
    }

    pub(super) fn to_proto(&self) -> op::UpdateConfig {
        let map = |update: &Option<MapUpdate>| update.as_ref().map(MapUpdate::to_proto);
        op::UpdateConfig {
            config_updates: map(&self.config),
            table_metadata_updates: map(&self.table_metadata),
            schema_metadata_updates: map(&self.schema_metadata),
            field_metadata_updates: self
                .field_metadata
                .iter()
                .map(|(id, update)| (*id, update.to_proto()))
                .collect(),
            ..Default::default()
        }
    }
}
