//! The join of a source's keys with batches of a table's keys.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;

use crate::error::Result;
use crate::key_table::KeyTable;
use crate::keys::{KeyEncoder, Keys};

/// The keys of a source, ready for look-ups from any number of threads.
#[derive(Debug)]
pub struct KeyJoin {
    encoder: KeyEncoder,
    table: KeyTable,
}

/// Pairs of rows whose keys are equal, ascending by the table's row, then by the source's.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Numbers of rows among all of the source.
    pub source: Vec<u32>,
    /// Numbers of rows in the table's batch.
    pub target: Vec<u32>,
    /// The row of the table's batch to go on with; how many it has, at its end.
    pub next: usize,
}

impl KeyJoin {
    /// The encoder of keys with these columns.
    pub fn encoder(schema: &Schema) -> Result<KeyEncoder> {
        let columns = schema.fields().iter();
        KeyEncoder::new(columns.map(|field| (field.name().as_str(), field.data_type().clone())))
    }

    /// The keys of batches that have the key's columns alone.
    pub fn new(schema: &Schema, batches: impl Iterator<Item = Result<RecordBatch>>) -> Result<Self> {
        let encoder = Self::encoder(schema)?;
        let mut table = KeyTable::default();
        for batch in batches {
            table.push(encoder.encode(batch?.columns())?)?;
        }
        table.index();
        Ok(Self { encoder, table })
    }

    /// How many rows the source has.
    pub fn num_rows(&self) -> u32 {
        self.table.len()
    }

    /// The pairs of a batch of the table, whose columns are the key's, in its order and of its types: from the row `first` on, `most` of
    /// them or those of one row.
    pub fn find(&self, columns: &[ArrayRef], first: usize, most: usize) -> Result<Matches> {
        let keys: Keys = self.encoder.encode(columns)?;
        let mut found = Matches {
            next: keys.len(),
            ..Matches::default()
        };
        for row in self.table.candidates(&keys) {
            if row < first {
                continue;
            }
            if found.source.len() >= most {
                found.next = row;
                break;
            }
            let (Some(key), Ok(target)) = (keys.get(row), u32::try_from(row)) else {
                continue;
            };
            for source in self.table.rows_of(key) {
                found.source.push(source);
                found.target.push(target);
            }
        }
        Ok(found)
    }
}
