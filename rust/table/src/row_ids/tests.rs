//! Sequences, versions and the index against a plain model: a list with one entry a row.

mod commits;
mod hostile;
mod index;
mod sequences;
mod versions;
