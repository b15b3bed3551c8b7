//! The other actions: the newest protocol and metadata, and the newest txn and domainMetadata of each application and domain.

use std::collections::{BTreeMap, HashSet};

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, StructArray};
use arrow_schema::{DataType, Fields};
use arrow_select::concat::concat;
use arrow_select::filter::filter;
use serde_json::value::RawValue;

use super::action_types::{shown_by, ActionTypes};
use super::conform::conform;
use super::json_columns::{column, Misfit, Object};
use crate::actions::{DomainMetadata, Transaction};
use crate::arrays::{integers, texts};
use crate::error::{DeltaError, Result};

/// The actions, in the order in which they are written.
pub(crate) const OTHERS: [&str; 4] = ["protocol", "metaData", "txn", "domainMetadata"];

/// The other actions of a version, collected newest first.
pub(crate) struct OtherActions {
    found: BTreeMap<&'static str, Found>,
    /// Transactions that were last updated before this time have expired and are left out.
    transactions_from: Option<i64>,
}

#[derive(Default)]
struct Found {
    keys: HashSet<String>,
    /// Actions of commits, and the commits' paths.
    json: Vec<(Box<RawValue>, String)>,
    /// Actions of the base checkpoint.
    arrays: Vec<StructArray>,
}

impl OtherActions {
    /// No actions. Transactions that were last updated before `transactions_from` will be left out.
    pub(crate) fn new(transactions_from: Option<i64>) -> Self {
        Self {
            found: BTreeMap::new(),
            transactions_from,
        }
    }

    /// Adds an action of a commit, unless a newer one was added.
    pub(crate) fn take_json(&mut self, name: &'static str, raw: &RawValue, origin: &str) -> Result<()> {
        let fault = |error: serde_json::Error| DeltaError::corrupt(origin, format!("expected {name}, found: {error}"));
        let (key, is_kept) = match name {
            "txn" => {
                let found: Transaction = serde_json::from_str(raw.get()).map_err(fault)?;
                (found.app_id, self.is_kept(found.last_updated))
            }
            "domainMetadata" => {
                let found: DomainMetadata = serde_json::from_str(raw.get()).map_err(fault)?;
                (found.domain, !found.removed)
            }
            _ => (String::new(), true),
        };
        let found = self.found.entry(name).or_default();
        if found.keys.insert(key) && is_kept {
            found.json.push((raw.to_owned(), origin.to_owned()));
        }
        Ok(())
    }

    /// Whether a transaction with this update time has not expired.
    fn is_kept(&self, last_updated: Option<i64>) -> bool {
        match (self.transactions_from, last_updated) {
            (Some(from), Some(last)) => last >= from,
            _ => true,
        }
    }

    /// Adds the actions of a batch of the base checkpoint.
    pub(crate) fn take_array(&mut self, name: &'static str, array: &StructArray) -> Result<()> {
        let keys = match name {
            "txn" => texts(array, "appId"),
            "domainMetadata" => texts(array, "domain"),
            _ => None,
        };
        // Some writers fill the rows of other actions with a struct of nulls.
        let first = match name {
            "protocol" => array.column_by_name("minReaderVersion"),
            "metaData" => array.column_by_name("schemaString"),
            _ => None,
        };
        let updated = integers(array, "lastUpdated").filter(|_| name == "txn");
        let removed = array
            .column_by_name("removed")
            .and_then(|column| column.as_boolean_opt())
            .cloned();
        let mut kept = Vec::with_capacity(array.len());
        for row in 0..array.len() {
            let key = match &keys {
                Some(keys) => keys.is_valid(row).then(|| keys.value(row).to_owned()),
                None => first.filter(|first| first.is_valid(row)).map(|_| String::new()),
            };
            let Some(key) = key.filter(|_| array.is_valid(row)) else {
                kept.push(false);
                continue;
            };
            let last = updated
                .as_ref()
                .filter(|updated| updated.is_valid(row))
                .map(|updated| updated.value(row));
            let is_gone = removed
                .as_ref()
                .is_some_and(|removed| removed.is_valid(row) && removed.value(row));
            let is_kept = self.is_kept(last) && !is_gone;
            kept.push(self.found.entry(name).or_default().keys.insert(key) && is_kept);
        }
        if kept.contains(&true) {
            let rows =
                filter(array, &BooleanArray::from(kept)).map_err(|error| DeltaError::invalid(error.to_string()))?;
            if let Some(rows) = rows.as_struct_opt() {
                self.found.entry(name).or_default().arrays.push(rows.clone());
            }
        }
        Ok(())
    }

    /// Adds the types of all fields to `types`; returns whether anything changed.
    pub(crate) fn widen(&self, types: &mut ActionTypes) -> Result<bool> {
        let mut changed = false;
        for (name, found) in &self.found {
            for (raw, origin) in &found.json {
                let fault = |message: String| DeltaError::corrupt(origin, format!("expected {name}, found {message}"));
                let Object(fields) = serde_json::from_str(raw.get()).map_err(|error| fault(error.to_string()))?;
                for (field, value) in fields {
                    let shown = shown_by(value).ok_or_else(|| fault(format!("field {} without a type", field.0)))?;
                    changed |= types.widen(name, &field.0, &shown)?;
                }
            }
        }
        Ok(changed)
    }

    /// The actions of a name as a column; `None` if there are none.
    pub(crate) fn column(&self, name: &str, fields: &Fields) -> Result<Option<StructArray>> {
        let Some(found) = self.found.get(name) else {
            return Ok(None);
        };
        let data_type = DataType::Struct(fields.clone());
        let origin = found.json.first().map(|(_, origin)| origin.clone()).unwrap_or_default();
        let fault = |message: String| DeltaError::corrupt(&origin, format!("{name}: {message}"));
        let values: Vec<Option<&str>> = found.json.iter().map(|(raw, _)| Some(raw.get())).collect();
        let mut parts = vec![column(&values, &data_type, Misfit::Error).map_err(fault)?];
        for array in &found.arrays {
            let array: arrow_array::ArrayRef = std::sync::Arc::new(array.clone());
            parts.push(conform(&array, &data_type, false).map_err(|error| fault(error.to_string()))?);
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        let all = concat(&parts).map_err(|error| fault(error.to_string()))?;
        Ok(all.as_struct_opt().filter(|all| !all.is_empty()).cloned())
    }
}
