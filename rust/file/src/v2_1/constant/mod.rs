//! Pages of one value, or of none: where all is null only levels remain.

pub(crate) mod encode;
