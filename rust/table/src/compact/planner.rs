//! Plans what is read for some columns of some rows, fragment by fragment.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::DataType;
use esker_file::column_writer::ColumnPart;
use esker_file::raw_page::PagePlace;
use esker_file::schema::{BlobKind, BlobView, Field, Schema};
use esker_file::{Dictionaries, FileError, FileReader, FileVersion};

use super::cut::Slice;
use super::request::CopyMode;
use super::segments::{segments, CopyRule, Segment};
use super::units::{Output, PageZones, Unit};
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::read::{
    clip, count, groups, live, memory_of, zone_map, FragmentProjection, FragmentReader, Projection, TableFiles,
    FAR_SPREAD,
};

/// Rows of descriptions of blobs that are read at a time.
const BLOB_ROWS: u64 = 64 * 1024;

/// The most rows of a unit, whatever is asked for.
pub(super) const UNIT_ROWS: u64 = 1 << 20;

/// The bytes of a full page of values, as all writers make them.
const PAGE_OF_VALUES: u64 = 8 * 1024 * 1024;

/// How many times smaller than its values a page may well be.
const LIKELY_GAIN: u64 = 8;

/// Where units would have more rows than this, the first few are read to see what they take in memory: repeated and compressed values may take
/// hundreds of times what files hold of them.
const UNKNOWN_ROWS: u64 = 16 * 1024;
const SAMPLE_ROWS: u64 = 512;

/// What all plans of a rewrite share.
#[derive(Debug)]
pub(super) struct Sources {
    pub files: Arc<TableFiles>,
    pub fragments: Vec<Fragment>,
    pub schema: Schema,
    pub dictionaries: Arc<Dictionaries>,
    pub parts: Vec<ColumnPart>,
    /// The version of new files.
    pub version: FileVersion,
    pub copy: CopyMode,
    pub unit_bytes: u64,
    /// The most rows of a unit.
    pub unit_rows: u64,
    pub page_bytes: u64,
}

/// Plans the parts of a group, slice after slice.
pub(super) struct Planner {
    sources: Arc<Sources>,
    /// Numbers of parts, and for each what waits to fill a page.
    group: Vec<(usize, u64)>,
    slices: std::vec::IntoIter<Slice>,
}

/// Columns that are read together, all of their rows encoded anew.
#[derive(Default)]
struct Joint {
    fields: Vec<Field>,
    outputs: Vec<Output>,
    bytes_per_row: u64,
}

impl Planner {
    pub fn new(sources: Arc<Sources>, group: Range<usize>, slices: Vec<Slice>) -> Self {
        Self {
            sources,
            group: group.map(|part| (part, 0)).collect(),
            slices: slices.into_iter(),
        }
    }

    /// The units of the next slice.
    pub async fn next_slice(&mut self) -> Result<Option<Vec<Unit>>> {
        let Some(slice) = self.slices.next() else {
            return Ok(None);
        };
        let sources = self.sources.clone();
        let fragment = sources.fragments.get(slice.source);
        let fragment = fragment.ok_or_else(|| TableError::invalid("expected a fragment of the request"))?;
        let reader = FragmentReader::open(&sources.files, fragment).await?;
        let rows = live(0..reader.physical_rows(), reader.deletions().map(AsRef::as_ref));
        let (mut skip, mut keep) = (slice.skip, slice.rows);
        let rows = clip(rows, &mut skip, &mut keep);
        let (mut units, mut joint) = (Vec::new(), Joint::default());
        let mut split_field = None;
        for (number, waiting) in &mut self.group {
            let Some(part) = sources.parts.get(*number) else {
                continue;
            };
            if part.field.has_blobs() {
                blob_units(&sources, &reader, *number, part, &rows, &mut units).await?;
                continue;
            }
            if split_field.as_ref().is_none_or(|(top, _)| *top != part.top) {
                split_field = Some((part.top, sources.is_split(&reader, part)?));
            }
            if matches!(split_field, Some((_, true))) {
                joint.add_whole(&sources, *number, part)?;
                continue;
            }
            let pages = match part.copied_id.and_then(|id| reader.column_of(id)) {
                Some((file, column)) => Some((file, column, file.page_places(column)?)),
                None => None,
            };
            let places = pages
                .as_ref()
                .map(|(_, _, places)| places.as_slice())
                .unwrap_or_default();
            let (width, varies) = width(part.field.to_arrow()?.data_type());
            let per_row = if varies {
                decoded_per_row(places).max(width)
            } else {
                width
            };
            if let Some((file, column, places)) = pages.as_ref().filter(|(file, ..)| sources.copies(file)) {
                let rule = CopyRule {
                    page_bytes: sources.page_bytes,
                    width,
                };
                let segments = segments(places, &rows, rule, waiting);
                if segments.iter().any(|segment| matches!(segment, Segment::Page(_))) {
                    let columns = Arc::new(sources.project(&reader, vec![part.field.clone()])?);
                    let outputs: Arc<[Output]> = Arc::new([Output::Part(*number)]);
                    let map = zone_map(file, *column, &part.field).await;
                    let zones = |place: &PagePlace| {
                        let rows = place.rows.end - place.rows.start;
                        Some(PageZones {
                            map: map.clone()?,
                            rows: place.rows.clone(),
                            bytes: place.bytes.max(rows.saturating_mul(width)),
                        })
                    };
                    for segment in segments {
                        match segment {
                            Segment::Page(page) => units.push(Unit::Page {
                                part: *number,
                                reader: (*file).clone(),
                                column: *column,
                                page,
                                bytes: places.get(page).map_or(0, |place| place.bytes),
                                zones: places.get(page).and_then(zones),
                            }),
                            Segment::Rows(rows) => {
                                let per_row = per_row.max(columns.bytes_per_row());
                                units.extend(sources.row_units(&columns, &outputs, rows, per_row).await?);
                            }
                        }
                    }
                    continue;
                }
            }
            joint.fields.push(part.field.clone());
            joint.outputs.push(Output::Part(*number));
            joint.bytes_per_row = joint.bytes_per_row.saturating_add(per_row);
        }
        if !joint.fields.is_empty() {
            let columns = Arc::new(sources.project(&reader, joint.fields)?);
            let per_row = joint.bytes_per_row.max(columns.bytes_per_row());
            units.extend(
                sources
                    .row_units(&columns, &joint.outputs.into(), rows, per_row)
                    .await?,
            );
        }
        Ok(Some(units))
    }
}

impl Joint {
    /// Adds the whole field that a part belongs to, once for all parts of the group.
    fn add_whole(&mut self, sources: &Sources, number: usize, part: &ColumnPart) -> Result<()> {
        if let (Some(Output::Field(parts)), Some(last)) = (self.outputs.last_mut(), self.fields.last()) {
            if last.id == part.field.id {
                parts.push(number);
                return Ok(());
            }
        }
        let field = sources.schema.fields.get(part.top);
        let field = field.ok_or_else(|| TableError::invalid("expected a part of a field of the schema"))?;
        self.bytes_per_row = self.bytes_per_row.saturating_add(width(&field.data_type()?).0);
        self.fields.push(field.clone());
        self.outputs.push(Output::Field(vec![number]));
        Ok(())
    }
}

impl Sources {
    fn copies(&self, file: &FileReader) -> bool {
        self.copy == CopyMode::Allow && file.version() == self.version
    }

    fn project(&self, reader: &FragmentReader, fields: Vec<Field>) -> Result<FragmentProjection> {
        let schema = Schema {
            fields,
            metadata: Default::default(),
        };
        let projection = Projection::new(&schema, None)?.with_dictionaries(self.dictionaries.clone());
        reader.project(&Arc::new(projection))
    }

    /// Whether the field that a part belongs to lies in several files of the fragment, or some of it in none.
    fn is_split(&self, reader: &FragmentReader, part: &ColumnPart) -> Result<bool> {
        match self.schema.fields.get(part.top) {
            Some(field) if part.leaf.is_some() && !field.children.is_empty() => {
                Ok(self.project(reader, vec![field.clone()])?.is_split(0))
            }
            _ => Ok(false),
        }
    }

    async fn row_units(
        &self,
        columns: &Arc<FragmentProjection>,
        outputs: &Arc<[Output]>,
        rows: Vec<Range<u64>>,
        bytes_per_row: u64,
    ) -> Result<Vec<Unit>> {
        let most = self.unit_rows.max(1);
        let mut size = (self.unit_bytes / bytes_per_row.max(1)).clamp(1, most);
        if size.min(count(&rows)) > UNKNOWN_ROWS && columns.varies() {
            let sample = clip(rows.clone(), &mut 0, &mut { SAMPLE_ROWS });
            let per_row = memory_of(&columns.read(&sample).await?) / SAMPLE_ROWS;
            size = size.min(self.unit_bytes / per_row.max(1)).clamp(1, most);
        }
        let most_bytes = usize::try_from(self.unit_bytes.saturating_mul(FAR_SPREAD)).unwrap_or(usize::MAX);
        let units = groups(rows, size).map(|rows| Unit::Rows {
            most_bytes,
            columns: columns.clone(),
            outputs: outputs.clone(),
            rows,
        });
        Ok(units.collect())
    }
}

/// Blobs are read by their places where the file has such, and as values elsewhere.
async fn blob_units(
    sources: &Sources,
    reader: &FragmentReader,
    number: usize,
    part: &ColumnPart,
    rows: &[Range<u64>],
    units: &mut Vec<Unit>,
) -> Result<()> {
    let located = part.field.with_blob_view(BlobView::Located);
    let columns = Arc::new(sources.project(reader, vec![located])?);
    let is_split = columns.is_split(0);
    if !is_split && has_places(&columns, rows).await? {
        units.extend(groups(rows.to_vec(), BLOB_ROWS).map(|rows| Unit::Blobs {
            part: number,
            columns: columns.clone(),
            rows,
        }));
        return Ok(());
    }
    if holds_v2(&part.field) {
        return Err(TableError::unsupported(format!(
            "column '{}': blobs of kind lance.blob.v2 in a struct whose fields lie in several files cannot be moved; write the column anew",
            part.field.name
        )));
    }
    let values = part.field.with_blob_view(BlobView::Bytes);
    let columns = Arc::new(sources.project(reader, vec![values])?);
    let per_row = columns.bytes_per_row().max(16);
    let outputs: Arc<[Output]> = Arc::new([Output::Part(number)]);
    units.extend(sources.row_units(&columns, &outputs, rows.to_vec(), per_row).await?);
    Ok(())
}

/// Whether the column's file has places of blobs; some old files have plain values.
async fn has_places(columns: &FragmentProjection, rows: &[Range<u64>]) -> Result<bool> {
    let (Some(file), Some(first)) = (columns.file_of(0), rows.first()) else {
        return Ok(true);
    };
    match file.version() {
        FileVersion::V0_1 => Ok(false),
        FileVersion::V2_0 => {
            let one = first.start..first.start.saturating_add(1).min(first.end);
            match columns.read(&[one]).await {
                Err(TableError::File(FileError::Unsupported(_))) => Ok(false),
                other => other.map(|_| true),
            }
        }
        _ => Ok(true),
    }
}

fn holds_v2(field: &Field) -> bool {
    field.blob_kind() == Some(BlobKind::V2) || field.children.iter().any(holds_v2)
}

/// About the bytes that a value of varying size takes once it is decoded: a full page holds as much as any, whatever it was compressed to.
fn decoded_per_row(pages: &[PagePlace]) -> u64 {
    let most_rows = pages
        .iter()
        .map(|page| page.rows.end - page.rows.start)
        .max()
        .unwrap_or(0);
    let full = PAGE_OF_VALUES / most_rows.max(1);
    match pages {
        [] => 0,
        [only] => full.min(only.bytes.saturating_mul(LIKELY_GAIN) / most_rows.max(1)),
        _ => full,
    }
}

/// The bytes that a value takes at least in memory, and whether some take more.
fn width(data_type: &DataType) -> (u64, bool) {
    match data_type {
        DataType::Boolean | DataType::Null => (1, false),
        DataType::FixedSizeBinary(size) => (u64::try_from(*size).unwrap_or(0), false),
        DataType::FixedSizeList(item, size) => {
            let (width, varies) = width(item.data_type());
            (width.saturating_mul(u64::try_from(*size).unwrap_or(0)), varies)
        }
        DataType::Struct(fields) => fields.iter().fold((0, false), |(sum, varied), field| {
            let (width, varies) = width(field.data_type());
            (sum + width, varied || varies)
        }),
        DataType::Dictionary(key, _) => (key.primitive_width().unwrap_or(8) as u64, false),
        other => match other.primitive_width() {
            Some(width) => (width as u64, false),
            None => (8, true),
        },
    }
}
