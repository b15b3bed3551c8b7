//! Lists: a column of end offsets that encode nulls, too, and the items in columns of their own.
//!
//! The offsets of a page count from the page's own first item. Pages of offsets and pages of items break where they like.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod text;
