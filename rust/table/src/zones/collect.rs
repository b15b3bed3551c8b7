//! Gathers seeds while a data file is written, and decides which columns get one.

use arrow_array::RecordBatch;
use esker_file::schema::Schema;

use super::bounds::{bounds_of, short, Bounds};
use super::encode::{encode, ZoneColumns};
use super::seed::{key_of, Seed, ZONE_ROWS};
use crate::error::{Result, TableError};

/// Zones of the smallest file with seeds: a shorter one is read as fast without.
const LEAST_ZONES: usize = 8;

/// Zones after which a column is first looked at: one whose zones rule each other out too seldom is given up.
const FIRST_LOOK: usize = 16;

/// Zones that are compared with all others.
const SAMPLED: usize = 64;

/// A zone's lower bound may lie within at most one of so many other zones.
const ONE_IN: usize = 4;

/// A seed takes at most one of so many bytes of its column.
const SHARE: u64 = 200;

/// Gathers the bounds of the columns of one data file.
pub(crate) struct ZoneCollector {
    columns: Vec<Option<Column>>,
    rows_in_zone: u64,
    lengths: Vec<u64>,
}

struct Column {
    name: String,
    bounds: Box<dyn Bounds>,
    nulls: Vec<u32>,
    open_nulls: usize,
    bytes: u64,
}

impl ZoneCollector {
    /// A collector for a file of these columns.
    pub(crate) fn new(schema: &Schema) -> ZoneCollector {
        let columns = schema.fields.iter().map(|field| {
            if field.is_blob() || field.logical_type == "json" {
                return None;
            }
            let bounds = bounds_of(&field.data_type().ok()?)?;
            Some(Column {
                name: field.name.clone(),
                bounds,
                nulls: Vec::new(),
                open_nulls: 0,
                bytes: 0,
            })
        });
        ZoneCollector {
            columns: columns.collect(),
            rows_in_zone: 0,
            lengths: Vec::new(),
        }
    }

    /// The next rows of the file.
    pub(crate) fn see(&mut self, batch: &RecordBatch) {
        let mut start = 0;
        while start < batch.num_rows() && self.columns.iter().any(Option::is_some) {
            let room = usize::try_from(ZONE_ROWS.saturating_sub(self.rows_in_zone)).unwrap_or(0);
            let rows = room.min(batch.num_rows() - start).max(1);
            for (column, values) in self.columns.iter_mut().zip(batch.columns()) {
                let Some(column) = column else { continue };
                let values = values.slice(start, rows);
                column.bounds.see(values.as_ref());
                column.open_nulls += values.null_count();
                if let Ok(bytes) = values.to_data().get_slice_memory_size() {
                    column.bytes = column.bytes.saturating_add(bytes as u64);
                }
            }
            self.rows_in_zone += rows as u64;
            if self.rows_in_zone >= ZONE_ROWS {
                self.end_zone();
            }
            start += rows;
        }
    }

    fn end_zone(&mut self) {
        self.lengths.push(std::mem::take(&mut self.rows_in_zone));
        let zones = self.lengths.len();
        let looks = zones >= FIRST_LOOK && zones.is_power_of_two();
        for place in &mut self.columns {
            let Some(column) = place else { continue };
            column.nulls.push(short(std::mem::take(&mut column.open_nulls)));
            column.bounds.end_zone();
            if looks && !column.is_clustered(zones) {
                *place = None;
            }
        }
    }

    /// The seeds of the columns that are worth it: those of enough rows whose zones rule each other out.
    pub(crate) fn finish(mut self) -> Result<Vec<Seed>> {
        if self.rows_in_zone > 0 {
            self.end_zone();
        }
        let zones = self.lengths.len();
        let mut seeds = Vec::new();
        if zones < LEAST_ZONES {
            return Ok(seeds);
        }
        for mut column in self.columns.into_iter().flatten() {
            if !column.is_clustered(zones) {
                continue;
            }
            let (min, max) = column.bounds.finish();
            let columns = ZoneColumns {
                min,
                max,
                null_count: column.nulls,
                nan_count: column.bounds.take_nans(),
                zone_length: self.lengths.clone(),
            };
            let bytes = encode(columns).map_err(|e| TableError::invalid(e.to_string()))?;
            if (bytes.len() as u64).saturating_mul(SHARE) <= column.bytes {
                seeds.push(Seed {
                    key: key_of(&column.name),
                    zone_rows: ZONE_ROWS,
                    bytes,
                });
            }
        }
        Ok(seeds)
    }
}

impl Column {
    /// Whether the zones rule each other out.
    fn is_clustered(&self, zones: usize) -> bool {
        let step = zones.div_ceil(SAMPLED).max(1);
        let sampled = (0..zones).step_by(step);
        let (looked, overlaps) = sampled.fold((0_usize, 0_usize), |(looked, overlaps), zone| {
            (looked + 1, overlaps + self.bounds.overlapping(zone))
        });
        overlaps.saturating_mul(ONE_IN) < looked.saturating_mul(zones.saturating_sub(1))
    }
}
