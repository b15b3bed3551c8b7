//! Decodes mini-block chunks to levels and values.

use std::ops::Range;

use super::chunk::Chunk;
use super::page::{MiniBlockPage, Pick};
use crate::error::Result;
use crate::v2_1::builder::LeafBuilder;
use crate::v2_1::decode::Wanted;
use crate::v2_1::levels::decode::{row_bounds, Levels};
use crate::v2_1::page::{to_len, PageId};

impl MiniBlockPage {
    /// Appends what a picked chunk holds of `rows`.
    pub(crate) fn decode(
        &self,
        at: &PageId,
        pick: &Pick,
        rows: &[Range<u64>],
        stored: &[u8],
        levels: &mut Levels,
        out: &mut LeafBuilder,
    ) -> Result<()> {
        let rows = rows.get(pick.ranges.clone()).unwrap_or_default();
        let (has_rep, has_def) = (self.rep.is_some(), self.def.is_some());
        let chunk = Chunk::new(at, stored, has_rep, has_def, self.num_buffers, self.has_large_chunk)?;
        let values = self.index.values(pick.chunk);
        let n = to_len(at, values.end - values.start)?;
        if has_rep {
            return self.decode_lists(at, pick, rows, &chunk, n, levels, out);
        }
        if has_def && chunk.num_levels != n {
            return Err(at.corrupt(format!(
                "expected a definition level for each of the {n} values of a chunk, found {}",
                chunk.num_levels
            )));
        }
        if let [only] = rows {
            if only.start <= values.start && only.end >= values.end {
                if let (Some(def), Some(to)) = (&self.def, &mut levels.def) {
                    def.decode_block(at, 16, chunk.def, n, to)?;
                }
                levels.len = levels.len.saturating_add(n);
                return self.append(at, &chunk, n, Wanted::All, out);
            }
        }
        let local = rows
            .iter()
            .map(|r| {
                let start = r.start.max(values.start) - values.start;
                let end = r.end.min(values.end).saturating_sub(values.start);
                Ok(to_len(at, start)?..to_len(at, end)?)
            })
            .collect::<Result<Vec<_>>>()?;
        if let Some(def) = &self.def {
            let mut all = Levels::new(false, true);
            def.decode_block(at, 16, chunk.def, n, all.def.get_or_insert_with(Vec::new))?;
            all.len = n;
            local.iter().for_each(|range| levels.append(&all, range.clone()));
        } else {
            levels.len = local
                .iter()
                .fold(levels.len, |sum, range| sum.saturating_add(range.len()));
        }
        self.append(at, &chunk, n, Wanted::Ranges(&local), out)
    }

    #[allow(clippy::too_many_arguments)] // The parts of one step, which nothing else groups.
    fn decode_lists(
        &self,
        at: &PageId,
        pick: &Pick,
        rows: &[Range<u64>],
        chunk: &Chunk<'_>,
        n: usize,
        levels: &mut Levels,
        out: &mut LeafBuilder,
    ) -> Result<()> {
        if let [only] = rows {
            if self.index.is_whole(pick.chunk, only) {
                return self.decode_whole(at, chunk, n, levels, out);
            }
        }
        let mut all = Levels::new(true, self.def.is_some());
        let sides = [
            (&self.rep, chunk.rep, &mut all.rep),
            (&self.def, chunk.def, &mut all.def),
        ];
        for (compression, stored, to) in sides {
            if let (Some(compression), Some(to)) = (compression, to) {
                compression.decode_block(at, 16, stored, chunk.num_levels, to)?;
            }
        }
        all.len = chunk.num_levels;
        all.check(at, &self.layers)?;
        let visible = all.visible(&self.layers, 0..all.len);
        if visible != n {
            return Err(at.corrupt(format!(
                "expected levels of the {n} values of a chunk, found those of {visible}"
            )));
        }
        let starts = self.index.rows(pick.chunk);
        let bounds: Vec<u64> = rows.iter().flat_map(|r| [r.start, r.end]).collect();
        let mut local = Vec::with_capacity(rows.len());
        for pair in row_bounds(&all, &self.layers, starts.start, &bounds).chunks_exact(2) {
            if let [(from, before), (to, after)] = pair {
                levels.append(&all, *from..*to);
                local.push(*before..*after);
            }
        }
        let wanted = match local.as_slice() {
            [only] if *only == (0..n) => Wanted::All,
            ranges => Wanted::Ranges(ranges),
        };
        self.append(at, chunk, n, wanted, out)
    }

    /// Appends all of a chunk of a page with lists.
    fn decode_whole(
        &self,
        at: &PageId,
        chunk: &Chunk<'_>,
        n: usize,
        levels: &mut Levels,
        out: &mut LeafBuilder,
    ) -> Result<()> {
        let before = levels.len;
        let sides = [
            (&self.rep, chunk.rep, &mut levels.rep),
            (&self.def, chunk.def, &mut levels.def),
        ];
        for (compression, stored, to) in sides {
            if let (Some(compression), Some(to)) = (compression, to) {
                compression.decode_block(at, 16, stored, chunk.num_levels, to)?;
            }
        }
        levels.len = before.saturating_add(chunk.num_levels);
        let visible = levels.visible(&self.layers, before..levels.len);
        if visible != n {
            return Err(at.corrupt(format!(
                "expected levels of the {n} values of a chunk, found those of {visible}"
            )));
        }
        self.append(at, chunk, n, Wanted::All, out)
    }

    fn append(
        &self,
        at: &PageId,
        chunk: &Chunk<'_>,
        n: usize,
        wanted: Wanted<'_>,
        out: &mut LeafBuilder,
    ) -> Result<()> {
        match (&self.dictionary, out) {
            (None, LeafBuilder::Plain(out)) => self.values.decode_chunk(at, &chunk.buffers, n, wanted, out),
            (Some(dictionary), out) => dictionary.append(at, &self.values, &chunk.buffers, n, wanted, out),
            (None, LeafBuilder::Keyed(_)) => {
                Err(at.corrupt("expected a dictionary for a column of a dictionary type, found values without one"))
            }
        }
    }
}
