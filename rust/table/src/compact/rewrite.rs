//! Rewrites fragments: cuts their rows into files, and writes those one after the other.

use std::sync::Arc;

use esker_file::column_writer::{column_parts, ColumnPart, PageCounts};
use esker_file::large_blocks::Sparing;
use esker_file::writer::check_schema;
use esker_file::FileVersion;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::carried::CarriedRows;
use super::columns::write_file;
use super::cut::{Cutter, Slice, SourceSize};
use super::outcome::RewriteOutcome;
use super::planner::{Sources, UNIT_ROWS};
use super::request::RewriteRequest;
use super::rows::write_rows;
use crate::error::Result;
use crate::fragment::Fragment;
use crate::manifest::Manifest;
use crate::read::{fragments_of, FragmentReader, TableFiles};
use crate::write::{discard, StagedFragment};

/// Fragments that are opened at the same time.
const OPENED: usize = 16;

/// Writes the live rows of fragments of a version, in order, to new files. Nothing is visible before the outcome is committed; on an error,
/// staged files are removed.
pub async fn rewrite_fragments(
    files: &Arc<TableFiles>,
    manifest: &Arc<Manifest>,
    request: &RewriteRequest,
) -> Result<RewriteOutcome> {
    manifest.check_readable()?;
    request.check()?;
    let _sparing = Sparing::keeping(request.kept_bytes());
    let files = &Arc::new(files.for_one_pass(request.metadata_bytes()));
    let schema = manifest.schema()?;
    check_schema(&schema, request.version)?;
    let fragments = fragments_of(manifest, Some(&request.fragment_ids))?;
    let sizes = sizes(files, &fragments).await?;
    let carried = CarriedRows::read(files, manifest, &fragments).await?;
    let sources = Arc::new(Sources {
        files: files.clone(),
        fragments,
        dictionaries: manifest.dictionaries()?,
        parts: match request.version {
            FileVersion::V0_1 => whole_fields(&schema.fields),
            version => column_parts(&schema, version)?,
        },
        schema: schema.as_ref().clone(),
        version: request.version,
        copy: request.copy,
        unit_bytes: request.unit_bytes(),
        unit_rows: request.batch_rows.unwrap_or(UNIT_ROWS).min(UNIT_ROWS),
        page_bytes: request.page_bytes(),
    });
    let (staged, pages) = if request.version == FileVersion::V0_1 {
        let slices = sizes.iter().enumerate().map(|(source, size)| Slice {
            source,
            skip: 0,
            rows: size.rows,
        });
        let staged = write_rows(&sources, manifest, request, slices.collect()).await?;
        (staged, PageCounts::default())
    } else {
        write_files(&sources, request, sizes, carried.as_ref()).await?
    };
    Ok(outcome(staged, pages, carried.as_ref()))
}

fn whole_fields(fields: &[esker_file::schema::Field]) -> Vec<ColumnPart> {
    let part = |(top, field): (usize, &esker_file::schema::Field)| ColumnPart {
        top,
        field: field.clone(),
        leaf: None,
        copied_id: None,
    };
    fields.iter().enumerate().map(part).collect()
}

/// The live rows of each fragment, and about what they take.
#[allow(clippy::cast_precision_loss)] // It is an estimate.
async fn sizes(files: &TableFiles, fragments: &[Fragment]) -> Result<Vec<SourceSize>> {
    let sizes = stream::iter(fragments).map(|fragment| async move {
        let reader = FragmentReader::open(files, fragment).await?;
        let rows = reader.physical_rows();
        let deleted = reader.deletions().map_or(0, |deletions| deletions.len());
        Ok(SourceSize {
            rows: rows.saturating_sub(deleted),
            bytes_per_row: reader.file_bytes() as f64 / rows.max(1) as f64,
        })
    });
    sizes.buffered(OPENED).try_collect().await
}

async fn write_files(
    sources: &Arc<Sources>,
    request: &RewriteRequest,
    sizes: Vec<SourceSize>,
    carried: Option<&CarriedRows>,
) -> Result<(Vec<StagedFragment>, PageCounts)> {
    let mut cutter = Cutter::new(sizes, request.max_rows_per_file, request.max_bytes_per_file);
    let (mut staged, mut total) = (Vec::new(), PageCounts::default());
    let mut start = 0_u64;
    while let Some(cut) = cutter.next_file() {
        let rows = start..start.saturating_add(cut.rows);
        start = rows.end;
        let lineage = carried.map(|carried| carried.columns(rows)).unwrap_or_default();
        match write_file(sources, request, &cut, request.base(staged.len()), &lineage).await {
            Ok((file, pages)) => {
                let written = file.fragment.files().iter().filter_map(|file| file.file_size_bytes);
                cutter.learn(&cut, written.sum());
                staged.push(file);
                total.encoded += pages.encoded;
                total.copied += pages.copied;
                total.bytes_copied = total.bytes_copied.saturating_add(pages.bytes_copied);
            }
            Err(error) => {
                discard(sources.files.store(), &staged).await;
                return Err(error);
            }
        }
    }
    Ok((staged, total))
}

fn outcome(staged: Vec<StagedFragment>, pages: PageCounts, carried: Option<&CarriedRows>) -> RewriteOutcome {
    let mut out = RewriteOutcome {
        pages_copied: pages.copied,
        pages_encoded: pages.encoded,
        bytes_copied: pages.bytes_copied,
        ..RewriteOutcome::default()
    };
    for StagedFragment { fragment, files } in staged {
        let rows = fragment.physical_rows().unwrap_or(0);
        let sizes = fragment.files().iter().filter_map(|file| file.file_size_bytes);
        out.bytes_written = out.bytes_written.saturating_add(sizes.sum());
        out.files.extend(files);
        out.fragments.push(match carried {
            Some(carried) => carried.stamp(fragment, out.rows),
            None => fragment,
        });
        out.rows = out.rows.saturating_add(rows);
    }
    out
}
