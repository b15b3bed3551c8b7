//! Writes one new file, a few columns at a time.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::Array;
use esker_file::column_writer::{ColumnPart, PageCounts, ValuesMemory};
use esker_file::{freed_memory, ColumnWriter};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use tokio::sync::Semaphore;

use super::cut::{FileCut, Slice};
use super::planner::{Planner, Sources};
use super::request::RewriteRequest;
use super::units::{Output, Piece};
use crate::error::{Result, TableError};
use crate::row_ids::LineageColumn;
use crate::write::{data_file, data_file_name, StagedFragment};
use crate::zones::ColumnZones;

/// Freed memory is given back each time that so many bytes of values were written. Half of that costs an eighth of the speed and saves a tenth
/// of the memory; twice as much saves nothing.
const GIVE_BACK_AFTER: usize = 16 << 20;

/// Writes the rows of one file, and their lineage in columns after their own. On an error, nothing of it stays behind.
pub(super) async fn write_file(
    sources: &Arc<Sources>,
    request: &RewriteRequest,
    cut: &FileCut,
    base_id: Option<u32>,
    lineage: &[LineageColumn],
) -> Result<(StagedFragment, PageCounts)> {
    let file = data_file(&data_file_name(), base_id);
    let store = sources.files.store();
    let mut schema = sources.schema.clone();
    schema
        .fields
        .extend(lineage.iter().map(|column| column.schema_field(column.field.id())));
    let mut out = ColumnWriter::create(store, &file.location(), &schema, request.options()).await?;
    let mut zones = zones(sources);
    let mut filled = fill(sources, request, cut, &mut out, &mut zones).await;
    if filled.is_ok() {
        filled = add_zones(zones, &mut out);
    }
    if filled.is_ok() {
        filled = add_lineage(sources.parts.len(), lineage, &mut out).await;
    }
    if let Err(error) = filled {
        // The first error is reported; files that cannot be removed become orphans, which clean-up removes.
        let _ = out.abort().await;
        return Err(error);
    }
    let (summary, pages) = out.finish(cut.rows).await?;
    Ok((StagedFragment::of(file, summary), pages))
}

/// What is gathered of each part: of whole columns, where their bounds are worth it.
fn zones(sources: &Sources) -> Vec<Option<ColumnZones>> {
    let of_part = |part: &ColumnPart| match part.field.children.is_empty() {
        true => ColumnZones::of(&part.field),
        false => None,
    };
    sources.parts.iter().map(of_part).collect()
}

fn add_zones(zones: Vec<Option<ColumnZones>>, out: &mut ColumnWriter) -> Result<()> {
    for zones in zones.into_iter().flatten() {
        if let Some(seed) = zones.finish()? {
            out.add_trailing_buffer(seed.into());
        }
    }
    Ok(())
}

async fn add_lineage(first: usize, lineage: &[LineageColumn], out: &mut ColumnWriter) -> Result<()> {
    for (part, column) in (first..).zip(lineage) {
        out.write(part, &column.values, ValuesMemory::Own).await?;
        out.end(part).await?;
    }
    Ok(())
}

async fn fill(
    sources: &Arc<Sources>,
    request: &RewriteRequest,
    cut: &FileCut,
    out: &mut ColumnWriter,
    zones: &mut [Option<ColumnZones>],
) -> Result<()> {
    let is_far = sources.files.store().is_far();
    let at_once = columns_at_once(request, cut, sources.parts.len(), is_far);
    let mut written = 0;
    for group in column_groups(&sources.parts, at_once) {
        let mut pieces = pieces(sources, request, group.clone(), cut.slices.clone());
        while let Some(piece) = pieces.try_next().await? {
            request.check_stop()?;
            match piece {
                Piece::Page(part, page, known) => {
                    if let Some(zones) = zones.get_mut(part) {
                        ColumnZones::keep(zones, |zones| {
                            known.is_some_and(|known| zones.see_zones(&known.map, known.rows, known.bytes))
                        });
                    }
                    out.copy(part, page).await?;
                }
                Piece::Blobs(part, located, source) => out.carry(part, &located, source.as_ref()).await?,
                Piece::Batch(batch, outputs, ranges) => {
                    let (_, columns, _) = batch.into_parts();
                    written += columns
                        .iter()
                        .map(|column| column.get_array_memory_size())
                        .sum::<usize>();
                    if written >= GIVE_BACK_AFTER {
                        written = 0;
                        freed_memory::give_back();
                    }
                    for (column, output) in columns.iter().zip(outputs.iter()) {
                        let memory = ranges.memory_of(column);
                        match output {
                            Output::Part(part) => {
                                if let Some(zones) = zones.get_mut(*part) {
                                    ColumnZones::keep(zones, |zones| zones.see(column));
                                }
                                out.write(*part, column, memory).await?;
                            }
                            Output::Field(parts) => {
                                for part in parts {
                                    out.write_of(*part, column, memory).await?;
                                }
                            }
                        }
                    }
                }
            }
        }
        for part in group {
            out.end(part).await?;
        }
    }
    Ok(())
}

/// What some parts are made of, read ahead in order.
pub(super) fn pieces(
    sources: &Arc<Sources>,
    request: &RewriteRequest,
    group: Range<usize>,
    slices: Vec<Slice>,
) -> BoxStream<'static, Result<Piece>> {
    let planner = Planner::new(sources.clone(), group, slices);
    let units = stream::try_unfold(planner, |mut planner| async move {
        let units = planner.next_slice().await?;
        Ok::<_, TableError>(units.map(|units| (units, planner)))
    });
    let units = units
        .map_ok(|units| stream::iter(units.into_iter().map(Ok)))
        .try_flatten();
    let ahead = request.units_ahead(sources.files.store().is_far());
    // A page of another writer may be much larger than a unit: then fewer are read ahead.
    let unit_bytes = request.unit_bytes();
    let most = kibibytes(unit_bytes.saturating_mul(ahead as u64));
    let room = Arc::new(Semaphore::new(most as usize));
    // Whole pages may have less room than that.
    let pages = request.pace.copied_bytes.map_or(most, kibibytes).min(most);
    let admitted = units.and_then(move |unit| {
        let taken = kibibytes(unit.bytes(unit_bytes));
        let taken = if unit.is_page() {
            scaled(taken, most, pages)
        } else {
            taken
        };
        let (room, taken) = (room.clone(), taken.min(most));
        async move {
            let permit = room.acquire_many_owned(taken).await;
            let permit =
                permit.map_err(|error| TableError::invalid(format!("a read could not be admitted: {error}")))?;
            Ok::<_, TableError>((unit, permit))
        }
    });
    let reads = admitted.map_ok(|(unit, permit)| async move {
        let read = tokio::spawn(unit.read()).await;
        let piece = read.map_err(|error| TableError::task_failed("rewrite", &error))??;
        Ok::<_, TableError>((piece, permit))
    });
    // The place of what was read is free again once the writer takes it.
    reads.try_buffered(ahead).map_ok(|(piece, _permit)| piece).boxed()
}

/// The whole KiB that some bytes take, at least one.
fn kibibytes(bytes: u64) -> u32 {
    u32::try_from(bytes / 1024).unwrap_or(u32::MAX >> 4).max(1)
}

/// `part` as a share of `of`, as the same share of `whole`.
fn scaled(part: u32, whole: u32, of: u32) -> u32 {
    let share = u64::from(part) * u64::from(whole) / u64::from(of.max(1));
    u32::try_from(share).unwrap_or(u32::MAX)
}

/// So many columns fill pages at the same time within the memory for that.
fn columns_at_once(request: &RewriteRequest, cut: &FileCut, columns: usize, is_far: bool) -> usize {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is an estimate.
    let file_bytes = cut.bytes as u64;
    let average = file_bytes / (columns as u64).max(1);
    // Columns differ, and values take more than their pages.
    let likely = average.saturating_mul(4).max(cut.rows.saturating_mul(8)).max(1);
    let per_column = request.page_bytes().min(likely);
    usize::try_from(request.together_bytes(is_far) / per_column)
        .unwrap_or(usize::MAX)
        .max(1)
}

/// Neighbouring parts that are written together; blobs by themselves, so that those of a column lie together.
fn column_groups(parts: &[ColumnPart], at_once: usize) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut is_closed = true;
    for (number, part) in parts.iter().enumerate() {
        let has_blobs = part.field.has_blobs();
        match out.last_mut() {
            Some(last) if !is_closed && !has_blobs && last.len() < at_once => last.end = number + 1,
            _ => out.push(number..number + 1),
        }
        is_closed = has_blobs;
    }
    out
}
