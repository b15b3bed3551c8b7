//! Finds the zone map of a column in a data file, whoever wrote it.

use std::sync::Arc;

use esker_file::cache::Slot;
use esker_file::schema::Field;
use esker_file::FileReader;

use crate::zones::{decode, is_zoned, key_of, place_of, ZoneMap};

/// The longest seed that is read: that of a file of a billion rows has 8 MB.
const LONGEST: u64 = 16 * 1024 * 1024;

/// Behind a network a seed that did not come with the file's tail is worth a request if its column has so many bytes.
const WORTH_A_REQUEST: u64 = 1024 * 1024;

/// The zone map of the column that holds `field` of the table, if the file has one. A seed that cannot be read says nothing.
pub(super) async fn zone_map(reader: &FileReader, column: usize, field: &Field) -> Option<Arc<ZoneMap>> {
    let kept = reader.kept()?;
    let slot = Slot::Zones(column);
    if let Some(found) = kept.get::<Option<Arc<ZoneMap>>>(&slot) {
        return (*found).clone();
    }
    if !reader.schema().metadata.keys().any(|key| key.starts_with(&key_of(""))) {
        return None;
    }
    let found = read(reader, column, field).await.map(Arc::new);
    let bytes = found.as_ref().map_or(256, |zones| zones.memory());
    kept.put(slot, Arc::new(found.clone()), bytes);
    found
}

async fn read(reader: &FileReader, column: usize, field: &Field) -> Option<ZoneMap> {
    // Under the name that the file has for it, which the table may have given to another column.
    let own = reader.field_in_column(column)?;
    let data_type = own.data_type().ok()?;
    if own.logical_type != field.logical_type || own.logical_type == "json" || !is_zoned(&data_type) {
        return None;
    }
    let buffer = place_of(reader.schema().metadata.get(&key_of(&own.name))?)?;
    let container = reader.container()?;
    let range = container.global_buffers().get(buffer)?;
    if range.end.saturating_sub(range.start) > LONGEST {
        return None;
    }
    let is_far = container.store().is_far();
    if is_far && container.buffer_at_hand(buffer).is_none() && column_bytes(reader, column) < WORTH_A_REQUEST {
        return None;
    }
    let bytes = container.read_global_buffer(buffer).await.ok()?;
    decode(&bytes, &data_type, reader.num_rows())
}

fn column_bytes(reader: &FileReader, column: usize) -> u64 {
    let meta = reader.container().and_then(|container| container.column(column).ok());
    let buffers = meta.iter().flat_map(|meta| &meta.pages).flat_map(|page| &page.buffers);
    buffers.fold(0, |sum, buffer| sum.saturating_add(buffer.end - buffer.start))
}
