//! Dictionary columns: keys as plain values; the values are stored once, in the data file or in the table's manifest.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod values;
