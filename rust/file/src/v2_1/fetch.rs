//! Fetches the bytes of the wanted rows' pages, in as few requests as possible.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use esker_proto::lance::encodings21::page_layout::Layout;

use super::cache;
use super::full_zip::page::IndexNeed;
use super::leaf::{cut, LoadedBytes, LoadedPage};
use super::mini_block::page::Pick;
use super::page::PageId;
use super::read::LeafFile;
use super::state::{layout, PageKind, PageParts, PageState};
use super::tree::Leaf;
use crate::container::{ColumnMeta, PageMeta};
use crate::error::Result;
use crate::v2_0::read::{pages_of, PageRows};

/// Pages up to this size are read whole and kept,
const SMALL_PAGE: u64 = 32 * 1024;

/// unless those of one read have more bytes than this together: in a wide table they are all that there is. From a store behind a network
/// they are read whole in any case, as their parts would be asked for one after the other.
const SMALL_PAGES: u64 = 8 * 1024 * 1024;

/// No more whole pages of a near store are kept when this part is taken of what may be kept.
const KEPT_PART: usize = 4;

/// What is done with small pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SmallPages {
    /// They are read whole, and kept.
    Whole,
    /// The same, once for all reads that come at the same time.
    WholeInTurns,
    /// They are read like others.
    InParts,
}

impl SmallPages {
    fn of(file: &LeafFile, reads: &[PageRead]) -> Result<SmallPages> {
        if file.container().store().is_far() {
            return Ok(SmallPages::WholeInTurns);
        }
        let mut bytes: u64 = 0;
        for read in reads {
            bytes = bytes.saturating_add(small_span(read.page()?).map_or(0, |span| span.end - span.start));
        }
        Ok(match bytes > SMALL_PAGES {
            true => SmallPages::InParts,
            false => SmallPages::Whole,
        })
    }
}

/// A page of which rows are wanted, on its way to be loaded.
struct PageRead {
    leaf: usize,
    at: PageId,
    meta: Arc<ColumnMeta>,
    rows: Vec<Range<u64>>,
    state: Option<Arc<PageState>>,
    /// The page's bytes, if it is read whole, from where they start.
    whole: Option<(u64, Bytes)>,
    /// Entries of the row index.
    entries: Vec<Bytes>,
    picks: Vec<Pick>,
}

/// What a page needs at first.
enum FirstNeed {
    Nothing,
    /// All of it.
    Whole(Range<u64>),
    /// The parts that its state is made of.
    Parts(Vec<Range<u64>>),
    Index(Range<u64>),
    Entries(Vec<Range<u64>>),
}

impl FirstNeed {
    fn ranges(&self) -> Vec<Range<u64>> {
        match self {
            FirstNeed::Nothing => Vec::new(),
            FirstNeed::Whole(range) | FirstNeed::Index(range) => vec![range.clone()],
            FirstNeed::Parts(ranges) | FirstNeed::Entries(ranges) => ranges.clone(),
        }
    }
}

/// Loads the pages that `rows` of each leaf lie in.
pub(crate) async fn fetch(file: &LeafFile, leaves: &[Arc<Leaf>], rows: &[Range<u64>]) -> Result<Vec<Vec<LoadedPage>>> {
    let mut reads = Vec::new();
    for (number, leaf) in leaves.iter().enumerate() {
        page_reads(file, number, leaf, rows, &mut reads)?;
    }
    let small = SmallPages::of(file, &reads)?;
    // A dictionary is decoded once, however many reads of its page come at the same time.
    let mut shared: Vec<(usize, usize)> = Vec::new();
    for read in &reads {
        shared.extend(read.shared(file, leaves, small)?);
    }
    shared.sort_unstable();
    shared.dedup();
    let turns = file.turns.take(&shared).await;
    let needs = reads
        .iter_mut()
        .map(|read| read.first_need(file, leaves, small))
        .collect::<Result<Vec<_>>>()?;
    let wanted: Vec<Range<u64>> = needs.iter().flat_map(FirstNeed::ranges).collect();
    let mut found = get(file, &wanted).await?.into_iter();
    for (read, need) in reads.iter_mut().zip(needs) {
        let bytes: Vec<Bytes> = found.by_ref().take(need.ranges().len()).collect();
        read.take_first(file, leaves, need, bytes, small)?;
    }
    drop(turns);
    let places = reads
        .iter_mut()
        .map(PageRead::places)
        .collect::<Result<Vec<Vec<Range<u64>>>>>()?;
    let wanted: Vec<Range<u64>> = reads
        .iter()
        .zip(&places)
        .filter(|(read, _)| read.whole.is_none())
        .flat_map(|(_, places)| places.iter().cloned())
        .collect();
    let mut found = get(file, &wanted).await?.into_iter();
    let mut loaded: Vec<Vec<LoadedPage>> = leaves.iter().map(|_| Vec::new()).collect();
    for (read, places) in reads.into_iter().zip(places) {
        let leaf = read.leaf;
        read.note_passed(file);
        let page = read.load(places, &mut found)?;
        if let (Some(page), Some(pages)) = (page, loaded.get_mut(leaf)) {
            pages.push(page);
        }
    }
    Ok(loaded)
}

async fn get(file: &LeafFile, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    if ranges.is_empty() {
        return Ok(Vec::new());
    }
    let container = file.container();
    Ok(container.store().get_ranges(container.path(), ranges).await?)
}

fn page_reads(
    file: &LeafFile,
    number: usize,
    leaf: &Arc<Leaf>,
    rows: &[Range<u64>],
    out: &mut Vec<PageRead>,
) -> Result<()> {
    let container = file.container();
    let meta = container.column(leaf.column)?;
    let scaled: Vec<Range<u64>>;
    let rows = if leaf.stride == 1 {
        rows
    } else {
        let scale = |row: u64| row.saturating_mul(leaf.stride);
        scaled = rows.iter().map(|r| scale(r.start)..scale(r.end)).collect();
        &scaled
    };
    for PageRows { number: page, rows } in pages_of(container, leaf.column, &meta, rows)? {
        let mut joined: Vec<Range<u64>> = Vec::with_capacity(rows.len());
        for range in rows {
            match joined.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => joined.push(range),
            }
        }
        out.push(PageRead {
            leaf: number,
            at: PageId {
                path: file.path.clone(),
                version: container.version(),
                column: leaf.column,
                number: page,
            },
            meta: meta.clone(),
            rows: joined,
            state: None,
            whole: None,
            entries: Vec::new(),
            picks: Vec::new(),
        });
    }
    Ok(())
}

impl PageRead {
    fn page(&self) -> Result<&PageMeta> {
        let page = self.meta.pages.get(self.at.number);
        page.ok_or_else(|| {
            self.at
                .corrupt("expected the page in the column's metadata, found none")
        })
    }

    /// The page, if others may come to it at the same time for what was not read before: its dictionary, or all of it.
    fn shared(&self, file: &LeafFile, leaves: &[Arc<Leaf>], small: SmallPages) -> Result<Option<(usize, usize)>> {
        let Some(leaf) = leaves.get(self.leaf) else {
            return Ok(None);
        };
        let page = self.page()?;
        let found = layout(&self.at, page)?;
        let has_dictionary = matches!(found, Layout::MiniBlockLayout(layout) if layout.dictionary.is_some());
        let by_turns =
            has_dictionary || (small == SmallPages::WholeInTurns && !self.is_most(page) && small_span(page).is_some());
        let is_new = by_turns && cache::kept(file.kept(), leaf.column, self.at.number, &leaf.data_type).is_none();
        Ok(is_new.then_some((leaf.column, self.at.number)))
    }

    /// Whether most rows of the page are wanted.
    fn is_most(&self, page: &PageMeta) -> bool {
        let wanted: u64 = self.rows.iter().map(|r| r.end - r.start).sum();
        wanted.saturating_mul(4) >= page.num_values.saturating_mul(3)
    }

    fn first_need(&mut self, file: &LeafFile, leaves: &[Arc<Leaf>], small: SmallPages) -> Result<FirstNeed> {
        let Some(leaf) = leaves.get(self.leaf) else {
            return Ok(FirstNeed::Nothing);
        };
        self.state = cache::kept(file.kept(), leaf.column, self.at.number, &leaf.data_type);
        if self.state.is_none() {
            let page = self.page()?;
            let parts = PageParts::new(&self.at, page, layout(&self.at, page)?)?;
            let ranges = parts.ranges(page);
            let whole = match small_span(page).filter(|_| small != SmallPages::InParts) {
                Some(span) => Some(span),
                None => span(page).filter(|_| self.is_most(page) && !ranges.is_empty()),
            };
            match whole {
                Some(span) => return Ok(FirstNeed::Whole(span)),
                _ if !ranges.is_empty() => return Ok(FirstNeed::Parts(ranges)),
                _ => {
                    let state = Arc::new(parts.state(&self.at, page, &leaf.data_type, &[])?);
                    cache::keep(file.kept(), leaf.column, self.at.number, &state);
                    self.state = Some(state);
                }
            }
        }
        if let Some(state) = &self.state {
            if let Some(whole) = &state.whole {
                self.whole = Some(whole.clone());
                return Ok(FirstNeed::Nothing);
            }
            if let PageKind::FullZip(page) = &state.kind {
                return Ok(match page.index_need(&self.rows) {
                    IndexNeed::Nothing => FirstNeed::Nothing,
                    IndexNeed::Whole(range) => FirstNeed::Index(range),
                    IndexNeed::Entries(ranges) => FirstNeed::Entries(ranges),
                });
            }
        }
        Ok(FirstNeed::Nothing)
    }

    fn take_first(
        &mut self,
        file: &LeafFile,
        leaves: &[Arc<Leaf>],
        need: FirstNeed,
        mut bytes: Vec<Bytes>,
        small: SmallPages,
    ) -> Result<()> {
        let Some(leaf) = leaves.get(self.leaf) else {
            return Ok(());
        };
        let mut is_kept = false;
        match need {
            FirstNeed::Nothing => return Ok(()),
            FirstNeed::Entries(_) => {
                self.entries = bytes;
                return Ok(());
            }
            FirstNeed::Index(_) => {
                if let (Some(state), [index]) = (&self.state, bytes.as_slice()) {
                    if let PageKind::FullZip(page) = &state.kind {
                        page.keep_index(index);
                        cache::keep(file.kept(), leaf.column, self.at.number, state);
                    }
                }
                return Ok(());
            }
            FirstNeed::Whole(span) => {
                let all = bytes.pop().unwrap_or_default();
                is_kept = span.end - span.start <= SMALL_PAGE && may_keep(file, small);
                // Copied where it is cut from a larger read, which it would keep in memory.
                let all = if is_kept && !all.is_unique() {
                    Bytes::copy_from_slice(&all)
                } else {
                    all
                };
                self.whole = Some((span.start, all));
            }
            FirstNeed::Parts(_) => {}
        }
        let page = self.page()?;
        let parts = PageParts::new(&self.at, page, layout(&self.at, page)?)?;
        if let Some(whole) = &self.whole {
            let cuts = parts
                .ranges(page)
                .iter()
                .map(|range| cut(whole, range))
                .collect::<Option<Vec<_>>>();
            bytes = cuts.ok_or_else(|| self.at.corrupt("expected all of a page's parts, found fewer bytes"))?;
        }
        let mut state = parts.state(&self.at, page, &leaf.data_type, &bytes)?;
        if let (Some(whole), PageKind::FullZip(zipped), Some(index)) = (&self.whole, &state.kind, page.buffers.get(1)) {
            if let Some(index) = cut(whole, index) {
                zipped.keep_index(&index);
            }
        }
        state.whole = self.whole.clone().filter(|_| is_kept);
        let state = Arc::new(state);
        cache::keep(file.kept(), leaf.column, self.at.number, &state);
        self.state = Some(state);
        Ok(())
    }

    /// Where the wanted rows lie in the file.
    fn places(&mut self) -> Result<Vec<Range<u64>>> {
        match self.state.as_ref().map(|state| &state.kind) {
            Some(PageKind::MiniBlock(page)) => {
                self.picks = page.picks(&self.rows);
                Ok(page.ranges(&self.picks, &self.rows))
            }
            Some(PageKind::FullZip(page)) => page.ranges(&self.at, &self.rows, &self.entries),
            Some(PageKind::Constant(_)) | None => Ok(Vec::new()),
        }
    }

    /// A pass does not come back to a page whose last row it has read.
    fn note_passed(&self, file: &LeafFile) {
        let (end, page) = (
            self.rows.last().map(|range| range.end),
            self.meta.pages.get(self.at.number),
        );
        if let (Some(end), Some(page)) = (end, page) {
            cache::passed(file.kept(), self.at.column, self.at.number, end, page.num_values);
        }
    }

    fn load(self, places: Vec<Range<u64>>, found: &mut impl Iterator<Item = Bytes>) -> Result<Option<LoadedPage>> {
        let mut parts = Vec::with_capacity(places.len());
        for place in places {
            let bytes = match &self.whole {
                Some(whole) => cut(whole, &place),
                None => found.next(),
            };
            let bytes = bytes.ok_or_else(|| self.at.corrupt("expected the bytes of the wanted rows, found fewer"))?;
            parts.push((place.start, bytes));
        }
        Ok(self.state.map(|state| LoadedPage {
            at: self.at,
            state,
            rows: self.rows,
            picks: self.picks,
            bytes: LoadedBytes { parts },
        }))
    }
}

/// Whether another whole page may be kept.
fn may_keep(file: &LeafFile, small: SmallPages) -> bool {
    let cache = file.kept().cache();
    match small {
        SmallPages::Whole => cache.num_bytes() <= cache.limit() / KEPT_PART,
        SmallPages::WholeInTurns => true,
        SmallPages::InParts => false,
    }
}

/// All of a small page.
fn small_span(page: &PageMeta) -> Option<Range<u64>> {
    span(page).filter(|span| span.end - span.start <= SMALL_PAGE)
}

/// All of a page, if its buffers lie together.
fn span(page: &PageMeta) -> Option<Range<u64>> {
    let filled = || page.buffers.iter().filter(|buffer| !buffer.is_empty());
    let start = filled().map(|buffer| buffer.start).min()?;
    let end = filled().map(|buffer| buffer.end).max()?;
    let bytes: u64 = filled().map(|buffer| buffer.end - buffer.start).sum();
    let padding = 64 * page.buffers.len() as u64;
    (end - start <= bytes.saturating_add(padding)).then_some(start..end)
}
