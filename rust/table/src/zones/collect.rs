//! Gathers the seeds of a data file while it is written: a column at a time, of batches of all of them.

use arrow_array::RecordBatch;
use esker_file::schema::Schema;

use super::column::ColumnZones;
use super::seed::Seed;
use crate::error::Result;

/// Gathers the bounds of the columns of one data file.
pub(crate) struct ZoneCollector {
    columns: Vec<Option<ColumnZones>>,
}

impl ZoneCollector {
    /// A collector for a file of these columns.
    pub(crate) fn new(schema: &Schema) -> ZoneCollector {
        ZoneCollector {
            columns: schema.fields.iter().map(ColumnZones::of).collect(),
        }
    }

    /// The next rows of the file.
    pub(crate) fn see(&mut self, batch: &RecordBatch) {
        for (column, values) in self.columns.iter_mut().zip(batch.columns()) {
            ColumnZones::keep(column, |zones| zones.see(values));
        }
    }

    /// The seeds of the columns that are worth it.
    pub(crate) fn finish(self) -> Result<Vec<Seed>> {
        let seeds = self.columns.into_iter().flatten().map(ColumnZones::finish);
        seeds.filter_map(Result::transpose).collect()
    }
}
