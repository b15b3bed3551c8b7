//! Statistics: for each field with an order and each group, the null count and the bounds of the values.
//!
//! They are columns of their own after the pages, with one value per group: a struct `{null_count, min_value, max_value}` for each field,
//! named by the field's id.
//!
//! | values of a page | bounds |
//! |---|---|
//! | integers, dates, decimals | least and greatest; the type's own where all are null |
//! | floats | the same without NaN, -inf and inf where there is none; a least of zero is -0.0, a greatest 0.0 |
//! | booleans | least and greatest; false and true where all are null |
//! | strings, binary | the first 64 bytes of the least; those of the greatest counted up by one where anything was cut; null where there is none |
//!
//! They describe the values as the writer had them. [`bounds`] converts them to bounds of the values as they are read.
//!
//! Source: the Lance format document at version 0.1, "Statistics".

pub(crate) mod bounds;
pub(crate) mod collect;
pub(crate) mod decode;
pub(crate) mod encode;
mod text;
