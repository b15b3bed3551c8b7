//! The partitions of a snapshot's files.

use arrow_array::ArrayRef;
use hashbrown::HashSet;

use crate::error::{DeltaError, Result};
use crate::partition::typed;
use crate::prune::Selection;
use crate::schema::DeltaType;
use crate::snapshot::Snapshot;

/// A partition: values by logical column name, as texts; null if missing.
pub type Partition = Vec<(String, Option<String>)>;

impl Snapshot {
    /// Parses a partition column's values from their texts in the log. An empty text is null.
    pub fn parse_partition_values(&self, column: &str, values: &[Option<&str>]) -> Result<ArrayRef> {
        match self.schema.field(column).map(|field| &field.data_type) {
            Some(DeltaType::Primitive(data_type)) => {
                let values: Vec<_> = values
                    .iter()
                    .map(|value| value.filter(|text| !text.is_empty()))
                    .collect();
                typed(&values, data_type, column, self.zone)
            }
            _ => Err(DeltaError::invalid(format!(
                "expected a partition column, found {column}"
            ))),
        }
    }

    /// The distinct partitions of some files, in the order of first occurrence.
    pub fn partitions(&self, selection: &Selection) -> Vec<Partition> {
        let fields: Vec<_> = self.schema.partition_fields().collect();
        let mut seen: HashSet<Vec<Option<Box<str>>>> = HashSet::new();
        let mut found = Vec::new();
        for (view, rows) in self.views.iter().zip(&selection.rows) {
            let chunk = &view.chunk;
            let columns: Vec<_> = fields
                .iter()
                .map(|field| {
                    let name = field.physical_name(self.schema.mapping);
                    chunk.partitions.iter().find(|column| column.name == name)
                })
                .collect();
            // Dictionary codes distinguish partitions within a chunk, texts across chunks.
            let mut codes: HashSet<Vec<u32>> = HashSet::new();
            for row in rows {
                let of_column = |column: &Option<&crate::chunk::PartitionColumn>| {
                    column
                        .and_then(|column| column.codes.get(*row as usize).copied())
                        .unwrap_or(0)
                };
                let key: Vec<u32> = columns.iter().map(of_column).collect();
                if !codes.insert(key) {
                    continue;
                }
                let values = columns.iter().map(|column| {
                    let text = column.and_then(|column| chunk.partition_value(&column.name, *row as usize));
                    text.map(Box::from)
                });
                let values: Vec<Option<Box<str>>> = values.collect();
                if seen.insert(values.clone()) {
                    let named = fields.iter().zip(values);
                    found.push(
                        named
                            .map(|(field, value)| (field.name.clone(), value.map(String::from)))
                            .collect(),
                    );
                }
            }
        }
        found
    }
}
