//! Dictionary encoding: values as indices of distinct items.
//!
//! Two conventions share one message. A plain string column counts its items from 1, and 0 is null. An Arrow dictionary column counts
//! from 0 in its own key width, and a null points at an item that is null itself.

pub(crate) mod decode;
pub(crate) mod encode;
