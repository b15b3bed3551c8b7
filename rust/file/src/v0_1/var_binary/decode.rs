//! Reading strings: their offsets first, then the bytes between them.

use std::ops::Range;

use arrow_array::{make_array, ArrayRef};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bytes::Bytes;
use esker_codec::ends::Offset;

use crate::error::{FileError, Result};
use crate::v0_1::page::{count_rows, take_parts, FieldPages, PageRows, Parts};
use crate::v0_1::plain::decode::{join, PlainRead};
use crate::v2_0::page::length;

/// Strings or binary while their bytes come in.
#[derive(Debug)]
pub(crate) struct VarBinaryRead<'a> {
    pages: FieldPages<'a>,
    data_type: DataType,
    nullable: bool,
    rows: u64,
    groups: Vec<usize>,
    state: State<'a>,
}

#[derive(Debug)]
enum State<'a> {
    Offsets(PlainRead<'a>),
    Bytes(Extents),
    Done(Extents, Vec<Bytes>),
}

/// Where the values lie: n + 1 Arrow offsets and the bytes in the file.
#[derive(Debug, Default)]
struct Extents {
    offsets: Buffer,
    nulls: Option<NullBuffer>,
    ranges: Vec<Range<u64>>,
}

fn is_large(data_type: &DataType) -> bool {
    matches!(data_type, DataType::LargeUtf8 | DataType::LargeBinary)
}

impl<'a> VarBinaryRead<'a> {
    pub(crate) fn new(
        pages: FieldPages<'a>,
        data_type: &DataType,
        nullable: bool,
        rows: &[PageRows],
    ) -> Result<VarBinaryRead<'a>> {
        let offsets = PlainRead::string_offsets(pages, rows)?;
        let groups = rows
            .iter()
            .flat_map(|r| std::iter::repeat_n(r.group, r.rows.len()))
            .collect();
        Ok(VarBinaryRead {
            pages,
            data_type: data_type.clone(),
            nullable,
            rows: count_rows(rows),
            groups,
            state: State::Offsets(offsets),
        })
    }

    pub(crate) fn requests(&self, out: &mut Vec<Range<u64>>) {
        match &self.state {
            State::Offsets(read) => read.requests(out),
            State::Bytes(extents) => out.extend_from_slice(&extents.ranges),
            State::Done(..) => {}
        }
    }

    pub(crate) fn receive(&mut self, parts: &mut Parts) -> Result<()> {
        match &mut self.state {
            State::Offsets(read) => {
                let runs = read.take_runs(parts);
                let extents = if is_large(&self.data_type) {
                    self.extents::<i64>(&runs)?
                } else {
                    self.extents::<i32>(&runs)?
                };
                self.state = State::Bytes(extents);
            }
            State::Bytes(extents) => {
                let extents = std::mem::take(extents);
                let bytes = take_parts(parts, extents.ranges.len());
                self.state = State::Done(extents, bytes);
            }
            State::Done(..) => {}
        }
        Ok(())
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Done(..))
    }

    /// Turns offsets that count from the file's start into Arrow's.
    fn extents<O: Offset + arrow_buffer::ArrowNativeType>(&self, runs: &[Bytes]) -> Result<Extents> {
        let rows = length(self.rows)?;
        let mut offsets: Vec<O> = Vec::with_capacity(rows.saturating_add(1));
        offsets.push(O::default());
        let mut valid = BooleanBufferBuilder::new(if self.nullable { rows } else { 0 });
        let mut any_null = false;
        let mut ranges = Vec::with_capacity(runs.len());
        let mut base = 0_u64;
        for (run, group) in runs.iter().zip(&self.groups) {
            let mut stored = run.chunks_exact(8).map(|chunk| {
                let bytes = chunk.first_chunk::<8>().copied().unwrap_or_default();
                u64::from_le_bytes(bytes)
            });
            let Some(start) = stored.next() else { continue };
            let (mut previous, mut falls) = (start, false);
            for end in stored {
                falls |= end < previous;
                if self.nullable {
                    valid.append(end != previous);
                    any_null |= end == previous;
                }
                previous = end;
                offsets.push(O::from_u64(end.wrapping_sub(start).wrapping_add(base)));
            }
            if falls {
                return Err(self.pages.corrupt(
                    *group,
                    "expected offsets that never fall, found one below the one before it",
                ));
            }
            base = base.saturating_add(previous.wrapping_sub(start));
            ranges.push(start..previous);
            self.pages.check(*group, std::slice::from_ref(&(start..previous)))?;
        }
        self.pages.check(self.groups.first().copied().unwrap_or(0), &ranges)?;
        if base > O::MAX {
            return Err(FileError::invalid(format!(
                "column '{}': the values of one batch hold {base} bytes; read fewer rows at a time or use a large_ type",
                self.pages.column
            )));
        }
        let nulls = any_null.then(|| NullBuffer::new(valid.finish()));
        Ok(Extents {
            offsets: Buffer::from_vec(offsets),
            nulls,
            ranges,
        })
    }

    pub(crate) fn finish(self) -> Result<ArrayRef> {
        let State::Done(extents, parts) = self.state else {
            return Err(FileError::invalid(
                "expected the bytes of strings, found them not read yet",
            ));
        };
        let data = ArrayData::builder(self.data_type)
            .len(length(self.rows)?)
            .add_buffer(extents.offsets)
            .add_buffer(join(parts))
            .nulls(extents.nulls)
            .build();
        Ok(make_array(data.map_err(|e| self.pages.corrupt_column(e))?))
    }
}
