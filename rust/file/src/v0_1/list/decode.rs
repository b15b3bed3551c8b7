//! Reading lists: their offsets first, then the items between them.

use std::ops::Range;

use arrow_array::{make_array, Array, ArrayRef};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bytes::Bytes;
use esker_codec::ends::Offset;

use crate::error::{FileError, Result};
use crate::v0_1::column::{ColumnNode, ColumnRead, ReadContext};
use crate::v0_1::page::{count_rows, FieldPages, PageRows, Parts};
use crate::v0_1::plain::decode::PlainRead;
use crate::v2_0::page::length;

/// Lists while their bytes come in.
#[derive(Debug)]
pub(crate) struct ListRead<'a> {
    context: ReadContext<'a>,
    pages: FieldPages<'a>,
    data_type: DataType,
    item: &'a ColumnNode,
    rows: Vec<PageRows>,
    state: State<'a>,
}

#[derive(Debug)]
enum State<'a> {
    Offsets(PlainRead<'a>),
    Items(Buffer, Box<ColumnRead<'a>>),
}

impl<'a> ListRead<'a> {
    pub(crate) fn new(
        context: ReadContext<'a>,
        pages: FieldPages<'a>,
        data_type: &DataType,
        item: &'a ColumnNode,
        rows: Vec<PageRows>,
    ) -> Result<ListRead<'a>> {
        let offset_type = match data_type {
            DataType::LargeList(_) => DataType::Int64,
            _ => DataType::Int32,
        };
        Ok(ListRead {
            context,
            pages,
            data_type: data_type.clone(),
            item,
            state: State::Offsets(PlainRead::list_offsets(pages, &offset_type, &rows)?),
            rows,
        })
    }

    pub(crate) fn requests(&self, out: &mut Vec<Range<u64>>) {
        match &self.state {
            State::Offsets(read) => read.requests(out),
            State::Items(_, items) => items.requests(out),
        }
    }

    pub(crate) fn receive(&mut self, parts: &mut Parts) -> Result<()> {
        match &mut self.state {
            State::Offsets(read) => {
                let runs = read.take_runs(parts);
                let (offsets, items) = if matches!(self.data_type, DataType::LargeList(_)) {
                    self.extents::<i64, 8>(&runs, |bytes| u64::try_from(i64::from_le_bytes(bytes)).ok())?
                } else {
                    self.extents::<i32, 4>(&runs, |bytes| u64::try_from(i32::from_le_bytes(bytes)).ok())?
                };
                let items = ColumnRead::new(self.context, self.item, items)?;
                self.state = State::Items(offsets, Box::new(items));
                Ok(())
            }
            State::Items(_, items) => items.receive(parts),
        }
    }

    /// The items, once the offsets are there.
    pub(crate) fn items(&self) -> Option<&ColumnRead<'a>> {
        match &self.state {
            State::Offsets(_) => None,
            State::Items(_, items) => Some(items),
        }
    }

    /// Arrow's offsets, and of each group the items that are wanted.
    fn extents<O: Offset + arrow_buffer::ArrowNativeType, const WIDTH: usize>(
        &self,
        runs: &[Bytes],
        decode: impl Fn([u8; WIDTH]) -> Option<u64>,
    ) -> Result<(Buffer, Vec<PageRows>)> {
        let mut offsets: Vec<O> = Vec::with_capacity(length(count_rows(&self.rows))?.saturating_add(1));
        offsets.push(O::default());
        let mut items: Vec<PageRows> = Vec::with_capacity(self.rows.len());
        let mut base = 0_u64;
        let mut runs = runs.iter();
        for of_page in &self.rows {
            let mut wanted: Vec<Range<u64>> = Vec::with_capacity(of_page.rows.len());
            for run in runs.by_ref().take(of_page.rows.len()) {
                let wrong = || {
                    let message = "expected offsets from 0 up that never fall, found others";
                    self.pages.corrupt(of_page.group, message)
                };
                let mut stored = run
                    .chunks_exact(WIDTH)
                    .map(|chunk| decode(chunk.first_chunk::<WIDTH>().copied()?));
                let start = stored.next().flatten().ok_or_else(wrong)?;
                let mut previous = start;
                for end in stored {
                    let end = end.filter(|end| *end >= previous).ok_or_else(wrong)?;
                    previous = end;
                    offsets.push(O::from_u64((end - start).wrapping_add(base)));
                }
                base = base.saturating_add(previous - start);
                match wanted.last_mut() {
                    _ if start == previous => {}
                    Some(last) if last.end == start => last.end = previous,
                    Some(last) if last.end > start => return Err(wrong()),
                    _ => wanted.push(start..previous),
                }
            }
            if !wanted.is_empty() {
                items.push(PageRows {
                    group: of_page.group,
                    rows: wanted,
                });
            }
        }
        if base > O::MAX {
            return Err(FileError::invalid(format!(
                "column '{}': the lists of one batch hold {base} items; read fewer rows at a time or use a large_list",
                self.pages.column
            )));
        }
        Ok((Buffer::from_vec(offsets), items))
    }

    pub(crate) fn finish(self) -> Result<ArrayRef> {
        let State::Items(offsets, items) = self.state else {
            return Err(FileError::invalid(
                "expected the items of lists, found them not read yet",
            ));
        };
        let items = items.finish()?;
        let data = ArrayData::builder(self.data_type)
            .len(length(count_rows(&self.rows))?)
            .add_buffer(offsets)
            .add_child_data(items.to_data())
            .build();
        Ok(make_array(data.map_err(|e| self.pages.corrupt_column(e))?))
    }
}
