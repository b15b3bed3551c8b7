//! Writing pages of one value or of none.

use bytes::Bytes;
use esker_proto::lance::encodings21 as pb;
use esker_proto::lance::encodings21::page_layout::Layout;
use esker_proto::lance::encodings21::RepDefLayer;

use super::super::levels::encode::{layer_numbers, plain};
use super::super::levels::serialize::Levels;
use super::super::message::page_layout;
use super::super::mini_block::encode::EncodedPage;

/// A page in which no value is there.
pub(crate) fn encode_all_null(levels: &Levels) -> EncodedPage {
    // The items of a column that has no other layer are null: nothing is left to say.
    let bare = levels.layers.len() == 1 && levels.max_rep == 0;
    let layers = if bare {
        vec![RepDefLayer::RepdefNullableItem]
    } else {
        levels.layers.clone()
    };
    let mut buffers = Vec::new();
    if !bare {
        for levels in [&levels.rep, &levels.def] {
            let bytes = plain(levels.as_deref());
            buffers.push(if bytes.is_empty() {
                Vec::new()
            } else {
                vec![Bytes::from(bytes)]
            });
        }
    }
    EncodedPage {
        buffers,
        layout: page_layout(Layout::ConstantLayout(pb::ConstantLayout {
            layers: layer_numbers(&layers),
            ..Default::default()
        })),
    }
}
