//! Tests through the public door: what every store must do, and what each does besides.

mod adapter;
mod conformance;
mod fault;
mod local;
mod opening;
