//! The state of a page: its parsed description, index and dictionary.

use std::ops::Range;

use arrow_schema::DataType;
use bytes::Bytes;
use esker_proto::lance::encodings21 as pb;
use esker_proto::lance::encodings21::page_layout::Layout;

use super::blob;
use super::constant::page::ConstantPage;
use super::full_zip::page::FullZipPage;
use super::levels::layers::Layers;
use super::mini_block::page::{MiniBlockPage, MiniBlockParts};
use super::page::PageId;
use crate::container::{PageEncoding, PageMeta};
use crate::error::Result;

/// A page, ready to be read from.
#[derive(Debug)]
pub(crate) struct PageState {
    pub(crate) kind: PageKind,
    /// What the levels within descriptions mean, in a page of blobs.
    pub(crate) blobs: Option<Layers>,
    /// The type that it is read as.
    pub(crate) data_type: DataType,
    /// A small page's bytes, all of them, from where they start in the file.
    pub(crate) whole: Option<(u64, Bytes)>,
}

/// A page by its layout.
#[derive(Debug)]
pub(crate) enum PageKind {
    MiniBlock(Box<MiniBlockPage>),
    FullZip(Box<FullZipPage>),
    Constant(Box<ConstantPage>),
}

impl PageState {
    /// What the page's levels mean.
    pub(crate) fn layers(&self) -> &Layers {
        match &self.kind {
            PageKind::MiniBlock(page) => &page.layers,
            PageKind::FullZip(page) => &page.layers,
            PageKind::Constant(page) => &page.layers,
        }
    }

    /// Bytes that the page takes in a cache.
    pub(crate) fn memory(&self) -> usize {
        let kind = match &self.kind {
            PageKind::MiniBlock(page) => page.memory(),
            PageKind::FullZip(page) => page.memory(),
            PageKind::Constant(page) => page.memory(),
        };
        kind + self.whole.as_ref().map_or(0, |(_, bytes)| bytes.len())
    }
}

/// The parts of a page that its state is made of.
#[derive(Debug)]
pub(crate) struct PageParts<'a> {
    layout: LayoutParts<'a>,
    blobs: Option<Layers>,
}

#[derive(Debug)]
enum LayoutParts<'a> {
    MiniBlock(&'a pb::MiniBlockLayout, MiniBlockParts),
    FullZip(&'a pb::FullZipLayout),
    Constant(&'a pb::ConstantLayout),
}

/// The layout of a page, as its description has it.
pub(crate) fn layout<'a>(at: &PageId, page: &'a PageMeta) -> Result<&'a Layout> {
    let found = match &page.encoding {
        PageEncoding::V2_1(layout) => {
            return layout
                .layout
                .as_ref()
                .ok_or_else(|| at.corrupt("expected a page layout, found none or one of a newer version"))
        }
        PageEncoding::V2_0(_) => "one of 2.0",
        PageEncoding::Other(name, _) => name.as_str(),
    };
    Err(at.corrupt(format!("expected an encoding of file version 2.1, found {found}")))
}

impl<'a> PageParts<'a> {
    /// Finds the parts of a page.
    pub(crate) fn new(at: &PageId, page: &'a PageMeta, layout: &'a Layout) -> Result<PageParts<'a>> {
        let (layout, blobs) = blob::decode::unwrap(at, layout)?;
        let layout = match layout {
            Layout::MiniBlockLayout(layout) => {
                LayoutParts::MiniBlock(layout, MiniBlockParts::new(at, layout, &page.buffers)?)
            }
            Layout::FullZipLayout(layout) => LayoutParts::FullZip(layout),
            Layout::ConstantLayout(layout) => LayoutParts::Constant(layout),
            Layout::BlobLayout(_) => return Err(at.corrupt("expected a layout of values, found one of blobs")),
        };
        Ok(PageParts { layout, blobs })
    }

    /// What to read for the state. Nothing where it needs no bytes.
    pub(crate) fn ranges(&self, page: &PageMeta) -> Vec<Range<u64>> {
        match &self.layout {
            LayoutParts::MiniBlock(_, parts) => parts.ranges(),
            LayoutParts::FullZip(_) => Vec::new(),
            LayoutParts::Constant(_) => page.buffers.clone(),
        }
    }

    /// The state, given the bytes of [`Self::ranges`].
    pub(crate) fn state(
        self,
        at: &PageId,
        page: &PageMeta,
        data_type: &DataType,
        bytes: &[Bytes],
    ) -> Result<PageState> {
        let kind = match self.layout {
            LayoutParts::MiniBlock(layout, parts) => {
                let layers = Layers::new(at, &layout.layers)?;
                let state = MiniBlockPage::new(at, layout, layers, page.num_values, parts, data_type, bytes)?;
                PageKind::MiniBlock(Box::new(state))
            }
            LayoutParts::FullZip(layout) => {
                let layers = Layers::new(at, &layout.layers)?;
                let state = FullZipPage::new(at, layout, layers, page.num_values, &page.buffers)?;
                PageKind::FullZip(Box::new(state))
            }
            LayoutParts::Constant(layout) => {
                let layers = Layers::new(at, &layout.layers)?;
                PageKind::Constant(Box::new(ConstantPage::new(at, layout, layers, bytes)?))
            }
        };
        Ok(PageState {
            kind,
            blobs: self.blobs,
            data_type: data_type.clone(),
            whole: None,
        })
    }
}
