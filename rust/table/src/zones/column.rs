//! Gathers the seed of one column while its file is written, and decides whether it gets one.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float32Array, Float64Array};
use arrow_schema::DataType;
use esker_file::schema::Field;

use super::bounds::{bounds_of, short, Bounds};
use super::encode::{encode, ZoneColumns};
use super::seed::{key_of, Seed, ZoneMap, ZONE_ROWS};
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

/// Gathers the bounds of one column of a data file.
pub(crate) struct ColumnZones {
    name: String,
    data_type: DataType,
    bounds: Box<dyn Bounds>,
    nulls: Vec<u32>,
    lengths: Vec<u64>,
    open: OpenZone,
    bytes: u64,
}

/// The zone that fills up.
#[derive(Default)]
struct OpenZone {
    rows: u64,
    nulls: u64,
    /// Whether it is unknown which of a source's zone were null: some are, and some are not.
    is_rough: bool,
}

impl ColumnZones {
    /// Those of a column; `None` where a seed is not worth it.
    pub(crate) fn of(field: &Field) -> Option<ColumnZones> {
        if field.is_blob() || field.logical_type == "json" {
            return None;
        }
        let data_type = field.data_type().ok()?;
        Some(ColumnZones {
            name: field.name.clone(),
            bounds: bounds_of(&data_type)?,
            data_type,
            nulls: Vec::new(),
            lengths: Vec::new(),
            open: OpenZone::default(),
            bytes: 0,
        })
    }

    /// Lets a column see what is next; it is given up for good once that says no.
    pub(crate) fn keep(column: &mut Option<ColumnZones>, see: impl FnOnce(&mut ColumnZones) -> bool) {
        if column.as_mut().is_some_and(|zones| !see(zones)) {
            *column = None;
        }
    }

    /// The next values; whether the column is still worth it.
    pub(crate) fn see(&mut self, values: &ArrayRef) -> bool {
        if values.data_type() != &self.data_type {
            return false;
        }
        let mut start = 0;
        while start < values.len() {
            let rows = usize::try_from(self.room())
                .unwrap_or(usize::MAX)
                .min(values.len() - start);
            let part = values.slice(start, rows);
            self.bounds.see(part.as_ref());
            if let Ok(bytes) = part.to_data().get_slice_memory_size() {
                self.bytes = self.bytes.saturating_add(bytes as u64);
            }
            self.open.nulls += part.null_count() as u64;
            self.open.rows += rows as u64;
            if !self.end_full_zone() {
                return false;
            }
            start += rows;
        }
        true
    }

    /// The next values, which are those of some rows of another file and take some bytes: by that file's zones, whose bounds hold for any
    /// of their rows. Whether the column is still worth it: it is not where nothing is known.
    pub(crate) fn see_zones(&mut self, zones: &ZoneMap, rows: Range<u64>, bytes: u64) -> bool {
        if zones.min.data_type() != &self.data_type || zones.offsets.last().is_none_or(|end| rows.end > *end) {
            return false;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        let mut start = rows.start;
        while start < rows.end {
            let end = rows.end.min(start.saturating_add(self.room()));
            let first = zones
                .offsets
                .partition_point(|offset| *offset <= start)
                .saturating_sub(1);
            for (zone, bounds) in zones.offsets.windows(2).enumerate().skip(first) {
                let &[low, high] = bounds else { continue };
                if low >= end {
                    break;
                }
                if !self.see_zone(zones, zone, high - low, high.min(end) - low.max(start)) {
                    return false;
                }
            }
            self.open.rows += end - start;
            if !self.end_full_zone() {
                return false;
            }
            start = end;
        }
        true
    }

    /// Some rows of a zone of a source.
    fn see_zone(&mut self, zones: &ZoneMap, zone: usize, rows_of_zone: u64, rows: u64) -> bool {
        let nulls = zones.null_count.get(zone).copied().unwrap_or(rows_of_zone);
        if nulls == rows_of_zone {
            self.open.nulls += rows;
            return true;
        }
        // With NaN, which counts as the greatest, there is no upper bound of numbers.
        let nan = nan_of(&self.data_type).filter(|_| zones.max.is_null(zone));
        if nan.is_none() && (zones.min.is_null(zone) || zones.max.is_null(zone)) {
            return false;
        }
        self.bounds.see(zones.min.slice(zone, 1).as_ref());
        self.bounds
            .see(nan.unwrap_or_else(|| zones.max.slice(zone, 1)).as_ref());
        self.open.nulls += nulls.min(rows);
        self.open.is_rough |= nulls > 0 && rows < rows_of_zone;
        true
    }

    fn room(&self) -> u64 {
        ZONE_ROWS.saturating_sub(self.open.rows).max(1)
    }

    /// Ends the zone that is open if it is full; whether the column is still worth it.
    fn end_full_zone(&mut self) -> bool {
        if self.open.rows < ZONE_ROWS {
            return true;
        }
        let zones = self.lengths.len() + 1;
        self.end_zone() && (zones < FIRST_LOOK || !zones.is_power_of_two() || self.is_clustered())
    }

    fn end_zone(&mut self) -> bool {
        let OpenZone { rows, nulls, is_rough } = std::mem::take(&mut self.open);
        if is_rough && rows < 2 {
            return false;
        }
        // None and all are known for certain, and so is that it is neither.
        let nulls = if is_rough { nulls.clamp(1, rows - 1) } else { nulls };
        self.nulls.push(short(usize::try_from(nulls).unwrap_or(usize::MAX)));
        self.lengths.push(rows);
        self.bounds.end_zone();
        true
    }

    /// The seed, if it is worth it: that of enough rows, whose zones rule each other out.
    pub(crate) fn finish(mut self) -> Result<Option<Seed>> {
        if self.open.rows > 0 && !self.end_zone() {
            return Ok(None);
        }
        if self.lengths.len() < LEAST_ZONES || !self.is_clustered() {
            return Ok(None);
        }
        let (min, max) = self.bounds.finish();
        let columns = ZoneColumns {
            min,
            max,
            null_count: self.nulls,
            nan_count: self.bounds.take_nans(),
            zone_length: self.lengths,
        };
        let bytes = encode(columns).map_err(|e| TableError::invalid(e.to_string()))?;
        let is_small = (bytes.len() as u64).saturating_mul(SHARE) <= self.bytes;
        Ok(is_small.then(|| Seed {
            key: key_of(&self.name),
            zone_rows: ZONE_ROWS,
            bytes,
        }))
    }

    /// Whether the zones rule each other out.
    fn is_clustered(&self) -> bool {
        let zones = self.lengths.len();
        let step = zones.div_ceil(SAMPLED).max(1);
        let sampled = (0..zones).step_by(step);
        let (looked, overlaps) = sampled.fold((0_usize, 0_usize), |(looked, overlaps), zone| {
            (looked + 1, overlaps + self.bounds.overlapping(zone))
        });
        overlaps.saturating_mul(ONE_IN) < looked.saturating_mul(zones.saturating_sub(1))
    }
}

/// One NaN, for types that have it.
fn nan_of(data_type: &DataType) -> Option<ArrayRef> {
    match data_type {
        DataType::Float32 => Some(Arc::new(Float32Array::from(vec![f32::NAN]))),
        DataType::Float64 => Some(Arc::new(Float64Array::from(vec![f64::NAN]))),
        _ => None,
    }
}
