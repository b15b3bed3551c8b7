//! Reads blob columns: the levels in the descriptions, and the bytes that the descriptions refer to.

use arrow_array::ArrayRef;
use esker_proto::lance::encodings21 as pb;
use esker_proto::lance::encodings21::page_layout::Layout;

use crate::blob::{fetch_array, locate, Home};
use crate::container::Container;
use crate::error::Result;
use crate::schema::{BlobKind, BlobView, Field};
use crate::v2_1::builder::{LeafBuilder, Values};
use crate::v2_1::levels::decode::Levels;
use crate::v2_1::levels::layers::Layers;
use crate::v2_1::page::PageId;

/// A blob column of a read, and the form in which it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlobLeaf {
    pub(crate) kind: BlobKind,
    pub(crate) view: BlobView,
}

impl BlobLeaf {
    /// What a read wants of a field; none for one without blobs.
    pub(crate) fn of(field: &Field) -> Option<BlobLeaf> {
        let kind = field.blob_kind()?;
        let stored = match kind {
            BlobKind::V1 => BlobView::Bytes,
            BlobKind::V2 => BlobView::Descriptions,
        };
        let view = field.blob_view.unwrap_or(stored);
        Some(BlobLeaf { kind, view })
    }

    /// What comes of descriptions: themselves, or the bytes that they lead to.
    pub(crate) async fn show(self, file: &Container, descriptions: ArrayRef) -> Result<ArrayRef> {
        if self.view != BlobView::Bytes {
            return Ok(descriptions);
        }
        let home = Home {
            path: file.path(),
            size: file.size(),
        };
        fetch_array(file.store(), &locate(home, self.kind, &descriptions)?).await
    }
}

/// The layout that holds a page's values, and for a page of descriptions what their levels mean.
pub(crate) fn unwrap<'a>(at: &PageId, layout: &'a Layout) -> Result<(&'a Layout, Option<Layers>)> {
    let Layout::BlobLayout(blob) = layout else {
        return Ok((layout, None));
    };
    let inner = blob.inner_layout.as_deref().and_then(|inner| inner.layout.as_ref());
    match inner {
        None => Err(at.missing("a layout of descriptions")),
        Some(Layout::BlobLayout(_)) => Err(at.corrupt("expected a layout of descriptions, found one of blobs")),
        Some(inner) => Ok((inner, Some(layers(at, blob)?))),
    }
}

fn layers(at: &PageId, blob: &pb::BlobLayout) -> Result<Layers> {
    let layers = Layers::new(at, &blob.layers)?;
    if layers.max_rep > 0 {
        return Err(at.unsupported(
            "lists of blobs cannot be read: where lists end is not in the file; write them in version 2.0 or 2.2",
        ));
    }
    Ok(layers)
}

/// The levels that the descriptions from `first` on hold.
pub(crate) fn levels(at: &PageId, layers: &Layers, values: &LeafBuilder, first: usize) -> Result<Levels> {
    let mut levels = Levels::new(false, layers.max_def > 0);
    let wrong = || at.corrupt("expected descriptions of a position and a size, found other values");
    let LeafBuilder::Plain(Values::Struct(structs)) = values else {
        return Err(wrong());
    };
    let [Values::Fixed(positions), Values::Fixed(sizes)] = structs.fields.as_slice() else {
        return Err(wrong());
    };
    let numbers = |bytes: &[u8]| -> Vec<u64> {
        let words = bytes.as_chunks::<8>().0.iter().skip(first);
        words.map(|word| u64::from_le_bytes(*word)).collect()
    };
    for (position, size) in numbers(positions.as_slice()).into_iter().zip(numbers(sizes.as_slice())) {
        let level = if size == 0 { (position >> 16) & 0xffff } else { 0 };
        levels.push(0, u16::try_from(level).unwrap_or(u16::MAX));
    }
    Ok(levels)
}
