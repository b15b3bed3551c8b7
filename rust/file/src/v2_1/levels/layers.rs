//! What the levels of a page mean.

use esker_proto::lance::encodings21::RepDefLayer;

use crate::error::Result;
use crate::v2_1::page::PageId;

/// What one layer of nesting is in the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayerKind {
    /// A value or a struct.
    Item,
    /// A list, large list or map.
    List,
    /// A list of so many structs each.
    FixedList(usize),
}

/// One layer of a page, with the definition levels that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) is_list: bool,
    /// The largest level of the layers inside this one.
    pub(crate) below: u16,
    /// The level of a null.
    pub(crate) null: Option<u16>,
    /// The level of an empty list.
    pub(crate) empty: Option<u16>,
    /// The largest level of an entry that is seen at this layer: no list around it is null or empty.
    pub(crate) visible: u16,
    /// The repetition level from which an entry starts something new at this layer.
    pub(crate) starts: u16,
}

/// All layers of a page, innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layers {
    pub(crate) layers: Vec<Layer>,
    pub(crate) max_rep: u16,
    pub(crate) max_def: u16,
}

impl Layers {
    /// Reads the layers of a page.
    pub(crate) fn new(at: &PageId, stored: &[i32]) -> Result<Layers> {
        let mut layers = Vec::with_capacity(stored.len());
        let (mut def, mut rep) = (0_u16, 0_u16);
        if stored.is_empty() || stored.len() > 4096 {
            return Err(at.corrupt(format!("expected layers of nesting, found {}", stored.len())));
        }
        for code in stored {
            let below = def;
            let mut next = || {
                def += 1;
                Some(def)
            };
            let (is_list, null, empty) = match RepDefLayer::try_from(*code) {
                Ok(RepDefLayer::RepdefAllValidItem) => (false, None, None),
                Ok(RepDefLayer::RepdefNullableItem) => (false, next(), None),
                Ok(RepDefLayer::RepdefAllValidList) => (true, None, None),
                Ok(RepDefLayer::RepdefNullableList) => (true, next(), None),
                Ok(RepDefLayer::RepdefEmptyableList) => (true, None, next()),
                Ok(RepDefLayer::RepdefNullAndEmptyList) => (true, next(), next()),
                _ => return Err(at.corrupt(format!("expected a known kind of layer, found {code}"))),
            };
            rep += u16::from(is_list);
            layers.push(Layer {
                is_list,
                below,
                null,
                empty,
                visible: 0,
                starts: rep,
            });
        }
        // From outside in: what lies in a null or empty list is not seen.
        let mut visible = def;
        for layer in layers.iter_mut().rev() {
            layer.visible = visible;
            if layer.is_list {
                visible = layer.below;
            }
        }
        Ok(Layers {
            layers,
            max_rep: rep,
            max_def: def,
        })
    }

    /// The largest level of an entry that has a value.
    pub(crate) fn max_visible(&self) -> u16 {
        self.layers.first().map_or(0, |layer| layer.visible)
    }

    /// Refuses layers that are not those of the schema.
    pub(crate) fn check(&self, at: &PageId, kinds: &[LayerKind]) -> Result<()> {
        let same = self.layers.len() == kinds.len()
            && self
                .layers
                .iter()
                .zip(kinds)
                .all(|(layer, kind)| layer.is_list == (*kind == LayerKind::List));
        if same {
            return Ok(());
        }
        let found: Vec<&str> = self
            .layers
            .iter()
            .map(|l| if l.is_list { "list" } else { "item" })
            .collect();
        Err(at.corrupt(format!(
            "expected the layers of the column's type, {} of them, found {}",
            kinds.len(),
            found.join(", ")
        )))
    }
}
