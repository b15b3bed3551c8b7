//! Object stores behind a network (`s3://`, `az://`, `gs://`), reached through the `object_store` crate.
//!
//! ```text
//! URI ──place──> scheme, bucket, prefix ┐
//! storage options ┐                     ├──s3, azure, google──> backend ──> ObjectAdapter
//! environment ────┴──options──> keys ───┘        │
//!                                 client: one connection pool for all stores with the same client options
//! ```

mod azure;
mod backend;
mod client;
mod google;
mod options;
mod place;
mod profile;
mod s3;
mod secrets;

pub use backend::open;
pub use secrets::is_secret;
pub(crate) use secrets::Secrets;

#[cfg(test)]
mod tests;
