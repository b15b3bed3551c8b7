//! Bodies for fuzzing: each takes any bytes and panics only if a kernel is wrong.
//!
//! `cargo test` replays `fuzz/corpus` and seeded mutations of it through them; `cargo fuzz` calls the same functions, see `fuzz/README.md`.

pub mod allocations;
mod input;
mod kernels;
pub mod mutation;

pub use kernels::{run, TARGETS};
