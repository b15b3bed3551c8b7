//! Files of versions 2.1 and 2.2: a column for each leaf of the schema, the nesting in repetition and definition levels.

pub(crate) mod check;
pub(crate) mod columns;
pub(crate) mod read;
pub(crate) mod write;
