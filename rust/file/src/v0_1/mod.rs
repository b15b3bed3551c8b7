//! Files of version 0.1, also called "legacy".

pub(crate) mod check;
pub(crate) mod read;
pub(crate) mod write;
