//! Reads one fragment: joins the columns of its data files.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{new_null_array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Schema};
use esker_expr::{ColumnRange, ColumnRanges};
use esker_file::schema::Field;
use esker_file::{Decoding, FileProjection, FileReader, FileVersion, Room};

use super::chunking::width;
use super::covering::{uncovered, RowCost, FAR_SPREAD};
use super::file_columns::FileColumns;
use super::files::TableFiles;
use super::projection::Projection;
use super::rows::count;
use super::zone_maps::zone_map;
use crate::deletion::DeletionVector;
use crate::error::{Result, TableError};
use crate::fragment::Fragment;
use crate::struct_parts::joined;

/// An open fragment.
#[derive(Debug)]
pub(crate) struct FragmentReader {
    id: u64,
    physical_rows: u64,
    deletions: Option<Arc<DeletionVector>>,
    files: Vec<(FileColumns, FileReader)>,
}

/// The columns of a projection, found in the files of one fragment.
#[derive(Debug)]
pub(crate) struct FragmentProjection {
    projection: Arc<Projection>,
    parts: Vec<Part>,
    /// Columns that no file of the fragment holds: they were added later and are null here.
    missing: Vec<(usize, DataType)>,
    /// Structs that are joined from parts: their fields lie in several files, or some of them in none.
    split: HashMap<usize, DataType>,
    bytes_per_row: u64,
}

#[derive(Debug)]
struct Part {
    reader: FileReader,
    columns: FileProjection,
    outputs: Vec<usize>,
    /// The column of each output in the file, where it has one of its own.
    own_columns: Vec<Option<usize>>,
}

/// Whether a file holds the field. In a 2.1 file a struct or list has no column of its own, only its leaves have.
fn holds(file: &FileColumns, field: &Field) -> bool {
    file.column_of(field.id).is_some() || field.children.iter().any(|child| holds(file, child))
}

/// Whether parts of a type can be joined only where they agree: on the lengths of lists, and on the nulls of structs with required fields.
fn must_agree(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(_) | DataType::LargeList(_) | DataType::Map(..) => true,
        DataType::Struct(fields) => {
            let mut fields = fields.iter();
            fields.any(|field| !field.is_nullable() || must_agree(field.data_type()))
        }
        _ => false,
    }
}

/// The part of a field that a file holds, without the ids `taken` from files before it; `None` if it holds nothing of it. A writer of some
/// of a struct's fields leaves the others in their files, or null.
fn part_of(file: &FileColumns, field: &Field, taken: &mut HashSet<i32>) -> Option<Field> {
    let is_open = field.is_list() || (field.is_struct() && !field.is_packed_struct() && !field.is_blob());
    if !is_open || field.children.is_empty() {
        return (holds(file, field) && taken.insert(field.id)).then(|| field.clone());
    }
    let children = field.children.iter();
    let children: Vec<Field> = children.filter_map(|child| part_of(file, child, taken)).collect();
    (!children.is_empty()).then(|| Field {
        children,
        ..field.clone()
    })
}

impl FragmentReader {
    /// Opens the files of a fragment and reads its deletion file.
    pub(crate) async fn open(files: &TableFiles, fragment: &Fragment) -> Result<FragmentReader> {
        let mut open = Vec::with_capacity(fragment.files().len());
        for file in fragment.files() {
            open.push((FileColumns::of(file), files.open(file).await?));
        }
        let in_files = open.iter().map(|(_, reader)| reader.num_rows()).min();
        let physical_rows = match (fragment.physical_rows(), in_files) {
            (Some(rows), Some(found)) if rows > found => {
                return Err(TableError::corrupt(
                    format!("fragment {}", fragment.id()),
                    format!("expected {rows} rows as the manifest says, found {found} in a data file"),
                ));
            }
            (Some(rows), _) => rows,
            (None, Some(rows)) => rows,
            (None, None) => {
                return Err(TableError::corrupt(
                    format!("fragment {}", fragment.id()),
                    "expected a row count or a data file, found neither",
                ));
            }
        };
        let deletions = files.deletions(fragment).await?;
        Ok(FragmentReader {
            id: fragment.id(),
            physical_rows,
            deletions,
            files: open,
        })
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn physical_rows(&self) -> u64 {
        self.physical_rows
    }

    pub(crate) fn deletions(&self) -> Option<&Arc<DeletionVector>> {
        self.deletions.as_ref()
    }

    /// The file that holds a leaf of the schema, and its column there.
    pub(crate) fn column_of(&self, field_id: i32) -> Option<(&FileReader, usize)> {
        let mut files = self.files.iter();
        files.find_map(|(file, reader)| Some((reader, file.column_of(field_id)?)))
    }

    /// The bytes of its data files.
    pub(crate) fn file_bytes(&self) -> u64 {
        let sizes = self.files.iter().map(|(file, reader)| {
            file.noted_size()
                .or_else(|| reader.container().map(|container| container.size()))
        });
        sizes.flatten().fold(0, u64::saturating_add)
    }

    /// Finds the columns of `projection` in the fragment's files.
    pub(crate) fn project(&self, projection: &Arc<Projection>) -> Result<FragmentProjection> {
        let wanted: Vec<_> = projection.fields().enumerate().collect();
        let mut taken = vec![HashSet::new(); wanted.len()];
        let mut found: Vec<Vec<Field>> = vec![Vec::new(); wanted.len()];
        let mut parts = Vec::new();
        for (file, reader) in &self.files {
            let (mut outputs, mut fields, mut own_columns) = (Vec::new(), Vec::new(), Vec::new());
            for (((output, field), taken), found) in wanted.iter().zip(&mut taken).zip(&mut found) {
                let Some(part) = part_of(file, field, taken) else {
                    continue;
                };
                outputs.push(*output);
                own_columns.push(file.column_of(field.id));
                fields.push(part.clone());
                found.push(part);
            }
            if outputs.is_empty() {
                continue;
            }
            let columns = reader.project_with(&fields, Some(&|id| file.column_of(id)), projection.dictionaries())?;
            parts.push(Part {
                reader: reader.clone(),
                columns,
                outputs,
                own_columns,
            });
        }
        let (mut missing, mut split) = (Vec::new(), HashMap::new());
        for ((output, field), found) in wanted.iter().zip(&found) {
            match found.as_slice() {
                [] => missing.push((*output, field.data_type()?)),
                [whole] if whole == *field => {}
                _ => {
                    split.insert(*output, field.data_type()?);
                }
            }
        }
        let bytes_per_row = parts.iter().map(|p| p.columns.bytes_per_row()).sum();
        Ok(FragmentProjection {
            projection: projection.clone(),
            parts,
            missing,
            split,
            bytes_per_row,
        })
    }
}

impl FragmentProjection {
    /// The average bytes per row in the files.
    pub(crate) fn bytes_per_row(&self) -> u64 {
        self.bytes_per_row
    }

    /// What it costs to read rows that take so many bytes in memory, as far as is known. Blobs that nobody wants are not read: some lie
    /// elsewhere, and may be gone with their rows. Nor are parts that must agree: those of deleted rows may not, as a new file of some fields
    /// has any values there.
    pub(crate) fn row_cost(&self, in_memory: u64) -> RowCost {
        let is_exact = self.projection.fields().any(Field::has_blobs) || self.split.values().any(must_agree);
        let columns = match is_exact {
            true => 0,
            false => self.parts.iter().map(|part| part.outputs.len() as u64).sum(),
        };
        RowCost::new(columns, self.bytes_per_row, in_memory)
    }

    /// Whether values of some column may have any length.
    pub(crate) fn varies(&self) -> bool {
        let mut fields = self.projection.schema().fields().iter();
        fields.any(|field| width(field.data_type()).is_none())
    }

    /// The row behind each page of the columns whose values may have any length; see [`FileReader::page_ends`].
    pub(crate) fn page_ends(&self, most: usize) -> Result<Vec<Vec<u64>>> {
        let mut all = Vec::new();
        for part in &self.parts {
            all.extend(part.reader.page_ends(&part.columns, most)?);
        }
        Ok(all)
    }

    /// Whether the fields of an output column lie in several files, or some of them in none.
    pub(crate) fn is_split(&self, output: usize) -> bool {
        self.split.contains_key(&output)
    }

    /// Whether all files decode values to memory of their own, but for those that lie by themselves: those of version 2.1 and later do.
    pub(crate) fn is_decoded(&self) -> bool {
        self.parts.iter().all(|part| part.reader.version() >= FileVersion::V2_1)
    }

    /// The number of output columns.
    pub(crate) fn num_columns(&self) -> u64 {
        self.projection.schema().fields().len() as u64
    }

    /// The file of an output column; `None` if the column is missing and read as nulls.
    pub(crate) fn file_of(&self, output: usize) -> Option<&FileReader> {
        let part = self.parts.iter().find(|part| part.outputs.contains(&output))?;
        Some(&part.reader)
    }

    /// For each file with statistics: the offsets of its groups of rows, and the bounds of the columns.
    pub(crate) async fn group_ranges(&self) -> Result<Vec<(Vec<u64>, ColumnRanges)>> {
        let mut out = Vec::new();
        for part in &self.parts {
            let Some(offsets) = part.reader.group_offsets() else {
                self.zone_ranges(part, &mut out).await;
                continue;
            };
            let bounds = part.reader.group_bounds(&part.columns).await?.into_iter();
            let ranges = bounds.map(|(path, bounds)| {
                let range = ColumnRange {
                    min: bounds.min,
                    max: bounds.max,
                    null_count: bounds.null_count,
                };
                (path, range)
            });
            out.push((offsets.to_vec(), ranges.collect()));
        }
        Ok(out)
    }

    /// The zone maps of a 2.x file, those with the same zones together.
    async fn zone_ranges(&self, part: &Part, out: &mut Vec<(Vec<u64>, ColumnRanges)>) {
        for (output, column) in part.outputs.iter().zip(&part.own_columns) {
            let Some((field, column)) = self.projection.top_level(*output).zip(*column) else {
                continue;
            };
            let Some(zones) = zone_map(&part.reader, column, field).await else {
                continue;
            };
            let range = ColumnRange {
                min: zones.min.clone(),
                max: zones.max.clone(),
                null_count: zones.null_count.iter().map(|nulls| Some(*nulls)).collect(),
            };
            let path = vec![field.name.clone()];
            match out.iter_mut().find(|(offsets, _)| *offsets == zones.offsets) {
                Some((_, ranges)) => {
                    ranges.insert(path, range);
                }
                None => out.push((zones.offsets.clone(), ColumnRanges::from([(path, range)]))),
            }
        }
    }

    /// Reads sorted rows: a raw array for each field of the projection that a file holds.
    pub(crate) async fn read_fields(&self, rows: &[Range<u64>]) -> Result<Vec<(Field, ArrayRef)>> {
        let arrays = self
            .read_arrays(rows, Decoding::default(), &Arc::new(Room::unbounded()))
            .await?;
        let fields = self.projection.fields().zip(arrays);
        Ok(fields
            .filter_map(|(field, array)| Some((field.clone(), array?)))
            .collect())
    }

    /// The columns that files hold, structs joined.
    async fn read_arrays(
        &self,
        rows: &[Range<u64>],
        decoding: Decoding,
        room: &Arc<Room>,
    ) -> Result<Vec<Option<ArrayRef>>> {
        let mut found: Vec<Vec<ArrayRef>> = vec![Vec::new(); self.projection.schema().fields().len()];
        for part in &self.parts {
            let batch = part.reader.read_within(&part.columns, rows, decoding, room).await?;
            for (array, output) in batch.columns().iter().zip(&part.outputs) {
                if let Some(place) = found.get_mut(*output) {
                    place.push(array.clone());
                }
            }
        }
        let whole = found.into_iter().enumerate().map(|(output, found)| {
            match self.split.get(&output) {
                Some(data_type) => joined(&found, data_type).map(Some),
                None => Ok(found.into_iter().next()),
            }
            .map_err(|e| TableError::corrupt("data files", e.to_string()))
        });
        whole.collect()
    }

    /// Reads sorted rows of the only column, which one file holds as it is, as keys and values where [`FileReader::read_keyed`] does.
    async fn read_keyed(&self, rows: &[Range<u64>], room: &Arc<Room>) -> Result<Option<ArrayRef>> {
        let ([part], [], true) = (self.parts.as_slice(), self.missing.as_slice(), self.split.is_empty()) else {
            return Ok(None);
        };
        if self.projection.top_level(0).is_none() || self.num_columns() != 1 {
            return Ok(None);
        }
        Ok(part.reader.read_keyed(&part.columns, rows, room).await?)
    }

    /// Reads sorted rows as one batch, whose only column may come as keys and values: its field is of that type then.
    pub(crate) async fn read_by_value(
        &self,
        rows: &[Range<u64>],
        decoding: Decoding,
        most: usize,
    ) -> Result<RecordBatch> {
        let keyed = self.read_keyed(rows, &Arc::new(Room::new(most))).await?;
        let (Some(column), [field]) = (keyed, self.projection.schema().fields().as_ref()) else {
            return self.read_within(rows, decoding, most).await;
        };
        let field = field.as_ref().clone().with_data_type(column.data_type().clone());
        RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column])
            .map_err(|e| TableError::corrupt("data files", e.to_string()))
    }

    /// Reads sorted rows as one batch.
    pub(crate) async fn read(&self, rows: &[Range<u64>]) -> Result<RecordBatch> {
        self.read_by(rows, Decoding::default()).await
    }

    /// The same, short runs with what is between them, unless that takes more than `most` bytes of memory.
    pub(crate) async fn read_covering(&self, rows: &[Range<u64>], most: usize) -> Result<RecordBatch> {
        let widths = self.projection.schema().fields().iter();
        let in_memory: u64 = widths.filter_map(|field| width(field.data_type())).sum();
        let Some(covering) = self.row_cost(in_memory).covering(rows, FAR_SPREAD) else {
            return self.read(rows).await;
        };
        match self.read_within(&covering, Decoding::default(), most).await {
            Err(error) if error.too_large().is_some() => self.read(rows).await,
            read => uncovered(&read?, &covering, rows),
        }
    }

    /// The same, where the caller says where to decode.
    pub(crate) async fn read_by(&self, rows: &[Range<u64>], decoding: Decoding) -> Result<RecordBatch> {
        self.read_within(rows, decoding, usize::MAX).await
    }

    /// The same, which fails where a file's values take more than `most` bytes of memory, as [`FileReader::read_within`] does.
    pub(crate) async fn read_within(
        &self,
        rows: &[Range<u64>],
        decoding: Decoding,
        most: usize,
    ) -> Result<RecordBatch> {
        let num_rows = usize::try_from(count(rows))
            .map_err(|_| TableError::invalid("the rows do not fit in memory; read fewer at a time"))?;
        let schema = self.projection.schema();
        let arrays = self
            .read_arrays(rows, decoding, &Arc::new(Room::new(most)))
            .await?
            .into_iter()
            .enumerate();
        let mut arrays: Vec<Option<ArrayRef>> = arrays
            .map(|(output, array)| Some(self.projection.extract(output, array?)))
            .collect();
        for (output, data_type) in &self.missing {
            if let Some(place) = arrays.get_mut(*output) {
                *place = Some(self.projection.extract(*output, new_null_array(data_type, num_rows)));
            }
        }
        let arrays: Vec<ArrayRef> = arrays.into_iter().flatten().collect();
        let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
        RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
            .map_err(|e| TableError::corrupt("data files", e.to_string()))
    }
}
