//! Blob columns.
//!
//! A column of the first kind has pages of positions and sizes whose levels are within them: a value that is null has size 0 and
//! position `definition level << 16 | repetition level`, an empty one (0, 0). One of the second kind is a column of packed structs.

pub(crate) mod decode;
pub(crate) mod encode;
