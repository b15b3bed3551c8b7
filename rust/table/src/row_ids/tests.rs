//! Sequences, versions and the index against a plain model: a list with one entry per row.

mod commits;
mod hostile;
mod index;
mod sequences;
mod versions;
